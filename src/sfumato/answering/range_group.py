"""Questions of a workload about the rows in different ranges of one column: they are measured together.

The ranges are cut into pieces (planning/range_strategies.py), which are the cells of one plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.answering.marginal_group import Marginal, make_share
from sfumato.kernel.plan import BoundedPlan, Count, Measurement, Strategy, Sum
from sfumato.planning.planner import Planned
from sfumato.planning.range_strategies import (
    Ranges,
    RangeStrategy,
    choose_range_strategy,
    cut_ranges,
    meet_range_variances,
)
from sfumato.query.query import Query


@dataclass(frozen=True, slots=True)
class RangeGroup:
    """Ranges of one column. A marginal here is a question; its only key is its number."""

    plan: BoundedPlan  # without the conditions of the ranges
    ranges: Ranges
    marginals: tuple[Marginal, ...]

    @property
    def name(self) -> str:
        """The name of the measurement."""
        return self.plan.measurements[0].name

    def choose_strategy(self, *, gaussian: bool) -> RangeStrategy:
        """The strategy with the least sum of the questions' squared errors."""
        return choose_range_strategy(self.ranges.sums, [1.0] * len(self.marginals), gaussian=gaussian)

    def meet_variances(self, targets: Sequence[float], *, gaussian: bool) -> RangeStrategy:
        """The strategy that reaches these variances, or multiples of them, for the least loss."""
        return meet_range_variances(self.ranges.sums, targets, gaussian=gaussian)

    def make_plans(self, strategy: RangeStrategy, accounting: str, amount: Fraction) -> list[BoundedPlan]:
        """The one plan, with all of the loss."""
        (measurement,) = self.plan.measurements
        if not isinstance(measurement.quantity, Count | Sum):
            raise AssertionError("a range counts or adds up")
        quantity = Strategy(measurement.quantity, (strategy.matrix,))
        measured = Measurement(self.name, quantity, make_share(accounting, amount))
        return [replace(self.plan, keys=(self.ranges.key,), measurements=(measured,))]


def find_range_groups(asked: Sequence[tuple[int, Query, Planned]]) -> list[RangeGroup]:
    """The groups of at least two ranges of one column, among questions that are planned one by one."""
    groups: dict[object, list[tuple[int, Query, Planned]]] = {}
    for place, query, planned in asked:
        plan = planned.plan
        simple = query.finish is None and query.dp_options is None and query.max_groups is None and not query.beside
        quantity = plan.measurements[0].quantity
        if simple and not plan.keys and len(plan.measurements) == 1 and isinstance(quantity, Count | Sum):
            of = (plan.population, plan.source, plan.unit, quantity)
            groups.setdefault(of, []).append((place, query, planned))
    made = [_make_group(members) for members in groups.values() if len(members) > 1]
    return [group for group in made if group is not None]


def _make_group(members: Sequence[tuple[int, Query, Planned]]) -> RangeGroup | None:
    filters = [planned.plan.filters for _, _, planned in members]
    common = tuple(condition for condition in filters[0] if all(condition in others for others in filters))
    own = [tuple(question for question in asked if question not in common) for asked in filters]
    ranges = cut_ranges(own) if len(set(own)) > 1 else None
    if ranges is None:
        return None
    marginals = tuple(
        Marginal(place, query, planned, (number,)) for number, (place, query, planned) in enumerate(members)
    )
    return RangeGroup(replace(members[0][2].plan, filters=common), ranges, marginals)
