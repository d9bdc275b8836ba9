"""What the owner's data is read from: CSV and Parquet files, one or many; a table of a DuckDB file; a frame.

Part of the trusted perimeter: claims K-50 and K-52. One person's record never changes how another's is read.
"""

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import duckdb

from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.errors import SfumatoError
from sfumato.ingest.canonical import EXACT, FLOATS, has_rule
from sfumato.ingest.csv_files import read_csv_files
from sfumato.ingest.hidden_names import ATTACHED, FRAME
from sfumato.ingest.parquet_files import parquet_files
from sfumato.ingest.parsing import NUMBERS, ambiguous, as_text_of
from sfumato.ingest.source_refusals import KINDS, no_rule, refused, unreadable
from sfumato.ingest.sql_quoting import quoted, text

if TYPE_CHECKING:
    import pyarrow

CSV, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
DATABASE = re.compile(r"(?P<path>.+?\.(?:duckdb|ddb|db))(?:::(?P<name>.+))?", re.IGNORECASE)
NAMES = re.compile(r'(?:(?P<schema>[^."]+|"(?:[^"]|"")+")\.)?(?P<table>[^."]+|"(?:[^"]|"")+")')
PATTERN = re.compile(r"[*?[]")
NOTHING: Mapping[str, ColumnDeclaration] = MappingProxyType({})
Settings = dict[str, str | bool | int | float | list[str]]  # as DuckDB takes them
WITHOUT_EXTENSIONS: Settings = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a table that is not there is not looked for among Python's variables
}


def connected(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A connection to pin with. It shows nothing: where someone types, DuckDB would draw a bar of its own."""
    connection = duckdb.connect(path, config=WITHOUT_EXTENSIONS)
    connection.execute("SET enable_progress_bar = false")
    return connection


@dataclass(frozen=True, slots=True)
class Source:
    """What follows FROM, and the type of each column as DuckDB names it.

    Of CSV files also the number of records, how many malformed ones were dropped, and where the first of them stand.
    """

    relation: str
    columns: Mapping[str, str]
    records: int | None = None
    dropped: int = 0
    dropped_lines: tuple[tuple[str, int], ...] = ()
    reading: TextFormat = PLAIN_TEXT
    untyped: bool = False  # every column is a text because the source has no types


@contextmanager
def opened(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    data: object,
    folder: Path | None = None,
    reading: TextFormat = PLAIN_TEXT,
    *,
    declared: Mapping[str, ColumnDeclaration] = NOTHING,
    everything: bool = True,
    whole: bool = True,
) -> Iterator[Source]:
    """A table's source, for the moment. It may be read more than once, and must not change meanwhile.

    Refusals name what the owner wrote, and nothing that a file holds; DuckDB's own errors are the caller's to hide.
    Of a frame, the declared columns are taken, or `everything`. Not `whole`: for names and types alone, no row is read.
    """
    with ExitStack() as stack:
        if not isinstance(data, (str, Path)):
            connection.register(FRAME, _frame(table, data, declared, reading, everything=everything))
            stack.callback(connection.unregister, FRAME)
            yield Source(FRAME, _described(connection, FRAME), reading=reading)
            return
        files = _files(table, str(data), folder or Path())
        before = _states(files)
        wanted = () if not whole else None if everything else tuple(declared)
        found = _stored(connection, table, str(data), files, reading, stack, wanted)
        yield replace(found, reading=reading)
        if _states(files) != before:  # what was checked and counted would not be what was kept
            raise refused(table, "the source changed while it was read.", "Try again when nobody writes to it.")


def _frame(
    table: str, data: object, declared: Mapping[str, ColumnDeclaration], reading: TextFormat, *, everything: bool
) -> "pyarrow.Table":
    """A frame as Arrow. What a library says of a failure may quote a value, and is not passed on."""
    from sfumato.ingest.frames import as_arrow  # noqa: PLC0415 - pyarrow takes 35 MiB that files do not need

    made = None
    try:
        made = as_arrow(table, data, declared, reading, everything=everything)
    except SfumatoError:
        raise
    except Exception:
        made = None
    if made is None:
        raise unreadable(table)
    return made


def readable(
    connection: duckdb.DuckDBPyConnection, table: str, source: Source, declared: Mapping[str, ColumnDeclaration]
) -> None:
    """Refuse a source that lacks a declared column, or has one that cannot be read with certainty as it is declared.

    Claim: K-50. What passes is of a type that `canonical` reads, and no two different whole numbers have one text.
    Requires: the source is open.
    Relies on: K-50.
    Checked by: tests/ingest/test_parsing.py::test_types_without_a_rule_are_refused
    """
    missing_columns(table, list(declared), source.columns)
    for name, each in declared.items():
        kind = source.columns[name]
        if not has_rule(kind):
            raise no_rule(table, name, kind)
        twins = ambiguous(each) if kind in NUMBERS or kind.startswith("DECIMAL") or kind == "BOOLEAN" else None
        if twins is not None:
            hint = "Make the column a text in the source, or keep one of the two values."
            raise refused(table, f"values {twins[0]} and {twins[1]} of {name} are one number in this source.", hint)
        if kind in FLOATS and as_text_of(each):
            column = quoted(name)
            beyond = f"SELECT 1 FROM {source.relation} WHERE isfinite({column}) AND ABS({column}) > {EXACT} LIMIT 1"
            if connection.execute(beyond).fetchall():
                raise no_rule(table, name, "floating-point numbers beyond 2**53")


def columns_of(
    table: str, data: object, folder: Path | None = None, reading: TextFormat = PLAIN_TEXT
) -> dict[str, str]:
    """The names of a source's columns and their types, of its header line or its schema: no row is read."""
    columns: Mapping[str, str] | None = None
    with (
        suppress(duckdb.Error, RuntimeError, ValueError, OSError),
        connected() as connection,
        opened(connection, table, data, folder, reading, whole=False) as source,
    ):
        columns = source.columns
    if columns is None:
        raise unreadable(table)
    return dict(columns)


def files_of(source: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files that a source names, of the folder or of here; none where there are none."""
    place = folder or Path()
    path = database_of(source)[0]
    if (place / path).is_file():
        return (place / path,)
    if not PATTERN.search(path):
        return ()
    found = sorted(place / each for each in glob.glob(path, root_dir=place, recursive=True))
    return tuple(each for each in found if each.is_file())


def database_of(source: str) -> tuple[str, str | None]:
    """The path of a source, and the table after :: where it is a DuckDB file that names one."""
    found = DATABASE.fullmatch(source)
    return (found["path"], found["name"]) if found else (source, None)


def missing_columns(table: str, declared: Sequence[str], there: Mapping[str, str]) -> None:
    """Refuse a source that lacks a declared column."""
    missing = [name for name in declared if name not in there]
    if missing:
        hint = "Check the header line of the file, or the names of the table's or the frame's columns."
        if len(there) == 1:
            hint += " The source has one column: if its fields are separated in another way, declare it (--delimiter)."
        raise refused(table, f"the source has no column {', '.join(missing)}.", hint)


def _files(table: str, source: str, folder: Path) -> tuple[Path, ...]:
    """The files of a source; there is at least one."""
    database = DATABASE.fullmatch(source)
    ending = Path(source).suffix.lower()
    if not database and ending not in (*CSV, *PARQUET):
        raise refused(table, "the kind of source is not known.", KINDS)
    files = files_of(source, folder)
    if not files and PATTERN.search(source):
        raise refused(table, f"no file is named like {source}.", f"Look in {folder.absolute()}.")
    if not files:
        inside = (folder / source).is_dir()
        hint = f"It is a folder: name its files, as {source}/*{ending}." if inside else f"Look in {folder.absolute()}."
        raise refused(table, f"there is no source {database['path'] if database else source}.", hint)
    return files


def _stored(  # noqa: PLR0917
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: str,
    files: tuple[Path, ...],
    reading: TextFormat,
    stack: ExitStack,
    wanted: tuple[str, ...] | None,
) -> Source:
    """What to select from files. `wanted`: the columns whose values are read (None: all; none: no row is read)."""
    if database := DATABASE.fullmatch(source):
        relation = _attached(connection, table, files[0], database["name"] or quoted(table), stack)
        return Source(relation, _described(connection, relation))
    if Path(source).suffix.lower() in CSV:
        found = read_csv_files(table, files, reading, stack, whole=wanted != ())
        columns = _described(connection, found.relation)
        return Source(found.relation, columns, found.records, found.dropped, found.dropped_lines, untyped=True)
    parquet = parquet_files(connection, table, source, files, wanted, stack)
    return Source(parquet.relation, parquet.columns)


def _attached(connection: duckdb.DuckDBPyConnection, table: str, path: Path, name: str, stack: ExitStack) -> str:
    """A table of another DuckDB file. A view is none: it may give other rows when it is read again."""
    names = NAMES.fullmatch(name)
    if names is None:
        hint = f"Write {path.name}::table or {path.name}::schema.table, in double quotes where a name holds a dot."
        raise refused(table, "what follows :: is not a table's name.", hint)
    attached = False
    with suppress(duckdb.Error):
        connection.execute(f"ATTACH {text(str(path))} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
        attached = True
    if not attached:
        hint = "Check that it is a DuckDB file, and that no program has it open for writing."
        raise refused(table, f"{path.name} could not be opened.", hint)
    stack.callback(connection.execute, f"DETACH {ATTACHED}")
    wanted = [_bare(names["schema"] or "main"), _bare(names["table"])]
    for kind in ("table", "view"):
        found = connection.execute(
            f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE database_name = '{ATTACHED}' "
            f"AND lower(schema_name) = lower(?) AND lower({kind}_name) = lower(?)",
            wanted,
        ).fetchone()
        if found and kind == "table":
            _refuse_volatile(connection, table, found)
            return f"{ATTACHED}.{quoted(found[0])}.{quoted(found[1])}"
        if found:
            hint = "Make it a table: CREATE TABLE ... AS SELECT * FROM the view."
            raise refused(table, f"{'.'.join(wanted)} is a view in {path.name}.", hint)
    hint = f'Name the one to read: source = "{path.name}::schema.table".'
    raise refused(table, f"{path.name} has no table {'.'.join(wanted)}.", hint)


def _refuse_volatile(connection: duckdb.DuckDBPyConnection, table: str, names: Sequence[str]) -> None:
    """Refuse generated columns of random numbers: they have other values whenever they are read."""
    query = f"SELECT sql FROM duckdb_tables() WHERE database_name = '{ATTACHED}' AND schema_name = ? AND table_name = ?"
    _, generated, rest = str(connection.execute(query, list(names)).fetchall()[0][0]).partition("GENERATED ALWAYS AS")
    if generated:
        volatile = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE'"
        )
        called = {each.lower() for each in re.findall(r'(\w+)"?\s*\(', rest)}
        if called & {str(row[0]).lower() for row in volatile.fetchall()}:
            hint = "Store the values: CREATE TABLE ... AS SELECT * FROM the table."
            raise refused(table, "a generated column has other values whenever it is read.", hint)


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _states(files: Sequence[Path]) -> list[tuple[int, int, int]]:
    states = [each.stat() for each in files]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
