"""Spark's tables are read as files are: the same rows, values, ids, weights and marks, however Spark cuts them."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hostile_clinic import declare_tables, make_frames
from spark_session import start_spark, to_spark

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.spark.spark_columns import list_pinned
from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.errors import CatalogError
from sfumato.ingest.hidden_names import ROWS_OF_UNIT, UNIT

UNIQUE = Table(
    "orders", None, "who", {
        "who": sf.Id(), "order": sf.Text(), "line": sf.Integer(0, 9), "price": sf.Real(0, 9), "when": sf.Date(
            "2000-01-01", "2030-12-31"), "at": sf.DateTime("2000-01-01 00:00:00", "2030-12-31 00:00:00"),
    }, 2, unique=(("order", "line"), ("when",)),
)  # fmt: skip
ORDERS = [
    (f" {who % 3}", "ab"[row % 2], row % 3, [0.5, None, -0.0, 1e-300, 7.25][row % 5], f"2020-01-{row % 7 + 1:02}",
     f"2020-01-01 00:00:{row % 60:02}.5")
    for who in range(6) for row in range(23)
]  # fmt: skip


@pytest.fixture(scope="module")
def spark():
    return start_spark()


def read_spark(engine, name):
    one = engine.prepared[name]
    found = one.stored.open(engine._own).selectExpr(*(f"`{name}`" for name in list_pinned(one.table))).toArrow()
    most = one.table.max_rows_per_unit  # a snapshot has 1 for units within their bound, which weigh the same
    held = [row | {ROWS_OF_UNIT: row[ROWS_OF_UNIT] if row[ROWS_OF_UNIT] > most else 1} if UNIT in row else row
            for row in found.to_pylist()]  # fmt: skip
    return sorted(repr(spell(row)) for row in held)


def read_snapshot(engine, name):
    found = engine._connection.execute(f'SELECT * FROM "{name}"')
    names = [column[0] for column in found.description]
    return sorted(repr(spell(dict(zip(names, row, strict=True)))) for row in found.fetchall())


def spell(row):
    """A row by sorted names; an id may be a number or its digits."""
    return [(name, str(value) if name == UNIT else value) for name, value in sorted(row.items())]


def make_orders():
    names = list(UNIQUE.columns)
    return pa.table({name: [row[place] for row in ORDERS] for place, name in enumerate(names)})


def test_a_prepared_table_holds_what_a_snapshot_holds(spark):
    """Tables of people, through another table, of rows, public, with unique keys; in seven rows a batch."""
    given = {table.name: (table, make_frames(people=9, crowd=18, calm=False)[table.name])
             for table in declare_tables(most_rows=1, most_groups=2)}  # fmt: skip
    snapshot = DuckDBEngine.of_tables(given | {"orders": (UNIQUE, make_orders())})
    frames = {name: (table, spark.createDataFrame(*to_spark(rows))) for name, (table, rows) in given.items()}
    orders = spark.createDataFrame(make_orders()).repartition(5)
    engine = SparkEngine.of_tables(spark, frames | {"orders": (UNIQUE, orders)})
    for name in (*given, "orders"):
        assert read_spark(engine, name) == read_snapshot(snapshot, name), name
    mine, theirs = engine.load_report.as_json()["tables"], snapshot.load_report.as_json()["tables"]
    for one, two in zip(mine, theirs, strict=True):
        if one["table"] != "orders":  # of unique keys, DuckDB reports on people before it drops repeats
            assert {**one, "warnings": []} == {**two, "warnings": []}
    assert engine.tables == snapshot.tables
    engine.close()


HARD_TEXTS = [None, "007", "7", "7.0", " +7 ", "Bob", "bob", "é", "e\u0301", "1e3", "nan", "-0", "true", "x'y\"z\\", ""]
HARD = Table(
    "hard", None, "id", {
        "id": sf.Id(), "n": sf.Integer(-5, 5), "x": sf.Real(-1, 1), "c": sf.Category(["7", "Bob", "é"]),
        "b": sf.Boolean(), "t": sf.Text(), "day": sf.Date("2000-01-01", "2030-12-31"),
        "at": sf.DateTime("2000-01-01 00:00:00", "2030-12-31 00:00:00"),
    }, 2,
)  # fmt: skip


def test_a_spark_table_is_read_as_its_csv_file_is(spark, tmp_path):
    """Texts as a CSV file has them, and the same values in Spark's own types."""
    rows = [(text, text, text, text, text, text, f"2020-02-{place + 10}", f"2020-02-01 0{place % 10}:00:00+02:00")
            for place, text in enumerate(HARD_TEXTS)]  # fmt: skip
    frame = spark.createDataFrame(rows, ", ".join(f"`{name}` STRING" for name in HARD.columns))
    with duckdb.connect() as writer:
        made = pa.table({name: pa.array([row[place] for row in rows]) for place, name in enumerate(HARD.columns)})
        writer.register("made", made)
        writer.execute(f"COPY made TO '{tmp_path}/hard.csv' (HEADER, FORCE_QUOTE *)")
    # in a CSV file an empty field is NULL, but a quoted one is an empty text, as in Spark
    engine = SparkEngine.of_data(spark, HARD, frame)
    assert read_spark(engine, "hard") == read_snapshot(DuckDBEngine.of_data(HARD, f"{tmp_path}/hard.csv"), "hard")
    engine.close()


def test_types_of_spark_are_read_as_arrow_reads_them(spark):
    """Decimals, floats, small integers, days, and moments with and without a zone, in a session of another zone."""
    query = """SELECT * FROM VALUES
        (1Y, 1.50BD, float('nan'), true, DATE'2020-02-29', TIMESTAMP'2020-02-29 23:30:00 America/New_York'),
        (2Y, 99999999999999999999.5BD, float('-inf'), false, DATE'0001-01-01',
         TIMESTAMP'2019-01-01 00:00:00.12345 UTC'),
        (NULL, -0.5BD, float(0.1), NULL, NULL, NULL) AS made(n, x, t, b, day, at)"""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        frame = spark.sql(f"SELECT n AS id, n, x, CAST(n AS STRING) AS c, b, t, day, at FROM ({query})")
        engine = SparkEngine.of_data(spark, HARD, frame)
        assert read_spark(engine, "hard") == read_snapshot(DuckDBEngine.of_data(HARD, frame.toArrow()), "hard")
        engine.close()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


COUNTED = Table("cells", None, sf.ROW, {"city": sf.Category(["Rome", "Oslo"])}, count_column="n")
CELLS = {"city": ["Rome", "Oslo", "Rome", None, "Oslo"], "n": ["3", "0", "2.5", "4", "-1"]}


def test_a_count_is_so_many_people(spark):
    frame = spark.createDataFrame(pa.table(CELLS))
    engine, snapshot = SparkEngine.of_data(spark, COUNTED, frame), DuckDBEngine.of_data(COUNTED, pa.table(CELLS))
    assert read_spark(engine, "cells") == read_snapshot(snapshot, "cells")
    assert engine.load_report["cells"].as_json() == snapshot.load_report["cells"].as_json()
    engine.close()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT array(1) AS id", "holds array<int>, which is not read"),
        ("SELECT CAST('a' AS BINARY) AS id", "binary"),
        ("SELECT double(9007199254740994) AS id", "beyond 2**53"),
        ("SELECT 1 AS other", "the source has no column id"),
        ("SELECT 1 AS id, 2 AS id", "two columns id"),
        ("SELECT rand() AS id", "other values whenever it is read"),
    ],
)
def test_what_cannot_be_read_is_refused(spark, query, said):
    table = Table("people", None, "id", {"id": sf.Id()})
    with pytest.raises(CatalogError, match=said.replace("*", "[*]")):
        SparkEngine.of_data(spark, table, spark.sql(query))
    with pytest.raises(CatalogError, match=r"Spark finds no source nowhere\.people"):
        SparkEngine.of_data(spark, table, "nowhere.people")


def test_columns_that_differ_in_case_are_told_apart(spark):
    frame = spark.createDataFrame([(1, "no", "yes")], "id INT, A STRING, a STRING")
    engine = SparkEngine.of_data(spark, Table("people", None, "id", {"id": sf.Id(), "a": sf.Text()}), frame)
    assert "'yes'" in read_spark(engine, "people")[0]
    engine.close()


def test_names_may_hold_anything(spark):
    """Quotes, backticks, dots and other letters, in the names of tables and columns."""
    names = ['a"b', "c`d", "e.f", "größe", "select", "x y"]
    table = Table('o\'ne `t`."q"', None, 'a"b', {names[0]: sf.Id()} | {name: sf.Integer(0, 9) for name in names[1:]})
    frame = spark.createDataFrame([(1, 2, 3, 4, 5, 6)], ", ".join(f"`{name.replace('`', '``')}` INT" for name in names))
    engine = SparkEngine.of_data(spark, table, frame)
    assert engine.load_report[table.name].rows == 1
    engine.close()


def test_sums_do_not_overflow(spark):
    """The largest steps of a BIGINT, so often that their sum does not fit: Spark's own sum fails."""
    from sqlglot import exp

    from sfumato.engines.sql.spark_dialect import SPARK

    tree = exp.select(exp.Sum(this=exp.column("n"))).from_("big")
    rows = [(2**63 - 1,), (2**63 - 1,), (-(2**63),), (2**62,), (None,)]
    spark.createDataFrame(rows, "n BIGINT").createOrReplaceTempView("big")
    assert spark.sql(SPARK.write(tree)).collect()[0][0] == Decimal(sum(number or 0 for (number,) in rows))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(Exception, match="overflow"):
        spark.sql("SELECT SUM(n) FROM big").collect()
