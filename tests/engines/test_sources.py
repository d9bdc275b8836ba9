"""Every kind of source gives the same snapshot. An unreadable source is refused without quoting its content."""

import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ingest import pinned_rows
from sfumato.ingest.source_columns import list_source_columns
from sfumato.ingest.source_files import find_files, split_source

ROWS = {"who": [1, 1, 2, 3, None], "age": [40, 41, 150, None, 7], "city": ["Rome", "Oslo", "Atlantis", "Rome", "Oslo"]}
COLUMNS = {"who": sf.Id(), "age": sf.Integer(0, 120), "city": sf.Category(["Rome", "Oslo"])}
VISITS = Table("visits", None, "who", COLUMNS, 2)
HELD = [(40, "Rome", "1", 1), (41, "Oslo", "1", 1), (120, None, "2", 1), (None, "Rome", "3", 1)]
SECRET = "secret-4711"


def held(source):
    """The pinned rows: ages, cities, the person's id, and the number of the person's rows."""
    engine = DuckDBEngine.of_data(VISITS, source)
    query = "SELECT age, city, __sfumato_unit::VARCHAR, __sfumato_rows FROM visits"
    rows = engine._connection.execute(query).fetchall()
    engine.close()
    return sorted(rows, key=str)


def table(rows=ROWS):
    return pa.table(rows, schema=pa.schema([("who", pa.int64()), ("age", pa.int64()), ("city", pa.string())]))


def database(path, *statements):
    with duckdb.connect(str(path)) as connection:
        connection.register("rows_of_people", table())
        for statement in statements:
            connection.execute(statement)
    return path


def halves(folder, write):
    for index, part in enumerate((table().slice(0, 2), table().slice(2))):
        write(part, folder / f"part{index}")


def csv(rows, path, separator=","):
    rows.to_pandas().astype({"who": "Int64", "age": "Int64"}).to_csv(path, index=False, sep=separator)
    return path


def test_files(tmp_path):
    parquet.write_table(table(), tmp_path / "v.parquet")
    csv(table(), tmp_path / "v.csv")
    csv(table(), tmp_path / "v.tsv", "\t")
    csv(table(), tmp_path / "semicolon.csv", ";")
    for name in ("v.parquet", "v.csv", "v.tsv", "semicolon.csv"):
        assert held(tmp_path / name) == sorted(HELD, key=str), name


def test_frames_and_what_can_be_read_once():
    frames = [table(), table().to_pandas(), pl.from_arrow(table()), pl.from_arrow(table()).lazy(), table().to_reader()]
    for frame in frames:
        assert held(frame) == sorted(HELD, key=str), type(frame)


def test_many_files_of_one_kind(tmp_path):
    halves(tmp_path, lambda part, path: parquet.write_table(part, f"{path}.parquet"))
    halves(tmp_path, lambda part, path: csv(part, f"{path}.csv"))
    deep = tmp_path / "2026" / "01"
    deep.mkdir(parents=True)
    parquet.write_table(table(), deep / "x.parquet")
    assert held(tmp_path / "part*.parquet") == sorted(HELD, key=str)
    assert held(str(tmp_path / "part[01].csv")) == sorted(HELD, key=str)
    assert held(tmp_path / "2026" / "**" / "*.parquet") == sorted(HELD, key=str)


def test_a_name_that_looks_like_a_pattern_is_itself(tmp_path):
    place = tmp_path / "a[1]*"
    place.mkdir()
    (tmp_path / "a1x").mkdir()
    for folder, rows in ((place, table()), (tmp_path / "a1x", table().slice(0, 1))):
        parquet.write_table(rows, folder / "v[2].parquet")
        csv(rows, folder / "v[2].csv")
    assert held(place / "v[2].parquet") == held(place / "v[2].csv") == sorted(HELD, key=str)
    DuckDBEngine.prepare(tmp_path / "s.duckdb", {"visits": Table("visits", "v*.parquet", "who", COLUMNS)}, place)
    with duckdb.connect(str(tmp_path / "s.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM visits").fetchone() == (4,)


def test_tables_of_a_duckdb_file(tmp_path):
    path = database(
        tmp_path / "clinic.duckdb",
        "CREATE TABLE visits AS SELECT * FROM rows_of_people",
        "CREATE TABLE others AS SELECT * FROM rows_of_people LIMIT 1",
        "CREATE SCHEMA ward",
        'CREATE TABLE ward."odd.name" AS SELECT * FROM rows_of_people',
        "CREATE TABLE ward.visits AS SELECT who::DOUBLE AS who, age::DECIMAL(9, 2) AS age, city FROM rows_of_people",
    )
    for name in (
        "",
        "::visits",
        "::VISITS",
        "::main.visits",
        "::ward.visits",
        '::ward."odd.name"',
        '::"ward"."visits"',
    ):
        assert held(f"{path}{name}") == sorted(HELD, key=str), name
    assert len(held(f"{path}::others")) == 1
    assert not path.with_name(path.name + ".wal").exists()


def test_a_duckdb_file_is_only_read(tmp_path):
    path = database(tmp_path / "clinic.duckdb", "CREATE TABLE visits AS SELECT * FROM rows_of_people")
    before = path.read_bytes(), path.stat().st_mtime_ns
    path.chmod(0o444)
    held(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("gone.csv", "there is no source gone.csv", "Look in"),
        ("gone.duckdb::visits", "there is no source gone.duckdb", "Look in"),
        ("gone/*.parquet", "no file is named like gone/*.parquet", "Look in"),
        ("folder.parquet", "there is no source folder.parquet", "folder.parquet/*.parquet"),
        ("x.json", "the kind of source is not known", ".parquet"),
        ("https://example.org/x.parquet", "there is no source", "Look in"),
        ("s3://bucket/*.parquet", "no file is named like", "Look in"),
        ("clinic.duckdb::nobody", "clinic.duckdb has no table main.nobody", "clinic.duckdb::schema.table"),
        ("clinic.duckdb::ward.visits", "clinic.duckdb has no table ward.visits", "schema.table"),
        ("clinic.duckdb", "clinic.duckdb has no table main.visits", "schema.table"),
        ("clinic.duckdb::a.b.c", "what follows :: is not a table's name", "schema.table"),
        ("clinic.duckdb::of_chance", "main.of_chance is a view", "CREATE TABLE"),
        ("text.duckdb", "text.duckdb could not be opened", "DuckDB file"),
        ("text.parquet", "the source could not be read", "whole"),
        ("differ/*.csv", "the first line of b.csv differs from that of a.csv", "same line"),
        ("differ/*.parquet", "the columns of b.parquet differ from those of a.parquet", "same types"),
        ("twins.csv", "the first line of twins.csv must name the columns, each once", "header"),
        ("empty.csv", "the first line of empty.csv must name the columns", "header"),
        ("less.csv", "the source has no column age, city", "header"),
    ],
)
def test_refusals_name_what_the_owner_wrote_and_nothing_else(tmp_path, source, message, hint):
    database(
        tmp_path / "clinic.duckdb",
        f"CREATE TABLE others AS SELECT '{SECRET}' AS city",
        "CREATE VIEW of_chance AS SELECT random() AS who, 1 AS age, 'Rome' AS city",
    )
    (tmp_path / "x.json").write_text("{}")
    for name in ("text.duckdb", "text.parquet"):
        (tmp_path / name).write_text(SECRET)
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "differ").mkdir()
    (tmp_path / "differ" / "a.csv").write_text(f"who,age,city\n1,2,{SECRET}\n")
    (tmp_path / "differ" / "b.csv").write_text(f"who,city,age\n1,{SECRET},2\n")
    parquet.write_table(pa.table({"who": [1], "age": [2], "city": [SECRET]}), tmp_path / "differ" / "a.parquet")
    parquet.write_table(pa.table({"who": [1], "age": [0.5], "city": [SECRET]}), tmp_path / "differ" / "b.parquet")
    (tmp_path / "twins.csv").write_text(f"who,age,city,City\n1,2,{SECRET},x\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "less.csv").write_text(f"who,{SECRET}\n1,{SECRET}\n")
    declared = Table("visits", source, "who", COLUMNS)
    with pytest.raises(sf.errors.CatalogError) as caught:
        DuckDBEngine.prepare(tmp_path / "snapshot.duckdb", {"visits": declared}, tmp_path)
    assert caught.value.message.startswith("tables.visits: ")
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert not list(tmp_path.glob("snapshot*")) + list(tmp_path.glob("new-*"))


def test_a_file_that_another_program_writes_is_refused(tmp_path):
    path = database(tmp_path / "clinic.duckdb", "CREATE TABLE visits AS SELECT * FROM rows_of_people")
    program = f"import duckdb; held = duckdb.connect({str(path)!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(sf.errors.CatalogError, match="no program has it open"):
            held(path)
        other.communicate("\n")
    assert len(held(path)) == 4


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """One pass counts people and another pins their rows. Both must see the same rows."""
    path = csv(table(), tmp_path / "v.csv")
    selected = pinned_rows._select_rows

    def meanwhile(*given, **named):
        with path.open("a") as file:
            file.write("1,2,Rome\n")
        return selected(*given, **named)

    monkeypatch.setattr(pinned_rows, "_select_rows", meanwhile)
    with pytest.raises(sf.errors.CatalogError, match="changed while it was read"):
        DuckDBEngine.of_data(VISITS, path)


def test_line_ends_in_quotes_and_marks_at_the_beginning(tmp_path):
    path = tmp_path / "v.csv"
    path.write_bytes(b'\xef\xbb\xbfwho,age,city\r\n1,40,"Rome"\r\n"2\nb",41,Oslo\r\n3,,\r\n')
    rows = [row[:3] for row in held(path)]
    assert rows == [(40, "Rome", "1"), (41, "Oslo", "2\nb"), (None, None, "3")]


def test_only_names_and_types_are_told_of_a_source(tmp_path):
    path = database(tmp_path / "c.duckdb", "CREATE TABLE visits AS SELECT * FROM rows_of_people")
    parquet.write_table(table(), tmp_path / "v.parquet")
    csv(table(), tmp_path / "v.csv")
    for source in (path, tmp_path / "v.parquet"):
        assert list_source_columns("visits", source) == {"who": "BIGINT", "age": "BIGINT", "city": "VARCHAR"}
    assert list_source_columns("visits", "v.csv", tmp_path) == dict.fromkeys(COLUMNS, "VARCHAR")
    with pytest.raises(sf.errors.CatalogError, match="no source"):
        list_source_columns("visits", "v.csv", tmp_path / "nowhere")


def test_names_after_colons():
    assert split_source("a.duckdb") == ("a.duckdb", None)
    assert split_source("b::a.db::s.t") == ("b::a.db", "s.t")
    assert split_source("a.duckdb.csv") == ("a.duckdb.csv", None)
    assert split_source("a.csv::t") == ("a.csv::t", None)
    assert find_files("a.csv::t") == ()


def test_a_day_with_a_time_zone_is_read_without_extensions():
    stamps = pd.DataFrame({"d": pd.to_datetime(["2020-01-01 12:00", None]).tz_localize("UTC")})
    days = Table("t", None, sf.ROW, {"d": sf.Date("2000-01-01", "2030-01-01")})
    engine = DuckDBEngine.of_data(days, stamps)
    assert sorted(row[0] is None for row in engine._connection.execute("SELECT d FROM t").fetchall()) == [False, True]
    engine.close()


def test_ids_are_counted_alike_in_an_array_and_in_a_hash_table(tmp_path):
    """Whole numbers in a narrow range are counted in an array, by a file's statistics; others are not."""
    for spread in (1, 10**12):
        who = [spread * (index % 7 * index % 11) for index in range(5000)]
        rows = pa.table({"who": who, "age": [1] * 5000, "city": ["Rome"] * 5000})
        parquet.write_table(rows, tmp_path / "v.parquet")
        engine = DuckDBEngine.of_data(VISITS, tmp_path / "v.parquet")
        counted = dict(
            engine._connection.execute("SELECT __sfumato_unit, MIN(__sfumato_rows) FROM visits GROUP BY 1").fetchall()
        )
        assert counted == {person: who.count(person) for person in set(who)}
        engine.close()


WORDS = ["1", "x", "2.5", "", "nan", "inf", "true", "2020-01-01", "2020-02-30", "1e999", "Rome", " 3 "]


@pytest.mark.parametrize("unit", [sf.ROW, "who"])
@pytest.mark.parametrize(
    "declared",
    [
        sf.Real(0, 9),
        sf.Integer(0, 9),
        sf.Boolean(),
        sf.Date("2000-01-01", "2030-01-01"),
        sf.Category([1, 2]),
        sf.Category(["Rome", "1"]),
        sf.Category([True]),
        sf.Text(),
    ],
    ids=repr,
)
def test_a_field_that_is_no_number_keeps_its_row(tmp_path, declared, unit):
    """DuckDB may push a cast into the reader of a file, which then drops the row: of a CSV every row must stay."""
    rows = pa.table({"x": WORDS, "who": [str(index % 3) for index in range(len(WORDS))]})
    rows.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    columns = {"x": declared} | ({"who": sf.Id()} if unit == "who" else {})
    kept = []
    for source in (rows, tmp_path / "t.csv"):
        engine = DuckDBEngine.of_data(Table("t", None, unit, columns), source)
        kept.append(sorted(map(str, engine._connection.execute("SELECT * FROM t").fetchall())))
        engine.close()
    assert len(kept[1]) == len(WORDS)
    if not isinstance(declared, sf.Text):  # an empty field of a file is NULL
        assert kept[0] == kept[1]


def test_a_frame_that_was_turned_round_is_read():
    frame = pd.DataFrame({"a": range(10), "b": [float(number) for number in range(10)], "c": list("ab" * 5)})
    columns = {"a": sf.Integer(0, 9), "b": sf.Real(0, 9), "c": sf.Category(["a", "b"])}
    for given in (frame.iloc[::-1], frame.iloc[::-2], frame[::-1].astype({"c": "category"})):
        engine = DuckDBEngine.of_data(Table("t", None, sf.ROW, columns), given)
        held = engine._connection.execute("SELECT a, b, c::VARCHAR FROM t").fetchall()
        engine.close()
        assert held == [tuple(row) for row in given.itertuples(index=False)]
