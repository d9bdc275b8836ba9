"""The faults that `make mutants` tries are faults of the code as it is now."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_claims import ROOT, defined_tests

SPEC = importlib.util.spec_from_file_location("mutants_run", ROOT / "tests" / "mutants" / "run.py")
run = importlib.util.module_from_spec(SPEC)
sys.modules["mutants_run"] = run
SPEC.loader.exec_module(run)
MUTANTS = list(run.all_mutants())


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_breaks_the_code_as_it_is(mutant):
    assert mutant.problem() is None
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in defined_tests(ROOT / file), test
    assert (ROOT / "docs" / "claims" / f"{mutant.claim}.md").exists() or not mutant.claim.startswith("K-")


def test_the_whole_perimeter_is_broken_somewhere():
    folders = Counter(Path(mutant.file).parts[2] for mutant in MUTANTS)
    assert folders["kernel"] >= 60
    assert min(folders[name] for name in ("engines", "ingest", "ledger")) >= 10
    assert sum(bool(mutant.survives) for mutant in MUTANTS) <= 5, "survivors are exceptions"


def test_mutants_are_different():
    assert len({(mutant.file, mutant.text, mutant.becomes) for mutant in MUTANTS}) == len(MUTANTS)


def find_undefined_names(sources, folder):
    """The undefined names that ruff finds. Any test would notice such a fault."""
    for number, source in enumerate(sources):
        (folder / f"m{number}.py").write_text(source)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--output-format", "concise"]
    found = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if "F821" in line]


def test_a_mutant_uses_only_names_that_exist(tmp_path):
    assert (
        find_undefined_names([mutant.applied((ROOT / mutant.file).read_text()) for mutant in MUTANTS], tmp_path) == []
    )


def test_an_undefined_name_is_seen(tmp_path):
    """Negative control."""
    assert len(find_undefined_names(["def lower(quantity):\n    return each.name\n"], tmp_path)) == 1


def test_a_text_that_is_gone_is_seen(tmp_path):
    """Negative control."""
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    texts = {"x = 1": "x = 2", "= 1": "= 2", "z": "y", "x": "x", "y = 1": "y = ("}
    problems = [run.Mutant("a", "a.py", *pair, "K-01", ()).problem(Path(tmp_path)) for pair in texts.items()]
    assert [problem is None for problem in problems] == [True, False, False, False, False]
