"""The kinds of frames that are read: pandas, polars, Arrow and DuckDB's relations, and subclasses of them.

Another library's frame is refused, even if it can export Arrow: while exporting, it may guess a column's type from all
values of that column, and then one person's value would decide how the others are read. Part of the trusted perimeter:
claim K-50.
"""

from enum import Enum


class FrameKind(Enum):
    """What a frame is, whatever subclass it is of."""

    PANDAS = "pandas"
    POLARS = "polars"
    LAZY = "lazy"
    TABLE = "table"
    BATCH = "batch"
    READER = "reader"
    DATASET = "dataset"
    RELATION = "relation"


KINDS_OF_FRAMES = {
    ("pandas", "DataFrame"): FrameKind.PANDAS,
    ("polars", "DataFrame"): FrameKind.POLARS,
    ("polars", "LazyFrame"): FrameKind.LAZY,
    ("pyarrow", "Table"): FrameKind.TABLE,
    ("pyarrow", "RecordBatch"): FrameKind.BATCH,
    ("pyarrow", "RecordBatchReader"): FrameKind.READER,
    ("pyarrow", "Dataset"): FrameKind.DATASET,
    ("pyarrow", "Scanner"): FrameKind.DATASET,
    ("duckdb", "DuckDBPyRelation"): FrameKind.RELATION,
    ("_duckdb", "DuckDBPyRelation"): FrameKind.RELATION,
}


def find_frame_kind(data: object) -> FrameKind | None:
    """The kind of a frame, by its class or the classes that it is derived from; None for what is no known frame.

    Claim: K-50. A subclass is read as its library's own class is.
    Relies on: K-50.
    Checked by: tests/ingest/test_frames.py::test_a_subclass_is_read_as_its_library_reads_it
    """
    for base in type(data).__mro__:
        found = KINDS_OF_FRAMES.get((base.__module__.split(".")[0], base.__name__))
        if found is not None:
            return found
    return None
