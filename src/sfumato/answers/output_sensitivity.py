"""How much one person can change each output column: its sensitivity as in a textbook.

It is used for explanations only, not for charging or noise. The measurements may differ from the columns (a mean is
measured as a sum); the kernel's certificate states their sensitivity. Both follow from declarations only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.answers.output_values import find_aggregates
from sfumato.answers.released_values import Reading, read_linear
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.row_sources import PerUnit, Scan
from sfumato.planning.formulas import count_of
from sfumato.planning.planner import Planned
from sfumato.query.query import Aggregate, AggregateRef, KeyRef, Post, Query, Typed

WHY_A_CHOICE = (
    "Noise that hides such a change would make the answer useless, so a value is chosen from public ones instead "
    "(private choice)"
)
NAMES = {
    "COUNT": "count", "PEOPLE": "number of people", "SUM": "sum", "AVG": "average", "VARIANCE": "variance",
    "STDDEV": "standard deviation", "MIN": "minimum", "MAX": "maximum", "MODE": "most frequent value",
    "CORR": "correlation", "COVAR_SAMP": "covariance of a sample", "COVAR_POP": "covariance",
    "REGR_SLOPE": "slope", "REGR_INTERCEPT": "intercept", "REGR_R2": "squared correlation",
    "REGR_SXX": "sum of squared differences", "REGR_SXY": "sum of products of differences",
    "TOP_K": "most frequent values", "COUNT DISTINCT": "number of different values",
    "SUM DISTINCT": "sum of different values", "AVG DISTINCT": "average of different values",
}  # fmt: skip
WHY_A_LIST = "one row can make another value the most frequent, so the value is chosen from the declared ones"


@dataclass(frozen=True, slots=True)
class ColumnSensitivity:
    """One output column, and the most that one person can change it."""

    column: str
    asked: str
    one_person_changes: float | None  # None if it depends on a private number of rows, or is not a number
    formula: str  # a short form, such as 120/n; may be empty
    text: str

    def __str__(self) -> str:
        return f"{self.column} ({self.asked}): {self.text}."


@dataclass(frozen=True, slots=True)
class _Change:
    """The most that one person can change an aggregate: as a number, as a formula, and in words."""

    number: float | None
    formula: str
    words: str


@dataclass(frozen=True, slots=True)
class _Reach:
    """One person's contribution: the weights of their rows in a cell sum to a number from `least` to `most`."""

    least: int
    most: int
    cells: int | None
    groups: int
    replaced: bool

    @property
    def several(self) -> bool:
        return self.cells != 1

    @property
    def groups_suffix(self) -> str:
        return ", summed over all groups" if self.several else ""


def find_sensitivities(query: Query, planned: Planned, counts: Mapping[int, float]) -> tuple[ColumnSensitivity, ...]:
    """Find the sensitivity of each column that is not a key. `counts` has known or assumed numbers of rows."""
    return tuple(
        _describe_column(name, post, query, planned, counts)
        for name, post in query.columns
        if not isinstance(post, KeyRef)
    )


def find_released_sensitivities(query: Query, planned: Planned, reading: Reading) -> tuple[ColumnSensitivity, ...]:
    """Find the sensitivity of each column. With one group, it is stated for the released number of rows."""
    counts = {}
    for place, formula in enumerate(planned.formulas):
        count = count_of(formula)
        if count is not None and count.terms and planned.plan.cells == 1:
            (found,) = read_linear(count, reading.values)
            counts[place] = max(1, round(float(found)))
    return find_sensitivities(query, planned, counts)


def _describe_column(
    name: str, post: Post, query: Query, planned: Planned, counts: Mapping[int, float]
) -> ColumnSensitivity:
    places = find_aggregates(post)
    changes = [
        _bound_change(
            query.aggregates[place],
            _find_reach(query.aggregates[place], query, planned),
            _find_row_count(place, planned, counts),
        )
        for place in places
    ]
    if isinstance(post, AggregateRef):
        (most,) = changes
        return ColumnSensitivity(
            name, _describe_aggregate(query.aggregates[post.index]), most.number, most.formula, most.words
        )
    words = "; ".join(
        f"{_describe_aggregate(query.aggregates[at])}: {most.words}" for at, most in zip(places, changes, strict=True)
    )
    return ColumnSensitivity(name, "computed from released numbers", None, "", words or "one person cannot change it")


def _find_row_count(place: int, planned: Planned, counts: Mapping[int, float]) -> float | None:
    """The number of rows of an aggregate: public, or from `counts`."""
    count = count_of(planned.formulas[place])
    if count is not None and not count.terms:
        return float(count.constant)
    return counts.get(place)


def _find_reach(aggregate: Aggregate, query: Query, planned: Planned) -> _Reach:
    """Find how much one person contributes. `least` is 1 if nothing can drop the person's rows."""
    plan = planned.plan
    never_null = aggregate.value is None or not aggregate.value.nullable
    all_rows = not query.filters and not query.keys and isinstance(query.source, (Scan, PerUnit))
    there = plan.unit.per_row or planned.public.people is not None  # otherwise a person may have no row in this table
    replaced = plan.unit.neighbours is Neighbours.REPLACE_ONE
    least = 1 if all_rows and _is_unfiltered(plan) and never_null and there and replaced else 0
    return _Reach(least, plan.reach, plan.cells, plan.max_groups_per_unit, replaced)


def _is_unfiltered(plan: BoundedPlan) -> bool:
    return not isinstance(plan.source, PerUnit) or (isinstance(plan.source.source, Scan) and not plan.source.filters)


def _bound_change(aggregate: Aggregate, reach: _Reach, rows: float | None) -> _Change:  # noqa: PLR0911, PLR0912 - one a rule
    value = aggregate.value
    match aggregate.function:
        case "COUNT":
            return _state_constant(_find_largest_difference(reach.least, reach.most, reach), reach)
        case "PEOPLE":
            cells = reach.groups if reach.cells is None else min(reach.groups, reach.cells)
            return _state_constant(_find_largest_difference(reach.least, cells, reach), reach)
        case "COUNT DISTINCT" if value is not None:
            return _state_constant(_find_largest_difference(0, _count_pairs(aggregate, reach), reach), reach)
        case "SUM DISTINCT" if value is not None:
            pairs, (lower, upper) = _count_pairs(aggregate, reach), _read_bounds(value)
            low, high = min(lower * pairs, 0), max(upper * pairs, 0)
            return _state_constant(_find_largest_difference(low, high, reach), reach)
        case "AVG DISTINCT" if value is not None:
            span = _compute_span(value)
            words = f"one person can change it by at most {span:g}, the whole range, if there are few different values"
            return _Change(span, f"{span:g}", words)
        case "SUM" if value is not None:
            lower, upper = _read_bounds(value)
            low, high = (pick(end * reach.least, end * reach.most) for pick, end in ((min, lower), (max, upper)))
            return _state_constant(_find_largest_difference(low, high, reach), reach)
        case "AVG" if value is not None:
            span = _compute_span(value)
            most = None if rows is None else min(reach.most * span / max(rows, 1), span)
            return _state_per_row(f"{reach.most * span:g}/n", most, rows, reach)
        case "VARIANCE" if value is not None:
            square, times = _compute_span(value) ** 2, _count_squared_spans(reach)
            most = None if rows is None else min(times * square / max(rows, 1), square / 2)
            return _state_per_row(f"{times * square:g}/n", most, rows, reach)
        case "STDDEV" if value is not None:
            span, times = _compute_span(value), _count_squared_spans(reach)
            most = None if rows is None else min(span * math.sqrt(times / max(rows, 1)), span / math.sqrt(2))
            return _state_per_row(f"{span * math.sqrt(times):g}/√n", most, rows, reach)
        case "CORR" | "REGR_R2" as function:
            most = 2.0 if function == "CORR" else 1.0
            return _Change(most, f"{most:g}", f"one person can change it by at most {most:g}, if there are few rows")
        case function if function in NAMES and aggregate.also:
            return _Change(None, "", "how much one person can change it depends on the rows of the others")
        case "MIN" | "MAX" | "QUANTILE" if value is not None:
            if aggregate.since is not None:
                return _Change(None, "its range", f"one person can change it by the whole range. {WHY_A_CHOICE}")
            span = _compute_span(value)
            words = f"one person can change it by at most {span:g}, the whole range. {WHY_A_CHOICE}"
            return _Change(span, f"{span:g}", words)
        case _:
            return _Change(None, "", f"one person can change which values it shows: {WHY_A_LIST}")


def _count_pairs(aggregate: Aggregate, reach: _Reach) -> int:
    """The most different values that one person adds, over all cells."""
    listed = [
        measured_value.values
        for measured_value in (aggregate.value, *aggregate.also)
        if measured_value is not None and measured_value.values is not None
    ]
    if len(listed) <= len(aggregate.also) or reach.cells is None:
        return reach.most
    return min(reach.most, reach.cells * math.prod(map(len, listed)))


def _find_largest_difference(low: float, high: float, reach: _Reach) -> float:
    """The largest change of a sum over all cells, if one person adds a number from `low` to `high`."""
    farthest = max(abs(low), abs(high))
    if not reach.replaced:
        return farthest
    return 2 * farthest if reach.several else high - low


def _state_constant(most: float, reach: _Reach) -> _Change:
    if most == 0:
        return _Change(0.0, "0", "replacing one person does not change it")
    return _Change(float(most), f"{most:g}", f"one person can change it by at most {most:g}{reach.groups_suffix}")


def _state_per_row(formula: str, most: float | None, rows: float | None, reach: _Reach) -> _Change:
    """State a change that is divided by the number of rows."""
    words = f"one person can change it by at most {formula}, where n is the number of rows{_name_group(reach)}"
    if most is None:
        return _Change(None, formula, words)
    return _Change(most, f"{most:.4g}", f"{words}: {most:.4g} for n = {rows:,.6g}")


def _name_group(reach: _Reach) -> str:
    return " in a group" if reach.several else ""


def _count_squared_spans(reach: _Reach) -> int:
    """The factor k such that one person changes a variance by at most k * span² / n.

    s² is the sum of w_i w_j (x_i - x_j)² over pairs, over n(n - 1). One row is in n - 1 pairs: at most the square over
    n, whether it is replaced or removed (n > 2). Rows of weight r: r times that for people who are there or not; a
    replaced person is one who leaves and one who comes.
    """
    return reach.most * (2 if reach.replaced and reach.most > 1 else 1)


def _read_bounds(value: Typed) -> tuple[float, float]:
    return value.lower or 0.0, value.upper or 0.0


def _compute_span(value: Typed) -> float:
    lower, upper = _read_bounds(value)
    return upper - lower


def _describe_aggregate(aggregate: Aggregate) -> str:
    value, function = aggregate.value, NAMES.get(aggregate.function, aggregate.function)
    if aggregate.fraction is not None:
        function = "median" if aggregate.fraction == Fraction(1, 2) else f"{float(aggregate.fraction):g} quantile"
    apart = aggregate.since is not None or bool(aggregate.also) or aggregate.function.startswith("COUNT")
    if value is None or not value.bounded or apart:
        return function
    return f"{function}, values from {value.lower:g} to {value.upper:g}"
