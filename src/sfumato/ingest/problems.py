"""What a load lost beyond a little, with the likely cause: the warnings of a load report."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from sfumato.catalog.dataset import Table
from sfumato.ingest.causes import ROUNDED, Cause, explain_clamped, explain_lost
from sfumato.ingest.counting import Outcome
from sfumato.ingest.load_report import (
    MOST_LOST,
    MOST_PEOPLE_OVER,
    ColumnReport,
    CountsReport,
    LoadProblem,
    PeopleReport,
    TableReport,
    write_count,
    write_percent,
)

MOST_EXAMPLES, MOST_LETTERS = 3, 24
BECAME_NULL = (Outcome.UNREADABLE, Outcome.UNDECLARED)
CLAMPED = (Outcome.CLAMPED_BELOW, Outcome.CLAMPED_ABOVE)


class Sample(Protocol):
    """Some values of a column with these outcomes; of the source's first rows only, where they are but examples."""

    def __call__(self, column: str, outcomes: Sequence[Outcome], *, first_rows: bool) -> list[str]: ...


def add_problems(report: TableReport, table: Table, sample: Sample) -> TableReport:
    """The report with its warnings, and with examples of lost values for the terminal."""
    columns, problems = [], [*_find_record_problems(report, table)]
    for column in report.columns:
        found, examples = _find_column_problems(column, table, sample)
        columns.append(replace(column, examples=examples))
        problems += found
    if report.counts is not None:
        problems += _find_count_problems(report.counts, table.name)
    if report.people is not None:
        problems += _find_people_problems(report.people, table.name)
    return replace(report, columns=tuple(columns), problems=tuple(problems))


def _find_column_problems(
    column: ColumnReport, table: Table, sample: Sample
) -> tuple[list[LoadProblem], tuple[str, ...]]:
    if not column.lost and not column.rounded:
        return [], ()
    declared = table.columns[column.name]
    problems: list[LoadProblem] = []

    def problem(lost: int, message: str, cause: Cause) -> None:
        share = lost / column.present
        problems.append(
            LoadProblem(
                table.name, column.name, lost, share, f"{write_percent(share)} {message}", cause.cause, cause.fix
            )
        )

    missing, clamped = column.unreadable + column.undeclared, column.clamped_below + column.clamped_above
    most = MOST_LOST * column.present
    examples: list[str] = []
    if missing:
        many = missing > most or (column.lost > most and missing >= clamped)
        examples = sample(column.name, BECAME_NULL, first_rows=not many)
        if many:
            what = "are not among the declared values" if column.undeclared > column.unreadable else "could not be read"
            became = "NULL" if getattr(declared, "nullable", True) else "the public value of the column"
            problem(missing, f"of the values {what}, and became {became}.", explain_lost(declared, examples))
    if clamped > most or (column.lost > most and clamped > missing):
        cause = explain_clamped(declared, sample(column.name, CLAMPED, first_rows=False))
        problem(clamped, "of the values were clamped.", cause)
    if column.rounded > most:
        problem(column.rounded, "of the values were rounded to whole numbers.", ROUNDED)
    return problems, tuple(_shorten(value) for value, _ in Counter(examples).most_common(MOST_EXAMPLES))


def _shorten(value: str) -> str:
    return repr(value if len(value) <= MOST_LETTERS else f"{value[:MOST_LETTERS]}...")


def _find_record_problems(report: TableReport, table: Table) -> Iterator[LoadProblem]:
    if not report.records_read:
        cause, fix = "The source has no records.", "Check that it is the right one: answers about it are noise only."
        yield LoadProblem(table.name, None, 0, 0.0, "the table is empty.", cause, fix)
    most = MOST_LOST * report.records_read
    if report.malformed > most:
        share = report.malformed / report.records_read
        cause = "Their number of fields differs from the header line, or their quotes do not match."
        fix = "Check the delimiter (--delimiter) and the quotes of the file."
        message = f"{write_percent(share)} of the records were malformed, and were dropped."
        yield LoadProblem(table.name, None, report.malformed, share, message, cause, fix)
    if report.repeated > most:
        share = report.repeated / report.records_read
        message = f"{write_percent(share)} of the records repeat a unique key of the same person, and were dropped."
        keys = " or ".join(f"({', '.join(key)})" for key in table.unique)
        fix = "Correct the source, or remove this key from unique."
        yield LoadProblem(table.name, None, report.repeated, share, message, f"Several rows have the same {keys}.", fix)
    if report.without_unit > most:
        share = report.without_unit / report.records_read
        if table.unit_through is not None:
            column, through = table.unit_through
            message = f"{write_percent(share)} of the records lead to no person, and were dropped."
            cause = f"{through} has no row with their {column}."
            fix = "Check that both tables write it in the same way, and that both sources are complete."
        else:
            column = str(table.unit)
            message = f"{write_percent(share)} of the records have no {column}, and were dropped."
            cause = "A row without an id belongs to no person."
            fix = 'Complete the ids in the source; or use unit = "row" if every row is one person.'
        yield LoadProblem(table.name, column, report.without_unit, share, message, cause, fix)


def _find_count_problems(counts: CountsReport, table: str) -> Iterator[LoadProblem]:
    most = MOST_LOST * counts.records
    if counts.lost > most:
        share = counts.lost / counts.records
        message = f"{write_percent(share)} of the records stand for no people: their {counts.column} is not a count."
        cause = "It is missing, unreadable, negative or fractional."
        fix = "Write a whole number from 0 into each record."
        yield LoadProblem(table, counts.column, counts.lost, share, message, cause, fix)
    if counts.clamped > most:
        share = counts.clamped / counts.records
        message = f"{write_percent(share)} of the counts were clamped."
        cause = "They are larger than the declared largest count."
        fix = f"Raise the upper bound of {counts.column}, or remove it from the columns."
        yield LoadProblem(table, counts.column, counts.clamped, share, message, cause, fix)


def _find_people_problems(people: PeopleReport, table: str) -> Iterator[LoadProblem]:
    share = people.share(people.over_max_rows)
    if share > MOST_PEOPLE_OVER:
        rows = write_count(people.max_rows_per_unit, "row")
        message = f"{write_percent(share)} of people have more than {rows} (max_rows_per_unit)."
        cause = "Their rows count in part, so that counts and sums come out too low."
        fix = "Raise max_rows_per_unit (--max-rows) if so many rows are usual; the noise grows with it."
        yield LoadProblem(table, None, people.over_max_rows, share, message, cause, fix)
