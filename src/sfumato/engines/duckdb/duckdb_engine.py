"""The embedded engine: it runs plans on DuckDB, over a pinned snapshot, in a sealed read-only connection."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.content_version import compute_content_digest
from sfumato.engines.duckdb.empty_tables import EmptyTables
from sfumato.engines.measured_cells import Added, collect_aggregates, collect_texts, names_texts
from sfumato.engines.plan_agrees import check_nullability, check_source
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.lowering import lower, lower_bins, lower_different, lower_people
from sfumato.errors import EngineFailed, KernelFault
from sfumato.ingest.connections import SEALED, connect_to_pin
from sfumato.ingest.declared_versions import read_versions
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, combine_reports
from sfumato.ingest.pinned_rows import find_grids
from sfumato.ingest.public import add_facts
from sfumato.ingest.snapshot import order_tables, pin
from sfumato.ingest.snapshot_file import Prepared, add, open_to_read, prepare
from sfumato.kernel.plan import BoundedPlan, Choice, Different, Keys, People, WeightedKeys
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.row_sources import Scan

MOST_READY = 8  # plans whose queries are kept between their check and their run


@dataclass(frozen=True, slots=True)
class Queries:
    """The texts that measure a plan."""

    people: str | None
    added: str | None
    apart: Mapping[str, str]

    def __iter__(self) -> Iterator[str]:
        return (query for query in (self.people, self.added, *self.apart.values()) if query is not None)


class DuckDBEngine:
    """Snapshots of the declared tables, in memory or in one database file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> None:
        """The connection is sealed. A table that is not pinned as it is declared is refused."""
        self._connection = connection
        self.load_report: LoadReport | None = None  # only where this process read the sources
        self.versions = read_versions(connection, tables)
        self.tables = add_facts(connection, tables)
        self._stored = {name: find_grids(table) for name, table in tables.items()}
        self._empty = EmptyTables(self.tables)
        self._ready: dict[int, tuple[BoundedPlan, Queries | None]] = {}
        self._cursors: list[duckdb.DuckDBPyConnection] = []  # idle; a new one takes longer than some queries
        self._lock = threading.Lock()

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
            report = combine_reports(
                (pin(connection, table, tables[table.name][1], None, loading) for table in ordered), loading
            )
            for setting, value in SEALED.items():
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
        bound = False
        check_source(plan.source, self.tables)
        check_nullability(plan, self.tables)
        with suppress(Exception):
            for query in self._find_queries(plan):
                self._empty.bind(query)
            bound = True
        if not bound:
            raise KernelFault("The engine cannot run this plan.")

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. Every failure has one constant text: what failed may depend on the data."""
        measured = None
        with suppress(Exception):  # and nothing of it is kept: a cause or context could quote a record
            cursor = self._take_cursor()
            measured = self._measure(plan, cursor)
            self._cursors.append(cursor)  # one that failed is not used again
        if measured is None:
            raise EngineFailed
        return measured

    def _take_cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection to the snapshot that no other thread uses."""
        try:
            return self._cursors.pop()
        except IndexError:
            return self._connection.cursor()

    def _measure(self, plan: BoundedPlan, cursor: duckdb.DuckDBPyConnection) -> ExactAggregates:
        queries = self._find_queries(plan)

        def run(query: str | None) -> list[Any] | None:
            return None if query is None else cursor.execute(query).fetchall()

        if names_texts(plan) and queries.people is not None:
            texts, units = cursor.execute(queries.people).fetchnumpy().values()
            return collect_texts(plan, texts.tolist(), units)
        added, people = run(queries.added), run(queries.people)
        apart = {name: cursor.execute(query).fetchall() for name, query in queries.apart.items()}
        return collect_aggregates(plan, people, added, apart)

    def _find_queries(self, plan: BoundedPlan) -> Queries:
        """The queries of a plan: those of its check, if it is the same object (equal plans may differ in a literal)."""
        with self._lock:
            _, ready = self._ready.pop(id(plan), (plan, None))
        ready = ready or self._lower_plan(plan)
        with self._lock:
            self._ready[id(plan)] = (plan, ready)  # holding the plan keeps its id from being used again
            while len(self._ready) > MOST_READY:
                del self._ready[next(iter(self._ready))]
        return ready

    def _lower_plan(self, plan: BoundedPlan) -> Queries:
        stored = self._stored[plan.source.table] if isinstance(plan.source, Scan) else {}
        check_source(plan.source, self.tables)
        check_nullability(plan, self.tables)
        counted = any(
            isinstance(measurement.quantity, People | Keys | WeightedKeys) for measurement in plan.measurements
        )
        adds = any(isinstance(measurement.quantity, Added) for measurement in plan.measurements)
        apart: dict[str, str] = {}
        for measurement in plan.measurements:
            if isinstance(measurement.quantity, Choice):
                apart[measurement.name] = DUCKDB.write(lower_bins(plan, measurement.name, measurement.quantity))
            elif isinstance(measurement.quantity, Different):
                apart[measurement.name] = DUCKDB.write(lower_different(plan, measurement.quantity))
        return Queries(
            # with undeclared keys, one query gives the sums and the people of each key
            DUCKDB.write(lower_people(plan)) if counted and (plan.cells or not adds) else None,
            DUCKDB.write(lower(plan, stored)) if adds else None,
            apart,
        )

    def close(self) -> None:
        """Close the snapshot."""
        self._empty.close()
        while self._cursors:
            self._cursors.pop().close()
        self._connection.close()
