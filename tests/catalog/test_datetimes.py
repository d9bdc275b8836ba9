"""A declared datetime: its bounds, catalog.toml, the command line, made-up rows."""

import json
import pickle
from datetime import UTC, date, datetime, timedelta

import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.answering.made_up_rows import make_rows
from sfumato.answering.table_words import describe_bounds, write_table_json
from sfumato.catalog.catalog_file import load_catalog, write_catalog
from sfumato.catalog.dataset import Dataset, Table
from sfumato.cli.declare import parse_column
from sfumato.cli.main import app
from sfumato.cli.refusals import Usage
from sfumato.errors import CatalogError
from sfumato.kernel.expressions import ColumnType

LOW, HIGH = "2020-01-01T00:00:00", "2026-12-31T23:59:59"
SEEN = sf.DateTime(LOW, HIGH)
CATALOG = '[dataset]\nname = "d"\n[budget]\nepsilon = 1\n[tables.t]\nunit = "row"\ncolumns.seen = { type = "datetime", '


def test_bounds_are_moments():
    assert (SEEN.lower, SEEN.upper) == (datetime(2020, 1, 1), datetime(2026, 12, 31, 23, 59, 59))
    assert SEEN.nullable
    assert sf.DateTime(datetime(2020, 1, 1), "2026-12-31 23:59:59.000000") == SEEN
    assert sf.DateTime(LOW, "2026-12-31T23:59:59.5").upper.microsecond == 500_000
    assert sf.DateTime(datetime(2020, 1, 1, fold=1), HIGH) == SEEN
    assert pickle.loads(pickle.dumps(SEEN)) == SEEN
    assert Table("t", None, sf.ROW, {"seen": SEEN}).column("SEEN").type is ColumnType.DATETIME


@pytest.mark.parametrize(
    ("lower", "upper", "word"),
    [
        ("2020-01-01", HIGH, "lower must be a date and time"),  # midnight or the whole day? It is not guessed
        (LOW, "2026-12-31", "upper must be a date and time"),
        (LOW, "2026-12-31T23:59:59Z", "without a time zone"),
        (LOW, "2026-12-31T23:59:59+00:00", "without a time zone"),
        (LOW, datetime(2026, 1, 1, tzinfo=UTC), "without a time zone"),
        (LOW, "2026-02-30T00:00:00", "upper must be a date and time"),
        (LOW, "2026-12-31T24:00:00", "upper must be a date and time"),
        (LOW, "2026-12-31T23:59:59.1234567", "upper must be a date and time"),
        (LOW, 5, "got an int"),
        (HIGH, LOW, "must not exceed"),
    ],
)
def test_what_is_no_moment_is_refused(lower, upper, word):
    with pytest.raises(CatalogError) as refused:
        sf.DateTime(lower, upper)
    assert word in str(refused.value)


def test_it_is_written_and_read_again(tmp_path):
    columns = {"seen": SEEN, "left": sf.DateTime(LOW, "2026-12-31T23:59:59.000001", nullable=False)}
    dataset = Dataset("d", [Table("t", None, sf.ROW, columns)], sf.Budget(epsilon=1))
    write_catalog(dataset, tmp_path)
    assert f'columns.seen = {{ type = "datetime", lower = "{LOW}", upper = "{HIGH}" }}' in (
        tmp_path / "catalog.toml"
    ).read_text(encoding="utf-8")
    assert load_catalog(tmp_path) == dataset


def test_toml_has_moments_of_its_own(tmp_path):
    (tmp_path / "catalog.toml").write_text(f"{CATALOG}lower = {LOW}, upper = {HIGH} }}\n")
    assert load_catalog(tmp_path).tables["t"].columns["seen"] == SEEN
    (tmp_path / "catalog.toml").write_text(f"{CATALOG}lower = {LOW}Z, upper = {HIGH} }}\n")
    with pytest.raises(CatalogError, match=r"columns\.seen: lower must be a date and time without a time zone"):
        load_catalog(tmp_path)


def test_the_command_line_takes_bounds_that_hold_colons():
    assert parse_column(f"seen:datetime:{LOW}:{HIGH}") == ("seen", SEEN)
    assert parse_column("seen:datetime: 2020-01-01 00:00:00 : 2026-12-31 23:59:59 ") == ("seen", SEEN)
    assert parse_column(f"a:datetime:{LOW}.5:{HIGH}", ["a"]) == ("a", sf.DateTime(f"{LOW}.5", HIGH, nullable=False))
    for wrong in ("seen:datetime", f"seen:datetime:{LOW}", "seen:datetime:1:2"):
        with pytest.raises(Usage, match="lower and an upper bound") as refused:
            parse_column(wrong)
        assert f"seen:datetime:{LOW}:{HIGH}" in refused.value.hint
    with pytest.raises(CatalogError, match="lower must be a date and time"):
        parse_column(f"seen:datetime:2020-01-01:{HIGH}")


def test_it_is_shown():
    (column,) = write_table_json(Table("t", None, sf.ROW, {"seen": SEEN}))["columns"]
    assert column == {"name": "seen", "type": "datetime", "nullable": True, "lower": LOW, "upper": HIGH}
    assert describe_bounds(column) == f"{LOW} to {HIGH}"


def test_made_up_rows_keep_to_the_bounds():
    table = Table("t", None, sf.ROW, {"a": SEEN, "b": sf.DateTime(LOW, LOW), "c": sf.DateTime(LOW, f"{LOW}.5")})
    made = make_rows(table, 200).to_pydict()
    assert all(SEEN.lower <= moment <= SEEN.upper for moment in made["a"])
    assert max(made["a"]) - min(made["a"]) > timedelta(days=365)
    assert set(made["b"]) == set(made["c"]) == {SEEN.lower}


def test_a_folder_with_moments_is_added_and_asked(tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    rows = "".join(f"p{person},2020-0{1 + person % 3}-15T10:00:00+02:00\n" for person in range(90))
    (tmp_path / "visits.csv").write_text(f"who,seen\n{rows}")
    run("init", tmp_path, "--epsilon", "100", "--delta", "0")
    run(
        "-C",
        tmp_path,
        "add",
        "visits",
        "visits.csv",
        "--unit",
        "who",
        "--column",
        f"seen:datetime:{LOW}:2020-03-31T23:59:59",
    )
    assert LOW in run("-C", tmp_path, "check")
    sql = "SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) AS n FROM visits WHERE HOUR(seen) = 8 GROUP BY m ORDER BY m"
    told = json.loads(run("-C", tmp_path, "ask", sql, "--epsilon", "50", "--json"))
    assert [row["m"] for row in told["rows"]] == ["2020-01-01 00:00:00", "2020-02-01 00:00:00", "2020-03-01 00:00:00"]
    assert [row["n"] for row in told["rows"]] == pytest.approx([30, 30, 30], abs=3)


@pytest.mark.parametrize(
    ("lower", "upper", "written"),
    [
        ("2020-01-01", "2020-12-31T00:00:00", 'lower = "2020-01-01T00:00:00"'),
        (date(2020, 1, 1), "2020-12-31T00:00:00", 'lower = "2020-01-01T00:00:00"'),
        ("2020-01-01T00:00:00", "2020-12-31", 'upper = "2020-12-31T23:59:59"'),
    ],
)
def test_a_bound_without_a_time_is_refused_with_the_whole_day(lower, upper, written):
    with pytest.raises(CatalogError) as refused:
        sf.DateTime(lower, upper)
    assert "got a date without a time" in refused.value.message
    assert written in refused.value.hint
