"""Aggregates over disjoint rows: SUM(CASE WHEN d = 'a' THEN x END) for several values of d is one measurement.

A row counts for one condition at most, so one measurement covers all of them, as it covers all groups of GROUP BY
(docs/claims/K-77.md). An aggregate over all rows is read from the same measurement if there are few conditions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.kernel.expressions import Call, Expression, Literal
from sfumato.planning.disjoint_conditions import are_disjoint
from sfumato.planning.formulas import CountFormula, Formula, MeanFormula, SumFormula, VarianceFormula
from sfumato.planning.linear import Linear
from sfumato.planning.moment_measurements import name_part
from sfumato.query.query import Aggregate, Typed

MOST_ADDED_UP = 4  # parts: a total of so many, with all of the loss, is no worse than a total with half of it
EVERYTHING = Literal(True)


@dataclass(frozen=True, slots=True)
class Restricted:
    """`factor` times an aggregate over the rows where a condition is true."""

    condition: Expression
    aggregate: Aggregate
    factor: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class PivotGroup:
    """Disjoint conditions. For each aggregate over their rows: its parts, and the numbers of its conditions."""

    conditions: tuple[Expression, ...]
    members: dict[Aggregate, tuple[Restricted, tuple[int, ...]]]


def find_pivots(aggregates: Sequence[Aggregate], *, totals: bool) -> list[PivotGroup]:
    """Find the aggregates over disjoint rows. `totals`: aggregates over all rows may be added up from them."""
    restricted = {aggregate: found for aggregate in aggregates if (found := read_restricted(aggregate)) is not None}
    made: list[PivotGroup] = []
    left = set(aggregates)
    for value, conditions in _find_cliques(list(restricted.values())):
        mine: dict[Aggregate, tuple[Restricted, tuple[int, ...]]] = {
            aggregate: (found, (conditions.index(found.condition),))
            for aggregate, found in restricted.items()
            if aggregate in left and found.aggregate.value in (value, None) and found.condition in conditions
        }
        if len({found.condition for found, _ in mine.values()}) > 1:
            group = PivotGroup(tuple(conditions), mine)
            group = (
                _add_totals(group, [aggregate for aggregate in aggregates if aggregate in left]) if totals else group
            )
            left -= group.members.keys()
            made.append(group)
    return made


def _find_cliques(restricted: Sequence[Restricted]) -> list[tuple[Typed | None, list[Expression]]]:
    """Disjoint conditions for each value. Counts join the conditions of a value if they can."""
    cliques: list[tuple[Typed | None, list[Expression]]] = []
    for found in sorted(restricted, key=lambda one: one.aggregate.value is None):  # counts last
        value, condition = found.aggregate.value, found.condition
        fits = [
            clique
            for owner, clique in cliques
            if value in (owner, None)
            and (condition in clique or all(are_disjoint(condition, other) for other in clique))
        ]
        if not fits:
            cliques.append((value, [condition]))
        elif condition not in fits[0]:
            fits[0].append(condition)
    return cliques


def read_restricted(aggregate: Aggregate) -> Restricted | None:  # noqa: PLR0911 - one return a form
    """Read SUM, COUNT, AVG, VARIANCE or STDDEV of CASE WHEN c THEN x END as one over the rows of c."""
    value = aggregate.value
    if value is None or value.restricted is None:
        return None
    condition, outcome, otherwise = value.restricted
    one, two, three = (part.expression for part in value.restricted)
    truth = Call("case", (one, two, Call("not", (one,)), three, Literal(None)))
    if value.expression not in (Call("case", (one, two, three)), truth):
        return None  # what was made of the CASE since is something else
    constant = outcome.expression.value if isinstance(outcome.expression, Literal) else None
    zero = aggregate.function == "SUM" and otherwise.expression == Literal(0)
    if not zero and otherwise.expression != Literal(None):
        return None
    match aggregate.function:
        case "SUM" if isinstance(constant, int | float):
            return Restricted(condition.expression, Aggregate("COUNT", None), Fraction(constant)) if constant else None
        case "COUNT":
            return Restricted(condition.expression, Aggregate("COUNT", outcome if outcome.nullable else None))
        case "SUM" | "AVG" | "VARIANCE" | "STDDEV" if constant is None and outcome.type == "number":
            return Restricted(condition.expression, replace(aggregate, value=outcome))
    return None


def _add_totals(group: PivotGroup, aggregates: Sequence[Aggregate]) -> PivotGroup:
    """Read aggregates over all rows from the parts and a part for the rest, where the parts are few."""
    inner = {found.aggregate for found, _ in group.members.values()}
    wanted = [aggregate for aggregate in aggregates if aggregate in inner and aggregate not in group.members]
    if not wanted or len(group.conditions) >= MOST_ADDED_UP:
        return group
    conditions = (*group.conditions, EVERYTHING)
    everywhere = tuple(range(len(conditions)))
    return PivotGroup(
        conditions,
        group.members | {aggregate: (Restricted(EVERYTHING, aggregate), everywhere) for aggregate in wanted},
    )


@dataclass(frozen=True, slots=True)
class PivotReader:
    """Where the vectors of a part are in its pivot: `names` leads to the pivot's name and the part's width."""

    names: dict[str, tuple[str, int]]

    def read(self, formula: Formula, places: tuple[int, ...]) -> Formula:
        """The formula over the rows of some of the conditions, from the formula of the part."""
        match formula:
            case CountFormula(count):
                return replace(formula, count=self._move(count, places))
            case SumFormula(total):
                return replace(formula, total=self._move(total, places))
            case MeanFormula(count, total):
                return replace(formula, count=self._move(count, places), total=self._move(total, places))
            case VarianceFormula(count, total, squares):
                count, total, squares = (self._move(part, places) for part in (count, total, squares))
                return replace(formula, count=count, total=total, squares=squares)
            case _:
                return formula

    def _move(self, linear: Linear, places: tuple[int, ...]) -> Linear:
        made = Linear((), linear.constant)
        for vector, factor in linear.terms:
            name, dot, part = vector.partition(".")
            pivot, width = self.names[name]
            for place in places:
                moved = name_part(pivot, place * width + (int(part) if dot else 0))
                made = made.plus(Linear.from_vector(moved), factor)
        return made
