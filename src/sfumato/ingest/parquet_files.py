"""Parquet files: what to select from them, and the types of their columns.

DuckDB reads the files. It refuses a whole file for one moment in milliseconds that its microseconds do not reach. So
columns of such moments are copied as whole numbers, which `canonical` reads. pyarrow, which takes 35 MiB, is loaded
only for that. Part of the trusted perimeter: claim K-50.
"""

import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

import duckdb

from sfumato.ingest.parquet_schemas import read_parquet_schema
from sfumato.ingest.source_refusals import build_schema_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote, write_file_list

ZONED = "TIMESTAMP WITH TIME ZONE"


def read_parquet_files(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    files: Sequence[Path],
    wanted: Collection[str] | None,
    stack: ExitStack,
) -> SourceRelation:
    """What to select from Parquet files that have the same columns, and the type of each column.

    `wanted`: the columns that will be read (None: all).

    Claim: K-50. Of the schemas alone. A moment in milliseconds is read by its value, as in an Arrow frame; whether the
        column has a zone is DuckDB's word, not pyarrow's: they disagree about files of older writers.
    Requires: the files do not change while the relation is read (checked by `open_source`).
    Relies on: K-50 (moments).
    Checked by: tests/ingest/test_parquet_moments.py::test_moments_beyond_the_calendar_are_read_as_in_a_frame
    """
    schemas = [read_parquet_schema(connection, table, path) for path in files]
    columns = dict(schemas[0].types)
    for path, schema in zip(files, schemas, strict=True):
        if list(schema.types.items()) != list(schemas[0].types.items()):
            raise build_schema_error(table, path, files[0])
        columns |= schema.extensions  # DuckDB would read an extension type as the type that it is stored as
    counted = [name for name in schemas[0].milliseconds if wanted is None or name in wanted]
    if not counted:
        return SourceRelation(write_parquet_reader(files), columns)
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-"))) / "moments.parquet"
    _copy_counts(files, counted, copy)
    for name in counted:
        columns[name] = "MOMENT(ms, UTC)" if columns[name] == ZONED else "MOMENT(ms)"
    others = ", ".join(quote(name) for name in columns if name not in counted) or "NULL"
    both = f"(SELECT {others} FROM {write_parquet_reader(files)}) POSITIONAL JOIN {write_parquet_reader([copy])}"
    return SourceRelation(f"(SELECT {', '.join(map(quote, columns))} FROM {both})", columns)


def _copy_counts(files: Sequence[Path], names: Sequence[str], copy: Path) -> None:
    """Write columns of moments as whole numbers, all files into one. The rows keep their order."""
    import pyarrow as pa  # noqa: PLC0415 - 35 MiB that most files do not need
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetWriter(copy, pa.schema(dict.fromkeys(names, pa.int64()))) as writer:
        for path in files:
            for batch in parquet.ParquetFile(path).iter_batches(columns=list(names)):
                writer.write_table(pa.table({name: batch.column(name).cast(pa.int64()) for name in names}))


def write_parquet_reader(files: Sequence[Path]) -> str:
    return f"read_parquet({write_file_list(files)}, hive_partitioning = false)"
