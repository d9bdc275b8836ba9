"""The database file of the pinned tables. It is replaced as a whole; other processes go on reading the old file."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.errors import CatalogError
from sfumato.ingest.connections import ONE_THREAD, SEALED, connect_to_pin
from sfumato.ingest.declared_versions import describe_origin
from sfumato.ingest.hidden_names import ATTACHED, FACTS, HIDDEN, MULTIPLICITIES, PINNED, SOURCES
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, TableReport, combine_reports
from sfumato.ingest.snapshot import order_tables, pin
from sfumato.ingest.source_files import CSV
from sfumato.ingest.source_refusals import NotEnoughMemory, build_changed_error, build_source_error
from sfumato.ingest.source_state import SourceState, SourceStatus, compare_state, is_unchanged, read_state
from sfumato.ingest.sql_quoting import quote, quote_text
from sfumato.private_files import FOR_THE_OWNER, make_private_folder, sync_folder

NOT_PINNED, ASKED_FOR = "it was not pinned", "it was asked for"
# Memory for DuckDB while it loads a table. A load that lacks memory begins again with the next; then without a limit.
SMALL_FILE = 2 << 20  # bytes: its tables are read by one thread (see `connections.has_small_tables`)
MEMORY = ("55MB", "500MB")
MEMORY_FOR_CSV = ("90MB", "500MB")  # the reader of CSV files holds several buffers
LARGE_SOURCE = 256 << 20  # bytes: what does not fit would be written to the disk and read again
MEMORY_FOR_LARGE = ("1000MB",)


@dataclass(frozen=True, slots=True)
class Pinning:
    """How a table stands beside its pinned data. `files`: those of the source that differ from what was read."""

    table: str
    pinned: bool
    same_declaration: bool
    source: SourceStatus
    files: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the table must be read again. A source that is gone cannot be."""
        return not self.pinned or not self.same_declaration or self.source is SourceStatus.CHANGED

    @property
    def why(self) -> str:
        """Why it must be read again."""
        if not self.pinned:
            return NOT_PINNED
        changed = [f"{', '.join(self.files)} changed"] if self.source is SourceStatus.CHANGED else []
        return " and ".join([*([] if self.same_declaration else ["its declaration changed"]), *changed])


class RowPlace(Protocol):
    """Where rows are kept, if not in the file of the snapshot. The file then has everything but the rows."""

    def bring(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> None:
        """Bring the rows of pinned tables back, because other tables find their people through them."""
        ...

    def take(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> None:
        """Take the rows of tables that were just read."""
        ...

    def clean(self) -> None:
        """Remove what the last two versions of the file do not name. The new file is in its place."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `prepare` did: why each table was read again, which stay as they are pinned, and the load report."""

    read: Mapping[str, str]
    kept: tuple[str, ...]
    removed: tuple[str, ...]
    report: LoadReport
    gone: tuple[str, ...] = ()  # of those kept: their sources are not there


def prepare(
    path: Path,
    tables: Mapping[str, Table],
    folder: Path,
    *,
    only: str | None = None,
    everything: bool = False,
    loading: Loading = AS_USUAL,
    rows: RowPlace | None = None,
) -> Prepared:
    """Pin the tables whose source or declaration has changed; or one table; or all. The others keep their versions.

    A table that reaches its people through one that is read again is read again too. What the catalog no longer
    declares is removed.
    """
    there = _list_pinned(path)
    stale, gone = dict[str, str](), list[str]()
    if everything or not there:
        stale = {name: ASKED_FOR if name in there else NOT_PINNED for name in tables}
    elif only is not None:
        stale = {only: ASKED_FOR}
    else:
        for name, pinning in compare_pinned(path, tables, folder).items():
            if pinning.stale:
                stale[name] = pinning.why
            elif pinning.source is SourceStatus.GONE:
                gone.append(name)
    for table in order_tables(tables):  # those through which others reach their people come first
        through = None if table.unit_through is None else find_name(table.unit_through[1], stale)
        if through is not None and table.name not in stale:
            stale[table.name] = f"its people are found through {through}"
    removed = tuple(sorted(there - set(tables)))
    kept = tuple(name for name in tables if name not in stale)
    report = LoadReport(())
    if stale or removed:
        with _replace_file(path, rows, copy=bool(kept)) as connection:
            _remove(connection, [*stale, *removed])
            read = [table for table in order_tables(tables) if table.name in stale]
            report = _load(connection, tables, read, folder, loading, rows)
    return Prepared(stale, kept, removed, report, tuple(name for name in gone if name in kept))


def add(  # noqa: PLR0917 - as `prepare`, which has names for them
    path: Path,
    tables: Mapping[str, Table],
    newest: str,
    folder: Path,
    loading: Loading = AS_USUAL,
    rows: RowPlace | None = None,
) -> LoadReport:
    """Pin one more table, and any that is not there; the others stay as they are pinned."""
    with _replace_file(path, rows, copy=True) as connection:
        there = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        # a file of that name is left from an addition that was interrupted
        read = [table for table in order_tables(tables) if table.name == newest or table.name not in there]
        return _load(connection, tables, read, folder, loading, rows)


def _load(  # noqa: PLR0917 - two callers
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, Table],
    read: Sequence[Table],
    folder: Path,
    loading: Loading,
    rows: RowPlace | None,
) -> LoadReport:
    if rows is not None:
        links = [find_name(table.unit_through[1], tables) for table in read if table.unit_through is not None]
        rows.bring(connection, [table for table in tables.values() if table.name in links and table not in read])
    report = combine_reports((_pin(connection, table, folder, loading) for table in read), loading)
    if rows is not None:
        rows.take(connection, read)
    return report


def compare_pinned(path: Path, tables: Mapping[str, Table], folder: Path) -> dict[str, Pinning]:
    """Each table beside its pinned data: for the owner, since it looks at the sources."""
    declared: dict[str, str] = {}
    states: dict[str, SourceState] = {}
    # a file of another version, or a damaged one: as if it were not there
    with suppress(duckdb.Error, CatalogError), open_to_read(path) as connection:
        declared = dict(connection.execute(f"SELECT name, declared FROM {PINNED}").fetchall())
        rows = connection.execute(f"SELECT name, state FROM {SOURCES}").fetchall()
        states = {name: SourceState.from_json(state) for name, state in rows}
    found = {}
    for name, table in tables.items():
        pinned = name in declared and name in states
        same = pinned and declared[name] == describe_origin(table)
        status, files = SourceStatus.GONE, tuple[str, ...]()
        if pinned and table.source is not None:
            status, files = compare_state(states[name], table.source, folder)
        found[name] = Pinning(name, pinned, same, status, files)
    return found


def open_to_read(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that can read this file and nothing else; sealed from the start, so that it may be opened twice.

    DuckDB knows the files that a process has open by their names, and would give the one that had this name before. So
    it is opened by a name of its own, where one can be made.
    """
    try:
        config = SEALED | (ONE_THREAD if path.stat().st_size <= SMALL_FILE else {})
        try:
            with tempfile.TemporaryDirectory(dir=path.parent, prefix="open-") as scratch:
                alias = Path(scratch) / path.name
                os.link(path, alias)
                return duckdb.connect(str(alias), read_only=True, config=config)
        except OSError:  # a folder that is not written to: nothing is prepared in it meanwhile
            return duckdb.connect(str(path), read_only=True, config=config)
    except (duckdb.Error, OSError):
        hint = "If another process prepares it just now, wait; else pin it anew: sfumato prepare."
        raise CatalogError("catalog", f"The pinned data in {path.name} cannot be opened.", hint) from None


def _pin(connection: duckdb.DuckDBPyConnection, table: Table, folder: Path, loading: Loading) -> TableReport:
    if table.source is None:
        raise build_source_error(table.name, "it has no source.", 'For example: source = "visits.csv".')
    state = read_state(table.source, folder)
    report = _pin_in_little_memory(connection, table, state, folder, loading)
    if not is_unchanged(state, folder):
        raise build_changed_error(table.name)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {SOURCES} (name VARCHAR, state VARCHAR)")
    connection.execute(f"DELETE FROM {SOURCES} WHERE name = ?", [table.name])
    connection.execute(f"INSERT INTO {SOURCES} VALUES (?, ?)", [table.name, state.to_json()])
    return report


def _pin_in_little_memory(
    connection: duckdb.DuckDBPyConnection, table: Table, state: SourceState, folder: Path, loading: Loading
) -> TableReport:
    """Pin a table with as little memory as is enough; what does not fit is put next to the new file for a while."""
    source = state.source
    limits = MEMORY_FOR_CSV if Path(source).suffix.lower() in CSV else MEMORY
    for limit in MEMORY_FOR_LARGE if sum(file.size for file in state.files) > LARGE_SOURCE else limits:
        connection.execute(f"SET memory_limit = '{limit}'")
        try:
            return pin(connection, table, source, folder, loading)
        except NotEnoughMemory:
            continue
        finally:
            connection.execute("RESET memory_limit")
    return pin(connection, table, source, folder, loading)


def _list_pinned(path: Path) -> set[str]:
    names: set[str] = set()
    if path.exists():
        with suppress(duckdb.Error, CatalogError), open_to_read(path) as connection:
            names = {row[0] for row in connection.execute(f"SELECT name FROM {PINNED}").fetchall()}
    return names


def _remove(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Drop tables before others are written, so that the file does not grow: their place is used again."""
    there = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for name in names:
        connection.execute(f"DROP TABLE IF EXISTS {quote(name)}")
        for kept in {PINNED, SOURCES, FACTS, MULTIPLICITIES} & there:
            connection.execute(f"DELETE FROM {kept} WHERE name = ?", [name])
    connection.execute("CHECKPOINT")


@contextmanager
def _replace_file(path: Path, rows: RowPlace | None, *, copy: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new file beside the old one, which takes its place when all went well. Readers keep the file they opened.

    If rows are kept elsewhere, the new file has none.
    """
    make_private_folder(path.parent)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as scratch:
        new = Path(scratch) / path.name
        if copy and path.exists():
            shutil.copyfile(path, new)
        with connect_to_pin(str(new)) as connection:
            yield connection
        if rows is not None:
            new = _leave_rows_out(new)
        new.chmod(FOR_THE_OWNER)
        os.replace(new, path)
    sync_folder(path.parent)
    if rows is not None:
        rows.clean()


def _leave_rows_out(full: Path) -> Path:
    """Another file with the same tables. Those of the catalog are empty: a deleted row could still be in the file."""
    bare = full.with_name(f"bare-{full.name}")
    with connect_to_pin(str(bare)) as connection:
        connection.execute(f"ATTACH {quote_text(str(full))} AS {ATTACHED} (READ_ONLY)")
        found = f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{ATTACHED}'"
        for (name,) in connection.execute(found).fetchall():
            kept = "" if name.startswith(HIDDEN) else " LIMIT 0"
            connection.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM {ATTACHED}.main.{quote(name)}{kept}")
    return bare
