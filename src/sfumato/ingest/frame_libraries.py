"""The libraries whose frames are read. Another library's frame is refused, even if it can export Arrow.

While it exports a column, it may guess the type from all values. Then one person's value would decide how the others
are read. Part of the trusted perimeter: claim K-50.
"""

ARROW, DATASET, PANDAS, POLARS = "arrow", "dataset", "pandas", "polars"
FRAMES = {
    ("pandas", "DataFrame"): PANDAS,
    ("polars", "DataFrame"): POLARS,
    ("polars", "LazyFrame"): POLARS,
    ("_duckdb", "DuckDBPyRelation"): ARROW,
    ("duckdb", "DuckDBPyRelation"): ARROW,
    ("pyarrow", "Table"): ARROW,
    ("pyarrow", "RecordBatch"): ARROW,
    ("pyarrow", "RecordBatchReader"): ARROW,
    ("pyarrow", "Dataset"): DATASET,
    ("pyarrow", "Scanner"): DATASET,
}


def find_library(data: object) -> str | None:
    """The library of a frame, by its class or the classes that it is derived from; None for anything else.

    Claim: K-50. A subclass is read as its library's own class is.
    Relies on: K-50.
    Checked by: tests/ingest/test_frames.py::test_a_subclass_is_read_as_its_library_reads_it
    """
    names = [(base.__module__.split(".")[0], base.__name__) for base in type(data).__mro__]
    return next((FRAMES[name] for name in names if name in FRAMES), None)
