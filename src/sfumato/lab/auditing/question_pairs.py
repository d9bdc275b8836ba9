"""Hard pairs that depend on the question: values at its literals, and undeclared keys at their threshold."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import assert_never

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real
from sfumato.errors import InvalidParameter, SfumatoError, describe_kind
from sfumato.kernel.certify import Certificate
from sfumato.kernel.expressions import Call, Column, Literal, Scalar, collect_columns
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.lab.auditing.audit_stage import Setting, Stage, plan_question
from sfumato.lab.auditing.choice_pairs import list_choice_pairs
from sfumato.lab.auditing.contribution_pairs import find_key_columns, list_pairs_above_bounds, list_pairs_above_groups
from sfumato.lab.auditing.counted_rows import find_counted
from sfumato.lab.auditing.crowd_pairs import list_crowd_pairs, list_pairs_of_many
from sfumato.lab.auditing.ingestion_pairs import make_typed_pair
from sfumato.lab.auditing.neighbouring_pairs import list_pairs, list_random_pairs
from sfumato.lab.auditing.pair_maker import ALONE, CROWD, HIGH, LOW, TYPICAL, DatasetPair, Held, PairMaker
from sfumato.lab.auditing.throwaway_desk import Data
from sfumato.lab.auditing.unique_key_pairs import list_pairs_that_meet
from sfumato.number_arguments import read_whole_number

MOST_LITERALS = 4  # columns with literals of the question that are varied one by one
MOST_PEOPLE = 2_000  # of a key at its threshold; a higher threshold is not built
MOST_MIXED = 3  # columns of an aggregate of which all combinations of extremes are tried
AT, ABOVE, BELOW = "at", "just above", "just below"


def make_pairs(
    stage: Stage, folder: Path, random_pairs: int, seed: int | None, setting: Setting | None = None
) -> Iterator[DatasetPair]:
    """All pairs of a question: hard ones, those at its literals and thresholds, and some random ones."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise InvalidParameter("seed", "must be a whole number or None", describe_kind(seed))
    yield from list_pairs(stage.tables, stage.public, stage.unit, folder, seed)
    yield from make_question_pairs(stage, setting or Setting(), seed)
    count = read_whole_number(random_pairs, "random_pairs", 0)
    yield from list_random_pairs(stage.tables, stage.public, stage.unit, count, seed)


def make_question_pairs(
    stage: Stage, setting: Setting, seed: int | None, *, crowds: bool = True
) -> Iterator[DatasetPair]:
    """The pairs that no other question has: at its literals, mixed extremes, crowds, and keys at their threshold."""
    maker = PairMaker(stage.tables, stage.public, stage.unit, Random(seed))  # noqa: S311 - made-up rows
    compared = find_compared(stage)
    crowd = maker.make_crowd(CROWD)
    first = maker.make_first(crowd)
    if compared:
        for side in (AT, ABOVE, BELOW):
            together = {column.name: column.move(side) for column in compared}
            yield _make_pair(maker, f"a person {side} the literals", crowd, together, first)
        for column in compared[:MOST_LITERALS] if len(compared) > 1 else ():
            for side in (AT, ABOVE, BELOW):
                moved = {column.name: column.move(side)}
                yield _make_pair(maker, f"a person {side} a literal of {column.name}", crowd, moved, first)
        with suppress(ValueError, OverflowError):  # a literal that a typed column cannot hold
            yield make_typed_pair(maker, _make_people_at_literals(maker, crowd, compared), "literals")
    options = list_options(stage, compared) if not maker.unit.per_row else {}
    counted = find_counted(stage, setting, maker, first, crowd, options) if options else {}
    if counted:
        yield from list_pairs_above_bounds(maker, crowd, first, counted)
    yield from list_pairs_above_groups(stage, maker, crowd, first, counted)
    yield from list_pairs_that_meet(stage.query.source, maker, crowd)
    if crowds:
        yield from list_crowd_pairs(maker, counted)
        yield from list_pairs_of_many(maker, counted, find_key_columns(stage))
    certificate = _certify(stage, setting, maker)
    if certificate is not None:
        yield from list_choice_pairs(maker, certificate, counted)
    yield from _list_mixed_pairs(stage, maker)
    if any(key.values is None for key in stage.query.keys):
        above = {column.name: column.move(ABOVE) for column in compared}
        yield from _list_threshold_pairs(stage, certificate, maker, above)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A declared column, and a literal that the question compares it (or a function of it) with."""

    name: str
    declared: ColumnDeclaration
    literal: Scalar

    def move(self, side: str) -> object:
        """A value of the column at the literal, or the next one above or below it; of the last one, itself."""
        try:
            return self._move(side)
        except OverflowError:  # infinity, a number beyond the floats, the last day of the calendar
            return self.literal if isinstance(self.declared, Integer | Real) else str(self.literal)

    def _move(self, side: str) -> object:
        step = (ABOVE, BELOW).index(side) * -2 + 1 if side != AT else 0
        match self.declared, self.literal:
            case Integer(), int() | float():
                nearest = math.floor(self.literal) if side == BELOW else math.ceil(self.literal)
                return nearest + step * float(self.literal).is_integer()
            case Real(), int() | float():
                return math.nextafter(self.literal, step * math.inf) if step else float(self.literal)
            case DateTime(), datetime() | date():
                return str(datetime.fromisoformat(str(self.literal)) + timedelta(seconds=step))
            case Date(), date():
                return str(date.fromisoformat(str(self.literal)[:10]) + timedelta(days=step))
            case Category(values=values), _:
                return values[(values.index(self.literal) + step) % len(values)]
            case _:
                return {AT: self.literal, ABOVE: f"{self.literal} ", BELOW: str(self.literal).swapcase()}[side]


def find_compared(stage: Stage) -> list[ComparedColumn]:
    """The declared columns of private tables that stand beside a literal in the question, each with each literal."""
    query = stage.query
    found: dict[tuple[str, Scalar], ComparedColumn] = {}
    parts = tuple(
        (asked_query.source, asked_query.filters, asked_query.keys, asked_query.aggregates)
        for asked_query in (query, *query.beside)
    )
    for call in _list_calls(parts):
        literals = [part.value for part in call.arguments if isinstance(part, Literal) and part.value is not None]
        names = sorted({name.rpartition(".")[2] for name in collect_columns(call)})
        for table in stage.tables:
            for name in names if not table.public else ():
                declared = table.columns.get(name)
                for literal in literals:
                    if declared is not None and _is_comparable(declared, literal):
                        found.setdefault((name, literal), ComparedColumn(name, declared, literal))
    return list(found.values())


def list_options(stage: Stage, compared: Sequence[ComparedColumn]) -> dict[str, list[object]]:
    """Values of the columns that decide whether a row is counted: around literals, and each category."""
    options: dict[str, list[object]] = {}
    for column in compared:
        ends = [column.declared.upper, column.declared.lower] if isinstance(column.declared, Integer | Real) else []
        ends.sort(key=abs, reverse=True)
        options.setdefault(column.name, list(ends)).extend(column.move(side) for side in (AT, ABOVE, BELOW))
    calls = _list_calls((stage.query.source, stage.query.filters, stage.query.aggregates))
    names = {name.rpartition(".")[2] for call in calls for name in collect_columns(call)}
    names |= {name.rpartition(".")[2] for condition in stage.query.filters for name in collect_columns(condition)}
    for left, right in _list_public_joins(stage.query.source):
        joined = right.name.rpartition(".")[2]
        found = [rows[joined].to_pylist() for rows in stage.public.values() if joined in rows.column_names]
        there = [value for value in found[0] if value is not None] if found else []
        common = [value for value, _ in Counter(there).most_common(MOST_LITERALS)]
        options[left.name.rpartition(".")[2]] = [
            value if isinstance(value, int | float) else str(value) for value in common
        ] or [None]
    for table in stage.tables if not all(name in options for name in names) else ():
        for name in sorted(names & set(table.columns)) if not table.public else ():
            declared = table.columns[name]
            if isinstance(declared, Category | Boolean):
                values = list(declared.values[:MOST_LITERALS]) if isinstance(declared, Category) else [True, False]
                options.setdefault(name, []).extend(values)
    return options


def _list_public_joins(source: Source) -> Iterator[tuple[Column, Column]]:
    """The columns that a question joins with a public table, each with the public column."""
    match source:
        case Join(inner, on=on, multiplicity=multiplicity):
            if multiplicity is not None:
                yield from ((one, two) for one, two in on if isinstance(one, Column) and isinstance(two, Column))
            yield from _list_public_joins(inner)
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            yield from _list_public_joins(inner)
        case Union(parts):
            for part in parts:
                yield from _list_public_joins(part)
        case Scan() | PublicScan():
            pass
        case _:
            assert_never(source)


def _is_comparable(declared: ColumnDeclaration, literal: Scalar) -> bool:
    match declared:
        case Id() | Boolean():
            return False
        case Integer() | Real():
            return isinstance(literal, int | float) and not isinstance(literal, bool)
        case Date() | DateTime():
            return isinstance(literal, date)
        case Category(values=values):
            return literal in values
        case _:
            return isinstance(literal, str)


def _list_calls(part: object) -> Iterator[Call]:
    """All calls of functions inside a part of a query."""
    if isinstance(part, Call):
        yield part
    if isinstance(part, tuple):
        for item in part:
            yield from _list_calls(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _list_calls(getattr(part, field.name))


def _make_pair(maker: PairMaker, name: str, crowd: Held, values: dict[str, object], first: Data) -> DatasetPair:
    """A person with these values, and extreme values in the other columns."""
    second = maker.add(maker.add({}, crowd), maker.make_person("somebody", HIGH, values))
    return DatasetPair(name, first, maker.as_tables(second))


def _make_people_at_literals(maker: PairMaker, crowd: Held, compared: Sequence[ComparedColumn]) -> Held:
    """The crowd, and people at, just above and just below each literal."""
    people = maker.add({}, crowd)
    for column in compared[:MOST_LITERALS]:
        for side in (AT, ABOVE, BELOW):
            name = f"{side} {column.name} {column.literal}"
            maker.add(people, maker.make_person(name, HIGH, {column.name: column.move(side)}))
    return people


def _list_mixed_pairs(stage: Stage, maker: PairMaker) -> Iterator[DatasetPair]:
    """Highest values in some columns of an aggregate and lowest in the others: a difference is then largest."""
    declared = {name: kind for table in maker.private for name, kind in table.columns.items()}
    for aggregate in stage.query.aggregates:
        read = collect_columns(aggregate.value.expression) if aggregate.value is not None else set()
        names = sorted({name.rpartition(".")[2] for name in read})
        names = [name for name in names if isinstance(declared.get(name), Integer | Real)][:MOST_MIXED]
        for kinds in product((LOW, HIGH), repeat=len(names)):
            if len(set(kinds)) > 1:
                values = {name: maker.make_value(declared[name], kind) for name, kind in zip(names, kinds, strict=True)}
                text = ", ".join(f"{kind} {name}" for name, kind in zip(names, kinds, strict=True))
                yield _make_pair(maker, f"a person with {text} values", {}, values, maker.make_first({}))


def _list_threshold_pairs(
    stage: Stage, certificate: Certificate | None, maker: PairMaker, values: dict[str, object]
) -> Iterator[DatasetPair]:
    """A key with one person fewer than its threshold, and one more person; and a key that is at its threshold."""
    measurements = certificate.measurements if certificate is not None else ()
    rule = next((measurement for measurement in measurements if measurement.threshold is not None), None)
    if rule is None or rule.threshold is None:
        return
    threshold = -(-rule.threshold >> -rule.exponent)  # in people who hold one key each, also where keys have weights
    if threshold > MOST_PEOPLE:
        return
    columns = {name.rpartition(".")[2] for key in stage.query.keys for name in collect_columns(key.expression)}
    declared = {name: kind for table in maker.private for name, kind in table.columns.items()}
    key = {name: maker.make_value(declared[name], ALONE) for name in sorted(columns) if name in declared}
    for people in (threshold - 1, threshold):
        crowd: Held = {}
        for number in range(people):
            maker.add(crowd, maker.make_person(f"k{number}", LOW, {**values, **key}, rows=lambda _: 1))
        second = maker.add(
            maker.add({}, crowd), maker.make_person("somebody", LOW, {**values, **key}, rows=lambda _: 1)
        )
        text = f"a key of {people} people gets one more (its threshold is {threshold})"
        yield DatasetPair(text, maker.make_first(crowd, TYPICAL), maker.as_tables(second))


def _certify(stage: Stage, setting: Setting, maker: PairMaker) -> Certificate | None:
    """The certificate of the question. It does not depend on the rows."""
    try:
        with setting.open(stage.dataset, maker.make_first({})) as desk:
            return plan_question(desk, stage.sql, setting.split(stage)[0]).certificate
    except SfumatoError:  # the pairs show the same refusal
        return None
