"""Counts tables: how a count is read, from every source, and what the owner is told about it."""

import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from by_cell import list_by_cell
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.counts_unit import MOST_PEOPLE
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError, LoadWarning
from sfumato.ingest.declared_versions import hash_declaration
from sfumato.kernel.neighbours import ROW
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

COLUMNS = {"type": sf.Category(["a", "b", "c"]), "x": sf.Real(0, 10)}
BUDGET = sf.Budget(epsilon=1000)


def counts_table(columns=COLUMNS, **keys):
    return Table("t", None, ROW, columns, count_column="n", **keys)


def people_of(data, declared=None):
    """The pinned people, each with the values of the declared columns."""
    engine = DuckDBEngine.of_data(declared or counts_table(), data)
    try:
        return sorted(engine._connection.execute("SELECT type, x, n FROM t").fetchall(), key=str), engine.load_report
    finally:
        engine.close()


def measure(data, question, declared=None):
    """The exact integers that would get noise."""
    table = declared or counts_table()
    dataset = Dataset("d", [table], BUDGET)
    plan = choose_plan(bind(parse(question), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan
    engine = DuckDBEngine.of_data(table, data)
    try:
        return list_by_cell(engine.aggregate(plan), plan)
    finally:
        engine.close()


def frame(counts, **more):
    return pd.DataFrame({"type": ["a"] * len(counts), "x": 1.0, "n": pd.Series(counts, dtype=object), **more})


HOSTILE = [
    ("1e3", 1000, None), ("007", 7, None), (2.0, 2, None), (2.5, 0, "fractional"), (math.nan, 0, "missing"),
    (None, 0, "missing"), (-3, 0, "negative"), (-0.5, 0, "negative"), (" 4", 4, None), (True, 1, None),
    (False, 0, "zero"), (0, 0, "zero"), ("-0", 0, "zero"), ("x", 0, "unreadable"), ("inf", 0, "unreadable"),
    (-math.inf, 0, "unreadable"), ("nan", 0, "unreadable"), ("3,5", 0, "unreadable"), ("1_0", 10, None),
    (Decimal("3.00"), 3, None), (Decimal("0.5"), 0, "fractional"), (np.int8(5), 5, None),
]  # fmt: skip


@pytest.mark.parametrize(("count", "people", "outcome"), HOSTILE, ids=lambda value: repr(value))
@pytest.mark.parametrize("beside", [[], [4, "abc", 2.5, None]], ids=["alone", "among others"])
def test_a_count_is_read_by_itself(count, people, outcome, beside):
    """The count of one record has the same number of people whatever the other records hold."""
    rows, report = people_of(frame([count, *beside], x=[7.0, *[1.0] * len(beside)]))
    mine = [row for row in rows if row[1] == 7.0]
    assert mine == [("a", 7.0, 1)] * people
    counts = report["t"].counts
    alone = people_of(frame(beside))[1]["t"].counts if beside else None
    assert counts.people == len(rows)
    for name in ("missing", "unreadable", "negative", "fractional", "zero"):
        assert getattr(counts, name) - (getattr(alone, name) if alone else 0) == (name == outcome), name


def test_the_answer_is_duckdbs(tmp_path):
    """Without noise, SUM(n) GROUP BY is what plain DuckDB computes from the original table."""
    frame_of_counts = pd.DataFrame(
        {"type": ["a", "b", "a", "c", None], "x": [1.0, 2.0, 3.0, 4.0, 5.0], "n": [5, 12, 7, 0, 3]}
    )
    plain = duckdb.connect()
    plain.register("t", frame_of_counts)
    for question, place in (("SUM(n)", "sum1"), ("COUNT(*)", "count1")):
        found = measure(frame_of_counts, f"SELECT type, {question} AS s FROM t GROUP BY type")
        expected = plain.execute(
            "SELECT type, SUM(n) FROM t WHERE type IS NOT NULL GROUP BY type HAVING SUM(n) > 0"
        ).fetchall()
        assert sorted(found.values()) == sorted(int(total) for _, total in expected)
        assert all(name == place for name, _, _ in found)
    whole = measure(frame_of_counts, "SELECT SUM(n * 2) AS s FROM t WHERE x < 4")
    assert list(whole.values()) == [2 * 24]
    exact = sf.protect(frame_of_counts, name="t", unit=sf.COUNTS("n"), columns=COLUMNS, budget=BUDGET).ask(
        "SELECT type, SUM(n) AS s, AVG(x) AS x FROM t GROUP BY type", epsilon=500
    )
    weighed = plain.execute("SELECT type, SUM(n), SUM(n * x) / SUM(n) FROM t WHERE type IN ('a', 'b') GROUP BY type")
    shown = {row["type"]: row for row in exact.rows}
    for name, total, mean in weighed.fetchall():
        assert shown[name]["s"] == total
        assert shown[name]["x"] == pytest.approx(mean, abs=0.1)  # each record is weighed by its count


def sources_of(records, folder):
    data = pd.DataFrame(records)
    data.to_csv(folder / "t.csv", index=False)
    arrow = pa.Table.from_pandas(data)
    pyarrow.parquet.write_table(arrow, folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("data", data)
        connection.execute("CREATE TABLE t AS SELECT * FROM data")
    return {
        "pandas": data, "polars": pl.from_pandas(data), "arrow": arrow, "texts": data.astype(str),
        "csv": str(folder / "t.csv"), "parquet": str(folder / "t.parquet"), "duckdb": str(folder / "t.duckdb::t"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["int64", "float64", "int8", "uint64"])
def test_every_source_gives_the_same_people(tmp_path, kind):
    records = {"type": ["a", "b", "c", "a"], "x": [1.0, 2.0, 3.0, 1.0], "n": np.array([3, 0, 2, 1], dtype=kind)}
    for name, data in sources_of(records, tmp_path).items():
        rows, report = people_of(data)
        assert rows == [("a", 1.0, 1)] * 4 + [("c", 3.0, 1)] * 2, name
        assert (report["t"].records_read, report["t"].rows, report["t"].counts.zero) == (4, 6, 1), name


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "d", None]),
            st.one_of(st.integers(-2, 6), st.sampled_from(["2", "2.5", "x", "", " 3 ", "1e1", "true"])),
        ),
        max_size=12,
    )
)
def test_files_and_frames_agree_with_plain_python(tmp_path_factory, records):
    def people(count):
        try:
            number = 1.0 if count == "true" else float(count)
        except ValueError:
            return 0
        return int(number) if number >= 1 and number == int(number) else 0

    folder = tmp_path_factory.mktemp("counts")
    lines = [f"{'' if name is None else name},1,{count}" for name, count in records]
    (folder / "t.csv").write_text("\n".join(["type,x,n", *lines]) + "\n")
    expected = sorted(
        (
            row
            for name, count in records
            for row in [(name if name in ("a", "b", "c") else None, 1.0, 1)] * people(count)
        ),
        key=str,
    )
    named = [name for name, _ in records]
    as_frame = pd.DataFrame({"type": named, "x": 1.0, "n": pd.Series([count for _, count in records], dtype=object)})
    for data in (str(folder / "t.csv"), as_frame):
        assert people_of(data)[0] == expected


def test_the_report_counts_records_and_people():
    with pytest.warns(LoadWarning, match="50 % of the records stand for no people"):
        curator = sf.protect(frame([5, -1, 2.5, 0]), name="t", unit=sf.COUNTS("n"), columns=COLUMNS, budget=BUDGET)
    report = curator.load_report["t"]
    assert (report.records_read, report.dropped, report.rows, report.people.people) == (4, 2, 5, 5)
    assert [column.name for column in report.columns] == ["type", "x"]
    text = str(curator.load_report)
    assert "4 records read, 0 malformed, 2 dropped (2 whose n is not a count: 1 negative, 1 fractional)" in text
    assert "Each unit of n is one person: 5 people. 1 record with n = 0." in text
    assert report.as_json()["counts"]["people"] == 5
    with pytest.raises(CatalogError, match="strict loading"):
        sf.protect(frame([5, -1]), name="t", unit=sf.COUNTS("n"), columns=COLUMNS, budget=BUDGET, strict=True)


def test_too_many_people_are_refused():
    """Before a row is written: a count of 10**12 does not fill the disk."""
    for counts in ([10**12], [10**30], [1e300], [MOST_PEOPLE, 1], [MOST_PEOPLE + 1]):
        with pytest.raises(CatalogError, match="more than 100,000,000 people") as refusal:
            people_of(frame(counts))
        assert "10000000" not in str(refusal.value)


def test_a_declared_largest_count_clamps():
    declared = counts_table(COLUMNS | {"n": sf.Integer(0, 3)})
    rows, report = people_of(frame([2, 3, 4, 10**30]), declared)
    assert len(rows) == 2 + 3 + 3 + 3
    assert report["t"].counts.clamped == 2
    assert any("clamped" in str(problem) for problem in report.problems)
    assert "2 counts clamped" in str(report)


@pytest.mark.parametrize(
    "declared",
    [sf.Real(0, 9), sf.Integer(1, 9), sf.Integer(0, 0), sf.Integer(0, 9, nullable=False), sf.Text(), sf.Id(),
     sf.Category([0, 1])],
)  # fmt: skip
def test_another_declaration_of_the_count_is_refused(declared):
    with pytest.raises(CatalogError, match="the count column n") as refusal:
        counts_table(COLUMNS | {"n": declared})
    assert "Leave n out of the columns" in refusal.value.hint


def test_a_largest_count_is_refused_with_replace_one():
    """Moving a person to a clamped count would remove a row, which is no replacement."""
    table = counts_table(COLUMNS | {"n": sf.Integer(0, 3)})
    with pytest.raises(CatalogError, match="largest count"):
        Dataset("d", [table], BUDGET, neighbours="replace-one")
    Dataset("d", [table], BUDGET)
    Dataset("d", [counts_table()], BUDGET, neighbours="replace-one")


def test_the_digest_names_the_count():
    """A snapshot of another unit, count column or largest count is not used again."""
    plain = Table("t", None, ROW, COLUMNS | {"n": sf.Integer(0, 1, nullable=False), "m": sf.Integer(0, 5)})
    tables = [
        plain,
        counts_table(COLUMNS | {"m": sf.Integer(0, 5)}),
        counts_table(COLUMNS | {"n": sf.Integer(0, 5), "m": sf.Integer(0, 5)}),
        Table("t", None, ROW, plain.columns, count_column="n", most_count=6),
    ]
    assert len({hash_declaration(table) for table in tables}) == len(tables)


def test_the_number_of_people_may_be_public():
    data = frame([5, 2])
    settings_of = {"name": "t", "unit": sf.COUNTS("n"), "columns": COLUMNS, "budget": BUDGET}
    curator = sf.protect(data, neighbours="replace-one", rows=7, **settings_of)
    assert curator.ask("SELECT AVG(x) AS x FROM t", epsilon=100).rows[0]["x"] == pytest.approx(1, abs=0.5)
    assert curator.rehearse("SELECT type, SUM(n) AS s FROM t GROUP BY type", epsilon=100).rows
    with pytest.raises(CatalogError, match="another number of rows"):
        sf.protect(data, neighbours="replace-one", rows=2, **settings_of)


def test_columns_of_any_name_or_none():
    """A counts table without other columns is counted; names like those in our SQL do not clash."""
    names = {"record": ["a", "b"], "range": [1.0, 2.0], "times": [1, 2]}
    columns = {"record": sf.Category(["a", "b"]), "range": sf.Real(0, 9), "times": sf.Integer(0, 9)}
    table = Table("t", None, ROW, columns, count_column="nu m")
    found = measure(
        pd.DataFrame({**names, "nu m": [3, 4]}), 'SELECT record, SUM("nu m") AS s FROM t GROUP BY record', table
    )
    assert sorted(found.values()) == [3, 4]
    alone = Table("t", None, ROW, {}, count_column="n")
    assert list(measure(pd.DataFrame({"n": [3, 4]}), "SELECT SUM(n) AS s FROM t", alone).values()) == [7]
    assert measure(pd.DataFrame({"n": []}), "SELECT SUM(n) AS s FROM t", alone) == {}


def test_a_missing_count_column_is_refused():
    with pytest.raises(CatalogError, match="no column m"):
        sf.protect(frame([1]), name="t", unit=sf.COUNTS("m"), columns=COLUMNS, budget=BUDGET)
    for bad in ("", 5, None, "__sfumato_x"):
        with pytest.raises(CatalogError):
            sf.COUNTS(bad)
