"""Parquet files: what to select from them, and the types of their columns.

DuckDB reads the files. pyarrow, which takes 35 MiB, is loaded only where the Arrow schema of a file has extension
types, or where a declared column counts milliseconds. Part of the trusted perimeter: claim K-50.
"""

import base64
import binascii
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.ingest.source_refusals import refused, two_columns
from sfumato.ingest.sql_quoting import quote, text, write_file_list

IN_PARQUET = ("arrow.uuid", "arrow.json")  # extension types that DuckDB reads as such
EXTENSION_KEY = b"ARROW:extension:name"
ZONED = "TIMESTAMP WITH TIME ZONE"


@dataclass(frozen=True, slots=True)
class _Schema:
    """Of one file: the names of its columns, the types that DuckDB has for them, and extension types by name."""

    types: Mapping[str, str]
    extensions: Mapping[str, str]
    in_milliseconds: tuple[str, ...]


def read_parquet_files(  # noqa: PLR0917 - one caller
    connection: duckdb.DuckDBPyConnection,
    table: str,
    source: str,
    files: Sequence[Path],
    wanted: Collection[str] | None,
    stack: ExitStack,
) -> tuple[str, Mapping[str, str]]:
    """What to select from Parquet files that have the same columns, and the type of each column.

    `wanted`: the columns that will be read (None: all).

    Claim: K-50. Of the schemas alone, but for moments in milliseconds: each is read by its value, as in an Arrow frame.
    Requires: the files do not change while the relation is read (checked by `open_source`).
    Relies on: K-50 (microseconds).
    Checked by: tests/ingest/test_parquet_moments.py::test_moments_beyond_the_calendar_are_read_as_in_a_frame
    """
    schemas = [_read_schema(connection, table, path) for path in files]
    types = dict(schemas[0].types)
    if any(list(schema.types.items()) != list(types.items()) for schema in schemas[1:]):
        hint = "Write them with the same columns, in the same order and of the same types."
        raise refused(table, f"the files of {source} differ in their columns.", hint)
    # DuckDB would read an extension type as its storage type: a period as its ordinal
    columns = types | {name: kind for schema in schemas for name, kind in schema.extensions.items()}
    # a column of an extension type is refused by its type: its moments are not looked at
    counted = {name for schema in schemas for name in schema.in_milliseconds if columns[name] == types[name]}
    milliseconds = [name for name in types if name in counted and (wanted is None or name in wanted)]
    if milliseconds:
        from sfumato.ingest import parquet_moments  # noqa: PLC0415 - pyarrow, which most files do not need

        if parquet_moments.may_exceed_microseconds(files, milliseconds):
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-"))) / "moments.parquet"
            zoned = {name: types[name] == ZONED for name in milliseconds}
            parquet_moments.copy_as_microseconds(files, zoned, copy)
            relation = _beside(files, types, milliseconds, copy)
            _require_types(connection, table, relation, types)
            return relation, columns
    return _reader(files), columns


def _require_types(connection: duckdb.DuckDBPyConnection, table: str, relation: str, types: Mapping[str, str]) -> None:
    """Refuse a copy that would be read as other types than the files."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    if {str(row[0]): str(row[1]) for row in described} != dict(types):
        hint = "Write the moments of the file in microseconds."
        raise refused(table, "moments in milliseconds of the Parquet file cannot be converted.", hint)


def _read_schema(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> _Schema:
    described = connection.execute(
        "SELECT name, COALESCE(num_children, 0), COALESCE(converted_type = 'TIMESTAMP_MILLIS', false) OR "
        f"COALESCE(contains(logical_type, 'MILLIS=MilliSeconds'), false) FROM parquet_schema({write_file_list([path])})"
    ).fetchall()
    top: list[tuple[str, bool]] = []
    inside = 1  # the root comes first; how many of the following elements are inside a column
    for name, children, milliseconds in described[1:]:
        inside -= 1
        if inside == 0:
            top.append((str(name), bool(milliseconds)))
            inside = 1
        inside += int(children)
    names = [name.lower() for name, _ in top]
    if twins := sorted({name for name in names if names.count(name) > 1}):  # DuckDB would call the second one v_1
        raise two_columns(table, twins[0])
    columns = connection.execute(f"DESCRIBE SELECT * FROM {_reader([path])}").fetchall()
    return _Schema(
        {str(row[0]): str(row[1]) for row in columns},
        _read_extensions(path) if _may_have_extensions(connection, path) else {},
        tuple(name for name, milliseconds in top if milliseconds),
    )


def _may_have_extensions(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Whether the Arrow schema that a file holds, if it holds one, names an extension type anywhere."""
    query = f"SELECT value FROM parquet_kv_metadata({write_file_list([path])}) WHERE key = {text('ARROW:schema')}::BLOB"
    for (value,) in connection.execute(query).fetchall():
        try:
            if EXTENSION_KEY in base64.b64decode(value, validate=True):
                return True
        except binascii.Error:
            return True
    return False


def _read_extensions(path: Path) -> dict[str, str]:
    """The extension types that DuckDB does not read as such, by column."""
    from pyarrow import parquet  # noqa: PLC0415 - 35 MiB that most files do not need

    from sfumato.ingest.frames import find_extension  # noqa: PLC0415

    named = {field.name: find_extension(field) for field in parquet.read_schema(path)}
    return {name: kind for name, kind in named.items() if kind is not None and kind not in IN_PARQUET}


def _reader(files: Sequence[Path]) -> str:
    return f"read_parquet({write_file_list(files)}, hive_partitioning = false)"


def _beside(files: Sequence[Path], types: Mapping[str, str], milliseconds: Sequence[str], copy: Path) -> str:
    """The columns of the files, those in milliseconds from the copy: row by row in the same order."""
    others = [quote(name) for name in types if name not in milliseconds]
    if not others:
        return _reader([copy])
    everything = f"(SELECT {', '.join(others)} FROM {_reader(files)}) POSITIONAL JOIN {_reader([copy])}"
    return f"(SELECT {', '.join(map(quote, types))} FROM {everything})"
