"""Rows of a snapshot -> a table of a PostgreSQL database, value by value. Part of the trusted perimeter: claim K-26."""

import io
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
from pyarrow import csv

from sfumato.engines.sql.postgres_dialect import shorten_name
from sfumato.errors import CatalogError
from sfumato.ingest.hidden_names import HIDDEN
from sfumato.ingest.source_refusals import build_source_error
from sfumato.ingest.sql_quoting import quote

Connection = psycopg.Connection[tuple[Any, ...]]
TEXT = 'text COLLATE "C"'
TYPES = {
    "TINYINT": "smallint", "UTINYINT": "smallint", "SMALLINT": "smallint", "USMALLINT": "integer",
    "INTEGER": "integer", "UINTEGER": "bigint", "BIGINT": "bigint", "UBIGINT": "numeric(20, 0)",
    "DOUBLE": "double precision", "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp", "VARCHAR": TEXT,
}  # fmt: skip
WIDTHS = ("bigint", "double", "timestamp", "integer", "date", "smallint", "boolean")  # wide ones first: no gaps
ROWS_AT_ONCE = 50_000


def choose_type(kind: str) -> str:
    """The type of PostgreSQL that holds a column of the snapshot. Texts are compared as bytes."""
    return TEXT if kind.startswith("ENUM") else TYPES[kind]


def store_table(snapshot: duckdb.DuckDBPyConnection, name: str, database: Connection, place: str) -> None:
    """Copy a pinned table to a new table of the database. `place`: its full name, as SQL.

    Claim: K-26. The stored rows are those of the snapshot, value for value.
    Requires: the caller's transaction makes the table, so nobody sees it half full.
    Relies on: K-50 (values), K-35 (hidden columns).
    Checked by: tests/engines/test_postgres_tables.py::test_stored_rows_are_those_of_the_snapshot
    """
    described = snapshot.execute(f"DESCRIBE {quote(name)}").fetchall()
    kinds = {str(row[0]): choose_type(str(row[1])) for row in described}
    ordered = sorted(kinds, key=lambda column: (_rank(kinds[column]), not column.startswith(HIDDEN)))
    defined = ", ".join(f"{quote(shorten_name(column))} {kinds[column]}" for column in ordered)
    temporary = place.startswith("pg_temp.")
    database.execute(f"CREATE TABLE {place} ({defined})")
    names = ", ".join(quote(shorten_name(column)) for column in kinds)
    read = ", ".join(_write_readable(str(row[0]), str(row[1])) for row in described)
    rows = _write_rows(snapshot, f"SELECT {read} FROM {quote(name)}")
    _copy(name, database, f"COPY {place} ({names}) FROM STDIN (FORMAT csv{'' if temporary else ', FREEZE'})", rows)
    if not temporary:  # where a plan is bound, nothing may be known about the rows
        database.execute(f"ANALYZE {place}")


def _rank(kind: str) -> int:
    return next((place for place, known in enumerate(WIDTHS) if kind.startswith(known)), len(WIDTHS))


def _write_readable(column: str, kind: str) -> str:
    return f"CAST({quote(column)} AS VARCHAR) AS {quote(column)}" if kind.startswith("ENUM") else quote(column)


def _write_rows(snapshot: duckdb.DuckDBPyConnection, query: str) -> Iterator[bytes]:
    """The rows as CSV: every value is in quotes, and NULL is not."""
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in snapshot.sql(query).to_arrow_reader(ROWS_AT_ONCE):
        written = io.BytesIO()
        csv.write_csv(batch, written, options)
        yield written.getvalue()


def _copy(table: str, database: Connection, statement: str, rows: Iterator[bytes]) -> None:
    refusal: CatalogError | None = None
    try:
        with database.cursor() as cursor, cursor.copy(statement) as copy:
            for part in rows:
                copy.write(part)
    except psycopg.DataError:  # its text quotes the row
        hint = "PostgreSQL cannot hold the character U+0000 in a text. Remove it from the source, or use DuckDB."
        refusal = build_source_error(table, "a text of it cannot be stored in PostgreSQL.", hint)
    except psycopg.OperationalError:
        refusal = build_source_error(table, "it could not be copied to PostgreSQL.", "Is the server's disk full?")
    if refusal is not None:
        raise refusal
