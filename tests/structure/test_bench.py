"""`make bench` runs every part, also after a missed limit, and reports all misses at the end."""

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
PARTS = {
    "noise.py": "print('noise: met')",
    "ask.py": "print('ask: MISSED'); raise SystemExit('1 limits missed')",
    "scale.py": "print('met')",
    "postgres.py": "print('met')",
    "local.py": "raise ValueError('a part that breaks')",
    "accuracy.py": "print('accuracy: MISSED'); raise SystemExit('1 limits missed')",
    "survey_server.py": "print('met')",
    "serve.py": "print('met')",
    "spark.py": "print('met')",
    "keys.py": "print('met')",
    "learn.py": "print('learn: met')",
}


def run(folder, parts):
    (folder / "run.py").write_text((BENCH / "run.py").read_text())
    for name, text in parts.items():
        (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, folder / "run.py"], capture_output=True, text=True, check=False, env={**os.environ}
    )


def test_every_part_runs_and_every_miss_is_reported(tmp_path):
    done = run(tmp_path, PARTS)
    assert done.returncode == 1
    report = done.stdout.split("3 problems:")[1].strip().splitlines()
    assert [line.split(":")[0] for line in report] == ["bench/ask.py", "bench/local.py", "bench/accuracy.py"]


def test_without_a_miss_it_succeeds(tmp_path):
    """Negative control."""
    done = run(tmp_path, dict.fromkeys(PARTS, "print('met')"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "All limits were met.")


def test_every_file_of_the_bench_is_a_part():
    text = (BENCH / "run.py").read_text()
    assert all(f'"{path.name}"' in text for path in BENCH.glob("*.py") if path.name != "run.py")
