"""The embedded engine: it runs plans on DuckDB, over a pinned snapshot, in a sealed read-only connection."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.content_version import compute_content_digest
from sfumato.engines.duckdb.empty_tables import EmptyTables
from sfumato.engines.duckdb.kept_results import KeptResults
from sfumato.engines.duckdb.text_counts import count_texts
from sfumato.engines.measured_cells import HeldKeys
from sfumato.engines.measured_plan import check_binding, measure_plan
from sfumato.engines.plan_queries import PlanQueries, Queries
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.ingest.connections import ONE_THREAD, SEALED, connect_to_pin, has_small_tables
from sfumato.ingest.declared_versions import read_versions
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, combine_reports
from sfumato.ingest.public import add_facts
from sfumato.ingest.snapshot import order_tables, pin
from sfumato.ingest.snapshot_file import Prepared, add, open_to_read, prepare
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates


class DuckDBEngine:
    """Snapshots of the declared tables, in memory or in one database file. The class is also a Backend."""

    snapshot_name = "snapshot.duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> None:
        """The connection is sealed. A table that is not pinned as it is declared is refused."""
        self._connection = connection
        self.load_report: LoadReport | None = None  # only where this process read the sources
        self.versions = read_versions(connection, tables)
        self.tables = add_facts(connection, tables)
        self._queries = PlanQueries(self.tables, tables, DUCKDB)
        self._empty = EmptyTables(self.tables, connection)
        self._kept = KeptResults()
        self._small = has_small_tables(connection, tables)
        self._cursors: list[duckdb.DuckDBPyConnection] = []  # idle; a new one takes longer than some queries
        self._busy: dict[int, duckdb.DuckDBPyConnection] = {}  # by the thread that uses it

    @classmethod
    def of_data(cls, table: Table, data: object, loading: Loading = AS_USUAL) -> "DuckDBEngine":
        """Pin one table in memory."""
        return cls.of_tables({table.name: (table, data)}, loading)

    @classmethod
    def of_tables(cls, tables: Mapping[str, tuple[Table, object]], loading: Loading = AS_USUAL) -> "DuckDBEngine":
        """Pin tables in memory; `load_report` says what that did to their values."""
        connection = connect_to_pin()
        try:
            ordered = order_tables({name: table for name, (table, _) in tables.items()})
            data = (tables[table.name][1] for table in ordered)
            report = combine_reports(
                (pin(connection, *both, None, loading, stays_open=True) for both in zip(ordered, data, strict=True)),
                loading,
            )
            threads = ONE_THREAD if has_small_tables(connection, tables) else {}
            for setting, value in (threads | SEALED).items():
                connection.execute(f"SET {setting} = {value}")
            engine = cls(connection, {name: table for name, (table, _) in tables.items()})
            engine.load_report = report
            return engine
        except BaseException:
            connection.close()
            raise

    @classmethod
    def prepare(
        cls,
        path: Path,
        tables: Mapping[str, Table],
        folder: Path,
        *,
        only: str | None = None,
        everything: bool = False,
        loading: Loading = AS_USUAL,
    ) -> Prepared:
        """Pin the tables of a catalog that have changed, or one, or all: the owner's step. Each is a new version."""
        return prepare(path, tables, folder, only=only, everything=everything, loading=loading)

    @classmethod
    def add(
        cls, path: Path, tables: Mapping[str, Table], newest: str, folder: Path, loading: Loading = AS_USUAL
    ) -> LoadReport:
        """Pin a table that the catalog is about to hold; the others keep their versions."""
        return add(path, tables, newest, folder, loading)

    @classmethod
    def open(cls, path: Path, tables: Mapping[str, Table]) -> "DuckDBEngine":
        """Open pinned tables, to be read only."""
        connection = open_to_read(path)
        try:
            return cls(connection, tables)
        except BaseException:
            connection.close()
            raise

    def content_digest(self, table: str, key: bytes) -> str:
        """A keyed digest of a pinned table: the version of data that has no other."""
        return compute_content_digest(self._connection, table, key)

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that DuckDB cannot bind, by the declared columns alone: no data is read.

        A plan that does not agree with the pinned tables is refused too.
        """
        check_binding(self._queries, plan, self._empty.bind)

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. Every failure has one constant text: what failed may depend on the data."""
        return measure_plan(self._queries, plan, self._open_reader)

    def interrupt(self, thread: int) -> None:
        """Stop what a thread measures. It fails as any other failure does, and its charge can be resumed."""
        cursor = self._busy.get(thread)
        if cursor is not None:
            cursor.interrupt()

    @contextmanager
    def _open_reader(self) -> Iterator["_CursorReader"]:
        """A connection to the snapshot that no other thread uses. One that failed is not used again."""
        thread = threading.get_ident()
        try:
            cursor = self._cursors.pop()
        except IndexError:
            cursor = self._connection.cursor()
        self._busy[thread] = cursor
        try:
            yield _CursorReader(cursor, self._kept, self._small)
        finally:
            del self._busy[thread]
        self._cursors.append(cursor)

    def close(self) -> None:
        """Close the snapshot."""
        self._empty.close()
        self._kept.clear()
        while self._cursors:
            self._cursors.pop().close()
        self._connection.close()


@dataclass(frozen=True, slots=True)
class _CursorReader:
    """Reads results through one connection."""

    cursor: duckdb.DuckDBPyConnection
    kept: KeptResults
    small: bool  # is each table read by one thread?

    def read_rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.kept.read(query, lambda text: self.cursor.execute(text).fetchall())

    def read_texts(self, queries: Queries) -> tuple[list[str], npt.NDArray[np.int64]]:
        """In large tables, the keys are put in order by DuckDB and counted here: that takes less time and memory."""
        if queries.texts is not None and not self.small:
            return count_texts(self.cursor, queries.texts)
        texts, units = self.cursor.execute(str(queries.people)).fetchnumpy().values()
        return texts.tolist(), units

    def read_holders(self, query: str) -> HeldKeys:
        """The keys and who holds them, by columns: there can be millions of pairs."""
        *keys, units = self.cursor.sql(query).to_arrow_table().columns
        lists = units.combine_chunks()
        people = lists.flatten().dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        counts = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        return HeldKeys(list(zip(*(key.to_pylist() for key in keys), strict=True)), counts, people)
