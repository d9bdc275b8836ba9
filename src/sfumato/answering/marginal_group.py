"""Questions of a workload that are marginals of one histogram: they are measured together.

A marginal counts, or adds up, the same rows by some of the keys. Rows without a value of a key are in no group of that
key, but they are in the groups of the other keys. So each key that may be NULL gets one more group inside, for NULL,
which is not shown.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.kernel.exact import find_decimal
from sfumato.kernel.expressions import Column
from sfumato.kernel.losses import GDP, ZCDP, PureDP
from sfumato.kernel.plan import BoundedPlan, Count, Key, Loss, Measurement, Strategy, Sum
from sfumato.planning.marginal_strategies import (
    MOST_BLOCKS,
    Block,
    Keys,
    MarginalStrategy,
    choose_marginal_strategy,
    list_closure,
    make_centred,
    meet_variances,
)
from sfumato.planning.planner import Planned
from sfumato.planning.shares import round_share
from sfumato.query.query import Query
from sfumato.query.size_limits import MOST_CELLS

MOST_OF_A_KEY = 512  # values: the matrix of a key has so many rows and columns


@dataclass(frozen=True, slots=True)
class Marginal:
    """One question: its place in the workload, and the numbers of its keys in the order of the question."""

    place: int
    query: Query
    planned: Planned
    order: tuple[int, ...]

    @property
    def keys(self) -> Keys:
        """The numbers of its keys, ascending."""
        return tuple(sorted(self.order))


@dataclass(frozen=True, slots=True)
class MarginalGroup:
    """Marginals of one histogram. `keys` are all keys of them, with a group for NULL where a row may have none."""

    plan: BoundedPlan  # of one of them
    keys: tuple[Key, ...]
    marginals: tuple[Marginal, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of values of the keys."""
        return tuple(len(key.values or ()) for key in self.keys)

    @property
    def part(self) -> Count | Sum:
        """What is counted or added up."""
        quantity = self.plan.measurements[0].quantity
        if not isinstance(quantity, Count | Sum):
            raise AssertionError("a marginal counts or adds up")
        return quantity

    def choose_strategy(self, *, gaussian: bool) -> MarginalStrategy:
        """The strategy with the least sum, over the questions, of their mean squared error."""
        marginals = [marginal.keys for marginal in self.marginals]
        weights = [1 / math.prod(self.sizes[key] for key in keys) for keys in marginals]
        return choose_marginal_strategy(self.sizes, marginals, weights, gaussian=gaussian)

    def meet_variances(self, targets: Sequence[float], *, gaussian: bool) -> MarginalStrategy:
        """The strategy that reaches these variances of cells, or multiples of them, for the least loss."""
        return meet_variances(self.sizes, [marginal.keys for marginal in self.marginals], targets, gaussian=gaussian)

    def make_plans(self, strategy: MarginalStrategy, accounting: str, amount: Fraction) -> list[BoundedPlan]:
        """A plan for each block. Their losses add up to the amount: of epsilon, rho or mu**2, by the accounting."""
        shares = [round_share(Fraction(block.share) * amount, amount) for block in strategy.blocks]
        shares[-1] += amount - sum(shares, Fraction(0))
        return [
            self._make_plan(block, make_share(accounting, share))
            for block, share in zip(strategy.blocks, shares, strict=True)
        ]

    def _make_plan(self, block: Block, loss: Loss) -> BoundedPlan:
        keys = tuple(self.keys[key] for key in block.keys)
        matrices = tuple(make_centred(len(key.values or ())) for key in keys)
        quantity = Strategy(self.part, matrices) if block.centred else self.part
        return replace(self.plan, keys=keys, measurements=(Measurement(self.name, quantity, loss),))

    @property
    def name(self) -> str:
        """The name of the measurement in every block."""
        return self.plan.measurements[0].name


def make_share(accounting: str, amount: Fraction) -> Loss:
    """An amount of the budget's own accounting."""
    decimal = find_decimal(amount)
    if decimal is None:
        raise AssertionError("a share is a finite decimal")
    match accounting:
        case "zcdp":
            return ZCDP(decimal)
        case "gdp":
            return GDP(decimal)
        case _:
            return PureDP(decimal)


def find_marginal_groups(asked: Sequence[tuple[int, Query, Planned]]) -> list[MarginalGroup]:
    """The groups of at least two different marginals among questions that are planned one by one."""
    groups: dict[object, list[tuple[int, Query, Planned]]] = {}
    for place, query, planned in asked:
        if _is_marginal(query, planned):
            plan = planned.plan
            quantity = plan.measurements[0].quantity
            groups.setdefault((plan.population, plan.source, plan.unit, plan.filters, quantity), []).append(
                (place, query, planned)
            )
    made = [_make_group(members) for members in groups.values() if len(members) > 1]
    return [group for group in made if group is not None]


def _is_marginal(query: Query, planned: Planned) -> bool:
    plan = planned.plan
    simple = query.finish is None and query.dp_options is None and query.max_groups is None and not query.keys_alone
    measured = len(plan.measurements) == 1 and isinstance(plan.measurements[0].quantity, Count | Sum)
    few = all(len(key.values or ()) < MOST_OF_A_KEY for key in plan.keys)
    return simple and measured and few and plan.cells is not None and not query.beside


def _make_group(members: Sequence[tuple[int, Query, Planned]]) -> MarginalGroup | None:
    keys = list(dict.fromkeys(key for _, _, planned in members for key in planned.plan.keys))
    marginals = tuple(
        Marginal(place, query, planned, tuple(keys.index(key) for key in planned.plan.keys))
        for place, query, planned in members
    )
    group = MarginalGroup(members[0][2].plan, tuple(map(add_null, keys)), marginals)
    different = {marginal.keys for marginal in marginals}
    wide = max(math.prod(group.sizes[key] for key in marginal) for marginal in different) > MOST_CELLS
    alone = (
        len(different) < 2
        or 1 in group.sizes
        or any(len(set(marginal.order)) < len(marginal.order) for marginal in marginals)
    )
    if alone or wide or sum(2 ** len(keys) for keys in different) > MOST_BLOCKS:
        return None
    return group if len(list_closure(sorted(different))) <= MOST_BLOCKS else None


def add_null(key: Key) -> Key:
    """The key with a group for rows without a value, unless every row has one."""
    always = isinstance(key.expression, Column) and not key.expression.nullable
    return key if always else replace(key, values=(*(key.values or ()), None))
