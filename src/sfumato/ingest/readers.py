"""What the owner's data is read from: CSV and Parquet files, one or many; a table of a DuckDB file; a frame.

Part of the trusted perimeter: claims K-50 and K-52. One person's record never changes how another's is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import duckdb

from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.errors import SfumatoError
from sfumato.ingest.canonical import EXACT, FLOATS, has_rule
from sfumato.ingest.csv_files import read_csv_files
from sfumato.ingest.database_tables import attach_table
from sfumato.ingest.hidden_names import FRAME
from sfumato.ingest.parquet_files import read_parquet_files
from sfumato.ingest.parsing import NUMBERS, find_ambiguous_values, is_read_as_text
from sfumato.ingest.source_files import CSV, DATABASE, require_files
from sfumato.ingest.source_refusals import changed_while_read, missing_columns, no_rule, one_number, unreadable
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote

if TYPE_CHECKING:
    import pyarrow

NOTHING: Mapping[str, ColumnDeclaration] = MappingProxyType({})


@contextmanager
def open_source(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    data: object,
    folder: Path | None = None,
    reading: TextFormat = PLAIN_TEXT,
    *,
    declared: Mapping[str, ColumnDeclaration] = NOTHING,
    everything: bool = True,
    whole: bool = True,
) -> Iterator[SourceRelation]:
    """Open a table's source for a while. It may be read more than once, and must not change meanwhile.

    Refusals name what the owner wrote, and nothing that a file holds. The caller hides DuckDB's own errors. Of a frame,
    the declared columns are taken, or `everything`. Not `whole`: for names and types alone, no row is read.
    """
    with ExitStack() as stack:
        if not isinstance(data, (str, Path)):
            connection.register(FRAME, _convert_frame(table, data, declared, reading, everything=everything))
            stack.callback(connection.unregister, FRAME)
            yield SourceRelation(FRAME, _describe(connection, FRAME), reading=reading)
            return
        files = require_files(table, str(data), folder or Path())
        before = _read_states(files)
        wanted = () if not whole else None if everything else tuple(declared)
        found = _open_files(connection, table, str(data), files, reading, stack, wanted)
        yield replace(found, reading=reading)
        if _read_states(files) != before:  # what was checked and counted would not be what was kept
            raise changed_while_read(table)


def _convert_frame(
    table: str, data: object, declared: Mapping[str, ColumnDeclaration], reading: TextFormat, *, everything: bool
) -> "pyarrow.Table":
    """A frame as Arrow. A library's own error may quote a value, and is not passed on."""
    from sfumato.ingest.frames import convert_to_arrow  # noqa: PLC0415 - pyarrow takes 35 MiB that files do not need

    made = None
    try:
        made = convert_to_arrow(table, data, declared, reading, everything=everything)
    except SfumatoError:
        raise
    except Exception:
        made = None
    if made is None:
        raise unreadable(table)
    return made


def check_readable(
    connection: duckdb.DuckDBPyConnection, table: str, source: SourceRelation, declared: Mapping[str, ColumnDeclaration]
) -> None:
    """Refuse a source that lacks a declared column, or has one that cannot be read with certainty as it is declared.

    Claim: K-50. What passes is of a type that `canonical` reads, and no two different whole numbers have one text.
    Requires: the source is open.
    Relies on: K-50.
    Checked by: tests/ingest/test_parsing.py::test_types_without_a_rule_are_refused
    """
    missing_columns(table, list(declared), source.columns)
    for name, declaration in declared.items():
        kind = source.columns[name]
        if not has_rule(kind):
            raise no_rule(table, name, kind)
        is_number = kind in NUMBERS or kind.startswith("DECIMAL") or kind == "BOOLEAN"
        twins = find_ambiguous_values(declaration) if is_number else None
        if twins is not None:
            raise one_number(table, name, twins)
        if kind in FLOATS and is_read_as_text(declaration):
            column = quote(name)
            beyond = f"SELECT 1 FROM {source.relation} WHERE isfinite({column}) AND ABS({column}) > {EXACT} LIMIT 1"
            if connection.execute(beyond).fetchall():
                raise no_rule(table, name, "floating-point numbers beyond 2**53")


def _open_files(  # noqa: PLR0917 - one caller
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: str,
    files: tuple[Path, ...],
    reading: TextFormat,
    stack: ExitStack,
    wanted: tuple[str, ...] | None,
) -> SourceRelation:
    """What to select from files. `wanted`: the columns whose values are read (None: all; none: no row is read)."""
    if database := DATABASE.fullmatch(source):
        relation = attach_table(connection, table, files[0], database["name"] or quote(table), stack)
        return SourceRelation(relation, _describe(connection, relation))
    if Path(source).suffix.lower() in CSV:
        return read_csv_files(table, files, reading, stack, whole=wanted != ())
    return SourceRelation(*read_parquet_files(connection, table, source, files, wanted, stack))


def _describe(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}


def _read_states(files: Sequence[Path]) -> list[tuple[int, int, int]]:
    states = [file.stat() for file in files]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]
