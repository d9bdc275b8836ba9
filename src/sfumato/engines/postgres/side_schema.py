"""The schema of a PostgreSQL database that holds pinned tables: one table for each data version.

A snapshot is made by the same code for every engine, in DuckDB. Its rows are then copied here, and stay as they are.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import psycopg

from sfumato.catalog.columns import Id
from sfumato.catalog.dataset import Table
from sfumato.engines.postgres.copied_rows import choose_type, store_table
from sfumato.engines.sql.postgres_dialect import shorten_name
from sfumato.ingest.declared_versions import read_versions
from sfumato.ingest.hidden_names import STORED, UNIT
from sfumato.ingest.postgres_rows import choose_reading, read_rows
from sfumato.ingest.postgres_server import build_server_error, connect
from sfumato.ingest.sql_quoting import quote

Connection = psycopg.Connection[tuple[Any, ...]]


class SideSchema:
    """Takes the rows of a snapshot, and gives them back. It is made for one load."""

    def __init__(self, url: str, schema: str) -> None:
        self._url, self._schema = url, schema
        self._unused: list[str] = []  # tables that the file before the last one named

    def take(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> None:
        """Copy the rows of tables that were just read. The version before stays, for those who still read it."""
        versions = read_versions(connection, {table.name: table for table in tables})
        connection.execute(f"CREATE TABLE IF NOT EXISTS {STORED} (name VARCHAR, place VARCHAR, current BOOLEAN)")
        with connect(self._url) as database, database.transaction():
            self._make_schema(database)
            for name, version in versions.items():
                place = shorten_name(f"{name}_{version}")
                store_table(connection, name, database, f"{quote(self._schema)}.{quote(place)}")
                older = f"FROM {STORED} WHERE name = ? AND NOT current"
                self._unused += [row[0] for row in connection.execute(f"SELECT place {older}", [name]).fetchall()]
                connection.execute(f"DELETE {older}", [name])
                connection.execute(f"UPDATE {STORED} SET current = false WHERE name = ?", [name])
                connection.execute(f"INSERT INTO {STORED} VALUES (?, ?, true)", [name, place])

    def bring(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> None:
        """Copy the ids of pinned rows back into their empty tables."""
        if not tables:
            return
        places = read_places(connection)
        with connect(self._url) as database:
            for table in tables:
                linked = (UNIT, *(name for name, declared in table.columns.items() if isinstance(declared, Id)))
                described = connection.execute(f"DESCRIBE {quote(table.name)}").fetchall()
                kinds = {str(row[0]): choose_type(str(row[1])) for row in described if row[0] in linked}
                readings = {shorten_name(name): choose_reading(kind) for name, kind in kinds.items()}
                place, names = f"{quote(self._schema)}.{quote(places[table.name])}", ", ".join(map(quote, kinds))
                with read_rows(connection, database, place, readings) as found:
                    connection.execute(f"INSERT INTO {quote(table.name)} ({names}) SELECT * FROM {found}")

    def clean(self) -> None:
        """Drop the tables that neither the new file names nor the one before."""
        with connect(self._url) as database:
            for place in self._unused:
                database.execute(f"DROP TABLE IF EXISTS {quote(self._schema)}.{quote(place)}")
        self._unused.clear()

    def _make_schema(self, database: Connection) -> None:
        """Make the schema, where it is missing and this user may."""
        found = database.execute("SELECT to_regnamespace(%s) IS NULL", [quote(self._schema)]).fetchone()
        allowed = True
        try:
            if found is None or found[0]:
                with database.transaction():
                    database.execute(f"CREATE SCHEMA {quote(self._schema)}")
            with database.transaction():
                database.execute(f"CREATE TABLE {quote(self._schema)}.sfumato_probe ()")
                database.execute(f"DROP TABLE {quote(self._schema)}.sfumato_probe")
        except psycopg.errors.InsufficientPrivilege:
            allowed = False
        if not allowed:
            hint = (
                f"The owner of the database can make it: CREATE SCHEMA {self._schema} AUTHORIZATION your_user. Or "
                'leave out engine, and keep source = "postgres:schema.table": the data is then pinned on this machine.'
            )
            raise build_server_error(f"This user may not make the schema {self._schema}, or tables in it.", hint)


def read_places(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The names of the stored tables, as the file of a snapshot has them."""
    return dict(connection.execute(f"SELECT name, place FROM {STORED} WHERE current").fetchall())
