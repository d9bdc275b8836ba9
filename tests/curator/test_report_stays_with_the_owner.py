"""No part of a load report reaches an analyst: not by answers, explanations, errors, ledger, catalog or files."""

import json
import warnings

import pytest

import sfumato as sf
from sfumato.ingest import load_report

CATALOG = """
[dataset]
name = "d"
[budget]
epsilon = "100"
delta = "1e-6"
[tables.t]
source = "t.csv"
unit_column = "pid"
max_rows_per_unit = 2
columns.age = { type = "integer", lower = 0, upper = 120 }
columns.city = { type = "category", values = ["Rome", "Oslo"] }
"""
ROWS = 7_919  # a number that is found again
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY city",
    "SELECT MEDIAN(age) AS m FROM t",
)


@pytest.fixture
def folder(tmp_path):
    lines = [
        f"p{index},{'Quarantadue' if index % 2 else 41},{'Atlantide' if index % 3 else 'Rome'}" for index in range(ROWS)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["pid,age,city", *lines]) + "\n")
    (tmp_path / "catalog.toml").write_text(CATALOG)
    return tmp_path


def told(curator):
    """Everything that an analyst gets."""
    for sql in QUESTIONS:
        answer = curator.ask(sql, epsilon=1)
        preview = curator.preview(sql, epsilon=1)
        yield from (answer.explain(), preview.explain(), repr(answer), str(answer), repr(preview))
        yield json.dumps(answer.disclosure, default=str) if hasattr(answer, "disclosure") else ""
    for wrong in ("SELECT nothing FROM t", "SELECT SUM(city) FROM t", "SELECT COUNT(*) FROM u", "SELECT"):
        with pytest.raises(sf.errors.SfumatoError) as refused:
            curator.ask(wrong, epsilon=1)
        yield f"{refused.value!r} {refused.value}"
    with pytest.raises(sf.errors.BudgetExceeded) as refused:
        curator.ask(QUESTIONS[0], epsilon=1_000)
    yield str(refused.value)
    yield repr(curator)


def test_nothing_of_a_report_reaches_an_analyst(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.LoadWarning)
        curator = sf.open(folder)
    report = curator.load_report
    assert report["t"].rows == ROWS
    assert {problem.column for problem in report.problems} == {"age", "city"}
    (lost,) = (column.undeclared for column in report["t"].columns if column.name == "city")
    exact = [f"{number:,}" for number in (ROWS, ROWS // 2, lost)]
    marks = ["Quarantadue", "Atlantide", "unreadable", "undeclared categories", "Load report", "owner only", *exact]
    with curator:
        for text in told(curator):
            assert not [mark for mark in marks if mark in text], text
    kept = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("t.csv", "snapshot.duckdb")]
    assert {"catalog.toml", "ledger.db"} <= {path.name for path in kept}
    for path in kept:
        content = path.read_bytes()
        assert not [
            mark for mark in ("Quarantadue", "Atlantide", "unreadable", "owner only") if mark.encode() in content
        ]
    snapshot = (folder / ".sfumato" / "snapshot.duckdb").read_bytes()
    assert b"Quarantadue" not in snapshot
    assert b"Atlantide" not in snapshot


def test_the_marks_of_this_test_would_be_found(folder):
    """Negative control: the report's own text contains every number that the search looks for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.LoadWarning)
        curator = sf.open(folder)
    curator.close()
    text = str(curator.load_report) + str([column.examples for column in curator.load_report["t"].columns])
    for mark in ("Quarantadue", "Atlantide", "unreadable", "Load report", "owner only", f"{ROWS:,}"):
        assert mark in text
    assert load_report.FOR_THE_OWNER in text


def test_two_loads_with_different_losses_give_the_same_catalog_and_messages(tmp_path):
    """Values that a load lost change nothing public: neither the catalog, nor errors, nor previewed margins."""
    seen = []
    for city in ("Rome", "Lutetia"):
        place = tmp_path / city
        place.mkdir()
        (place / "t.csv").write_text("pid,age,city\n" + "".join(f"p{index},41,{city}\n" for index in range(200)))
        (place / "catalog.toml").write_text(CATALOG)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.errors.LoadWarning)
            curator = sf.open(place)
        with curator:
            previews = [curator.preview(sql, epsilon=1) for sql in QUESTIONS]
            shown = [(str(preview.margins), preview.explain(), preview.fits) for preview in previews]
        lines = [line for line in (place / "catalog.toml").read_text().splitlines() if "ledger_id" not in line]
        seen.append((shown, lines))
    assert seen[0] == seen[1]
