"""The trusted core is small, listed in one place, and counted by a script."""

import re
import subprocess

import pytest
from count_trusted import (
    DOCUMENT,
    FIRST,
    ROOT,
    ROW,
    SEPARATE,
    TOTAL,
    WHOLE_TOTAL,
    count_at_first,
    count_code,
    count_total,
    list_trusted,
    update,
)
from test_imports import EVERYTHING, import_graph, module_name

MOST_LINES = 4_175  # a ceiling of its own: a row in the document does not raise it
LIMIT = 3_000  # of the core when its structure was finished
ADDED = re.compile(r"^\| [^|]+ \| (-?[0-9,]+) \| K-[^|]+ \|$", re.MULTILINE)  # what each later feature added
LISTED = list(list_trusted(DOCUMENT.read_text()))


def test_the_trusted_core_is_small():
    text = DOCUMENT.read_text()
    assert count_total(text) <= MOST_LINES
    added = [int(lines.replace(",", "")) for lines in ADDED.findall(text.partition("## How the core grew")[2])]
    assert len(added) > 10
    assert count_total(text) == LIMIT + sum(added), "say in the table of docs/trusted.md what a change added or removed"
    assert f"added {sum(added):,}." in text


def show_at_first(file):
    """The text of a file when the structure was finished; None if it was not there. Fails without that commit."""
    shown = subprocess.run(["git", "show", f"{FIRST}:{file}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def test_the_core_was_within_its_limit_when_its_structure_was_finished():
    """File by file, from the project's history. A copy without it (a package, a shallow clone) has the sum alone."""
    core = [one for one in LISTED if not one.section.startswith(SEPARATE)]
    assert all(one.at_first is not None for one in core)
    assert count_at_first(DOCUMENT.read_text()) <= LIMIT
    document = show_at_first("docs/trusted.md")
    if document is None:
        return
    files = [row[1] for row in map(ROW.match, document.partition(f"## {SEPARATE}")[0].splitlines()) if row]
    assert len(files) > 50
    for file in files:
        assert count_code(show_at_first(file)) == next(one.at_first for one in core if one.file == file), file
    assert {one.file for one in core if one.at_first} == {file for file in files if count_code(show_at_first(file))}


def test_the_document_is_current():
    """After a change of trusted code: python tests/structure/count_trusted.py --write."""
    text = DOCUMENT.read_text()
    assert text == update(text), "run: python tests/structure/count_trusted.py --write"
    assert len(WHOLE_TOTAL.findall(text)) == 1
    assert len(TOTAL.findall(text)) == len({trusted.section for trusted in LISTED})


@pytest.mark.parametrize("trusted", LISTED, ids=lambda trusted: trusted.file)
def test_a_listed_file_exists(trusted):
    assert trusted.path.exists(), "docs/trusted.md is the one list of trusted files: change its row there"


def test_every_file_is_listed_once_and_all_of_the_kernel_is():
    files = [trusted.file for trusted in LISTED]
    assert sorted(set(files)) == sorted(files)
    kernel = {str(path.relative_to(ROOT)) for path in (ROOT / "src" / "sfumato" / "kernel").glob("*.py")}
    assert kernel == {trusted.file for trusted in LISTED if trusted.section == "Kernel"}


def find_reachable(graph, start):
    """The modules that `start` imports, and those that they import."""
    reached, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph[module]
    return reached


def test_what_is_counted_separately_is_never_loaded_by_the_curator():
    """Other proofs depend on it: those of the local model, and of mechanisms that a program calls directly."""
    separate = {module_name(one.path) for one in LISTED if one.section.startswith(SEPARATE)}
    graph = import_graph({module_name(path): path.read_text() for path in EVERYTHING})
    for start in ("sfumato.curator", "sfumato.opening"):
        reached = find_reachable(graph, start)
        assert "sfumato.kernel.release" in reached  # the search goes somewhere
        assert not reached & separate
    assert find_reachable(graph, "sfumato.standalone.additive") & separate  # negative control


SAMPLE = '''"""Docstring
of two lines."""

import os  # not code
from sys import (
    argv,
)

# a comment
X = [
    1,  # counts

    2,
]


def f(x: int) -> int:
    """Not code."""
    text = """two
    lines"""
    return x; os; argv; text
'''


def test_the_counter_counts_code_only():
    """Negative control: docstrings, comments, blank lines and imports do not count, and everything else does."""
    assert count_code(SAMPLE) == 8
    assert count_code(SAMPLE + "\ny = 1\n") == 9
    assert count_code(SAMPLE + "\n# y = 1\n\nimport re\n") == 8


def test_a_stale_count_is_seen():
    """Negative control."""
    document = "## Kernel\n**? lines of code.**\n| `src/sfumato/errors.py` | 1 | by function | texts |\n"
    lines = count_code((ROOT / "src" / "sfumato" / "errors.py").read_text())
    assert update(document) == document.replace("?", f"{lines:,}").replace("| 1 |", f"| {lines:,} |")
    assert update(update(document)) == update(document)
    with_first = document.replace("| 1 | by", "| 1 | 7 | by")
    assert update(with_first) == with_first.replace("?", f"{lines:,}").replace("| 1 | 7", f"| {lines:,} | 7")
