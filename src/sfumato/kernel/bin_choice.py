"""Quantiles, minimum, maximum and the fullest bins: private choices among public bins, for all cells of a release.

An engine gives each cell the weight in every bin. One unit holds at most `reach` of weight, over all bins and cells
together, and every loss here is linear in the weight that moves: so all cells share one epsilon.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.choice import PrivateChoice
from sfumato.kernel.coins import BoolArray, flip_exp_neg
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.grid import add_saturating
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import carried_scale
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import Number, kind_of, positive_decimal, probability_inside, whole_number
from sfumato.kernel.rank_margins import even_rank_margin, rank_margin
from sfumato.kernel.samplers import ROWS_AT_ONCE, IntArray, discrete_laplace, geometric, uniform_below
from sfumato.kernel.tails import least_tail, per_coordinate

Weights = npt.NDArray[np.int64]

MOST_PARTS = 10**6  # the greatest denominator of a fraction
OVERSHOOT = Fraction(1, 100)  # the chance that an extreme is put beyond all weight
_FITS = 2.0**61


@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """The bins in which given fractions of the weight are reached; several fractions share the epsilon.

    `several` says that the release has more than one cell: then a replaced unit may leave one and enter another.
    """

    fractions: tuple[Fraction, ...]
    bins: int
    reach: int
    neighbours: Neighbours
    several: bool
    epsilon: Decimal

    def __post_init__(self) -> None:
        wanted = tuple(probability_inside(each, "fractions") for each in self.fractions)
        if not wanted or list(wanted) != sorted(set(wanted)):
            raise InvalidParameter("fractions", "must be one or more, each above the one before", "another list")
        if max(each.denominator for each in wanted) > MOST_PARTS:
            raise InvalidParameter(
                "fractions", f"must have denominators up to {MOST_PARTS}", "a finer one", "Round it."
            )
        object.__setattr__(self, "fractions", wanted)
        _check_truth(self.several, "several")
        _check_shared(self)
        carried_scale(self.spread, "epsilon")

    @property
    def loss(self) -> PureDP:
        """What all cells and fractions cost together.

        Claim: K-31. `choose_cells` satisfies this loss.
        Requires: as choose_cells.
        Relies on: spread.
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
        """
        return PureDP(self.epsilon)

    @property
    def spread(self) -> Fraction:
        """A bin that is worse than the best by this much weight survives its flip with probability 1/e.

        Claim: K-31. Moving one unit costs at most epsilon, over all cells and fractions, at this spread or a wider one.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Relies on: K-30 (the loss of a flip is the range of the scores' moves over the spread).
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
        """
        count = len(self.fractions)
        below = sum(self.fractions, Fraction(0))
        moved = sum((max(each, 1 - each) for each in self.fractions), Fraction(0)) + max(below, count - below)
        if self.neighbours is Neighbours.REPLACE_ONE:
            moved = 2 * moved if self.several else Fraction(2 * count)
        return moved * self.reach / Fraction(self.epsilon)

    def choose(self, weights: Weights, entropy: Entropy) -> tuple[int, ...]:
        """The chosen bin of each fraction, for one cell. See choose_cells.

        Claim: K-31. As choose_cells, for one cell.
        Requires: as choose_cells.
        Relies on: choose_cells.
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_bin_choice.py::test_many_cells_are_chosen_as_one_by_one
        """
        return self.choose_cells(_one_cell(weights), entropy)[0]

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[tuple[int, ...]]:
        """For each row of `weights`, the chosen bins, in the order of the fractions and never decreasing.

        Claim: K-31. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-30; sorting is post-processing.
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
        """
        chosen: list[tuple[int, ...]] = []
        for cells in _parts(weights, self.bins):
            exact = _wide_enough(cells, max(each.denominator for each in self.fractions))
            bins = [
                permute_and_flip(_beneath_best(exact, each), each.denominator * self.spread, entropy)
                for each in self.fractions
            ]
            chosen += [tuple(sorted(cell)) for cell in zip(*bins, strict=True)]
        return chosen

    def margin(self, confidence: Number = "0.95") -> float:
        """Every chosen bin's ranks come within this much weight of the wanted rank, with the stated probability.

        The ranks of a bin go from the weight before it to the weight up to its end. It holds for all fractions of one
        cell at once.

        Claim: K-31. It holds for every list of weights.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: rank_margin, K-11 (per_coordinate).
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_margin_holds
        """
        miss = per_coordinate(1 - probability_inside(confidence, "confidence"), len(self.fractions))
        return max(rank_margin(self.spread, miss, self.bins, each) for each in self.fractions)

    def even_margin(self, confidence: Number = "0.95") -> float:
        """The margin where the weight is spread evenly over all bins.

        Claim: K-31. As even_rank_margin, for all fractions of one cell at once.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: even_rank_margin, K-11 (per_coordinate).
        Proof: docs/claims/K-31.md
        Checked by: tests/kernel/test_rank_margins.py::test_even_weights_miss_less
        """
        miss = per_coordinate(1 - probability_inside(confidence, "confidence"), len(self.fractions))
        return min(even_rank_margin(self.spread, miss), self.margin(confidence))


@dataclass(frozen=True, slots=True)
class ExtremeChoice:
    """The outermost bin that enough weight reaches: a private maximum (`largest`) or minimum."""

    largest: bool
    bins: int
    reach: int
    neighbours: Neighbours
    epsilon: Decimal

    def __post_init__(self) -> None:
        _check_truth(self.largest, "largest")
        _check_shared(self)
        carried_scale(self.spread, "epsilon")

    @property
    def loss(self) -> PureDP:
        """What all cells cost together.

        Claim: K-32. `choose_cells` satisfies this loss.
        Requires: as choose_cells.
        Relies on: spread.
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_privacy_is_exact
        """
        return PureDP(self.epsilon)

    @property
    def spread(self) -> Fraction:
        """The scale of the noise on the target, and of the coins.

        Claim: K-32. An added or removed unit costs reach/spread, a replaced one twice that: epsilon.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Relies on: nothing.
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_privacy_is_exact
        """
        return self.neighbours.people_moved * self.reach / Fraction(self.epsilon)

    @property
    def target(self) -> int:
        """The weight that must be reached, before noise: a public number that empty bins rarely pass for.

        Claim: K-32. A bin beyond all weight is chosen with probability at most OVERSHOOT, whatever the weights.
        Requires: nothing; it depends on bins, reach, neighbours and epsilon alone.
        Relies on: K-11 (least_tail).
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_extremes_rarely_overshoot
        """
        return least_tail(self.spread, OVERSHOOT / max(self.bins - 1, 1))

    def choose(self, weights: Weights, entropy: Entropy) -> int:
        """The chosen bin of one cell. See choose_cells.

        Claim: K-32. As choose_cells, for one cell.
        Requires: as choose_cells.
        Relies on: choose_cells.
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_many_cells_are_chosen_as_one_by_one
        """
        return self.choose_cells(_one_cell(weights), entropy)[0]

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[int]:
        """For each row of `weights`, come from outside and stop at the first bin whose coin falls heads.

        Claim: K-32. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-06 (coins), K-08 (geometric noise).
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_privacy_is_exact
        """
        chosen: list[int] = []
        target = self.target
        for cells in _parts(weights, self.bins):
            inward = cells[:, ::-1] if self.largest else cells
            noisy = geometric(self.spread, len(cells), entropy).astype(object) + target
            wide = len(cells) and max(noisy) >= _FITS
            reached = (inward.astype(object) if wide else _wide_enough(inward, 1)).cumsum(axis=1)
            short = np.maximum(noisy.astype(reached.dtype)[:, np.newaxis] - reached, 0)
            short[:, -1] = 0  # who comes this far stays
            first = _flip(short, self.spread, entropy).argmax(axis=1)
            chosen += (self.bins - 1 - first if self.largest else first).tolist()
        return chosen

    def margin(self, confidence: Number = "0.95") -> float:
        """At most this much weight lies strictly beyond the chosen bin, with the stated probability.

        Claim: K-32. It holds for every list of weights, and is the least for some.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: K-11 (least_tail).
        Proof: docs/claims/K-32.md
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_margin_holds
        """
        miss = 1 - probability_inside(confidence, "confidence")
        return _float_up(max(self.target + least_tail(self.spread, miss) - 2, 0))


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The `k` fullest bins, fullest first."""

    k: int
    bins: int
    reach: int
    neighbours: Neighbours
    epsilon: Decimal

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))
        _check_shared(self)
        if self.k > self.bins:
            raise InvalidParameter("k", "must be at most the number of bins", "a larger number")
        carried_scale(self.spread, "epsilon")

    @property
    def loss(self) -> PureDP:
        """What all cells cost together, however large k is.

        Claim: K-33. `choose_cells` satisfies this loss.
        Requires: as choose_cells.
        Relies on: spread.
        Proof: docs/claims/K-33.md
        Checked by: tests/kernel/test_bin_choice.py::test_mode_privacy_is_enumerated
        """
        return PureDP(self.epsilon)

    @property
    def spread(self) -> Fraction:
        """The scale of the flips (k = 1), or of the noise on every bin (k > 1).

        Claim: K-33. An added or removed unit costs reach/spread, a replaced one twice that: epsilon.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Relies on: K-30.
        Proof: docs/claims/K-33.md
        Checked by: tests/kernel/test_bin_choice.py::test_mode_privacy_is_enumerated
        """
        return self.neighbours.people_moved * self.reach / Fraction(self.epsilon)

    def choose(self, weights: Weights, entropy: Entropy) -> tuple[int, ...]:
        """The chosen bins of one cell. See choose_cells.

        Claim: K-33. As choose_cells, for one cell.
        Requires: as choose_cells.
        Relies on: choose_cells.
        Proof: docs/claims/K-33.md
        Checked by: tests/kernel/test_bin_choice.py::test_many_cells_are_chosen_as_one_by_one
        """
        return self.choose_cells(_one_cell(weights), entropy)[0]

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[tuple[int, ...]]:
        """For each row of `weights`, one bin by permute-and-flip, or k bins by noise on every bin's weight.

        Claim: K-33. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-30 (k = 1); K-09 and K-18 (k > 1), of which the order is post-processing.
        Proof: docs/claims/K-33.md
        Checked by: tests/kernel/test_bin_choice.py::test_mode_privacy_is_enumerated
        """
        chosen: list[tuple[int, ...]] = []
        for cells in _parts(weights, self.bins):
            if self.k == 1:
                below = cells.max(axis=1, initial=0, keepdims=True) - cells
                chosen += [(each,) for each in permute_and_flip(below, self.spread, entropy)]
            else:
                noise = discrete_laplace(self.spread, cells.size, entropy)
                noisy = add_saturating(cells.reshape(-1), noise).reshape(cells.shape)
                order = np.argsort(-noisy, axis=1, kind="stable")[:, : self.k]
                chosen += [tuple(row) for row in order.tolist()]
        return chosen

    def margin(self, confidence: Number = "0.95") -> float:
        """The j-th chosen bin holds at most this much less than the j-th fullest, for every j, with that probability.

        Claim: K-33. It holds for every list of weights.
        Requires: 0 < confidence < 1 (checked here).
        Relies on: K-20 (k = 1); floats with a slack of one part in 10**9 (k > 1).
        Proof: docs/claims/K-33.md
        Checked by: tests/kernel/test_bin_choice.py::test_mode_margin_holds
        """
        miss = 1 - probability_inside(confidence, "confidence")
        if self.k == 1:
            return _choice_margin(self.spread, miss, self.bins)
        return _float_up(_least_difference(self.spread, miss / (self.k * (self.bins - 1))) - 1)


def permute_and_flip(below: IntArray, spread: Fraction, entropy: Entropy) -> list[int]:
    """For each row, flip a coin exp(-below/spread) for every entry, and pick evenly among the heads.

    Claim: K-30. This is permute-and-flip, exactly; its loss is at most the range of the scores' moves over `spread`.
    Requires: below >= 0, with a zero in every row (caller).
    Relies on: K-06, K-07, K-20.
    Proof: docs/claims/K-30.md
    Checked by: tests/kernel/test_bin_choice.py::test_flips_are_scripted_and_enumerated
    """
    heads = (row.nonzero()[0] for row in _flip(below, spread, entropy))
    return [int(each[uniform_below(each.size, 1, entropy)[0]]) for each in heads]


def _flip(below: IntArray, spread: Fraction, entropy: Entropy) -> BoolArray:
    flat = below.reshape(-1)
    approximate = flat.astype(np.float64) * float(1 / spread)
    return flip_exp_neg(approximate, lambda index: int(flat[index]) / spread, entropy).reshape(below.shape)


def _beneath_best(weights: IntArray, fraction: Fraction) -> IntArray:
    """How much worse than the best bin each is, in parts of 1/denominator of a weight.

    A bin is as bad as its ranks are far from the wanted rank; the one that holds it is better the deeper inside.
    """
    wanted, parts = fraction.numerator, fraction.denominator
    upto = weights.cumsum(axis=1)
    rank = wanted * upto[:, -1:]
    misses: IntArray = np.maximum(parts * (upto - weights) - rank, rank - parts * upto)
    below: IntArray = misses - misses.min(axis=1, keepdims=True)
    return below


def _one_cell(weights: Weights) -> Weights:
    if not isinstance(weights, np.ndarray) or weights.ndim != 1:
        raise KernelFault("One cell's weights are one row.")
    return weights[np.newaxis]


def _parts(weights: Weights, bins: int) -> Iterator[Weights]:
    """The rows, as many at a time as fit the cache."""
    if not isinstance(weights, np.ndarray) or weights.dtype != np.int64 or weights.shape[1:] != (bins,):
        raise KernelFault("Weights are 64-bit integers, one for each bin.")
    if (weights < 0).any():
        raise KernelFault("A weight is negative.")
    rows = max(ROWS_AT_ONCE // bins, 1)
    for start in range(0, len(weights), rows):
        yield weights[start : start + rows]


def _wide_enough(weights: Weights, parts: int) -> IntArray:
    """The same integers, as Python's own where `parts` times a row's sum might leave int64."""
    heaviest = weights.sum(axis=1, dtype=np.float64).max(initial=0)
    return weights if parts * heaviest < _FITS else weights.astype(object)


def _choice_margin(spread: Fraction, miss: Fraction, bins: int) -> float:
    return PrivateChoice(spread, 1, monotonic=True).margin(1 - miss, size=bins)


def _least_difference(scale: Fraction, chance: Fraction) -> int:
    """The least n >= 1, or one above it, with P(Z - Z' >= n) <= chance, for two discrete Laplace variables."""
    rate = float(1 / scale)
    ratio, gap = math.exp(-rate), -math.expm1(-rate)
    limit = math.log(chance.numerator) - math.log(chance.denominator) - 1e-9
    level = ratio + (1 + ratio**2) / (1 + ratio)

    def rare(n: int) -> bool:  # P = x^n (n (1 - x) + x + (1 + x^2)/(1 + x)) / (1 + x)^2
        return math.log(n * gap + level) - n * rate - 2 * math.log1p(ratio) <= limit

    low, high = 0, 1
    while not rare(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rare(middle) else (middle, high)
    return high


def _float_up(value: int) -> float:
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def _check_shared(choice: QuantileChoice | ExtremeChoice | ModeChoice) -> None:
    """Read what every choice among bins has, in place."""
    object.__setattr__(choice, "bins", whole_number(choice.bins, "bins", 1))
    object.__setattr__(choice, "reach", whole_number(choice.reach, "reach", 1))
    object.__setattr__(choice, "neighbours", Neighbours.read(choice.neighbours))
    object.__setattr__(choice, "epsilon", positive_decimal(choice.epsilon, "epsilon"))


def _check_truth(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidParameter(name, "must be True or False", kind_of(value))
