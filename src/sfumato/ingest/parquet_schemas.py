"""The schema of a Parquet file. No row is read.

A fault here cannot make one person's value decide how another's is read: every way of reading a column is a function
of each value by itself. So no proof rests on this file.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.ingest.source_refusals import refuse_twins
from sfumato.ingest.sql_quoting import quote_text, write_file_list

EXTENSION_KEY = b"ARROW:extension:name"


@dataclass(frozen=True, slots=True)
class ParquetSchema:
    """The types that DuckDB has for the columns of a file, extension types by column, and columns of milliseconds."""

    types: Mapping[str, str]
    extensions: Mapping[str, str]
    milliseconds: tuple[str, ...]


def read_parquet_schema(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> ParquetSchema:
    """The schema of a file. Two columns of one name are refused."""
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
    refuse_twins(table, [name.lower() for name, _ in top])  # DuckDB would call the second one v_1
    columns = connection.execute(
        f"DESCRIBE SELECT * FROM read_parquet({write_file_list([path])}, hive_partitioning = false)"
    ).fetchall()
    extensions = _read_extensions(path) if _may_have_extensions(connection, path) else {}
    return ParquetSchema(
        {str(row[0]): str(row[1]) for row in columns},
        extensions,
        # a column of an extension type is refused by its type: its moments are not looked at
        tuple(name for name, milliseconds in top if milliseconds and name not in extensions),
    )


def _may_have_extensions(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Whether the Arrow schema that a file holds, if it holds one, names an extension type anywhere."""
    key = quote_text("ARROW:schema")
    query = f"SELECT value FROM parquet_kv_metadata({write_file_list([path])}) WHERE key = {key}::BLOB"
    for (value,) in connection.execute(query).fetchall():
        try:
            if EXTENSION_KEY in base64.b64decode(value, validate=True):
                return True
        except binascii.Error:
            return True
    return False


def _read_extensions(path: Path) -> dict[str, str]:
    from sfumato.ingest.extension_types import read_extensions  # noqa: PLC0415 - pyarrow, which most files do not need

    return read_extensions(path)
