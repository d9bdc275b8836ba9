"""Every snippet of the README and of the documentation runs."""

import warnings
from pathlib import Path

import pytest
from page_snippets import NOT_RUN, check_commands, read_blocks, run_page, run_python, run_session

ROOT = Path(__file__).parents[2]
ELSEWHERE = {  # pages whose snippets need more than a folder, and the test that runs them
    "docs/attacks.md": "tests/lab/test_attacks.py",
    "docs/audit.md": "tests/lab/test_audit_quick.py",
    "docs/deploy-a-survey.md": "tests/cli/test_deploy_a_survey.py",
    "docs/learning.md": "tests/structure/test_documents.py",
    "docs/lessons.md": "tests/structure/test_documents.py",
    "docs/local.md": "tests/local/test_local_chapter.py",
    "docs/service.md": "tests/service/test_remote.py",
    "docs/spark.md": "tests/engines/test_spark_entry.py",
    "docs/sql.md": "tests/query/test_sql_page.py",
    "docs/tpch.md": "tests/tpch/tpch_questions.py",
}
WRITTEN = [path for folder in ("docs", "examples") for path in sorted((ROOT / folder).rglob("*.md"))]
WRITTEN += sorted(ROOT.glob("*.md"))
PEERS = ROOT / "docs" / "how-to" / "migrate"  # see test_migration_pages.py
PAGES = [
    path
    for path in WRITTEN
    if str(path.relative_to(ROOT)) not in ELSEWHERE and path.parent != PEERS and read_blocks(path)
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_page(path)


@pytest.mark.parametrize("page", ELSEWHERE)
def test_another_test_runs_the_other_pages(page):
    assert (ROOT / page).exists()
    assert Path(page).name in (ROOT / ELSEWHERE[page]).read_text()


def test_values_are_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / "docs" / "how-to" / "mechanisms.md") >= 5


def test_blocks_that_do_not_run_are_few():
    shown = [block for path in PAGES for block in read_blocks(path) if block.kind in NOT_RUN]
    assert len(shown) <= 12


def test_a_wrong_snippet_is_noticed():
    """Negative controls: a wrong value, a wrong output, an unknown option, an unknown command."""
    with pytest.raises(AssertionError, match="not 3"):
        run_python("1 + 1   # 3: wrong\n", {}, "here")
    assert run_python("1 + 1   # 2: right\n", {}, "here") == 1
    with pytest.raises(AssertionError):
        run_session("$ sfumato epsilon 1\nnothing\n", "here")
    with pytest.raises(AssertionError, match="--colour"):
        check_commands("sfumato -C clinic ask --colour\n", "here")
    with pytest.raises(AssertionError):
        check_commands("sfumato question\n", "here")
    check_commands("sfumato -C clinic ask 'SELECT COUNT(*) FROM t' --epsilon 1   # a comment\n", "here")
