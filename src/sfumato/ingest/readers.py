"""What the owner's data is read from: CSV and Parquet files, one or many; a table of a DuckDB file; a frame."""

import csv
import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import isnan
from pathlib import Path

import duckdb

from sfumato.errors import CatalogError

CSV, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
DATABASE = re.compile(r"(?P<path>.+?\.(?:duckdb|ddb|db))(?:::(?P<name>.+))?", re.IGNORECASE)
NAMES = re.compile(r'(?:(?P<schema>[^."]+|"(?:[^"]|"")+")\.)?(?P<table>[^."]+|"(?:[^"]|"")+")')
PATTERN = re.compile(r"[*?[]")
FRAME, ATTACHED = "__sfumato_frame", "__sfumato_source"
KINDS = "Use .csv or .parquet files (visits/*.parquet names many), a table of a .duckdb file, or a frame."
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
    """What follows FROM, and the type of each column as DuckDB names it."""

    relation: str
    columns: Mapping[str, str]


@contextmanager
def opened(
    connection: duckdb.DuckDBPyConnection, table: str, data: object, folder: Path | None = None
) -> Iterator[Source]:
    """A table's source, for the moment. It may be read more than once, and must not change meanwhile.

    Refusals name what the owner wrote, and nothing that a file holds; DuckDB's own errors are the caller's to hide.
    """
    with ExitStack() as stack:
        if isinstance(data, (str, Path)):
            files, relation = _stored(connection, table, str(data), folder or Path(), stack)
        else:
            connection.register(FRAME, _each_by_itself(data))
            stack.callback(connection.unregister, FRAME)
            files, relation = (), FRAME
        before = _states(files)
        yield Source(relation, _described(connection, relation))
        if _states(files) != before:  # what was counted would not be what was kept
            raise refused(table, "the source changed while it was read.", "Try again when nobody writes to it.")


def columns_of(table: str, data: object, folder: Path | None = None) -> dict[str, str]:
    """The names of a source's columns and their types, of its header line or its schema: no row is read."""
    columns: Mapping[str, str] | None = None
    with (
        suppress(duckdb.Error, RuntimeError, ValueError, OSError, csv.Error),
        connected() as connection,
        opened(connection, table, data, folder) as source,
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
        raise refused(table, f"the source has no column {', '.join(missing)}.", hint)


def unreadable(table: str) -> CatalogError:
    """All that is told of an error whose own text may quote a record."""
    return refused(table, "the source could not be read.", f"Check that it is whole, and not open elsewhere. {KINDS}")


def refused(table: str, message: str, hint: str) -> CatalogError:
    return CatalogError("catalog", f"tables.{table}: {message}", hint)


def _stored(
    connection: duckdb.DuckDBPyConnection, table: str, source: str, folder: Path, stack: ExitStack
) -> tuple[tuple[Path, ...], str]:
    """The files of a source, and what to select from."""
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
    if database:
        return files, _attached(connection, table, files[0], database["name"] or quoted(table), stack)
    if ending in CSV:
        return files, _csv(table, files)
    relations = [f"read_parquet({_list([each])}, hive_partitioning = false)" for each in files]
    first = _described(connection, relations[0])
    if any(list(_described(connection, each).items()) != list(first.items()) for each in relations[1:]):
        hint = "Write them with the same columns, in the same order and of the same types."
        raise refused(table, f"the files of {source} differ in their columns.", hint)
    return files, f"read_parquet({_list(files)}, hive_partitioning = false)"


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
            f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE database_name = '{ATTACHED}' "  # noqa: S608
            f"AND lower(schema_name) = lower(?) AND lower({kind}_name) = lower(?)",
            wanted,
        ).fetchone()
        if found and kind == "table":
            return f"{ATTACHED}.{quoted(found[0])}.{quoted(found[1])}"
        if found:
            hint = "Make it a table: CREATE TABLE ... AS SELECT * FROM the view."
            raise refused(table, f"{'.'.join(wanted)} is a view in {path.name}.", hint)
    hint = f'Name the one to read: source = "{path.name}::schema.table".'
    raise refused(table, f"{path.name} has no table {'.'.join(wanted)}.", hint)


def _csv(table: str, files: Sequence[Path]) -> str:
    """Nothing is sniffed: one odd row must not change how the others are read. Names come from first lines only."""
    heads = [_head(each) for each in files]
    delimiter, names = heads[0]
    if not names or len({name.lower() for name in names}) != len(names):
        hint = "Give it a header line, with another name for each column."
        raise refused(table, f"the first line of {files[0].name} must name the columns, each once.", hint)
    for path, head in zip(files, heads, strict=True):
        if head != heads[0]:
            hint = "Files that are read together begin with the same line."
            raise refused(table, f"the first line of {path.name} differs from that of {files[0].name}.", hint)
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({_list(files)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {text(delimiter)}, hive_partitioning = false, "
        # in parallel, DuckDB reads no line ends in quotes together with short rows
        "quote = '\"', escape = '\"', null_padding = true, strict_mode = false, ignore_errors = true, parallel = false)"
    )


def _head(path: Path) -> tuple[str, list[str]]:
    """What separates the names of the first line, and the names."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:  # a bad byte may be of another line
        line = file.readline(1_000_000)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
        file.seek(0)
        return delimiter, next(csv.reader(file, delimiter=delimiter), [])


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}  # noqa: S608


def _states(files: Sequence[Path]) -> list[tuple[int, int, int]]:
    states = [each.stat() for each in files]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]


def _each_by_itself(data: object) -> object:
    """A pandas column of mixed objects as texts, value by value: one value must not decide how the others are read.

    What can be read only once (a reader of Arrow batches, a lazy frame) is read here.
    """
    for once in ("read_all", "collect"):
        if callable(getattr(data, once, None)):
            return getattr(data, once)()
    if type(data).__module__.split(".")[0] != "pandas":
        return data
    frame = data.copy(deep=False)  # type: ignore[attr-defined]
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = frame[name].map(_text_or_nothing)
            frame[name] = frame[name].astype("string")
        elif type(frame[name].dtype).__module__.startswith("numpy") and frame[name].to_numpy().strides[0] < 0:
            frame[name] = frame[name].copy()  # a reversed frame is a view that DuckDB does not take
    return frame


def _text_or_nothing(value: object) -> str | None:
    missing = (
        value is None or (isinstance(value, float) and isnan(value)) or type(value).__name__ in ("NAType", "NaTType")
    )
    return None if missing else str(value)


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _list(files: Sequence[Path]) -> str:
    """Files as they are: a name that holds a star or a bracket is no pattern."""
    return f"[{', '.join(text(glob.escape(str(each))) for each in files)}]"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
