"""Arrow's extension types. Some mean more than the type that they are stored as: a period is stored as its ordinal.

A declared column of such a type is refused, because its values would be misread. A value would still be read by itself,
so no proof rests on this file.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

IN_PARQUET = ("arrow.uuid", "arrow.json")  # extension types that DuckDB reads as such


def find_extension(field: pa.Field) -> str | None:
    """The name of a column's extension type, also of one that is not registered: it is then in the metadata alone."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    named = (field.metadata or {}).get(b"ARROW:extension:name")
    return None if named is None else named.decode("utf-8", "replace")


def mark_extension(field: pa.Field, column: Any) -> Any:  # noqa: ANN401 - an Arrow array, whole or in chunks
    """The column. One of an extension type that is not registered gets a type of that name, which has no rule."""
    extension = find_extension(field)
    if extension is None or isinstance(field.type, pa.BaseExtensionType):
        return column
    return pa.nulls(len(column), pa.opaque(field.type, extension, "unknown"))


def read_extensions(path: Path) -> dict[str, str]:
    """The extension types of a Parquet file that DuckDB does not read as such, by column."""
    named = {field.name: find_extension(field) for field in parquet.read_schema(path)}
    return {name: kind for name, kind in named.items() if kind is not None and kind not in IN_PARQUET}
