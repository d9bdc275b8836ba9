"""A table of a PostgreSQL database as a source: `postgres:schema.table`, or `postgresql://user@host/db::schema.table`.

It is read once, in a read-only transaction that sees one state of the database. Views are refused, because their rows
may be computed from the rows of others. Part of the trusted perimeter: claim K-50.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.errors import CatalogError
from sfumato.ingest.attached_files import NAMES, unquote
from sfumato.ingest.hidden_names import SOURCE_ROWS
from sfumato.ingest.postgres_rows import ReadAs, choose_reading, read_rows
from sfumato.ingest.postgres_server import PASSWORD, connect
from sfumato.ingest.source_files import SERVER_TABLE
from sfumato.ingest.source_refusals import build_source_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
FIND_TABLES = (
    "SELECT n.nspname, c.relname, c.relkind, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE lower(n.nspname) = lower(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND lower(c.relname) LIKE lower(%s)"
)
FIND_COLUMNS = (
    "SELECT a.attname, CASE WHEN t.typtype = 'e' OR b.typtype = 'e' THEN 'enum' "
    "ELSE format_type(COALESCE(b.oid, t.oid), NULL) END "
    "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = NULLIF(t.typbasetype, 0) "
    "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
NOT_TABLES = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}


def read_postgres_table(
    connection: duckdb.DuckDBPyConnection, table: Table, source: str, stack: ExitStack, *, whole: bool
) -> SourceRelation:
    """Copy the declared columns into a table that lasts as long as the stack. Not `whole`: names and types alone.

    Claim: K-50. The rows of one state of the table, each value by its type.
    Requires: the source is named as this file says (checked here).
    Relies on: K-50 (types).
    Checked by: tests/ingest/test_postgres_sources.py::test_a_table_is_read_as_its_csv_is
    """
    with _open(table.name, source) as (database, place, kinds):
        wanted = [name for name in kinds if table.public or not whole or name in table.columns]
        readings = {
            name: choose_reading(kinds[name], table.columns.get(name), table.reading.decimal) for name in wanted
        }
        readings = readings or {name: ReadAs("NULL", "string", "VARCHAR") for name in list(kinds)[:1]}
        filtered = place if whole else f"{place} WHERE false"
        stack.callback(connection.execute, f"DROP TABLE IF EXISTS {SOURCE_ROWS}")
        with read_rows(connection, database, filtered, readings) as found:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {SOURCE_ROWS} AS SELECT * FROM {found}")
        columns = {name: reading.kind for name, reading in readings.items()}
        return SourceRelation(SOURCE_ROWS, columns, reading=table.reading)


def digest_rows(source: str) -> tuple[str, int, str]:
    """The table's full name, its number of rows, and a digest of them that does not depend on their order."""
    with _open("source", source) as (database, place, _):
        sums = ", ".join(f"sum(hashtextextended(CAST(r AS text), {seed})::numeric)" for seed in (0, 1))
        found = database.execute(f"SELECT count(*), {sums} FROM {place} r").fetchone()
    rows, *digests = found or (0,)
    return place, int(rows), ":".join(map(str, digests))


@contextmanager
def _open(table: str, source: str) -> "Iterator[tuple[Connection, str, dict[str, str]]]":
    """A read-only transaction, the table's full name as SQL, and the types of its columns. Refusals hold no value."""
    import psycopg  # noqa: PLC0415 - an extra

    parts = SERVER_TABLE.fullmatch(source)
    names = NAMES.fullmatch(parts["name"]) if parts is not None else None
    if parts is None or names is None:
        hint = 'Write source = "postgres:schema.table". A name with a point is in double quotes.'
        raise build_source_error(table, "the source names no table of a database.", hint)
    if parts["url"] and PASSWORD.search(parts["url"]):
        hint = "Put it into ~/.pgpass or the environment variable PGPASSWORD."
        raise build_source_error(table, "the source must not have a password in it.", hint)
    refused = False
    with connect(parts["url"]) as database:
        database.execute(READ_ONLY)
        try:
            place, oid = _find_table(database, table, unquote(names["schema"] or "public"), unquote(names["table"]))
            kinds = {str(name): str(kind) for name, kind in database.execute(FIND_COLUMNS, [oid]).fetchall()}
            yield database, place, kinds
        except psycopg.errors.InsufficientPrivilege:
            refused = True
        finally:
            database.execute("ROLLBACK")
    if refused:
        hint = f"The table's owner can allow it: GRANT SELECT ON {place} TO …. Row-level security must not hide rows."
        raise build_source_error(table, "this user may not read the table, or not all of its rows.", hint)


def _find_table(database: "Connection", table: str, schema: str, name: str) -> tuple[str, int]:
    """The full name of a table, and its number in the catalog. Names match in any case, if one alone does."""
    escaped = re.sub(r"([\\%_])", r"\\\1", name)
    found = database.execute(FIND_TABLES, [schema, escaped]).fetchall()
    exact = [row for row in found if row[:2] == (schema, name)]
    chosen = exact or found
    if len(chosen) != 1:
        raise _explain_missing(database, table, schema, name, twice=bool(chosen))
    (one,) = chosen
    if str(one[2]) in NOT_TABLES:
        hint = "Name the table itself, or store the rows in one: CREATE TABLE … AS SELECT …."
        what = f"{schema}.{name} is {NOT_TABLES[str(one[2])]}: its rows may be computed from the rows of others."
        raise build_source_error(table, what, hint)
    return f"{quote(str(one[0]))}.{quote(str(one[1]))}", int(one[3])


def _explain_missing(database: "Connection", table: str, schema: str, name: str, *, twice: bool) -> CatalogError:
    if twice:
        hint = 'Write the name as it is, in double quotes: source = \'postgres:"Schema"."Table"\'.'
        return build_source_error(table, f"{schema}.{name} names several tables.", hint)
    there = [f"{row[0]}.{row[1]}" for row in database.execute(FIND_TABLES, [schema, "%"]).fetchall()]
    hint = f"There are: {', '.join(sorted(there)[:20])}." if there else f"The schema {schema} has no tables."
    return build_source_error(table, f"the database has no table {schema}.{name}.", hint)
