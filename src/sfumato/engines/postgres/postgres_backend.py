"""Pin tables in a PostgreSQL database, and open those that are pinned there.

The rows are in a schema of the database. A small file in the dataset's folder has everything else that a snapshot has:
declarations, versions, the states of sources, and the names of the tables in the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.engines.postgres.copied_rows import store_table
from sfumato.engines.postgres.postgres_engine import PostgresEngine
from sfumato.engines.postgres.postgres_sessions import Sessions
from sfumato.engines.postgres.side_schema import SideSchema, read_places
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.declared_versions import read_versions
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, combine_reports
from sfumato.ingest.postgres_server import find_address, use_server
from sfumato.ingest.public import add_facts
from sfumato.ingest.snapshot import order_tables, pin
from sfumato.ingest.snapshot_file import Prepared, add, open_to_read, prepare
from sfumato.ingest.sql_quoting import quote


@dataclass(frozen=True, slots=True)
class PostgresBackend:
    """A database, the schema that holds the pinned tables, and how long one statement may take.

    Without a schema, the rows are pinned on this machine, and copied to temporary tables when they are opened.
    """

    url: str
    schema: str | None
    timeout_seconds: int

    @property
    def snapshot_name(self) -> str:
        """The file that names the tables of the schema, or that has their rows."""
        return "snapshot.duckdb" if self.schema is None else "postgres.duckdb"

    def of_tables(self, tables: Mapping[str, tuple[Table, object]], loading: Loading = AS_USUAL) -> PostgresEngine:
        """Pin tables without a folder: in temporary tables, which end with the engine."""
        with connect_to_pin() as snapshot, use_server(self.address):
            declared = {name: table for name, (table, _) in tables.items()}
            report = combine_reports(
                (pin(snapshot, table, tables[table.name][1], None, loading) for table in order_tables(declared)),
                loading,
            )
            return self._open_temporary(snapshot, declared, report)

    def prepare(
        self,
        path: Path,
        tables: Mapping[str, Table],
        folder: Path,
        *,
        only: str | None = None,
        everything: bool = False,
        loading: Loading = AS_USUAL,
    ) -> Prepared:
        """Pin the tables of a catalog that have changed, or one, or all: the owner's step. Each is a new version."""
        with use_server(self.address):
            return prepare(
                path, tables, folder, only=only, everything=everything, loading=loading, rows=self._find_rows()
            )

    def add(
        self, path: Path, tables: Mapping[str, Table], newest: str, folder: Path, loading: Loading = AS_USUAL
    ) -> LoadReport:
        """Pin a table that the catalog is about to hold; the others keep their versions."""
        with use_server(self.address):
            return add(path, tables, newest, folder, loading, self._find_rows())

    def open(self, path: Path, tables: Mapping[str, Table]) -> PostgresEngine:
        """Open pinned tables, to be read only."""
        with open_to_read(path) as snapshot:
            if self.schema is None:
                return self._open_temporary(snapshot, tables, None)
            versions, places = read_versions(snapshot, tables), read_places(snapshot)
            stored = {name: places[name] for name in tables}
            sessions = Sessions(self.address, self.timeout_seconds)
            return PostgresEngine(sessions, self.schema, tables, add_facts(snapshot, tables), stored, versions)

    def _open_temporary(
        self, snapshot: duckdb.DuckDBPyConnection, declared: Mapping[str, Table], report: LoadReport | None
    ) -> PostgresEngine:
        versions = read_versions(snapshot, declared)
        stored = {name: f"pinned_{place}" for place, name in enumerate(declared)}
        sessions = Sessions(self.address, self.timeout_seconds, single=True)
        connection = sessions.open()
        try:
            with connection.transaction():
                for name, place in stored.items():
                    store_table(snapshot, name, connection, f"pg_temp.{quote(place)}")
        except BaseException:
            connection.close()
            raise
        sessions.give_back(connection)
        engine = PostgresEngine(sessions, "pg_temp", declared, add_facts(snapshot, declared), stored, versions)
        engine.load_report = report
        return engine

    def _find_rows(self) -> SideSchema | None:
        return None if self.schema is None else SideSchema(self.address, self.schema)

    @property
    def address(self) -> str:
        """The address of the server, also for sources that name none."""
        return find_address(self.url)
