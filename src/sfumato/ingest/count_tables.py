"""Counts tables: how a record's count is read, and how the record becomes one row for each person.

Part of the trusted perimeter: claim K-53. What follows sees an ordinary table whose unit is the row.
"""

from dataclasses import replace

from sfumato.catalog.counts_unit import MOST_PEOPLE
from sfumato.catalog.dataset import Table
from sfumato.ingest.counting import note_absent
from sfumato.ingest.hidden_names import COPIES, COPY, COUNTED, TIMES
from sfumato.ingest.parsing import parse_column, write_double
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote


def select_counted(table: Table, source: SourceRelation) -> str:
    """The query of the records, each with its count (COUNTED, a double or NULL) and its number of people (TIMES).

    Claim: K-53. TIMES is a function of the record's own count: that whole number, clamped to the largest count, or 0
        for a count that is missing, unreadable, infinite, negative or fractional.
    Requires: the source is open and readable, inside `read_row_by_row`.
    Relies on: K-50 (the count is read as every Integer is).
    Checked by: tests/ingest/test_count_tables.py::test_a_count_is_read_by_itself
    """
    name = str(table.count_column)
    kind = source.columns[name]
    parsed = f"CAST({parse_column(name, table.columns[name], kind, source.reading)} AS DOUBLE) AS {COUNTED}"
    taken = ", ".join(quote(column) for column in table.columns)
    most = write_double(find_largest_count(table))
    is_count = f"isfinite({COUNTED}) AND {COUNTED} >= 1 AND {COUNTED} = FLOOR({COUNTED})"  # NULL: not a count
    times = f"CASE WHEN {is_count} THEN CAST(LEAST({COUNTED}, {most}) AS BIGINT) ELSE 0 END AS {TIMES}"
    records = f"SELECT {taken}, {parsed}, {note_absent(name, kind)} FROM {source.relation}"
    return f"SELECT *, {times} FROM ({records})"


def find_largest_count(table: Table) -> int:
    """Counts are clamped to the declared bound. Without one, a count above MOST_PEOPLE becomes too large to load.

    Claim: K-53. Of the declaration alone, at least 1.
    Checked by: tests/ingest/test_count_tables.py::test_too_many_people_are_refused
    """
    return min(MOST_PEOPLE + 1, table.most_count or MOST_PEOPLE + 1)


def repeat_records(table: Table, source: SourceRelation, people: int) -> SourceRelation:
    """The source of a counts table with one row for each person: TIMES copies of a record, with the count column 1.

    `people`: how many rows that is. The load is refused if as many are not pinned.

    Claim: K-53. Adding one to a count adds one row, and changes no other row.
    Requires: as select_counted.
    Relies on: K-53 (TIMES).
    Checked by: tests/neighbours/test_counts_neighbours.py::test_one_person_more_is_one_row_more
    """
    count = quote(str(table.count_column))
    values = [f"record.{name}" for name in map(quote, table.columns) if name != count]
    rows = ", ".join([*values, f"1::TINYINT AS {count}"])
    copies = f"range(record.{TIMES}) {COPIES}({COPY})"
    columns = {**source.columns, str(table.count_column): "TINYINT"}
    relation = f"(SELECT {rows} FROM ({select_counted(table, source)}) record, {copies})"
    return replace(source, relation=relation, columns=columns, records=people)
