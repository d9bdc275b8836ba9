"""Read the counts of a counts table once: how many people they stand for, and which of them are not counts."""

import duckdb

from sfumato.catalog.counts_unit import MOST_PEOPLE
from sfumato.catalog.dataset import Table
from sfumato.ingest.count_tables import find_largest_count, repeat_records, select_counted
from sfumato.ingest.hidden_names import ABSENT, COUNTED, TIMES
from sfumato.ingest.load_report import CountsReport
from sfumato.ingest.source_refusals import build_records_error, build_source_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote


def expand_counts(
    connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation
) -> tuple[SourceRelation, CountsReport]:
    """The source with one row for each person, and the report of its counts. Too many people are refused."""
    report = survey_counts(connection, table, source)
    if source.records not in (None, report.records):
        raise build_records_error(table.name)
    if report.people > MOST_PEOPLE:
        what = f"its counts stand for more than {MOST_PEOPLE:,} people, the most that a counts table can have."
        hint = (
            f"Check {table.count_column} for wrong counts; declared as an integer from 0 to a largest count, it is "
            "clamped. A table of more people needs one row for each of them (unit ROW)."
        )
        raise build_source_error(table.name, what, hint)
    return repeat_records(table, source, report.people), report


def survey_counts(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> CountsReport:
    """What the counts of the records are."""
    name = str(table.count_column)
    outcomes = {
        "missing": quote(ABSENT + name),
        "unreadable": f"{COUNTED} IS NULL OR NOT isfinite({COUNTED})",
        "negative": f"{COUNTED} < 0",
        "fractional": f"{COUNTED} <> FLOOR({COUNTED})",
        "zero": f"{COUNTED} = 0",
        "clamped": f"{COUNTED} > {find_largest_count(table)}",
    }
    cases = " ".join(f"WHEN {condition} THEN '{outcome}'" for outcome, condition in outcomes.items())
    found = f"SELECT CASE {cases} ELSE 'counted' END AS outcome, {TIMES} FROM ({select_counted(table, source)})"
    query = f"SELECT outcome, COUNT(*), SUM({TIMES}) FROM ({found}) GROUP BY outcome"
    counts = {str(row[0]): (int(row[1]), int(row[2])) for row in connection.execute(query).fetchall()}
    records, people = (sum(numbers[place] for numbers in counts.values()) for place in (0, 1))
    return CountsReport(name, records, people, **{outcome: counts.get(outcome, (0, 0))[0] for outcome in outcomes})
