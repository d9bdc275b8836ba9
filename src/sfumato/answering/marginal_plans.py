"""What marginals cost that are measured together: for wanted margins, or for a given loss. It reads no data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answering.desk import Desk
from sfumato.answering.least_epsilon import bisect_epsilon
from sfumato.answering.marginal_group import Marginal, MarginalGroup, make_share
from sfumato.answering.range_group import RangeGroup
from sfumato.answers.column_margins import compute_miss_chance
from sfumato.answers.intervals import bound_column, express_as_linear
from sfumato.answers.marginal_values import find_marginal_noise
from sfumato.answers.released_values import ReleasedVector, find_linear_margin
from sfumato.answers.simulated_noise import WeightedNoise, compute_variance
from sfumato.answers.unmixed_values import combine_cumulants
from sfumato.kernel.certify import Certified, certify
from sfumato.kernel.losses import GDP, ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.kernel.plan import BoundedPlan, Loss
from sfumato.planning.marginal_strategies import MarginalStrategy
from sfumato.planning.range_strategies import RangeStrategy

SMALL = Fraction(1, 10**6)  # a loss with so much noise that its lattice does not matter
UNIT = combine_cumulants(1.0, 0.0)

Group = MarginalGroup | RangeGroup


@dataclass(frozen=True, slots=True)
class Together:
    """Marginals that are measured together: the places of their questions, the strategy, and the loss of all of them.

    `margins` are those that the questions get. The loss is of the budget's own accounting.
    """

    places: tuple[int, ...]
    strategy: MarginalStrategy | RangeStrategy
    loss: Loss
    margins: tuple[Mapping[str, float], ...]

    def make_plans(self, group: Group) -> list[BoundedPlan]:
        """A plan for each block."""
        return make_plans(group, self.strategy, name_accounting(self.loss), read_amount(self.loss))


def make_plans(
    group: Group, strategy: MarginalStrategy | RangeStrategy, accounting: str, amount: Fraction
) -> list[BoundedPlan]:
    """The plans of a group by a strategy that was chosen for it."""
    if isinstance(group, MarginalGroup) and isinstance(strategy, MarginalStrategy):
        return group.make_plans(strategy, accounting, amount)
    if isinstance(group, RangeGroup) and isinstance(strategy, RangeStrategy):
        return group.make_plans(strategy, accounting, amount)
    raise AssertionError("a strategy is of its own group")


def name_accounting(loss: PrivacyLoss) -> str:
    """The accounting in which a loss is an amount."""
    return "zcdp" if isinstance(loss, ZCDP) else "gdp" if isinstance(loss, GDP) else "basic"


def read_amount(loss: PrivacyLoss) -> Fraction:
    """The epsilon, rho or mu**2 of a loss."""
    match loss:
        case ZCDP(rho):
            return Fraction(rho)
        case GDP(mu_squared):
            return Fraction(mu_squared)
        case _:
            return Fraction(loss.epsilon)


def convert_to_accounting(loss: PrivacyLoss, accounting: str) -> Fraction:
    """What a loss is worth in the budget's accounting. A rho pays for the Gaussian noise of mu**2 = 2 rho."""
    match accounting:
        case "zcdp":
            return Fraction(loss.to_zcdp().rho)
        case "gdp":
            return 2 * Fraction(loss.rho) if isinstance(loss, ZCDP) else Fraction(loss.to_gdp().mu_squared)
        case _:
            return read_amount(loss)


def plan_for_margins(
    desk: Desk,
    group: Group,
    wanted: Sequence[Mapping[str, float]],
    alone: Sequence[PureDP | ZCDP],
    level: Fraction,
) -> Together | None:
    """The least loss for the margins of a group; None if it is not below that of its questions one by one."""
    accounting = desk.dataset.budget.accounting
    paid = [
        certify(desk.plan(marginal.query, loss).plan).loss
        for marginal, loss in zip(group.marginals, alone, strict=True)
    ]
    before = sum((convert_to_accounting(loss, accounting) for loss in paid), Fraction(0))
    targets = [
        min((most / _find_margins(marginal, UNIT, level)[name]) ** 2 for name, most in margins.items())
        for marginal, margins in zip(group.marginals, wanted, strict=True)
    ]
    strategy = group.meet_variances(targets, gaussian=accounting != "basic")
    measured = _certify(make_plans(group, strategy, accounting, SMALL))

    def is_enough(amount: str) -> bool:
        return all(
            found[name] <= most
            for marginal, margins in zip(group.marginals, wanted, strict=True)
            if (
                found := _find_margins(
                    marginal,
                    find_marginal_noise(strategy, measured, marginal.keys, float(Fraction(amount) / SMALL)),
                    level,
                )
            )
            for name, most in margins.items()
        )

    found = bisect_epsilon(is_enough)
    if found is None or Fraction(found) >= before:
        return None
    return _put_together(group, strategy, make_share(accounting, Fraction(found)), level)


def plan_for_loss(desk: Desk, group: Group, alone: Sequence[PureDP | ZCDP], level: Fraction) -> Together | None:
    """The best strategy for the losses of a group's questions together; None if the questions are better one by one.

    Better: a smaller sum, over the questions, of the mean squared error of a cell.
    """
    own = desk.dataset.budget.accounting
    accounting = "zcdp" if own == "basic" and isinstance(alone[0], ZCDP) else own
    amount = sum((convert_to_accounting(loss, accounting) for loss in alone), Fraction(0))
    strategy = group.choose_strategy(gaussian=accounting != "basic")
    loss = make_share(accounting, amount)
    made = _put_together(group, strategy, loss, level)
    measured = _certify(made.make_plans(group))
    error = sum(_find_variance(find_marginal_noise(strategy, measured, marginal.keys)) for marginal in group.marginals)
    before = 0.0
    for marginal, share in zip(group.marginals, alone, strict=True):
        (certified,) = _certify([desk.plan(marginal.query, share).plan])
        if isinstance(certified.noise, LaplaceNoise | GaussianNoise):
            before += compute_variance(certified.noise) * 4.0**certified.exponent
    return made if error < before else None


def _put_together(group: Group, strategy: MarginalStrategy | RangeStrategy, loss: Loss, level: Fraction) -> Together:
    places = tuple(marginal.place for marginal in group.marginals)
    measured = _certify(Together(places, strategy, loss, ()).make_plans(group))
    margins = tuple(
        _find_margins(marginal, find_marginal_noise(strategy, measured, marginal.keys), level)
        for marginal in group.marginals
    )
    return Together(places, strategy, loss, margins)


def _certify(plans: Sequence[BoundedPlan]) -> list[Certified]:
    return [certify(plan).measurements[0] for plan in plans]


def _find_variance(noise: WeightedNoise) -> float:
    return sum(weight**2 * compute_variance(part) for weight, part in noise.parts)


def _find_margins(marginal: Marginal, noise: WeightedNoise, level: Fraction) -> dict[str, float]:
    """The margins of a question's columns that are sums of what is measured."""
    query, planned = marginal.query, marginal.planned
    (name,) = (measurement.name for measurement in planned.plan.measurements)
    vector = {name: ReleasedVector(name, np.zeros(1), noise, 1.0)}
    found = {}
    for column, post in query.columns:
        linear = express_as_linear(post, planned.formulas)
        if linear is not None and linear.terms:
            miss = compute_miss_chance(query, planned, post, level, planned.plan.cells or 1)
            low, high = (float(end) for end in bound_column(post, planned.formulas))
            found[column] = min(find_linear_margin(linear, vector, 1 - miss), high - low)
    return found
