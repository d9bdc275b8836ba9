"""Batches of a Spark table -> typed rows, on the executors, by the code that reads files and frames.

Each value is read by itself, so it does not matter where Spark cuts a table into partitions and batches. Part of the
trusted perimeter: claims K-50, K-51 and K-53.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from sfumato.catalog.dataset import Table
from sfumato.ingest.canonical import WHOLE
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.count_tables import repeat_records
from sfumato.ingest.frames import convert_to_arrow
from sfumato.ingest.hidden_names import FRAME, OWNER, ROWS_OF_UNIT, UNIT
from sfumato.ingest.ids import write_id
from sfumato.ingest.pinned_rows import find_grids, list_kept, read_row_by_row, select_typed
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote
from sfumato.kernel.neighbours import ROW

ROWS_AT_ONCE = 1 << 16
Batches = Iterator[pa.RecordBatch]
WriteQuery = Callable[[SourceRelation], str]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The function that Spark calls on each partition of a source: batches of the source -> batches of typed rows.

    Claim: K-50. What a row becomes is a function of the row alone: that of `select_typed`, as for every other source.
    Requires: a source that was checked (`check_readable`).
    Relies on: K-51 (ids), K-53 (counts).
    Checked by: tests/engines/test_spark_sources.py::test_a_spark_table_is_read_as_its_csv_file_is
    """

    table: Table
    names: Sequence[str]  # of the source's columns: Spark's own names for them are numbers
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return run_on_batches(self.table, self.names, batches, self.write_query, self.schema)

    def write_query(self, source: SourceRelation) -> str:
        """The query of the rows of one batch, in the columns of the schema."""
        further = write_unit(self.table, source)
        if self.table.count_column is not None:
            source = repeat_records(self.table, source, 0)
        typed = select_typed(list_kept(self.table), source, find_grids(self.table), further)
        return f"SELECT {', '.join(map(quote, self.schema.names))} FROM ({typed})"


def write_unit(table: Table, source: SourceRelation) -> dict[str, str]:
    """The canonical id of a row's unit, by the name of its column, as SQL; of a link to it, where another table has it.

    Claim: K-51. The id that a load of any other source gives to the row.
    Relies on: K-51.
    Checked by: tests/engines/test_spark_sources.py::test_a_spark_table_is_read_as_its_csv_file_is
    """
    if table.unit is ROW:
        return {} if list_kept(table) else {ROWS_OF_UNIT: "1"}
    if table.unit_through is not None:
        link = table.unit_through[0]
        return {OWNER: write_id(quote(link), source.columns[link])}
    kind = source.columns[str(table.unit)]
    column = quote(str(table.unit))
    return {UNIT: f"CAST({column} AS BIGINT)" if kind in WHOLE else write_id(column, kind)}


def run_on_batches(
    table: Table, names: Sequence[str], batches: Batches, write_query: WriteQuery, schema: pa.Schema
) -> Batches:
    """Run a query over each few batches, one after the other, and give its rows in the types of the schema.

    Claim: K-50. The rows that the query gives for a batch by itself: values are read one by one.
    Requires: a query without aggregates or windows.
    Relies on: K-50.
    Checked by: tests/engines/test_spark_sources.py::test_a_prepared_table_holds_what_a_snapshot_holds
    """
    with connect_to_parse() as connection:
        for some in gather_batches(batches):
            frame, kinds = convert_to_arrow(table, some.rename_columns(list(names)))
            connection.register(FRAME, frame)
            described = connection.execute(f"DESCRIBE SELECT * FROM {FRAME}").fetchall()
            source = SourceRelation(FRAME, {row[0]: str(row[1]) for row in described} | kinds, reading=table.reading)
            for batch in _stream(connection.sql(write_query(source))):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
            connection.unregister(FRAME)


@contextmanager
def connect_to_parse() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which each row is read by its own values."""
    with connect_to_pin() as connection:
        connection.execute("SET threads = 1")  # Spark runs one task on each core
        with read_row_by_row(connection):
            yield connection


def _stream(result: Any) -> Batches:  # noqa: ANN401 - DuckDB 1 and 2 name the reader differently
    read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
    yield from read(ROWS_AT_ONCE)


def gather_batches(batches: Batches) -> Iterator[pa.Table]:
    """A few batches at a time: a query takes a while to begin."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def list_source_types(table: Table, names: Sequence[str], empty: pa.Table) -> Mapping[str, str]:
    """The type of each column of a source, by its schema: as DuckDB names it, or as `canonical.py` does."""
    with connect_to_parse() as connection:
        frame, kinds = convert_to_arrow(table, empty.rename_columns(list(names)))
        connection.register(FRAME, frame)
        described = connection.execute(f"DESCRIBE SELECT * FROM {FRAME}").fetchall()
        return {row[0]: str(row[1]) for row in described} | kinds
