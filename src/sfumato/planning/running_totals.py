"""Running totals and averages over a declared key: the cells are measured by a strategy where it lowers the error.

SELECT month, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY month) adds up the noise of all months before. A strategy measures
weighted sums of months instead, from which the months and their running totals are computed (docs/claims/K-80.md).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.catalog.names import fold
from sfumato.kernel.losses import PureDP
from sfumato.kernel.plan import BoundedPlan, Count, Measurement, Strategy, Sum, take_part
from sfumato.kernel.strategies import MOST_VALUES, Matrix
from sfumato.planning.cheapest_noise import find_variance, list_other_payments
from sfumato.planning.formulas import CountFormula, Formula, SumFormula
from sfumato.planning.optimal_strategies import FoundStrategy, find_running_strategy
from sfumato.query.finish import ReleasedPath, find_path
from sfumato.query.query import AggregateRef, Finish, KeyRef, Post, Query

WORTHWHILE = 0.98  # of the error of plain noise: a strategy is used below it
MOST_RUNNING = 512  # values of the key: finding the strategy for more takes seconds


def measure_running_totals(
    query: Query, plan: BoundedPlan, formulas: Sequence[Formula], accounting: str
) -> BoundedPlan:
    """The plan, with a strategy for each count or sum whose running totals over a key the question shows."""
    selected = query.having is not None or query.limit is not None or query.offset or query.beside
    if query.finish is None or selected or plan.cells is None or len(plan.keys) == 0:
        return plan
    asked = _find_running(query, query.finish)
    changed = list(plan.measurements)
    for place, measurement in enumerate(changed):
        for running, (totals, averages) in asked.items():
            if _reads(query, formulas, running.name, measurement):
                shown = int(_is_shown_too(query.finish, running.name))
                shares = Shares(plan, running.key, running.descending, shown, totals, averages)
                paid = [measurement, *list_other_payments(measurement, accounting)]
                changed[place] = min(
                    (way for payment in paid for way in shares.list_ways(payment)), key=shares.find_error
                )
    return plan if tuple(changed) == plan.measurements else replace(plan, measurements=tuple(changed))


@dataclass(frozen=True, slots=True)
class Running:
    """A released column whose values are added up along a key, from its least value or from its greatest."""

    name: str
    key: int
    descending: bool


@dataclass(frozen=True, slots=True)
class Shares:
    """Ways to measure the cells along a key.

    They are shown `shown` times as cells, `totals` times as running totals and `averages` times as running averages.
    """

    plan: BoundedPlan
    key: int
    descending: bool
    shown: int
    totals: int
    averages: int

    def list_ways(self, measurement: Measurement) -> list[Measurement]:
        """The measurement cell by cell, and by a strategy if it is possible and worthwhile."""
        quantity, values = measurement.quantity, self.plan.keys[self.key].values or ()
        sizes = [len(key.values or ()) for key in self.plan.keys]
        ranks = _rank(values, descending=self.descending)
        large = max(sizes) > MOST_VALUES or len(values) > MOST_RUNNING
        if not isinstance(quantity, Count | Sum) or ranks is None or large:
            return [measurement]
        found = self._find_strategy(measurement)
        if found.share > WORTHWHILE:
            return [measurement]
        ordered = tuple(tuple(row[rank] for rank in ranks) for row in found.matrix)
        matrices = tuple(ordered if place == self.key else _make_identity(size) for place, size in enumerate(sizes))
        return [measurement, replace(measurement, quantity=Strategy(quantity, matrices))]

    def find_error(self, measurement: Measurement) -> float:
        """The squared error of all that is shown, as a multiple of what is the same for all ways."""
        mixed = isinstance(measurement.quantity, Strategy)
        variance = find_variance(self.plan, replace(measurement, quantity=take_part(measurement.quantity)))
        return variance * (self._find_strategy(measurement).share if mixed else 1.0)

    def _find_strategy(self, measurement: Measurement) -> FoundStrategy:
        values = self.plan.keys[self.key].values or ()
        gaussian = not isinstance(measurement.loss, PureDP)
        return find_running_strategy(len(values), self.shown, self.totals, self.averages, gaussian=gaussian)


def _make_identity(size: int) -> Matrix:
    return tuple(tuple(int(row == column) for column in range(size)) for row in range(size))


def _rank(values: Sequence[Any], *, descending: bool) -> list[int] | None:
    """The place of each value in its order; None where values cannot be compared."""
    try:
        places = sorted(range(len(values)), key=lambda place: values[place], reverse=descending)
    except TypeError:
        return None
    return [places.index(place) for place in range(len(values))]


def _reads(query: Query, formulas: Sequence[Formula], name: str, measurement: Measurement) -> bool:
    """Is this column the count or sum of the measurement itself?"""
    post = _find_post(query, name)
    formula = formulas[post.index] if isinstance(post, AggregateRef) else None
    match formula:
        case CountFormula(linear) | SumFormula(linear):
            return [vector for vector, _ in linear.terms] == [measurement.name]
        case _:
            return False


def _find_post(query: Query, name: str) -> Post | None:
    return next((post for column, post in query.columns if fold(column) == fold(name)), None)


def _find_running(query: Query, finish: Finish) -> dict[Running, tuple[int, int]]:
    """The released columns that run over a key: how often as totals, and how often as averages."""
    found: Counter[tuple[Running, bool]] = Counter()
    path = _read_path(finish)
    if path is None or any(select.args.get("where") for select in path.selects):
        return {}
    for level, select in enumerate(path.selects):
        for node in select.find_all(exp.Window):
            if node.find_ancestor(exp.Select) is select and (running := _read_window(query, path, node, level)):
                found[running] += 1
    return {total: (found[total, False], found[total, True]) for total, _ in found}


def _read_path(finish: Finish) -> ReleasedPath | None:
    tree = sqlglot.parse_one(finish.sql, dialect="duckdb")
    return find_path(tree) if isinstance(tree, exp.Select) else None


def _read_window(query: Query, path: ReleasedPath, node: exp.Window, level: int) -> tuple[Running, bool] | None:
    """SUM(column) OVER (PARTITION BY all other keys ORDER BY key), and whether it is AVG(column) instead."""
    order, spec = node.args.get("order"), node.args.get("spec")
    terms = order.expressions if order is not None else []
    if not isinstance(node.this, exp.Sum | exp.Avg) or len(terms) != 1 or node.args.get("alias"):
        return None
    if spec is not None and (spec.args.get("start"), spec.args.get("end")) != ("UNBOUNDED", "CURRENT ROW"):
        return None
    name = path.trace(node.this.this, level)
    along = _find_key(query, path.trace(terms[0].this, level))
    apart = {_find_key(query, path.trace(partition, level)) for partition in node.args.get("partition_by") or []}
    if name is None or along is None or apart != set(range(len(query.keys))) - {along}:
        return None
    return Running(name, along, bool(terms[0].args.get("desc"))), isinstance(node.this, exp.Avg)


def _find_key(query: Query, name: str | None) -> int | None:
    post = None if name is None else _find_post(query, name)
    return post.index if isinstance(post, KeyRef) else None


def _is_shown_too(finish: Finish, name: str) -> bool:
    """Does the answer also use the column's single rows, beside its running totals?"""
    path = _read_path(finish)
    if path is None:
        return True
    for level, select in enumerate(path.selects):
        passed_on = {fold(node.name) for outer in path.selects[:level] for node in outer.find_all(exp.Column)}
        for expression in select.expressions:
            if level and fold(expression.alias_or_name) in passed_on:
                continue  # counted where it is used
            for column in expression.find_all(exp.Column):
                inside = column.find_ancestor(exp.Window)
                traced = path.trace(column, level)
                if traced is not None and fold(traced) == fold(name) and inside is None:
                    return True
    return False
