"""Moments in milliseconds of Parquet files, as microseconds: DuckDB refuses a whole file for one that it cannot hold.

Part of the trusted perimeter: claim K-50.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sfumato.ingest.arrow_moments import INFINITE_MOMENT, microseconds

MOST_MILLISECONDS = INFINITE_MOMENT // 1_000 - 1


def may_exceed_microseconds(files: Sequence[Path], names: Sequence[str]) -> bool:
    """Whether a moment of these columns may be beyond DuckDB's microseconds, by the statistics that the files hold.

    Both ways of reading give the same values. Where a file has wrong statistics, DuckDB refuses the file.

    Claim: K-50. It decides between two ways of reading that agree for every value.
    Requires: columns of moments in milliseconds.
    Relies on: K-50.
    Checked by: tests/ingest/test_parquet_moments.py::test_both_ways_of_reading_agree
    """
    for path in files:
        metadata = parquet.read_metadata(path)
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            for index in range(row_group.num_columns):
                column = row_group.column(index)
                if column.path_in_schema in names and not _within(column.statistics):
                    return True
    return False


def _within(statistics: parquet.Statistics | None) -> bool:
    if statistics is None or not statistics.has_min_max:
        return False
    return bool(statistics.min_raw > -MOST_MILLISECONDS and statistics.max_raw < MOST_MILLISECONDS)


def copy_as_microseconds(files: Sequence[Path], zoned: Mapping[str, bool], to: Path) -> None:
    """Write these columns of all files to one file, in microseconds; a moment beyond DuckDB's calendar is infinite.

    `zoned` says, by column, whether DuckDB reads a moment with a time zone. pyarrow and DuckDB disagree about files of
    older writers, so pyarrow's own word must not decide: the copy would then be read in another zone than the file.

    Claim: K-50. A function of each value alone, defined for every value; the rows keep their order.
    Requires: columns of moments in milliseconds, of the same types in all files.
    Relies on: K-50 (microseconds).
    Checked by: tests/ingest/test_parquet_moments.py::test_both_ways_of_reading_agree
    """
    kinds = {name: pa.timestamp("us", "UTC" if has_zone else None) for name, has_zone in zoned.items()}
    with parquet.ParquetWriter(to, pa.schema(kinds)) as writer:
        for path in files:
            for batch in parquet.ParquetFile(path).iter_batches(columns=list(zoned)):
                writer.write_table(pa.table({name: _convert(batch.column(name), kinds[name]) for name in kinds}))


def _convert(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return microseconds(column).cast(pa.int64()).cast(kind)  # through integers: Arrow converts no zone
