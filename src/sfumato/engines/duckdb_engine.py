"""The embedded engine: plans on DuckDB, over a pinned snapshot, in a connection that can do nothing else."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import duckdb

from sfumato.catalog.model import Table
from sfumato.engines.engine import cell_key, cells_of
from sfumato.engines.lowering import lower, lower_people
from sfumato.engines.snapshot import pin, stored_steps, versions_of
from sfumato.errors import CatalogError, EngineFailed
from sfumato.kernel.plan import BoundedPlan, Kind, digest
from sfumato.kernel.release import ExactAggregates

LOCKED = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class DuckDBEngine:
    """Snapshots of the declared tables, in memory or in one database file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> None:
        self._connection = connection
        self._stored = {name: stored_steps(table) for name, table in tables.items()}
        self.versions = versions_of(connection, tables)
        for setting in LOCKED:
            connection.execute(setting)

    @classmethod
    def of_data(cls, table: Table, data: object) -> "DuckDBEngine":
        """Pin one table in memory."""
        connection = duckdb.connect(":memory:")
        _pin(connection, table, data)
        return cls(connection, {table.name: table})

    @classmethod
    def prepare(cls, path: Path, tables: Mapping[str, Table], folder: Path) -> None:
        """Pin the tables of a catalog into a database file: the owner's step."""
        scratch = path.with_suffix(".new")
        scratch.unlink(missing_ok=True)
        with duckdb.connect(str(scratch)) as connection:
            for table in tables.values():
                _pin(connection, table, folder / str(table.source))
        scratch.replace(path)  # whole, or not at all

    @classmethod
    def open(cls, path: Path, tables: Mapping[str, Table]) -> "DuckDBEngine":
        """Open pinned tables, to be read only."""
        connection = duckdb.connect(str(path), read_only=True)
        try:
            return cls(connection, tables)
        except BaseException:
            connection.close()
            raise

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. Whatever goes wrong is told in one constant text: what failed may depend on the data."""
        measured = None
        with suppress(Exception):  # and nothing of it is kept: a cause or context could quote a record
            measured = ExactAggregates(digest(plan), self._measure(plan))
        if measured is None:
            raise EngineFailed
        return measured

    def _measure(self, plan: BoundedPlan) -> dict[str, list[int]]:
        totals = {each.name: [0] * plan.cells for each in plan.measurements}
        cells = cells_of(plan)
        cursor = self._connection.cursor()
        added = [each.name for each in plan.measurements if each.kind is not Kind.PEOPLE]
        if added:
            query = lower(plan, self._stored[plan.table]).sql(dialect="duckdb")
            for row in cursor.execute(query).fetchall():
                cell = cells.get(cell_key(row[: len(plan.keys)]))
                if cell is not None:
                    for name, value in zip(added, row[len(plan.keys) :], strict=True):
                        totals[name][cell] += int(value)
        if len(added) < len(plan.measurements):
            people = cursor.execute(lower_people(plan).sql(dialect="duckdb")).fetchall()
            for each in plan.measurements:
                if each.kind is Kind.PEOPLE:
                    for cell, units in people:
                        totals[each.name][cell] = units
        return totals

    def close(self) -> None:
        """Let go of the snapshot."""
        self._connection.close()


def _pin(connection: duckdb.DuckDBPyConnection, table: Table, data: object) -> None:
    pinned = False
    with suppress(duckdb.Error, RuntimeError, ValueError, OSError):  # nothing is kept of what they say: it quotes rows
        pin(connection, table, data)
        pinned = True
    if not pinned:
        raise CatalogError(
            "catalog",
            f"tables.{table.name}: the source could not be read.",
            "Check that it is there, that it is a CSV or Parquet file or a frame, and that its columns are declared.",
        )
