"""Public tables: declared texts stay texts, and a join works or the error names the declaration that it needs."""

from datetime import date
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine

BOOKS = {
    "isbn": ["00059", "12345"],
    "price": [1.5, 2.25],
    "pages": [10, 200],
    "day": [date(2020, 1, 2), date(2021, 1, 2)],
}


def columns_of(data, declared=None):
    """The declarations of a public table, and its rows, as they are pinned."""
    engine = DuckDBEngine.of_data(Table("p", None, None, declared or {}, public=True), data)
    try:
        return dict(engine.tables["p"].columns), engine._connection.execute("SELECT * FROM p").fetchall()
    finally:
        engine.close()


def test_multiplicities_are_the_most_rows_with_one_value():
    """A join makes so many rows of one private row; the names are those that the count itself might use."""
    data = pd.DataFrame({"n": [5, 5, 5, None], "times": [1, 1, 2, 3], "most": ["a", None, None, None]})
    engine = DuckDBEngine.of_data(Table("p", None, None, {}, public=True), data)
    assert engine.tables["p"].multiplicities == (("most", 1), ("n", 3), ("times", 2))
    engine.close()
    empty = DuckDBEngine.of_data(Table("p", None, None, {}, public=True), data[:0])
    assert empty.tables["p"].multiplicities == (("most", 1), ("n", 1), ("times", 1))
    empty.close()


def test_a_text_of_digits_stays_a_text(tmp_path):
    """'00059' became 59, even where Parquet declares it as text."""
    parquet.write_table(pa.table(BOOKS), tmp_path / "b.parquet")
    with duckdb.connect(str(tmp_path / "b.duckdb")) as connection:
        connection.register("given", pa.table(BOOKS))
        connection.execute("CREATE TABLE p AS SELECT * FROM given")
    pd.DataFrame(BOOKS).to_csv(tmp_path / "b.csv", index=False)
    objects = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in BOOKS.items()})
    sources = [
        tmp_path / "b.parquet",
        tmp_path / "b.duckdb",
        tmp_path / "b.csv",
        pd.DataFrame(BOOKS),
        pl.DataFrame(BOOKS),
    ]
    for source in (*sources, pa.table(BOOKS), objects):
        columns, rows = columns_of(source)
        assert columns["isbn"] == sf.Category(["00059", "12345"])
        assert (columns["price"], columns["pages"]) == (sf.Real(1.5, 2.25), sf.Integer(10, 200))
        assert columns["day"] == sf.Date("2020-01-02", "2021-01-02")
        assert sorted(row[0] for row in rows) == ["00059", "12345"]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "20", "-3", "0"], sf.Integer),
        (["1", "020"], sf.Category),
        (["1", "+2"], sf.Category),
        (["1", "-0"], sf.Category),
        (["1", "1e5"], sf.Category),
        (["1", " 2"], sf.Category),
        (["12.50", "3.00"], sf.Real),
        (["0.5", "3"], sf.Real),
        (["1.1", "1.10"], sf.Category),
        (["1.2.3", "4"], sf.Category),
        (["2020-01-02", "2020-12-31"], sf.Date),
        (["2020-01-02", "2020-02-30"], sf.Category),
        (["true", "false"], sf.Boolean),
        (["True", "False"], sf.Boolean),
        (["True", "false"], sf.Category),
        (["9" * 17, "1"], sf.Category),
        (["", ""], sf.Text),
    ],
)
def test_a_csv_column_is_of_numbers_only_if_each_can_be_written_back(tmp_path, fields, kind):
    (tmp_path / "b.csv").write_text("x,y\n" + "".join(f"{field},1\n" for field in fields))
    assert type(columns_of(tmp_path / "b.csv")[0]["x"]) is kind
    if kind is sf.Category:
        assert sorted(row[0] for row in columns_of(tmp_path / "b.csv")[1]) == sorted(fields)


def test_types_of_a_database_are_kept(tmp_path):
    with duckdb.connect(str(tmp_path / "b.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE p AS SELECT 7::UTINYINT AS a, 1.50::DECIMAL(9,2) AS b, 12::DECIMAL(9,0) AS c, "
            "TIMESTAMPTZ '2020-01-01 23:00:00-03' AS d, 'x'::ENUM('x') AS e, 5::HUGEINT AS f, [1] AS g"
        )
    columns, rows = columns_of(tmp_path / "b.duckdb")
    assert list(map(type, columns.values())) == [
        sf.Integer, sf.Real, sf.Integer, sf.DateTime, sf.Category, sf.Integer, sf.Category,
    ]  # fmt: skip
    assert rows[0][:3] == (7, 1.5, 12)
    assert str(rows[0][3]) == "2020-01-02 02:00:00"


def ask(people, public, sql, **declared):
    """The plan of a question about a private and a public table. Refusals are raised."""
    table = Table("t", None, "who", {"who": sf.Id(), **people[1]}, 5)
    other = Table("p", None, None, declared, public=True)
    engine = DuckDBEngine.of_tables({"t": (table, people[0]), "p": (other, public)})
    try:
        dataset = sf.catalog.dataset.Dataset("d", engine.tables, sf.Budget(epsilon=9))
        return sf.query.bind.bind(sf.query.parse.parse(sql), dataset)
    finally:
        engine.close()


def test_joins_with_a_csv_work_or_name_the_declaration(tmp_path):
    import sfumato.catalog.dataset
    import sfumato.query.bind
    import sfumato.query.parse  # noqa: F401

    rows = pd.DataFrame({"who": [1, 2], "site": [1, 2], "isbn": ["00059", "12345"], "book": ["00059", "12345"]})
    people = rows, {"site": sf.Integer(1, 9), "isbn": sf.Text(), "book": sf.Id()}
    (tmp_path / "s.csv").write_text("site,beds\n1,5\n2,7\n")
    (tmp_path / "zeros.csv").write_text("site,beds\n01,5\n02,7\n")
    (tmp_path / "books.csv").write_text("isbn,pages\n00059,5\n12345,7\n")
    on = "SELECT COUNT(*) AS n FROM t JOIN p ON t.{} = p.{}"
    ask(people, tmp_path / "s.csv", on.format("site", "site"))
    ask(people, tmp_path / "books.csv", on.format("isbn", "isbn"))
    ask(people, tmp_path / "zeros.csv", on.format("site", "site"), site=sf.Integer(1, 9))
    ask(people, tmp_path / "books.csv", on.format("book", "isbn"), isbn=sf.Id())
    with pytest.raises(sf.errors.QueryError) as caught:
        ask(people, tmp_path / "zeros.csv", on.format("site", "site"))
    assert 'columns.site = { type = "integer"' in caught.value.hint
    with pytest.raises(sf.errors.QueryError, match="The join compares an id") as caught:
        ask(people, tmp_path / "books.csv", on.format("book", "isbn"))
    assert 'columns.isbn = { type = "id" }' in caught.value.hint


def test_objects_of_one_type_have_it_and_mixed_ones_are_texts():
    frame = pd.DataFrame(
        {
            "a": pd.Series([1, None, 3], dtype=object),
            "b": pd.Series([Decimal("1.5"), None, Decimal("2.25")], dtype=object),
            "c": pd.Series(["007", 7, None], dtype=object),
        }
    )
    columns, _ = columns_of(frame)
    assert (columns["a"], columns["b"], columns["c"]) == (
        sf.Integer(1, 3),
        sf.Real(1.5, 2.25),
        sf.Category(["007", "7"]),
    )


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_leaves_a_column_of_numbers(odd):
    """One NaN turned the column into a category of texts."""
    for data in (pa.table({"x": [1.5, odd, 2.25]}), pd.DataFrame({"x": [1.5, odd, 2.25]})):
        columns, rows = columns_of(data)
        assert columns["x"] == sf.Real(1.5, 2.25)
        assert {row[0] for row in rows} <= {1.5, 2.25, None}


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize("far", ["20000-01-01", "infinity", "0044-01-01 (BC)", "-infinity"])
def test_a_day_beyond_the_years_of_a_declaration_is_clamped(tmp_path, kind, far):
    """The load was refused: upper must be a day; got text."""
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.execute(f"CREATE TABLE p (x {kind})")
        connection.executemany("INSERT INTO p VALUES (?)", [["2020-01-02"], [far]])
    columns, rows = columns_of(tmp_path / "p.duckdb")
    assert isinstance(columns["x"], sf.Date if kind == "DATE" else sf.DateTime)
    assert len(rows) == 2
    assert all(columns["x"].lower <= row[0] <= columns["x"].upper for row in rows)
