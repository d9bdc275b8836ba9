"""One canonical text for each id: spellings merge, one value at a time, and no person is split by a type."""

import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_ids import id_text
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import ids as module
from sfumato.ingest import unit_rows
from sfumato.ingest.ids import write_id

DUCKDB = duckdb.connect()
NAME = "abcdef01-2345-6789-abcd-ef0123456789"


def by_sql(values):
    DUCKDB.register("frame", pa.table({"x": pa.array(values, pa.string())}))
    return [row[0] for row in DUCKDB.execute(f"SELECT {write_id('x', 'VARCHAR')} FROM frame").fetchall()]


@pytest.mark.parametrize(
    ("wanted", "spellings"),
    [
        ("7", ["7", "007", "+7", "7.0", "7.", "7.00", " 7", "7\n", "\u00a07", "7e0", "0.7e1", "70E-1"]),
        ("-7", ["-7", "-007", "-7.0", "-7e0"]),
        ("0", ["0", "00", "-0", "+0.0", "0e5", "-0.0", ".0", "0."]),
        ("0.5", ["0.5", "0.50", ".5", "5e-1", "+0.5", "00.5"]),
        ("100000", ["100000", "1e5", "1E+05", "100000.0"]),
        ("1152921504606846977", ["1152921504606846977", "1152921504606846977.0", "+01152921504606846977"]),
        (
            NAME,
            [
                NAME,
                NAME.upper(),
                "{" + NAME + "}",
                NAME.replace("-", ""),
                f"urn:uuid:{NAME}",
                f"URN:UUID:{NAME.upper()}",
            ],
        ),
        ("true", ["true", "True", "TRUE", " true "]),
        ("\u00e9", ["\u00e9", "e\u0301", " e\u0301 "]),
        (None, ["", "  ", "\t\n"]),
    ],
)
def test_spellings_of_one_id(wanted, spellings):
    assert by_sql(spellings) == [wanted] * len(spellings)
    assert [id_text(spelling) for spelling in spellings] == [wanted] * len(spellings)


def test_other_texts_stay_apart():
    values = [
        "a",
        "A",
        "a b",
        "7a",
        "0x7",
        "1_000",
        "1,5",
        "-",
        "+",
        ".",
        "e5",
        "1e",
        "inf",
        "nan",
        "\u0667",
        NAME[:-1],
        "\u212b",
    ]
    found = by_sql(values)
    assert len(set(found)) == len(values)
    assert found[:-1] == values[:-1]


characters = st.sampled_from(
    [*"0123456789+-.eE abf{}_\u00e9\u0301\u00a0\n", "true", "FALSE", "1e", "00", NAME, NAME.upper()]
)
spelled = st.lists(characters, max_size=8).map("".join) | st.text(max_size=8)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(spelled, min_size=1, max_size=40))
@example(
    values=[
        "1" * 32,
        "0" * 32,
        "12345678901234567890123456789012",
        "9" * 400,
        "1e400",
        "-1e-400",
        "9007199254740993.5",
        "\0\x80",
        "\0",
        "a\0b",
    ]
)
def test_ids_are_what_plain_python_makes_of_them(values):
    found = by_sql(values)
    assert found == [id_text(value) for value in values]
    assert by_sql(found) == found  # what is canonical stays: a link is compared with what is pinned


def test_the_comparison_sees_another_rule(monkeypatch):
    """Negative control."""
    monkeypatch.setattr(module, "write_number", lambda column: "NULL")
    assert by_sql(["7e0"]) != [id_text("7e0")]


PEOPLE = {"who": sf.Id(), "x": sf.Integer(0, 9)}


def units(who, **keys):
    """The units that a frame's or a file's rows belong to."""
    data = who if not isinstance(who, (list, pd.Series, pa.Array)) else pd.DataFrame({"who": who, "x": 1})
    engine = DuckDBEngine.of_data(Table("t", None, "who", PEOPLE, 3, **keys), data)
    try:
        return sorted({str(row[0]) for row in engine._connection.execute("SELECT __sfumato_unit FROM t").fetchall()})
    finally:
        engine.close()


MIXED = [7, 7.0, Decimal("7.00"), "7", "007", np.int8(7), np.float32(7), " 7 "]


def test_the_rows_of_all_spellings_are_counted_together():
    """A weight follows from this number: a person who is spelled in two ways must not have half of it."""
    engine = DuckDBEngine.of_data(Table("t", None, "who", PEOPLE, 3), pd.DataFrame({"who": [*MIXED, "a"], "x": 1}))
    found = engine._connection.execute("SELECT __sfumato_unit, __sfumato_rows, COUNT(*) FROM t GROUP BY ALL").fetchall()
    engine.close()
    assert sorted(found) == [("7", len(MIXED), len(MIXED)), ("a", 1, 1)]


def test_a_person_in_a_column_of_mixed_objects_is_one(tmp_path):
    """7, 7.0 and Decimal("7.00") were three people."""
    assert units(MIXED) == ["7"]
    assert units(["true", True, np.bool_(True), "True"]) == ["true"]
    name = uuid.UUID(NAME)
    assert units([name, str(name), str(name).upper(), "{" + NAME + "}"]) == [NAME]
    assert units(pl.DataFrame({"who": pl.Series([7, 7.0, "7", Decimal("7.00")], dtype=pl.Object), "x": [1] * 4})) == [
        "7"
    ]


@pytest.mark.parametrize(
    "kind", ["INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(9,2)", "DECIMAL(38,0)", "FLOAT", "DOUBLE", "VARCHAR"]
)
def test_a_persons_unit_does_not_depend_on_the_columns_type(tmp_path, kind):
    """INTEGER 1 and DECIMAL 1.00 were two people."""
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT v::{kind} AS who, 1 AS x FROM (VALUES (1), (2), (NULL)) rows(v)")
    assert units(path) == ["1", "2"]


@pytest.mark.parametrize("digits", ["12345678901234567890123456789012", "-1234567890123456789012345678901", "9" * 38])
def test_a_number_of_32_digits_is_one_person_in_every_type(tmp_path, digits):
    """As HUGEINT it was a number, and as text a UUID: one person was two units."""
    path = tmp_path / "p.duckdb"
    for kind in ("HUGEINT", "VARCHAR", "DECIMAL(38,0)", *(["UHUGEINT"] if digits[0] != "-" else [])):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT '{digits}'::{kind} AS who, 1 AS x")
        assert units(path) == [id_text(digits)], kind
    assert units([int(digits), digits, Decimal(digits)]) == [id_text(digits)]


SPELLINGS = ["bob", "Bob", "BOB", "b\u00f6b", "bOb"]
COLLATIONS = ["NOCASE", "NOACCENT", "NOCASE.NOACCENT", "NFC", "C"]


@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_sources_collation_does_not_merge_or_repeat_rows(tmp_path, collation):
    """A row was pinned once for every spelling that the collation calls equal: five rows became 25."""
    path = tmp_path / "p.duckdb"
    for number in range(1, len(SPELLINGS) + 1):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE t (who VARCHAR COLLATE {collation}, x INTEGER)")
            connection.executemany("INSERT INTO t VALUES (?, 1)", [[spelling] for spelling in SPELLINGS[:number]])
        engine = DuckDBEngine.of_data(Table("t", None, "who", PEOPLE, 3), path)
        found = engine._connection.execute("SELECT __sfumato_unit, __sfumato_rows FROM t").fetchall()
        engine.close()
        assert sorted(found) == sorted((spelling, 1) for spelling in SPELLINGS[:number])


def test_a_sources_collation_does_not_change_a_link(tmp_path):
    """v1 led to the person of V1."""
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE orders (who VARCHAR COLLATE NOCASE, "order" VARCHAR COLLATE NOCASE)')
        connection.execute("INSERT INTO orders VALUES ('ann', 'V1'), ('Ann', 'v2')")
        connection.execute('CREATE TABLE items ("order" VARCHAR COLLATE NOCASE)')
        connection.execute("INSERT INTO items VALUES ('v1'), ('V1'), ('v2'), ('V2')")
    orders = Table("orders", None, "who", {"who": sf.Id(), "order": sf.Id()}, 3)
    items = Table("items", None, None, {"order": sf.Id()}, 3, unit_through=("order", "orders"))
    engine = DuckDBEngine.of_tables({table.name: (table, f"{path}::{table.name}") for table in (orders, items)})
    found = engine._connection.execute("SELECT __sfumato_unit FROM items ORDER BY 1").fetchall()
    engine.close()
    assert found == [("Ann",), ("ann",)]


def test_categories_and_texts_are_compared_by_their_bytes(tmp_path):
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (who INTEGER, c VARCHAR COLLATE NOCASE, n VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO t VALUES (1, 'Rome', 'a'), (2, 'rome', 'A')")
    declared = {"who": sf.Id(), "c": sf.Category(["Rome", "Oslo"]), "n": sf.Text()}
    engine = DuckDBEngine.of_data(Table("t", None, "who", declared, 3), path)
    found = engine._connection.execute("SELECT c::VARCHAR, COUNT(*), COUNT(DISTINCT n) FROM t GROUP BY ALL").fetchall()
    engine.close()
    assert sorted(found, key=str) == [("Rome", 1, 1), (None, 1, 1)]
    public = DuckDBEngine.of_data(Table("t", None, sf.ROW, {}, public=True), path)
    assert public._connection.execute("SELECT COUNT(DISTINCT n::VARCHAR) FROM t").fetchall() == [(2,)]
    public.close()


@pytest.mark.parametrize("generated", ["random()", "random() < 0.5", "1 + CAST(5 * random() AS INTEGER)", "uuid()"])
def test_an_id_that_changes_when_it_is_read_again_is_refused(tmp_path, generated):
    """All five rows were lost, without a warning."""
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (x INTEGER, who VARCHAR GENERATED ALWAYS AS ({generated}))")
        connection.execute("INSERT INTO t SELECT 1 FROM range(5)")
    with pytest.raises(sf.errors.CatalogError, match="other values whenever it is read") as caught:
        units(path)
    assert "CREATE TABLE" in caught.value.hint
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE t (x INTEGER, y VARCHAR, who VARCHAR GENERATED ALWAYS AS (upper(y)))")
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert units(path) == ["A"]


@pytest.mark.parametrize("rows", [0, 2])
def test_a_load_that_loses_or_repeats_rows_is_refused(monkeypatch, rows):
    """Negative control: the first and the second pass see different people."""
    people = unit_rows.count_spellings
    lost = "SELECT * REPLACE (chr(120) || __sfumato_unit AS __sfumato_unit) FROM ({})"
    twice = "SELECT * FROM ({0}) UNION ALL SELECT * FROM ({0})"
    monkeypatch.setattr(
        unit_rows, "count_spellings", lambda *arguments: (lost if rows == 0 else twice).format(people(*arguments))
    )
    with pytest.raises(sf.errors.CatalogError, match="could not be matched with their people"):
        units(["a", "b"])


def test_floats_that_do_not_tell_people_apart_are_refused():
    """int64 and float64 at 2**60: as floats, neighbours among the ids would be one person, or another one."""
    big = 2**60 + 1
    assert units([big, big + 1]) == [str(big), str(big + 1)]
    assert units(pd.Series([big, None], dtype="Int64")) == [str(big)]
    assert units([big, None, "x"]) == [str(big), "x"]
    for who in ([big, None], [float(big), "x"], pd.Series([float(big)])):
        with pytest.raises(sf.errors.CatalogError, match="2\\*\\*53") as caught:
            units(who)
        assert "Int64" in caught.value.hint
    assert units([float(2**53), None]) == [str(2**53)]


@pytest.mark.parametrize("link", [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "002", "3.00"], [Decimal("1.0"), "2", 3]])
@pytest.mark.parametrize("order", [[1, 2, 3], ["01", 2.0, "3"], pd.Series([1, 2, 3], dtype="float32")])
def test_links_lead_to_the_same_people_in_any_spelling(link, order):
    orders = Table("orders", None, "who", {"who": sf.Id(), "order": sf.Id()}, 3)
    items = Table("items", None, None, {"order": sf.Id()}, 3, unit_through=("order", "orders"))
    data = {
        "orders": pd.DataFrame({"who": ["a", "b", "c"], "order": order}),
        "items": pd.DataFrame({"order": link}),
    }
    engine = DuckDBEngine.of_tables({table.name: (table, data[table.name]) for table in (orders, items)})
    try:
        found = engine._connection.execute("SELECT __sfumato_unit FROM items ORDER BY 1").fetchall()
    finally:
        engine.close()
    assert found == [("a",), ("b",), ("c",)]


def test_an_id_that_changes_its_type_between_files_stays_one_person(tmp_path):
    for name, who in (("a", [7, 8]), ("b", [7.0, 8.0]), ("c", ["7", "8"])):
        parquet.write_table(pa.table({"who": who, "x": [1, 1]}), tmp_path / f"{name}.parquet")
        assert units(tmp_path / f"{name}.parquet") == ["7", "8"]
    (tmp_path / "d.csv").write_text("who,x\n007,1\n8.0,1\n")
    assert units(tmp_path / "d.csv") == ["7", "8"]
