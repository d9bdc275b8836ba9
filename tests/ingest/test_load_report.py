"""A load report counts exactly what happened to every value, and shows no value by default."""

import json
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import counting

COLUMNS = {
    "pid": sf.Id(),
    "age": sf.Integer(0, 120),
    "pay": sf.Real(0, 100, nullable=False),
    "city": sf.Category(["Rome", "Oslo"]),
    "stage": sf.Category([1, 2], nullable=False),
    "smoker": sf.Boolean(),
    "note": sf.Text(),
    "day": sf.Date("2020-01-01", "2024-12-31"),
}
LINES = (
    "pid,age,pay,city,stage,smoker,note,day",
    "a,41,10,Rome,1,true,hi,2020-01-01",
    "a,-1,101,rome,2,false,,2019-12-31",
    "a,130,-1,Oslo,3,maybe,x,2025-01-01",
    "b,2.5,x,,,,y,soon",
    "b,old,,Lima,1,true,z,",
    ",7,7,Rome,1,true,w,2020-01-01",
    "c,,nan,Oslo,2,false,v,2022-02-02",
)
WANTED = {  # parsed, null, unreadable, undeclared, below, above, rounded
    "pid": (6, 0, 0, 0, 0, 0, 0),
    "age": (4, 1, 1, 0, 1, 1, 1),
    "pay": (3, 1, 2, 0, 1, 1, 0),
    "city": (3, 1, 0, 2, 0, 0, 0),
    "stage": (4, 1, 0, 1, 0, 0, 0),
    "smoker": (4, 1, 1, 0, 0, 0, 0),
    "note": (5, 1, 0, 0, 0, 0, 0),
    "day": (4, 1, 1, 0, 1, 1, 0),
}


def protect(data, columns=COLUMNS, unit="pid", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.LoadWarning)
        made = sf.protect(data, name="t", unit=unit, columns=columns, budget=sf.Budget(epsilon=1), **options)
    made.close()
    return made.load_report["t"]


def counts(report):
    return {
        column.name: (
            column.parsed, column.null, column.unreadable, column.undeclared,
            column.clamped_below, column.clamped_above, column.rounded,
        )
        for column in report.columns
    }  # fmt: skip


@pytest.fixture(params=["csv", "parquet", "pandas", "arrow"])
def source(request, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(LINES) + "\n")
    if request.param == "csv":
        return path
    names, *rows = ([cell or None for cell in line.split(",")] for line in LINES)
    table = pa.table({name: [row[index] for row in rows] for index, name in enumerate(names)})
    if request.param == "arrow":
        return table
    if request.param == "pandas":
        return table.to_pandas()
    parquet.write_table(table, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_every_value_is_counted_once_and_alike_for_every_source(source):
    report = protect(source, max_rows_per_unit=2)
    assert counts(report) == WANTED
    assert (report.records_read, report.malformed, report.without_unit, report.dropped, report.rows) == (7, 0, 1, 1, 6)
    assert all(sum(outcomes[:4]) == 6 for outcomes in counts(report).values())


def test_people_and_contribution_bounds_are_counted(source):
    people = protect(source, max_rows_per_unit=2, max_groups_per_unit=2).people
    assert (people.people, people.rows_median, people.rows_95_percent, people.rows_largest) == (3, 2, 3, 3)
    assert people.over_max_rows == 1
    assert people.share(people.over_max_rows) == pytest.approx(1 / 3)
    # a is in Rome, NULL and Oslo; in stages 1, 2 and the public value of NULL
    assert dict(people.over_max_groups) == {"city": 1, "stage": 0, "smoker": 1}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([None, "x", "y", "z"]), st.booleans() | st.none()),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 3),
)
def test_groups_of_people_are_those_of_a_plain_count(rows, most):
    frame = pd.DataFrame(rows, columns=["pid", "city", "smoker"]).astype("object")
    columns = {"pid": sf.Id(), "city": sf.Category(["x", "y"]), "smoker": sf.Boolean()}
    people = protect(frame, columns, max_rows_per_unit=30, max_groups_per_unit=most).people
    kept = [(pid, city if city in ("x", "y") else None, smoker) for pid, city, smoker in rows]
    for index, name in ((1, "city"), (2, "smoker")):
        groups = [{row[index] for row in kept if row[0] == pid} for pid in {row[0] for row in rows}]
        assert dict(people.over_max_groups)[name] == sum(len(keys) > most for keys in groups)


@pytest.mark.parametrize("source", ["parquet"], indirect=True)
@pytest.mark.filterwarnings("ignore::sfumato.errors.LoadWarning")
def test_groups_of_a_large_table_are_counted_when_they_are_read(source, monkeypatch):
    """The same numbers, and only while the data is there."""
    counted, real = [], counting._count_over_groups
    monkeypatch.setattr(counting, "_count_over_groups", lambda *given: counted.append(given) or real(*given))
    monkeypatch.setattr(counting, "ROWS_AT_ONCE", 0)
    wanted = {"city": 1, "stage": 0, "smoker": 1}
    budget = sf.Budget(epsilon=1)
    given = {"unit": "pid", "columns": COLUMNS, "budget": budget, "max_rows_per_unit": 2, "max_groups_per_unit": 2}
    with sf.protect(source, name="t", **given) as read, sf.protect(source, name="t", **given) as unread:
        assert not counted
        found = read.load_report["t"].people
        assert dict(found.over_max_groups) == wanted
        assert dict(found.over_max_groups) == wanted
        assert len(counted) == 1
        assert read.load_report.as_json()["tables"][0]["people"]["over_max_groups"]["city"]["people"] == 1
    assert dict(found.over_max_groups) == wanted
    with pytest.raises(sf.errors.InvalidParameter, match="closed"):
        _ = unread.load_report["t"].people.over_max_groups


def test_many_categories_are_counted_too():
    values = [f"v{index}" for index in range(200)]
    frame = pd.DataFrame({"pid": ["a"] * 150 + ["b"], "city": [*values[:150], "v0"]})
    people = protect(frame, {"pid": sf.Id(), "city": sf.Category(values)}, max_groups_per_unit=100).people
    assert dict(people.over_max_groups) == {"city": 1}


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("apart", [1, 70_000, 10**9])
def test_groups_of_people_with_numbers_are_counted_in_every_range(most, apart, tmp_path):
    """A file counts ids of a small range in pieces: nobody is omitted or counted twice at the border of a piece."""
    ids = [apart * number for number in range(-3, 20)]
    stages = {-1: 1, 0: 2, 1: 3}  # how many values the people have, by turns
    rows = [(who, value) for at, who in enumerate(ids) for value in [-9, None, 0][: stages[at % 3 - 1]]]
    frame = pd.DataFrame({"pid": [who for who, _ in rows], "stage": pd.array([value for _, value in rows], "Int64")})
    columns = {"pid": sf.Id(), "stage": sf.Category([-9, 0])}
    wanted = {"stage": sum(stages[at % 3 - 1] > most for at in range(len(ids)))}
    people = protect(frame, columns, max_rows_per_unit=3, max_groups_per_unit=most).people
    assert dict(people.over_max_groups) == wanted
    frame.to_parquet(tmp_path / "t.parquet")
    table = Table("t", "t.parquet", "pid", columns, max_rows_per_unit=3, max_groups_per_unit=most)
    (found,) = DuckDBEngine.prepare(tmp_path / "pinned.duckdb", {"t": table}, tmp_path).report.tables
    assert dict(found.people.over_max_groups) == wanted


def test_each_row_is_a_person_where_the_row_is_the_unit():
    report = protect(pd.DataFrame({"age": [1, 2, 300]}), {"age": sf.Integer(0, 120)}, unit=sf.ROW)
    assert (report.people.people, report.people.rows_largest, report.people.over_max_rows) == (3, 1, 0)
    assert report.columns[0].clamped_above == 1


def test_an_empty_source_and_one_without_declared_columns_are_reported(tmp_path):
    (tmp_path / "t.csv").write_text("pid,age\n")
    report = protect(tmp_path / "t.csv", {"pid": sf.Id(), "age": sf.Integer(0, 9)})
    assert (report.records_read, report.people.people, report.people.rows_largest) == (0, 0, 0)
    assert protect(pd.DataFrame({"x": [1, 2]}), {}, unit=sf.ROW).rows == 2


def test_malformed_records_that_are_skipped_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text('pid,age\na,1\nb,2,3\nc,"4\nd,5\n')
    report = protect(
        tmp_path / "t.csv", {"pid": sf.Id(), "age": sf.Integer(0, 9)}, quoted_newlines=False, on_error="skip"
    )
    assert (report.records_read, report.malformed, report.dropped, report.rows) == (4, 2, 2, 2)


def test_rows_that_lead_to_nobody_are_counted():
    visits = Table("visits", None, "pid", {"pid": sf.Id(), "visit": sf.Id()}, 5)
    tests = Table("tests", None, None, {"visit": sf.Id(), "level": sf.Real(0, 1)}, 5, unit_through=("visit", "visits"))
    engine = DuckDBEngine.of_tables(
        {
            "visits": (visits, pd.DataFrame({"pid": ["a", "b"], "visit": ["v1", "v2"]})),
            "tests": (tests, pd.DataFrame({"visit": ["v1", "v1", "v9", None], "level": [0.5] * 4})),
        }
    )
    report = engine.load_report["tests"]
    engine.close()
    assert (report.records_read, report.without_unit, report.rows) == (4, 2, 2)
    assert (report.people.people, report.people.rows_largest) == (1, 2)
    assert "lead to no person" in report.problems[0].message


def test_no_value_is_in_the_repr_the_text_or_the_json(source):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = sf.protect(source, name="t", unit="pid", columns=COLUMNS, budget=sf.Budget(epsilon=1))
    made.close()
    report = made.load_report
    assert any("'Lima'" in column.examples for column in report["t"].columns)  # there they are, for the terminal
    shown = [repr(report), str(report), json.dumps(report.as_json()), *(str(warning.message) for warning in told)]
    assert len(told) == len(report.problems) > 0
    for text in shown:
        assert not any(value in text for value in ("Lima", "rome", "maybe", "soon", "2025-01-01", "2.5", "130"))
    assert "for the owner only" in str(report)
    assert "for the owner only" in report.as_json()["note"]


def test_outcomes_are_not_in_the_snapshot(tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(LINES) + "\n")
    table = Table("t", "t.csv", "pid", COLUMNS)
    path = tmp_path / "s.duckdb"
    DuckDBEngine.prepare(path, {"t": table}, tmp_path)
    engine = DuckDBEngine.open(path, {"t": table})
    names = {row[0] for row in engine._connection.execute("SELECT column_name FROM duckdb_columns()").fetchall()}
    tables = {row[0] for row in engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    engine.close()
    assert not [name for name in names if "outcome" in name or "absent" in name]
    assert tables == {"t", "__sfumato_pinned", "__sfumato_sources"}


def test_strict_refuses_and_keeps_nothing(source):
    with pytest.raises(sf.errors.CatalogError, match="strict") as refused:
        sf.protect(source, name="t", unit="pid", columns=COLUMNS, budget=sf.Budget(epsilon=1), strict=True)
    assert refused.value.code == "load-refused"
    assert "Lima" not in str(refused.value)
    clean = pd.DataFrame({"age": [1, 2]})
    sf.protect(
        clean, name="t", unit=sf.ROW, columns={"age": sf.Integer(0, 9)}, budget=sf.Budget(epsilon=1), strict=True
    ).close()


def test_a_folder_that_was_pinned_before_has_no_report(tmp_path):
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    (tmp_path / "catalog.toml").write_text(
        '[dataset]\nname = "d"\n[budget]\nepsilon = "1"\n[tables.t]\nsource = "t.csv"\nunit = "row"\n'
        'columns.age = { type = "integer", lower = 0, upper = 9 }\n'
    )
    with sf.open(tmp_path) as first:
        assert first.load_report["t"].rows == 2
    with sf.open(tmp_path) as second:
        assert second.load_report is None
