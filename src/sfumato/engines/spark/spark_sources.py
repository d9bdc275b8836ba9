"""What the owner's data is read from on Spark: DataFrames, tables of the metastore, and Parquet files.

Part of the trusted perimeter: claim K-50. A source is read by its schema alone.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from sfumato.catalog.dataset import Table
from sfumato.engines.backend import is_spark_frame
from sfumato.engines.spark.batch_parsing import list_source_types
from sfumato.engines.spark.own_session import Session
from sfumato.engines.spark.rows_of_units import Frame
from sfumato.engines.spark.stored_tables import number_columns
from sfumato.ingest.canonical import EXACT
from sfumato.ingest.readers import check_types, list_exact_floats
from sfumato.ingest.source_files import PARQUET
from sfumato.ingest.source_refusals import (
    build_inexact_error,
    build_no_rule_error,
    build_source_error,
    build_volatile_error,
    refuse_missing_columns,
    refuse_twins,
)

READ = (
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar", "date",
    "timestamp", "timestamp_ntz",
)  # fmt: skip
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*|dbfs:.*|file:.*")
KINDS = 'Use a DataFrame, the name of a table ("clinic.visits"), or a path of Parquet files ("visits.parquet").'


def open_frame(session: Session, table: str, data: object, folder: Path | None = None) -> Frame:
    """The DataFrame of a source. No row is read, but Spark reads the schema of files."""
    if is_spark_frame(data):
        return data
    if not isinstance(data, (str, Path)):
        raise build_source_error(table, "the kind of source is not read on Spark.", KINDS)
    source = str(data)
    frame = None
    try:
        if SCHEME.fullmatch(source) or "/" in source or Path(source).suffix.lower() in PARQUET:
            frame = session.read.parquet(_find_path(source, folder))
        else:
            frame = session.table(source)
        names = list(frame.columns)  # Connect looks for the source only now
    except Exception:  # its text may quote what a file holds
        frame, names = None, []
    if frame is None or not names:
        raise build_source_error(table, f"Spark finds no source {source}.", KINDS)
    return frame


def _find_path(source: str, folder: Path | None) -> str:
    """A path without a scheme is below the dataset's folder, where it is there; else the cluster's own."""
    if SCHEME.fullmatch(source) or folder is None or not (folder / source).exists():
        return source
    return str((folder / source).absolute())


def take_declared(session: Session, table: Table, frame: Frame) -> tuple[Frame, Mapping[str, str]]:
    """The declared columns of a source and their types, in one order. What cannot be read with certainty is refused.

    The columns of the frame have numbers for names: PySpark takes no name with a backtick or a dot.

    Claim: K-50. What passes has types that `spell_column` reads, and no two different whole numbers have one text.
    Relies on: K-50.
    Checked by: tests/engines/test_spark_sources.py::test_what_cannot_be_read_is_refused
    """
    refuse_twins(table.name, list(frame.columns))
    refuse_missing_columns(table.name, list(table.columns), dict.fromkeys(frame.columns, ""))
    _refuse_random(table.name, frame)
    fields = {field.name: (place, field.dataType) for place, field in enumerate(frame.schema.fields)}
    wanted = list(table.columns) or list(fields)[:1]  # rows of which nothing is declared can be counted
    for name in table.columns:
        if fields[name][1].typeName() not in READ:
            raise build_no_rule_error(table.name, name, fields[name][1].simpleString())
    taken = number_columns(frame, [fields[name][0] for name in wanted])
    empty: pa.Table = session.createDataFrame([], taken.schema).toArrow()
    types = list_source_types(table, wanted, empty)
    check_types(table, types)
    for name in list_exact_floats(table, types):
        column = f"c{wanted.index(name)}"
        beyond = f"ABS({column}) > {EXACT} AND ABS({column}) < CAST('Infinity' AS DOUBLE)"
        if taken.where(beyond).limit(1).count():
            raise build_inexact_error(table.name, name)
    return taken, {name: types[name] for name in wanted}


def _refuse_random(table: str, frame: Frame) -> None:
    """Refuse a frame that has other values whenever it is read, where Spark says so: Connect does not."""
    plan = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise build_volatile_error(table)
