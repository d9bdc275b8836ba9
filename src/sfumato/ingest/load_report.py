"""What a load kept of a source and what it changed. Exact counts: for the owner only.

The report exists in the process that read the source, and is not stored. Nothing on an analyst's path reads it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from sfumato.errors import CatalogError

FOR_THE_OWNER = "These counts are exact, without noise. They are for the owner only: do not show them to analysts."
MOST_LOST = 0.01  # of the values of a column, before a warning
MOST_PEOPLE_OVER = 0.05  # of the people; a bound that 95 % of them keep to is a usual choice


@dataclass(frozen=True, slots=True)
class Loading:
    """How the owner wants a source loaded: `strict` refuses losses, `quiet` draws no progress bar."""

    strict: bool = False
    quiet: bool = False


AS_USUAL = Loading()


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """The values of one column in the rows that were kept.

    Every row is one of parsed, null, unreadable and undeclared. Clamped and rounded values are among the parsed.
    """

    name: str
    type: str
    parsed: int
    null: int = 0
    unreadable: int = 0
    undeclared: int = 0
    clamped_below: int = 0
    clamped_above: int = 0
    rounded: int = 0
    examples: tuple[str, ...] = field(default=(), repr=False, compare=False)  # lost values: for the terminal only

    @property
    def present(self) -> int:
        """How many rows hold a value in the source."""
        return self.parsed + self.unreadable + self.undeclared

    @property
    def lost(self) -> int:
        """How many values became NULL (or the public value of a column without NULLs), or were clamped."""
        return self.unreadable + self.undeclared + self.clamped_below + self.clamped_above


GroupsOver = tuple[tuple[str, int], ...]  # columns of known values, and how many people are in more groups by each


class CountedLater:
    """The people in more groups than declared, counted when they are first read: this takes long in a large table."""

    def __init__(self, count: Callable[[], GroupsOver]) -> None:
        self._count = count
        self._found: GroupsOver | None = None
        self._counting = threading.Lock()

    @classmethod
    def of(cls, found: Iterable[tuple[str, int]]) -> "CountedLater":
        """Those that are known already."""
        known = tuple(found)
        return cls(lambda: known)

    def read(self) -> GroupsOver:
        """Count, unless it is done."""
        with self._counting:
            if self._found is None:
                self._found = self._count()
            return self._found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountedLater) and self.read() == other.read()

    def __hash__(self) -> int:
        return hash(self.read())


IN_NO_GROUP = CountedLater.of(())


@dataclass(frozen=True, slots=True)
class PeopleReport:
    """How the rows are spread over people."""

    people: int
    rows_median: int
    rows_95_percent: int
    rows_largest: int
    max_rows_per_unit: int
    max_groups_per_unit: int
    over_max_rows: int
    groups: CountedLater = field(default=IN_NO_GROUP, repr=False)

    @property
    def over_max_groups(self) -> GroupsOver:
        """Per column of known values, the people in more groups than max_groups_per_unit."""
        return self.groups.read()

    def share(self, people: int) -> float:
        """So many people as a share of all."""
        return people / self.people if self.people else 0.0


@dataclass(frozen=True, slots=True)
class CountsReport:
    """The counts of a counts table, by record. A count that is not a whole number, or negative, counts no people."""

    column: str
    records: int
    people: int
    missing: int = 0
    unreadable: int = 0
    negative: int = 0
    fractional: int = 0
    zero: int = 0
    clamped: int = 0

    @property
    def lost(self) -> int:
        """How many records stand for no people although their count is not 0."""
        return self.missing + self.unreadable + self.negative + self.fractional

    @property
    def why_lost(self) -> str:
        """Why they stand for no people."""
        reasons = ("missing", "unreadable", "negative", "fractional")
        found = ", ".join(f"{getattr(self, reason):,} {reason}" for reason in reasons if getattr(self, reason))
        return f"whose {self.column} is not a count: {found}"

    def __str__(self) -> str:
        zero = f" {write_count(self.zero, 'record')} with {self.column} = 0." if self.zero else ""
        clamped = f" {write_count(self.clamped, 'count')} clamped." if self.clamped else ""
        people = write_count(self.people, "person", "people")
        return f"Each unit of {self.column} is one person: {people}.{zero}{clamped}"


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """What a load lost, the likely cause and what to do about it. It holds no value of the data."""

    table: str
    column: str | None
    lost: int
    share: float
    message: str
    cause: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what} {self.advice}"

    @property
    def what(self) -> str:
        """What was lost, and where."""
        return f"{self.table if self.column is None else f'{self.table}.{self.column}'}: {self.message}"

    @property
    def advice(self) -> str:
        """The likely cause, and what to do."""
        is_said = self.cause.removeprefix("They ").removesuffix(".") in self.message
        return self.fix if is_said else f"{self.cause} {self.fix}"


@dataclass(frozen=True, slots=True)
class TableReport:
    """What loading one table did. `people` is None where the table is public."""

    table: str
    records_read: int
    malformed: int
    without_unit: int
    rows: int
    columns: tuple[ColumnReport, ...]
    people: PeopleReport | None
    problems: tuple[LoadProblem, ...] = ()
    counts: CountsReport | None = None  # of a counts table
    repeated: int = 0  # rows that repeat a unique key of their person

    @property
    def dropped(self) -> int:
        """Records that are not among the rows: malformed, without a privacy unit or a count, or repeated."""
        lost = 0 if self.counts is None else self.counts.lost
        return self.malformed + self.without_unit + self.repeated + lost

    def as_json(self) -> dict[str, Any]:
        """The counts, without examples of values."""
        columns = [asdict(column) for column in self.columns]
        for column in columns:
            del column["examples"]
        found: dict[str, Any] = {
            "table": self.table,
            "records_read": self.records_read,
            "malformed": self.malformed,
            "without_unit": self.without_unit,
            "repeated": self.repeated,
            "dropped": self.dropped,
            "rows": self.rows,
            "columns": columns,
            "people": None,
            "counts": None if self.counts is None else asdict(self.counts),
            "warnings": [asdict(problem) | {"text": str(problem)} for problem in self.problems],
        }
        if self.people is not None:
            people = self.people
            over = {name: {"people": count, "share": people.share(count)} for name, count in people.over_max_groups}
            counts = {
                counted.name: getattr(people, counted.name) for counted in fields(people) if counted.name != "groups"
            }
            found["people"] = counts | {
                "share_over_max_rows": people.share(people.over_max_rows),
                "over_max_groups": over,
            }
        return found


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The report of one load: of every table whose source was read. Exact, and for the owner only."""

    tables: tuple[TableReport, ...]

    def __getitem__(self, table: str) -> TableReport:
        for report in self.tables:
            if report.table == table:
                return report
        raise KeyError(table)

    def __iter__(self) -> Iterator[TableReport]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def problems(self) -> tuple[LoadProblem, ...]:
        """What gave a warning, of all tables."""
        return tuple(problem for table in self.tables for problem in table.problems)

    def as_json(self) -> dict[str, Any]:
        """The counts as plain values, without examples of values."""
        return {"note": FOR_THE_OWNER, "tables": [table.as_json() for table in self.tables]}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for table in self.tables:
            yield f"Load report of {table.table}"
            headings, rows = tabulate_columns(table)
            yield from align_columns([headings, *rows])
            yield from describe_rows(table)
            yield from (f"Warning: {problem}" for problem in table.problems)
        yield FOR_THE_OWNER


def describe_rows(report: TableReport) -> Iterator[str]:
    """Records and people, in words."""
    reasons = [(report.malformed, "malformed"), (report.without_unit, "without a privacy unit")]
    reasons.append((report.repeated, "repeating a unique key of the same person"))
    if report.counts is not None:
        reasons.append((report.counts.lost, report.counts.why_lost))
    dropped = [f"{count:,} {reason}" for count, reason in reasons if count]
    why = f" ({', '.join(dropped)})" if dropped else ""
    read = f"{write_count(report.records_read, 'record')} read, {report.malformed:,} malformed"
    yield f"{read}, {report.dropped:,} dropped{why}; {write_count(report.rows, 'row')} pinned."
    if report.counts is not None:
        yield str(report.counts)
        return
    people = report.people
    if people is None:
        return
    yield (
        f"{write_count(people.people, 'person', 'people')}. Rows per person: median {people.rows_median:,}, 95 % have "
        f"at most {people.rows_95_percent:,}, largest {people.rows_largest:,}."
    )
    yield (
        f"{write_percent(people.share(people.over_max_rows))} of people have more than "
        f"{write_count(people.max_rows_per_unit, 'row')} (max_rows_per_unit)."
    )
    groups = f"more than {write_count(people.max_groups_per_unit, 'group')} (max_groups_per_unit)"
    for name, over in people.over_max_groups:
        if over:
            yield f"{write_percent(people.share(over))} of people are in {groups} when a question groups by {name}."
    within = [name for name, over in people.over_max_groups if not over]
    if within:
        yield f"No one is in {groups} when a question groups by {' or '.join(within)} alone."


def tabulate_columns(report: TableReport, *, examples: bool = False) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: the columns of counts that are zero throughout are left out."""
    counts = ("null", "unreadable", "undeclared", "clamped_below", "clamped_above", "rounded")
    shown = [name for name in counts if any(getattr(column, name) for column in report.columns)]
    headings = ["column", "type", "parsed", *(_HEADINGS[name] for name in shown)]
    examples = examples and any(column.examples for column in report.columns)
    rows = []
    for column in report.columns:
        row = [column.name, column.type, *(f"{getattr(column, name):,}" for name in ("parsed", *shown))]
        rows.append([*row, ", ".join(column.examples)] if examples else row)
    return [*headings, "lost values, for example"] if examples else headings, rows


_HEADINGS = {
    "null": "NULL",
    "unreadable": "unreadable",
    "undeclared": "undeclared",
    "clamped_below": "clamped below",
    "clamped_above": "clamped above",
    "rounded": "rounded",
}


def align_columns(lines: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns; all but the first two are numbers."""
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def write_count(count: int, one: str, many: str = "") -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def write_percent(share: float) -> str:
    """A share in percent. A share that is not zero never shows as zero, nor one below 1 as 100 %."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def combine_reports(tables: Iterable[TableReport], loading: Loading) -> LoadReport:
    """The report of a whole load. Strict loading refuses a load that has a warning."""
    report = LoadReport(tuple(tables))
    if loading.strict and report.problems:
        told = "\n".join(f"- {problem}" for problem in report.problems)
        count = write_count(len(report.problems), "problem")
        raise CatalogError(
            "load-refused",
            f"The load is refused, as strict loading asks, for {count}:\n{told}",
            "Nothing was pinned. Correct the source or the declaration, or load without strict.",
        )
    return report
