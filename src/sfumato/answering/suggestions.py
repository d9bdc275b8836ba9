"""Suggestions to the owner: declarations that would make a margin smaller, found by planning the question with them.

No data is read. A suggestion never weakens the privacy guarantee. There are three kinds: a column without NULLs, a
unique key that a join compares, and, for replace-one neighbours, a public number of rows or people. Tighter bounds
would help too, but without data nobody knows what they would clamp.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from sqlglot import exp

from sfumato.answers.column_margins import find_margins
from sfumato.catalog.columns import Boolean, Integer, Real
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.errors import SfumatoError
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Column, Expression, collect_columns
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.number_arguments import Number, read_privacy_amount
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.bound_question import bind_question
from sfumato.query.contribution_limits import limit_contributions
from sfumato.query.frame import FrameQuery
from sfumato.query.query import Query
from sfumato.query.source_outline import outline_source

REFERENCE_ROWS = 1_000  # if no count is assumed: then only ratios of margins are shown
WORTH_SAYING = 1.05
MOST_COLUMNS = 8
MOST_SUGGESTED = 2
EVENLY = "(For values spread evenly between their bounds.)"
AVERAGED = ("SUM", "AVG", "VARIANCE", "STDDEV")

Numeric = Integer | Real | Boolean
Margins = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Gain:
    """A column's margin now, and with the declaration (None: it depends on a private count); and their ratio."""

    now: float | None
    then: float | None
    times: float

    def __str__(self) -> str:
        if self.now is None or self.then is None:
            return f"about {self.times:.2g} times smaller"
        return f"±{self.then:,.4g} instead of ±{self.now:,.4g}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A declaration, what it means, and the columns whose margins it makes smaller."""

    declaration: str
    meaning: str
    gains: dict[str, Gain]

    @property
    def times(self) -> float:
        """The largest finite ratio of a column's margins."""
        return max((gain.times for gain in self.gains.values() if math.isfinite(gain.times)), default=math.inf)

    def __str__(self) -> str:
        gained = ", ".join(f"{name} {gain}" for name, gain in self.gains.items())
        evenly = f" {EVENLY}" if any(gain.now is None for gain in self.gains.values()) else ""
        return (
            f"Margins would be smaller if the owner declared {self.declaration}. Then: {gained}.{evenly} {self.meaning}"
        )

    def as_json(self) -> dict[str, object]:
        """For `preview --json`."""
        margins = {name: {"now": gain.now, "then": gain.then} for name, gain in self.gains.items()}
        return {"declaration": self.declaration, "meaning": self.meaning, "margins": margins}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its terms, as `preview` got them."""

    question: str | FrameQuery
    loss: PureDP | ZCDP
    delta: Number | None
    confidence: Fraction
    count: float | None  # of rows, as assumed
    max_rows: int | None = None
    max_groups: int | None = None

    def find_margins(self, bound: Query, dataset: Dataset, versions: Mapping[str, str]) -> tuple[Margins, Margins]:
        """The margins with these declarations: for the assumed count, and for the reference count."""
        query = limit_contributions(bound, self.max_rows, self.max_groups, dataset)
        share = None if self.delta is None else read_privacy_amount(self.delta, "delta")
        planned = choose_plan(query, self.loss, dataset, versions, delta=share)
        certificate = certify(planned.plan)
        count = self.count or REFERENCE_ROWS
        compared, _ = find_margins(query, planned, certificate, self.confidence, count)
        said, _ = find_margins(query, planned, certificate, self.confidence, self.count)
        return said, compared


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one table's declaration."""

    table: str
    declaration: str
    meaning: str
    columns: tuple[str, ...] = ()
    rows: int | None = None
    people: int | None = None
    key: tuple[str, ...] = ()  # a unique key

    def apply_to(self, table: Table) -> Table:
        columns = {
            name: replace(declared, nullable=False)
            if name in self.columns and isinstance(declared, Numeric)
            else declared
            for name, declared in table.columns.items()
        }
        unique = (*table.unique, self.key) if self.key else table.unique
        rows, people = self.rows or table.rows, self.people or table.people
        return replace(table, columns=columns, rows=rows, people=people, unique=unique)


def suggest(asked: Asked, dataset: Dataset, versions: Mapping[str, str]) -> tuple[Suggestion, ...]:
    """The two best suggestions. All changes together are one of them if they gain more than any single change."""
    bound = bind_question(asked.question, dataset)  # `preview` has just bound it
    query = bound.query
    changes = [
        *_list_nullable(query, dataset),
        *(change for change in _list_joined_keys(query.source, query.source) if not _is_link(change, dataset)),
        *_list_private_counts(query, dataset, int(asked.count or REFERENCE_ROWS)),
    ]
    if not changes:
        return ()
    trial = _Trial(asked, bound.tree, dataset, versions, asked.find_margins(query, dataset, versions))
    found: list[Suggestion] = []
    for change in changes:
        found += trial.try_changes([change])
    if len(changes) > 1:
        best = max((suggestion.times for suggestion in found), default=1.0)
        together = trial.try_changes(changes)
        found += [suggestion for suggestion in together if suggestion.times > WORTH_SAYING * best]
    return tuple(sorted(found, key=lambda suggestion: -suggestion.times)[:MOST_SUGGESTED])


@dataclass(frozen=True, slots=True)
class _Trial:
    """A question, and its margins as the tables are declared now."""

    asked: Asked
    tree: exp.Query
    dataset: Dataset
    versions: Mapping[str, str]
    now: tuple[Margins, Margins]

    def try_changes(self, changes: list[_Change]) -> list[Suggestion]:
        """The suggestion to make these changes, if a margin is then smaller."""
        tables = dict(self.dataset.tables)
        try:
            for change in changes:
                tables[change.table] = change.apply_to(tables[change.table])
            declared = replace_tables(self.dataset, tables)
            then_said, then_compared = self.asked.find_margins(bind(self.tree, declared), declared, self.versions)
        except SfumatoError:  # for example: the question would be about public numbers only
            return []
        (said, compared), gains = self.now, {}
        for name, before in compared.items():
            after = then_compared[name]
            if before is not None and after is not None and before > WORTH_SAYING * after:
                then = then_said[name] if said[name] is not None else None
                gains[name] = Gain(said[name], then, before / after if after else math.inf)
        if not gains:
            return []
        meaning = " ".join(dict.fromkeys(change.meaning for change in changes))
        return [Suggestion(_write_declaration(changes), meaning, gains)]


def _write_declaration(changes: list[_Change]) -> str:
    by_table: dict[str, list[str]] = {}
    for change in changes:
        by_table.setdefault(change.table, []).append(change.declaration)
    return "; ".join(f"{table}: {', '.join(parts)}" for table, parts in by_table.items())


def _list_nullable(query: Query, dataset: Dataset) -> Iterator[_Change]:
    """Nullable columns that are summed or averaged. COUNT(x) counts what is not NULL, so it stays as it is."""
    read = {name for expression in _list_summed(query) for name in collect_columns(expression)}
    names = {name.rpartition(".")[2] for name in read}  # without the prefix that joins add
    found = [
        (table, name)
        for table in _list_private_tables(query, dataset)
        for name, declared in table.columns.items()
        if name in names and isinstance(declared, Numeric) and declared.nullable
    ]
    for table, name in found[:MOST_COLUMNS]:
        instead = "false" if isinstance(table.columns[name], Boolean) else "the public midpoint"
        meaning = f"NULL is then replaced with {instead}, and counts as a value."
        yield _Change(table.name, f"{name} nullable = false", meaning, (name,))


def _list_joined_keys(source: Source, whole: Source) -> Iterator[_Change]:
    """Columns of a table that a join of private tables compares, and that are no unique key."""
    match source:
        case Join(left, right, on=on):
            yield from _list_joined_keys(left, whole)
            yield from _list_joined_keys(right, whole)
            if source.multiplicity is None and not source.meets_one:
                for side in (0, 1):
                    compared = [pair[side] for pair in on if isinstance(pair[side], Column)]
                    yield from _suggest_key([column.name for column in compared if isinstance(column, Column)], whole)
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            yield from _list_joined_keys(inner, whole)
        case Union(parts):
            for part in parts:
                yield from _list_joined_keys(part, whole)
        case Scan() | PublicScan():
            return
        case _:
            assert_never(source)


def _is_link(change: _Change, dataset: Dataset) -> bool:
    """Is the key how the table names rows of another one? Several of its rows then name the same row."""
    link = dataset.table(change.table).unit_through
    return link is not None and link[0] in change.key


def _suggest_key(names: list[str], whole: Source) -> Iterator[_Change]:
    tables = _name_prefixes(whole)
    prefixes = {prefix for prefix in tables for name in names if prefix and name.startswith(prefix)}
    if len(prefixes) == 1 and all(name.startswith(next(iter(prefixes))) for name in names):
        (prefix,) = prefixes
        key = tuple(name.removeprefix(prefix) for name in names)
        meaning = f"No two rows of one person in {tables[prefix]} may then share it: a load drops repeats."
        listed = ", ".join(f'"{name}"' for name in key)
        declaration = f"unique = [{listed}]" if len(key) == 1 else f"unique = [[{listed}]]"
        yield _Change(tables[prefix], declaration, meaning, key=key)


def _name_prefixes(source: Source) -> dict[str, str]:
    """The prefix of the columns of each private table, and its name."""
    match source:
        case Scan(table, prefix=prefix):
            return {prefix: table}
        case PublicScan():
            return {}
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            return _name_prefixes(inner)
        case Join(left, right):
            return _name_prefixes(left) | _name_prefixes(right)
        case Union(parts):
            return {prefix: table for part in parts for prefix, table in _name_prefixes(part).items()}
        case _:
            assert_never(source)


def _list_private_counts(query: Query, dataset: Dataset, count: int) -> Iterator[_Change]:
    if dataset.neighbours is not Neighbours.REPLACE_ONE:
        return  # the number of rows and people is protected
    for table in _list_private_tables(query, dataset):
        if table.unit is ROW and table.rows is None:
            yield _Change(table.name, "rows = n", f"The number of rows of {table.name} is then public.", rows=count)
        elif table.unit is not ROW and table.people is None:
            meaning = f"The number of people of {table.name} is then public."
            yield _Change(table.name, "people = n", meaning, people=count)


def _list_private_tables(query: Query, dataset: Dataset) -> list[Table]:
    tables = [dataset.table(name) for name in dict.fromkeys(outline_source(query.source).tables)]
    return [table for table in tables if not table.public]


def _list_summed(query: Query) -> Iterator[Expression]:
    for aggregate in query.aggregates:
        if aggregate.function in AVERAGED and aggregate.value is not None:
            yield aggregate.value.expression
    yield from _list_inner(query.source)


def _list_inner(source: Source) -> Iterator[Expression]:
    """Expressions that subqueries aggregate or rename."""
    match source:
        case Scan() | PublicScan():
            return
        case Capped(inner):
            yield from _list_inner(inner)
        case PerUnit(inner, columns=columns):
            yield from (column.value for column in columns if column.value is not None and column.function != "count")
            yield from _list_inner(inner)
        case PerKey(inner, columns=columns):
            yield from (column.value for column in columns if column.value is not None and column.function != "count")
            yield from _list_inner(inner)
        case Derived(inner, columns=named):
            yield from (expression for _, expression in named)
            yield from _list_inner(inner)
        case Join(left, right):
            yield from _list_inner(left)
            yield from _list_inner(right)
        case Union(parts):
            for part in parts:
                yield from _list_inner(part)
        case _:
            assert_never(source)
