"""Read the counts of a counts table once: how many people they stand for, and which of them are not counts."""

from collections.abc import Mapping

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
    refuse_too_many(table, report)
    return repeat_records(table, source, report.people), report


def refuse_too_many(table: Table, report: CountsReport) -> None:
    """Refuse counts that stand for more people than a table can have."""
    if report.people > MOST_PEOPLE:
        what = f"its counts stand for more than {MOST_PEOPLE:,} people, the most that a counts table can have."
        hint = (
            f"Check {table.count_column} for wrong counts; declared as an integer from 0 to a largest count, it is "
            "clamped. A table of more people needs one row for each of them (unit ROW)."
        )
        raise build_source_error(table.name, what, hint)


def survey_counts(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> CountsReport:
    """What the counts of the records are."""
    query = f"SELECT outcome, COUNT(*), SUM({TIMES}) FROM ({select_outcomes(table, source)}) GROUP BY outcome"
    found = connection.execute(query).fetchall()
    return report_counts(table, {str(row[0]): (int(row[1]), int(row[2])) for row in found})


def select_outcomes(table: Table, source: SourceRelation) -> str:
    """The query of what became of each record's count, `outcome`, and of its people, TIMES."""
    cases = " ".join(f"WHEN {test} THEN '{outcome}'" for outcome, test in _list_outcomes(table).items())
    return f"SELECT CASE {cases} ELSE 'counted' END AS outcome, {TIMES} FROM ({select_counted(table, source)})"


def report_counts(table: Table, counts: Mapping[str, tuple[int, int]]) -> CountsReport:
    """The report, from the numbers of records and of people with each outcome."""
    records, people = (sum(numbers[place] for numbers in counts.values()) for place in (0, 1))
    by_outcome = {outcome: counts.get(outcome, (0, 0))[0] for outcome in _list_outcomes(table)}
    return CountsReport(str(table.count_column), records, people, **by_outcome)


def _list_outcomes(table: Table) -> dict[str, str]:
    return {
        "missing": quote(ABSENT + str(table.count_column)),
        "unreadable": f"{COUNTED} IS NULL OR NOT isfinite({COUNTED})",
        "negative": f"{COUNTED} < 0",
        "fractional": f"{COUNTED} <> FLOOR({COUNTED})",
        "zero": f"{COUNTED} = 0",
        "clamped": f"{COUNTED} > {find_largest_count(table)}",
    }
