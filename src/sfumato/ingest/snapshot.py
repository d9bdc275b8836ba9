"""Pin the owner's data: read a source once into an immutable, typed table, and report what that changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb

from sfumato.catalog.columns import ColumnDeclaration
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.ingest.canonical import spell_column
from sfumato.ingest.counting import Outcome, count_outcomes, count_people, sample_lost_values, use_statistics
from sfumato.ingest.hidden_names import PEOPLE, ROWS_OF_UNIT, UNIT, VALUE
from sfumato.ingest.ids import is_canonical_id, merge_spellings
from sfumato.ingest.load_report import AS_USUAL, ColumnReport, CountsReport, Loading, PeopleReport, TableReport
from sfumato.ingest.pinned_rows import list_kept, select_typed
from sfumato.ingest.problems import add_problems
from sfumato.ingest.progress import show_progress
from sfumato.ingest.source_refusals import hide_errors
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote
from sfumato.ingest.table_reading import read_table
from sfumato.ingest.unit_rows import find_owner_column, spell_owner
from sfumato.kernel.neighbours import ROW

FIRST_ROWS = 100_000  # of a source, in which examples of rare losses are looked for


def pin(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    data: object,
    folder: Path | None = None,
    loading: Loading = AS_USUAL,
    *,
    stays_open: bool = False,
) -> TableReport:
    """Read the source, on the owner's path, into a table of the declared names and types; report what that changed.

    Values are clamped to their bounds. NaN, failed casts and undeclared categories become NULL, or the public midpoint
    where a column is declared not nullable. Rows without a unit are dropped. Numbers are also stored on their grid.
    `stays_open`: does the connection stay open after the load? Then the report may count when it is read.
    """
    with show_progress(connection, _write_title(table), quiet=loading.quiet) as show_step:

        def report_rows(described: Table, source: SourceRelation, counts: CountsReport | None) -> TableReport:
            show_step("load report")
            malformed = sum(map(len, source.malformed.values()))
            report = _report_rows(connection, described, source, malformed, counts, stays_open=stays_open)
            return add_problems(report, described, partial(_sample_lost, connection, described, source))

        read = partial(read_table, connection, table, data, folder, show_step, report_rows)
        return hide_errors(table.name, read)


def _write_title(table: Table) -> str:
    return f"Loading {table.name}" if table.source is None else f"Loading {table.name} from {table.source}"


def order_tables(tables: Mapping[str, Table]) -> list[Table]:
    """The tables in an order in which a table comes after the one that names its people."""
    ordered: list[Table] = []
    waiting = list(tables.values())
    while waiting:
        done = {table.name for table in ordered}
        ready = [table for table in waiting if table.unit_through is None or find_name(table.unit_through[1], done)]
        ordered += ready or waiting
        waiting = [table for table in waiting if table not in ready] if ready else []
    return ordered


def _report_rows(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: SourceRelation,
    malformed: int,
    counts: CountsReport | None,
    *,
    stays_open: bool,
) -> TableReport:
    """What the load of a table did, from its outcomes and its people."""
    select_outcomes = partial(_select_outcomes, table, source)
    rows, columns = count_outcomes(connection, table.name, list_kept(table), source, select_outcomes)
    if table.unit is ROW:
        people = None if table.public else PeopleReport(rows, 1, 1, 1, 1, 1, 0)
        if counts is None:
            return TableReport(table.name, rows + malformed, malformed, 0, rows, tuple(columns.values()), people)
        reported = tuple(column for name, column in columns.items() if name != table.count_column)
        records = counts.records + malformed
        return TableReport(table.name, records, malformed, 0, rows, reported, people, counts=counts)
    with use_statistics(connection):
        people = count_people(connection, table, PEOPLE, ROWS_OF_UNIT, UNIT, stays_open=stays_open)
    total = f"SUM({quote(ROWS_OF_UNIT)})"
    query = f"SELECT {total}, {total} FILTER (WHERE {quote(UNIT)} IS NULL) FROM {PEOPLE}"
    in_all, without_unit = (int(count or 0) for count in connection.execute(query).fetchall()[0])
    repeated = in_all - without_unit - rows  # rows that repeat a unique key
    if isinstance(table.unit, str):
        columns = {table.unit: ColumnReport(table.unit, "id", rows), **columns}
    reported = tuple(columns[name] for name in table.columns)
    records = in_all + malformed
    return TableReport(table.name, records, malformed, without_unit, rows, reported, people, repeated=repeated)


def _select_outcomes(table: Table, source: SourceRelation, columns: Mapping[str, ColumnDeclaration]) -> str:
    """The query of what became of the values of some columns, in the rows of the source that were pinned."""
    noted = replace(source, doubtful=None)
    if table.unit is ROW:
        return select_typed(columns, noted, {}, {})
    unit = spell_owner(table, source)
    if table.unit is not None and not is_canonical_id(source.columns[find_owner_column(table)]):
        unit = merge_spellings(unit)
    return f"SELECT * FROM ({select_typed(columns, noted, {}, {UNIT: unit})}) WHERE {quote(UNIT)} IS NOT NULL"


def _sample_lost(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: SourceRelation,
    column: str,
    outcomes: Sequence[Outcome],
    *,
    first_rows: bool,
) -> list[str]:
    """Some lost values of a column: from the source's first rows only, where they are few and merely examples."""
    relation = f"(SELECT * FROM {source.relation} LIMIT {FIRST_ROWS})" if first_rows else source.relation
    value = spell_column(quote(column), source.columns[column])  # a plain cast fails for moments beyond the calendar
    noted = replace(source, relation=relation, doubtful=None)
    selected = select_typed({column: table.columns[column]}, noted, {}, {VALUE: value})
    return sample_lost_values(connection, selected, outcomes)
