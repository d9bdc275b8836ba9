"""Run every part of the benchmark, then report all limits that were missed. Run by `make bench`.

The parts run one after another, so that they do not disturb one another's timings. A part that fails does not stop
the others. The exit code is 1 if any limit was missed or any part failed.
"""

import os
import subprocess
import sys
from pathlib import Path

PARTS = (
    "noise.py",
    "ask.py",
    "scale.py",
    "postgres.py",
    "local.py",
    "accuracy.py",
    "keys.py",
    "learn.py",
    "survey_server.py",
    "serve.py",
    "spark.py",
)
MISSED = "MISSED"


def run_part(path: Path) -> tuple[int, list[str]]:
    """Run one part and show its output; its exit code, and the lines of its table that missed their limits."""
    missed = []
    settings = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True, env=settings) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if MISSED in line:
                missed.append(line.strip())
    return process.returncode, missed


def main() -> None:
    folder = Path(__file__).parent
    problems: list[str] = []
    for name in PARTS:
        print(f"bench/{name}", flush=True)
        code, missed = run_part(folder / name)
        problems += [f"bench/{name}: {line}" for line in missed]
        if code and not missed:
            problems.append(f"bench/{name}: failed with exit code {code}")
    print("\n".join(["", f"{len(problems)} problems:", *problems] if problems else ["", "All limits were met."]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
