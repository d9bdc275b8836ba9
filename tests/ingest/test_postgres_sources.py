"""A table of a PostgreSQL database gives the pinned rows that its CSV file gives, and refusals say what to do."""

import math
import uuid
from datetime import date, datetime

import psycopg
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.text_format import TextFormat
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError
from sfumato.ingest.postgres_server import use_server
from sfumato.lab.auditing.audit_stage import describe_public

COLUMNS = {
    "who": sf.Id(), "small": sf.Integer(-40_000, 40_000), "big": sf.Integer(-(2**53), 2**53), "x": sf.Real(-1e6, 1e6),
    "single": sf.Real(-10, 10), "price": sf.Real(-1e6, 1e6), "code": sf.Category(["1.5", "7"]), "yes": sf.Boolean(),
    "note": sf.Text(), "kind": sf.Category(["a", "b'c"]), "day": sf.Date("1900-01-01", "2100-12-31"),
    "seen": sf.DateTime("1900-01-01T00:00:00", "2100-12-31T00:00:00"),
    "zoned": sf.DateTime("1900-01-01T00:00:00", "2100-12-31T00:00:00"),
    "Odd \"name\"": sf.Integer(0, 9), "key": sf.Text(), "mood": sf.Category(["sad", "ok"]),
}  # fmt: skip
TYPES = (
    "who uuid, small smallint, big bigint, x double precision, single real, price numeric(12, 4), code numeric, "
    'yes boolean, note text, kind varchar(9), day date, seen timestamp, zoned timestamptz, "Odd ""name""" integer, '
    "key uuid, mood text"
)
ONE, TWO = "6f9619ff-8b86-d011-b42d-00c04fc964ff", "00000000-0000-0000-0000-000000000001"
ROWS = [  # their CSV file says the same
    (ONE, 1, 2**53, 0.1, 0.5, "12.3400", "1.50", True, "plain", "a", "2024-02-29", "2024-02-29 12:30:00.5",
     "2024-02-29 12:30:00+02", 3, ONE, "ok"),
    (ONE, -32768, -(2**63), math.nan, math.inf, "NaN", "NaN", False, "ä😀", "b'c", "2024-12-31", None, None, 9, TWO,
     "sad"),
    (TWO, 32767, 2**63 - 1, -math.inf, -0.0, "-99999999.9999", "7", None, 'q"u,o\nte\\N', "other", "0001-01-01",
     "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999+00", 0, None, "none"),
    (None, None, None, 5e-324, None, None, None, None, "nobody's", None, None, None, None, None, None, None),
    (TWO, None, None, 1.7976931348623157e308, None, None, "1e30", None, "\\.", None, None, None, None, None, None,
     None),
]  # fmt: skip
ODD = [  # a file would have no text for them that is read, or the empty field of NULL
    ("infinity", "-infinity", "infinity", ""),
    ("5874897-12-31", "0044-03-15 00:00:00 BC", "294276-12-31 23:59:59+00", " "),
    ("-infinity", "294276-12-31 23:59:59.999999", "4713-01-01 00:00:00+00 BC", "x"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(postgres_server):
    schema = f"owner_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TYPE {schema}.mood AS ENUM ('sad', 'ok')")
        connection.execute(f"CREATE DOMAIN {schema}.positive AS numeric CHECK (value > 0)")
        connection.execute(f"CREATE TABLE {schema}.visits ({TYPES})")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {schema}.visits VALUES ({', '.join(['%s'] * len(COLUMNS))})", ROWS)
        connection.execute(f"CREATE TABLE {schema}.odd (day date, seen timestamp, zoned timestamptz, note text)")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {schema}.odd VALUES (%s, %s, %s, %s)", ODD)
        connection.execute(f"CREATE TABLE {schema}.arrays (small int[], x money)")
        connection.execute(f'CREATE TABLE {schema}."Twin" (small int)')
        connection.execute(f'CREATE TABLE {schema}."TWIN" (small int)')
        connection.execute(f"CREATE TABLE {schema}.padded (kind char(9), mood {schema}.mood, n {schema}.positive)")
        connection.execute(f"INSERT INTO {schema}.padded VALUES ('a', 'ok', 3), ('b''c', 'sad', 4)")
        connection.execute(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.visits")
    with use_server(postgres_server.url):
        yield postgres_server.url, schema


def pinned(table, data):
    engine = DuckDBEngine.of_data(table, data)
    names = [row[0] for row in engine._connection.execute('DESCRIBE "visits"').fetchall()]
    rows = engine._connection.execute('SELECT * FROM "visits" ORDER BY ALL').fetchall()
    engine.close()
    return names, rows


def export(url, table, path):
    with psycopg.connect(url) as connection, path.open("wb") as file:
        connection.execute("SET timezone = 'UTC'")
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} TO STDOUT (FORMAT csv, HEADER)") as copy:
            for part in copy:
                file.write(part)
    return str(path)


@pytest.mark.parametrize("unit", ["who", sf.ROW])
def test_a_table_is_read_as_its_csv_is(server, tmp_path, unit):
    """The server's own CSV file and its table give the same rows, steps, ids and numbers of rows."""
    url, schema = server
    most = 3 if unit == "who" else 1
    table = Table("visits", None, unit, COLUMNS, most, reading=TextFormat(quoted_newlines=True))
    found = pinned(table, f"postgres:{schema}.visits")
    assert found == pinned(table, export(url, f"{schema}.visits", tmp_path / "visits.csv"))
    assert len(found[1]) == (4 if unit == "who" else 5)


def test_an_audit_reads_the_columns_of_a_public_table_on_a_server(server, tmp_path):
    _, schema = server
    kinds = Table("kinds", f"postgres:{schema}.padded", None, {}, public=True)
    own = Table("visits", None, sf.ROW, {"note": sf.Text()})
    dataset = Dataset("clinic", [own, kinds], sf.Budget(epsilon=1))
    described = describe_public(dataset, "SELECT COUNT(*) FROM visits v JOIN kinds k ON v.note = k.kind", tmp_path)
    assert set(described.tables["kinds"].columns) == {"kind", "mood", "n"}


def test_values_beyond_the_calendar_are_clamped(server):
    _, schema = server
    columns = {name: COLUMNS[name] for name in ("day", "seen", "zoned", "note")}
    _, rows = pinned(Table("visits", None, sf.ROW, columns), f"postgres:{schema}.odd")
    first, last = date(1900, 1, 1), date(2100, 12, 31)
    begin, end = datetime(1900, 1, 1), datetime(2100, 12, 31)
    assert sorted(rows) == [(first, end, begin, "x"), (last, begin, end, ""), (last, begin, end, " ")]


def test_domains_and_enumerations_are_read_as_what_they_are(server):
    _, schema = server
    columns = {"kind": COLUMNS["kind"], "mood": sf.Category(["sad", "ok"]), "n": sf.Integer(0, 9)}
    _, rows = pinned(Table("visits", None, sf.ROW, columns), f"postgres:{schema}.padded")
    assert [row[:3] for row in rows] == [("a", "ok", 3), ("b'c", "sad", 4)]


def test_decimals_are_read_beside_a_decimal_comma(server):
    """The declared format is of texts. Numbers of the server are numbers."""
    _, schema = server
    table = Table("visits", None, sf.ROW, {"price": COLUMNS["price"]}, reading=TextFormat(decimal=","))
    assert pinned(table, f"postgres:{schema}.visits")[1][0][0] == -1e6
    assert (12.34, 395) in pinned(table, f"postgres:{schema}.visits")[1]


@pytest.mark.parametrize(
    ("source", "columns", "message"),
    [
        ("nothing", {"x": sf.Real(0, 1)}, r"has no table .*There are: .*visits"),
        ("seen", {"x": sf.Real(0, 1)}, "is a view: its rows may be computed"),
        ("arrays", {"small": sf.Integer(0, 1)}, "small"),
        ("arrays", {"x": sf.Real(0, 1)}, "x"),
        ("visits", {"absent": sf.Real(0, 1)}, "absent"),
        ("twin", {"small": sf.Integer(0, 1)}, "names several tables"),
        ("a.b.c", {"x": sf.Real(0, 1)}, "names no table of a database"),
    ],
)
def test_what_cannot_be_read_is_refused(server, source, columns, message):
    _, schema = server
    with pytest.raises(CatalogError, match=message) as caught:
        DuckDBEngine.of_data(Table("t", None, sf.ROW, columns), f"postgres:{schema}.{source}")
    assert caught.value.__context__ is None
    assert caught.value.hint


def test_a_name_in_quotes_is_exact(server):
    _, schema = server
    DuckDBEngine.of_data(Table("t", None, sf.ROW, {"small": sf.Integer(0, 1)}), f'postgres:{schema}."Twin"').close()


def test_who_may_not_read_is_told_so(server):
    url, schema = server
    role = f"reader_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        table = Table("t", None, sf.ROW, {"x": sf.Real(0, 1)})
        source = f"{url.replace('postgres:@', f'{role}@')}::{schema}.visits"
        with pytest.raises(CatalogError, match="may not read the table") as caught:
            DuckDBEngine.of_data(table, source)
        assert "GRANT SELECT" in caught.value.hint
        connection.execute(f"GRANT SELECT ON {schema}.visits TO {role}")
        DuckDBEngine.of_data(table, source).close()
        connection.execute(f"ALTER TABLE {schema}.visits ENABLE ROW LEVEL SECURITY")
        with pytest.raises(CatalogError, match="not all of its rows"):  # a policy would hide rows without a word
            DuckDBEngine.of_data(table, source)
        connection.execute(f"ALTER TABLE {schema}.visits DISABLE ROW LEVEL SECURITY")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://127.0.0.1:1/none", "cannot be reached"),
        ("postgresql://ann:secret@127.0.0.1/none", "must not have a password"),
        ("postgresql://[::/none", "cannot be read"),
    ],
)
def test_a_server_that_cannot_be_used_is_named(url, message):
    with pytest.raises(CatalogError, match=message) as caught:
        DuckDBEngine.of_data(Table("t", None, sf.ROW, {"x": sf.Real(0, 1)}), f"{url}::public.t")
    assert "secret" not in str(caught.value)
    assert caught.value.hint


def test_a_missing_database_and_a_missing_role_are_named(server):
    url, _ = server
    for wrong, message in (("/postgres?", "no such database"), ("postgres:@", "no such role")):
        other = url.replace(wrong, wrong.replace("postgres", "nobody_has_this").replace(":@", "@"))
        with pytest.raises(CatalogError, match=message):
            DuckDBEngine.of_data(Table("t", None, sf.ROW, {"x": sf.Real(0, 1)}), f"{other}::public.t")
