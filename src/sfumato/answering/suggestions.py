"""Which declaration of the owner's would make a margin smaller: found by planning the question under that declaration.

Nothing here sees data. Only declarations that leave the promise to people as it is are tried: a column without NULLs,
and, where neighbours replace one person by another, a public number of rows or people. Tighter bounds would help too,
but what they cut off cannot be known here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from sfumato.answers.present import margins_of
from sfumato.catalog.columns import Boolean, Integer, Real
from sfumato.catalog.dataset import Dataset, Table, replace_tables
from sfumato.errors import SfumatoError
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Expression, columns_of
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours
from sfumato.kernel.parameters import Number
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Source, Union, extent
from sfumato.number_arguments import privacy_amount
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.frame import FrameQuery, read_question
from sfumato.query.query import Query

REFERENCE = 1_000  # rows, where no count is assumed: only ratios are said then
WORTH_SAYING = 1.05
MOST_COLUMNS = 8
MOST_SUGGESTED = 2
EVENLY = "(For values spread evenly between their bounds.)"
AVERAGED = ("SUM", "AVG", "VARIANCE", "STDDEV")

Numeric = Integer | Real | Boolean
Margins = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Gain:
    """A column's margin now and then (None: it depends on a private number of rows), and how many times smaller."""

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
        """How many times smaller the margin is that gains most, of those that do not vanish."""
        return max((each.times for each in self.gains.values() if math.isfinite(each.times)), default=math.inf)

    def __str__(self) -> str:
        gained = ", ".join(f"{name} {gain}" for name, gain in self.gains.items())
        evenly = f" {EVENLY}" if any(each.now is None for each in self.gains.values()) else ""
        return f"Smaller margins if the owner declared {self.declaration}: {gained}.{evenly} {self.meaning}"

    def as_json(self) -> dict[str, object]:
        """For `preview --json`."""
        margins = {name: {"now": each.now, "then": each.then} for name, each in self.gains.items()}
        return {"declaration": self.declaration, "meaning": self.meaning, "margins": margins}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, as a preview got it."""

    question: str | FrameQuery
    loss: PureDP | ZCDP
    delta: Number | None
    confidence: Fraction
    count: float | None  # as assumed

    def margins(self, dataset: Dataset, versions: Mapping[str, str]) -> tuple[Margins, Margins]:
        """The margins under these declarations: for the assumed count, and for one of reference."""
        query = bind(read_question(self.question), dataset)
        share = None if self.delta is None else privacy_amount(self.delta, "delta")
        planned = choose_plan(query, self.loss, dataset, versions, delta=share)
        certificate = certify(planned.plan)
        count = self.count or REFERENCE
        compared, _ = margins_of(query, planned, certificate, self.confidence, count)
        said, _ = margins_of(query, planned, certificate, self.confidence, self.count)
        return said, compared


@dataclass(frozen=True, slots=True)
class _Change:
    """One table's declaration, changed."""

    table: str
    declaration: str
    meaning: str
    columns: tuple[str, ...] = ()
    rows: int | None = None
    people: int | None = None

    def applied(self, table: Table) -> Table:
        columns = {
            name: replace(declared, nullable=False)
            if name in self.columns and isinstance(declared, Numeric)
            else declared
            for name, declared in table.columns.items()
        }
        return replace(table, columns=columns, rows=self.rows or table.rows, people=self.people or table.people)


def suggest(asked: Asked, dataset: Dataset, versions: Mapping[str, str]) -> tuple[Suggestion, ...]:
    """The best two: of declarations that make a margin smaller by themselves, and of all together if they gain more."""
    query = bind(read_question(asked.question), dataset)
    now = asked.margins(dataset, versions)
    changes = [*_without_nulls(query, dataset), *_public_numbers(query, dataset, int(asked.count or REFERENCE))]
    found: list[Suggestion] = []
    for each in changes:
        found += _tried([each], asked, dataset, versions, now)
    if len(changes) > 1:
        best = max((each.times for each in found), default=1.0)
        together = _tried(changes, asked, dataset, versions, now)
        found += [each for each in together if each.times > WORTH_SAYING * best]
    return tuple(sorted(found, key=lambda each: -each.times)[:MOST_SUGGESTED])


def _tried(
    changes: list[_Change], asked: Asked, dataset: Dataset, versions: Mapping[str, str], now: tuple[Margins, Margins]
) -> list[Suggestion]:
    tables = dict(dataset.tables)
    try:
        for each in changes:
            tables[each.table] = each.applied(tables[each.table])
        then = asked.margins(replace_tables(dataset, tables), versions)
    except SfumatoError:  # such as a question that would then be about nothing but public numbers
        return []
    (said, compared), (then_said, then_compared), gains = now, then, {}
    for name, before in compared.items():
        after = then_compared[name]
        if before is not None and after is not None and before > WORTH_SAYING * after:
            known = said[name] is not None
            gains[name] = Gain(said[name], then_said[name] if known else None, before / after if after else math.inf)
    if not gains:
        return []
    return [Suggestion(_declaration(changes), " ".join(dict.fromkeys(each.meaning for each in changes)), gains)]


def _declaration(changes: list[_Change]) -> str:
    by_table: dict[str, list[str]] = {}
    for each in changes:
        by_table.setdefault(each.table, []).append(each.declaration)
    return "; ".join(f"{table}: {', '.join(parts)}" for table, parts in by_table.items())


def _without_nulls(query: Query, dataset: Dataset) -> Iterator[_Change]:
    """Nullable numbers that are added up or averaged. COUNT(x) is about its NULLs, and stays as it is."""
    read = {name for each in _added_up(query) for name in columns_of(each)}
    names = {name.rpartition(".")[2] for name in read}  # without the prefix of a joined table
    found = [
        (table, name)
        for table in _private_tables(query, dataset)
        for name, declared in table.columns.items()
        if name in names and isinstance(declared, Numeric) and declared.nullable
    ]
    for table, name in found[:MOST_COLUMNS]:
        instead = "false" if isinstance(table.columns[name], Boolean) else "the public midpoint"
        meaning = f"NULL is then replaced with {instead}, and counts as a value."
        yield _Change(table.name, f"{name} nullable = false", meaning, (name,))


def _public_numbers(query: Query, dataset: Dataset, count: int) -> Iterator[_Change]:
    if dataset.neighbours is not Neighbours.REPLACE_ONE:
        return  # who is there or not is protected
    for table in _private_tables(query, dataset):
        if table.unit is ROW and table.rows is None:
            yield _Change(table.name, "rows = n", f"The number of rows of {table.name} is then public.", rows=count)
        elif table.unit is not ROW and table.people is None:
            meaning = f"The number of people of {table.name} is then public."
            yield _Change(table.name, "people = n", meaning, people=count)


def _private_tables(query: Query, dataset: Dataset) -> list[Table]:
    tables = [dataset.table(name) for name in dict.fromkeys(extent(query.source).tables)]
    return [each for each in tables if not each.public]


def _added_up(query: Query) -> Iterator[Expression]:
    for each in query.aggregates:
        if each.function in AVERAGED and each.value is not None:
            yield each.value.expression
    yield from _for_each_person(query.source)


def _for_each_person(source: Source) -> Iterator[Expression]:
    """What subqueries add up, and what they call by other names."""
    match source:
        case Scan() | PublicScan():
            return
        case PerUnit(inner, columns=columns):
            yield from (each.value for each in columns if each.value is not None and each.function != "count")
            yield from _for_each_person(inner)
        case Derived(inner, columns=named):
            yield from (each for _, each in named)
            yield from _for_each_person(inner)
        case Join(left, right):
            yield from _for_each_person(left)
            yield from _for_each_person(right)
        case Union(parts):
            for each in parts:
                yield from _for_each_person(each)
        case _:
            assert_never(source)
