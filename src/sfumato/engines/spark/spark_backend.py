"""Prepare the tables of a dataset on Spark, and open those that are prepared.

The rows are Parquet files where the owner says. A small file in the dataset's folder has everything else that a
snapshot has: declarations, versions, and the places of the tables.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.engines.spark.own_session import Session, check_session, open_own_session
from sfumato.engines.spark.preparing import PreparedTable, Workplace, prepare_table
from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.engines.spark.stored_tables import StoredTable
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.declared_versions import describe_origin, keep_version, read_versions
from sfumato.ingest.hidden_names import HIDDEN, PINNED, SOURCES
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, combine_reports
from sfumato.ingest.public import apply_facts, write_facts
from sfumato.ingest.snapshot import order_tables
from sfumato.ingest.snapshot_file import ASKED_FOR, NOT_PINNED, Prepared, open_to_read
from sfumato.ingest.source_refusals import build_source_error
from sfumato.ingest.source_state import SourceState
from sfumato.private_files import sync_folder

PLACES = f"{HIDDEN}_places"
FOLDER = "spark"  # beside the file, where the owner names no place
COLUMNS = "name VARCHAR, place VARCHAR, unit_kind VARCHAR, facts VARCHAR, multiplicities VARCHAR"


@dataclass(frozen=True, slots=True)
class SparkBackend:
    """A Spark session, and the path below which prepared tables are stored.

    Without a path, the tables of a folder are stored in the folder, which the executors must reach; a frame's table is
    cached in the cluster.
    """

    session: Session = field(repr=False)
    prepared: str | None = None

    def __post_init__(self) -> None:
        check_session(self.session)

    @property
    def snapshot_name(self) -> str:
        """The file that says where the prepared tables are."""
        return "spark.duckdb"

    def of_tables(self, tables: Mapping[str, tuple[Table, object]], loading: Loading = AS_USUAL) -> SparkEngine:
        """Prepare tables without a folder; `load_report` says what that did to their values."""
        return SparkEngine.of_tables(self.session, tables, loading, self.prepared)

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
        """Prepare the tables of a catalog that are not prepared as they are declared, or one, or all.

        Whether the rows of a source have changed is not looked at: ask for the table by name.
        """
        there = _read_declarations(path)
        stale: dict[str, str] = {}
        for name, table in tables.items():
            if everything or name == only:
                stale[name] = ASKED_FOR if name in there else NOT_PINNED
            elif only is not None and there:
                continue
            elif name not in there:
                stale[name] = NOT_PINNED
            elif there[name] != describe_origin(table):
                stale[name] = "its declaration changed"
        for table in order_tables(tables):
            through = None if table.unit_through is None else find_name(table.unit_through[1], stale)
            if through is not None:
                stale.setdefault(table.name, f"its people are found through {through}")
        removed = tuple(sorted(set(there) - set(tables)))
        kept = tuple(name for name in tables if name not in stale)
        report = LoadReport(())
        if stale or removed:
            report = self._load(path, tables, [*stale], removed, folder, loading)
        return Prepared(stale, kept, removed, report)

    def add(
        self, path: Path, tables: Mapping[str, Table], newest: str, folder: Path, loading: Loading = AS_USUAL
    ) -> LoadReport:
        """Prepare a table that the catalog is about to hold, and any that is not there; the others stay."""
        there = _read_declarations(path)
        wanted = [name for name in tables if name == newest or name not in there]
        return self._load(path, tables, wanted, (), folder, loading)

    def open(self, path: Path, tables: Mapping[str, Table]) -> SparkEngine:
        """Open prepared tables, to be read only."""
        with open_to_read(path) as notes:
            versions, prepared = read_versions(notes, tables), _read_places(notes, tables)
        engine = None
        with suppress(Exception):  # its text may quote what a file holds
            engine = SparkEngine(open_own_session(self.session), prepared, versions)
        if engine is None:
            hint = "Check that Spark runs and reaches their path. Or prepare them anew: sfumato prepare."
            raise build_catalog_error("The prepared tables cannot be opened on Spark.", hint)
        return engine

    def _load(  # noqa: PLR0917 - two callers
        self,
        path: Path,
        tables: Mapping[str, Table],
        wanted: list[str],
        removed: tuple[str, ...],
        folder: Path,
        loading: Loading,
    ) -> LoadReport:
        place = self.prepared or (path.parent / FOLDER).absolute().as_uri()
        work = Workplace(self.session, open_own_session(self.session), place, folder)
        with _replace_notes(path) as notes:
            known = {name: table for name, table in tables.items() if name not in wanted}
            prepared = _read_places(notes, known)
            reports = []
            for table in order_tables({name: tables[name] for name in wanted}):
                if table.source is None:
                    raise build_source_error(table.name, "it has no source.", 'For example: source = "clinic.visits".')
                prepared[table.name], report = prepare_table(work, table, table.source, prepared)
                reports.append(report)
                _keep_place(notes, table, prepared[table.name])
            for name in removed:
                for kept in (PLACES, PINNED, SOURCES):
                    notes.execute(f"DELETE FROM {kept} WHERE name = ?", [name])
            return combine_reports(reports, loading)


def _keep_place(notes: duckdb.DuckDBPyConnection, table: Table, one: PreparedTable) -> None:
    keep_version(notes, table)
    facts = [write_facts(one.table), json.dumps(one.table.multiplicities)] if table.public else [None, None]
    notes.execute(f"DELETE FROM {PLACES} WHERE name = ?", [table.name])
    notes.execute(f"INSERT INTO {PLACES} VALUES (?, ?, ?, ?, ?)", [table.name, one.stored.place, one.unit_kind, *facts])
    notes.execute(f"DELETE FROM {SOURCES} WHERE name = ?", [table.name])
    notes.execute(f"INSERT INTO {SOURCES} VALUES (?, ?)", [table.name, SourceState(str(table.source), ()).to_json()])


def _read_places(notes: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, PreparedTable]:
    rows = {row[0]: row[1:] for row in notes.execute(f"SELECT * FROM {PLACES}").fetchall()}
    found = {}
    for name, table in tables.items():
        place, unit_kind, facts, multiplicities = rows[name]
        if table.public:
            pairs = tuple((str(column), int(most)) for column, most in json.loads(multiplicities))
            table = apply_facts(table, facts, pairs)  # noqa: PLW2901 - the same table, with what was read
        found[name] = PreparedTable(table, StoredTable(place, is_path=True), unit_kind)
    return found


def _read_declarations(path: Path) -> dict[str, str]:
    """The declarations that tables were prepared by; none, if there is no file of this version."""
    if path.exists():
        with suppress(duckdb.Error), open_to_read(path) as notes:
            return {
                str(row[0]): str(row[1]) for row in notes.execute(f"SELECT name, declared FROM {PINNED}").fetchall()
            }
    return {}


@contextmanager
def _replace_notes(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy of the file, which takes its place when all went well. Readers keep the file that they opened."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as scratch:
        new = Path(scratch) / path.name
        if path.exists():
            new.write_bytes(path.read_bytes())
        with connect_to_pin(str(new)) as notes:
            notes.execute(f"CREATE TABLE IF NOT EXISTS {PLACES} ({COLUMNS})")
            notes.execute(f"CREATE TABLE IF NOT EXISTS {SOURCES} (name VARCHAR, state VARCHAR)")
            notes.execute(f"CREATE TABLE IF NOT EXISTS {PINNED} (name VARCHAR, declared VARCHAR, version VARCHAR)")
            yield notes
        new.chmod(0o600)
        os.replace(new, path)
        sync_folder(path.parent)
