"""What an estimator asks for: noisy sums of bounded row functions, by cell. It never sees a row.

    Estimator.fit -> StatisticSource.release([Statistic, ...], share) -> [Noisy, ...] -> post-processing, which is free

There are two sources: arrays (array_statistics.py) and a protected dataset (curator_statistics.py). Algorithms are
written once, against the protocol in this file.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from sfumato.answering.prepayments import Prepayment, choose_prepayment
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.exact import find_decimal
from sfumato.kernel.expressions import Expression
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import Count, Quantity, Sum, Thirds
from sfumato.learning.feature_columns import Feature, Target
from sfumato.learning.row_cells import Floats, RowCells, count_cells
from sfumato.learning.row_functions import Moment, Powers, Residual, RowFunction, grid_of
from sfumato.number_arguments import Number, read_nonnegative_decimal, read_privacy_amount
from sfumato.planning.shares import round_share
from sfumato.query.size_limits import MOST_CELLS

SCALED = grid_of(Moment((0,)))  # the bounds of a scaled column


@dataclass(frozen=True, slots=True)
class Statistic:
    """The sum of `value` over the rows of each cell of a product of partitions. None counts rows.

    `weight` is its part of the budget of the call, relative to the other statistics of the call.
    """

    value: RowFunction | None
    cells: tuple[RowCells, ...] = ()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Noisy:
    """Noisy sums: an array with one axis for each partition (and a last one for 1, x and x², if `value` is Powers).

    `deviation` is the standard deviation of their noise; of Powers, that of each of the three.
    """

    sums: Floats
    deviation: Floats
    gaussian: bool  # Gaussian noise; else Laplace noise, or box noise
    box: BoxNoise | None = None  # the noise that these sums share with the other sums of their call


# A statistic that a later call may ask for, and the share of the price that it would have there. Of calls that depend
# on noisy answers, an estimator names the statistics with the most cells, the largest share and the smallest.
Foreseen = tuple[Statistic, Fraction]


class StatisticSource(Protocol):
    """Where an estimator's statistics come from. The shares of all calls together must be at most 1.

    `foresee` refuses a fit of which a later call would be refused (too many cells, noise out of range), before anything
    is charged. Nothing is spent.
    """

    features: tuple[Feature, ...]
    target: Target | None
    rows: int | None  # the public number of rows (replace-one); None: it is private
    count_noise: float  # about the deviation of one noisy count of rows by cell, for the whole price

    @property
    def loss(self) -> PrivacyLoss: ...  # of all calls together

    def foresee(self, foreseen: Sequence[Foreseen]) -> None: ...  # before the first release

    def release(self, statistics: Sequence[Statistic], share: Fraction) -> list[Noisy]: ...


def require_few_cells(statistic: Statistic, features: tuple[Feature, ...], target: Target | None) -> None:
    """Refuse a statistic with too many cells. It follows from declarations."""
    if math.prod(find_shape(statistic, features, target)) > MOST_CELLS:
        raise InvalidParameter("cells", f"must be at most {MOST_CELLS:,}", "more", "Use fewer bins, codes or classes.")


def read_price(epsilon: Number, delta: Number, budget: PrivacyLoss | None = None) -> Prepayment:
    """What a fit costs, and the limit that its releases share: Laplace noise for delta = 0, Gaussian noise otherwise.

    Without a `budget` to charge, the cost is epsilon and delta.
    """
    amount, spare = read_privacy_amount(epsilon, "epsilon"), read_nonnegative_decimal(delta, "delta")
    if spare:
        if spare >= 1:
            raise InvalidParameter("delta", "must lie in [0, 1)", "a number of 1 or more")
        spare = read_privacy_amount(delta, "delta")
    return choose_prepayment(amount, spare, ApproxDP(amount, spare) if budget is None else budget)


def choose_delta(
    epsilon: Number,
    delta: Number,
    statistics: int,
    budget: PrivacyLoss | None,
    *,
    powers: bool = False,
    together: bool = False,
) -> Number:
    """0 if Laplace noise at epsilon is smaller than Gaussian noise at (epsilon, delta), for so many statistics.

    They share the price. `powers`: they are Powers, which need a Gaussian price three times. `together`: they are
    measured together, so that without delta they have box noise (joint_sums.py). It follows from public numbers, so an
    estimator decides it before it opens a source. Under a budget in rho, delta stays: noise at epsilon would be charged
    epsilon * tanh(epsilon / 2), which is far above the rho of (epsilon, delta).
    """
    limit = read_price(epsilon, delta).limit
    if isinstance(limit, PureDP):
        return 0
    if isinstance(budget, ZCDP):
        return delta
    amount = float(read_privacy_amount(epsilon, "epsilon"))
    gaussian = (3 if powers else 1) * statistics / (2 * float(limit.rho))
    pure = (4 if powers else 2) * (statistics / amount) ** 2
    if together and statistics > 1:
        terms = 2 * statistics + 1 if powers else statistics
        pure = (terms + 1) * (terms + 2) / (3 * amount**2)
    return 0 if pure <= gaussian else delta


class SpentShares:
    """The shares of one fit, as they are spent: together at most 1. A share of a call is of what `begun` left."""

    def __init__(self, limit: PureDP | ZCDP, begun: Fraction = Fraction(0)) -> None:
        self.limit = limit
        self.spent = Fraction(0)
        self._left = 1 - begun

    def take(self, share: Fraction, weights: Sequence[int]) -> list[PureDP | ZCDP]:
        """The loss of each statistic of a call. They add up to at most `share` of the limit."""
        losses = self.divide(share, weights)
        self.spent += Fraction(share)
        return losses

    def divide(self, share: Fraction, weights: Sequence[int]) -> list[PureDP | ZCDP]:
        """The losses that `take` would give. Nothing is spent."""
        whole = Fraction(share)
        if whole <= 0 or self.spent + whole > 1 or not weights or min(weights) < 1:
            raise KernelFault("The shares of a fit are above zero, and together at most 1.")
        limit = self.limit
        amount = Fraction(limit.epsilon if isinstance(limit, PureDP) else limit.rho) * whole * self._left
        parts = [find_decimal(round_share(amount * weight / sum(weights))) for weight in weights]
        if not all(parts):
            raise InvalidParameter("epsilon", "must be large enough to share", "a smaller one", "Raise it.")
        return [PureDP(part) if isinstance(limit, PureDP) else ZCDP(part) for part in parts if part is not None]


def estimate_count_noise(limit: PureDP | ZCDP, neighbours: Neighbours) -> float:
    """About the standard deviation of one count of rows by cell for the whole limit. A replaced row moves two cells."""
    cells = 2 if neighbours is Neighbours.REPLACE_ONE else 1
    if isinstance(limit, PureDP):
        return math.sqrt(2) * cells / float(limit.epsilon)
    return math.sqrt(cells / (2 * float(limit.rho)))


def list_quantities(
    value: RowFunction | None, write: Callable[[Moment | Residual], Expression], *, gaussian: bool
) -> list[Quantity]:
    """What is measured for a statistic: one quantity, or for Powers with Gaussian noise three.

    `write` gives the expression of a row function.
    """
    match value:
        case None:
            return [Count(None)]
        case Powers(column) if gaussian:
            moments = Moment((column,)), Moment((column, column))
            return [Count(None), *(Sum(write(moment), grid_of(moment)) for moment in moments)]
        case Powers(column):
            return [Thirds(write(Moment((column,))), SCALED)]
        case Moment() | Residual():
            return [Sum(write(value), grid_of(value))]


def share_evenly(loss: PureDP | ZCDP, parts: int) -> list[PureDP | ZCDP]:
    """The loss of a statistic, shared by its quantities."""
    return [loss] if parts == 1 else SpentShares(loss).take(Fraction(1), [1] * parts)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Released integers of one part, their step, and their noise."""

    integers: Floats
    step: float
    noise: Noise


def combine_parts(statistic: Statistic, parts: Sequence[Drawn], shape: tuple[int, ...]) -> Noisy:
    """The noisy sums of a statistic, from the released integers of its parts."""
    deviations = [part.step * compute_deviation(part.noise) for part in parts]
    gaussian = isinstance(parts[0].noise, GaussianNoise)
    if isinstance(statistic.value, Powers) and not gaussian:
        (part,) = parts  # of (1 - x)², 2(1 - x)(1 + x) and (1 + x)²
        below, both, above = np.moveaxis(part.integers.reshape(*shape, 3) * (part.step / 4), -1, 0)
        sums = np.stack([below + both + above, above - below, above - both + below], axis=-1)
        return Noisy(sums, deviations[0] / 4 * np.sqrt([3.0, 2.0, 3.0]), gaussian)
    arrays = [part.integers.reshape(shape) * part.step for part in parts]
    if isinstance(statistic.value, Powers):
        return Noisy(np.stack(arrays, axis=-1), np.array(deviations), gaussian)
    return Noisy(arrays[0], np.array(deviations[0]), gaussian)


def find_shape(statistic: Statistic, features: tuple[Feature, ...], target: Target | None) -> tuple[int, ...]:
    """The number of cells of each partition."""
    return tuple(count_cells(cells, features, target) for cells in statistic.cells)


def compute_deviation(noise: Noise) -> float:
    """The standard deviation of discrete noise, in steps. A discrete Gaussian's is at most that of its parameter."""
    match noise:
        case LaplaceNoise(scale):
            return 1 / (math.sqrt(2) * math.sinh(1 / (2 * float(scale)))) if scale > Fraction(1, 1000) else 0.0
        case GaussianNoise(variance):
            return math.sqrt(variance)
