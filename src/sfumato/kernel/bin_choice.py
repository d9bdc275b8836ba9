"""Quantiles, minimum, maximum and the fullest bins: private choices among public bins, for all cells of a release.

An engine gives each cell the weight in every bin. One unit holds at most `reach` of weight, over all bins and cells
together, and every loss here is linear in the weight that moves: so all cells share one epsilon.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.coins import FloatArray, flip_exp_neg
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.mechanisms import check_scale
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.samplers import IntArray, discrete_laplace, geometric, uniform_below
from sfumato.kernel.saturating_sums import add_saturating
from sfumato.kernel.tails import find_least_tail

Weights = npt.NDArray[np.int64]

OVERSHOOT = Fraction(1, 100)  # the chance that an extreme is put beyond all weight
_FITS = 2.0**61


@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """The bins in which given fractions of the weight are reached; several fractions share the epsilon.

    `several` says that the release has more than one cell: then a replaced unit may leave one and enter another.
    With `miss`, two bins for each fraction are chosen instead, the ends of an interval: each of them is on the wrong
    side of the fraction's bin with a probability of at most `miss`.
    """

    fractions: tuple[Fraction, ...]
    bins: int
    reach: int
    neighbours: Neighbours
    several: bool
    epsilon: Decimal
    miss: Fraction | None = None

    def __post_init__(self) -> None:
        ordered = self.fractions and list(self.fractions) == sorted(set(self.fractions))
        if not ordered or not 0 < self.fractions[0] <= self.fractions[-1] < 1:
            raise KernelFault("Fractions are one or more, in ascending order, between 0 and 1.")
        if self.miss is not None and not 0 < self.miss < 1:
            raise KernelFault("An end of an interval misses with a probability between 0 and 1.")
        _check_parameters(self)

    @property
    def spread(self) -> Fraction:
        """A bin that is worse than the best by this much weight survives its flip with probability 1/e.

        Claim: K-31. Moving one unit costs at most epsilon, over all cells and fractions, at this spread or a wider one.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Relies on: K-30 (the loss of a flip is the range of the scores' moves over the spread), K-83 (with `miss`).
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
        """
        if self.miss is not None:  # each end is a quantile of one fraction, with weight added that is public
            return sum((2 * replace(self, fractions=(part,), miss=None).spread for part in self.fractions), Fraction(0))
        count = len(self.fractions)
        below = sum(self.fractions, Fraction(0))
        moved = sum((max(share, 1 - share) for share in self.fractions), Fraction(0)) + max(below, count - below)
        if self.neighbours is Neighbours.REPLACE_ONE:
            moved = 2 * moved if self.several else Fraction(2 * count)
        return moved * self.reach / Fraction(self.epsilon)

    @property
    def pads(self) -> tuple[tuple[int, int], ...]:
        """The public weight that is added below all weight and above it, for each bin that a fraction chooses.

        Claim: K-83. An end is on the wrong side of the fraction's bin with a probability of at most `miss`.
        Requires: bins, reach, neighbours, epsilon and miss are public (caller).
        Relies on: K-11 (find_least_tail), K-20.
        Checked by: tests/kernel/test_quantile_ends.py::test_ends_are_seldom_on_the_wrong_side
        """
        if self.miss is None:
            return ((0, 0),)
        pad = find_least_tail(self.spread, self.miss / max(self.bins - 1, 1))
        return (pad, 0), (0, pad)

    def list_misses(self, weights: IntArray) -> list[tuple[IntArray, Fraction]]:
        """How much worse than the best each bin is, and the spread in the same parts: one pair for each chosen bin.

        Claim: K-31. With `miss`, each pair is for a quantile of one fraction, on padded weights (K-83).
        Requires: parts of a row's sum and of its pads fit the integers (_widen).
        Checked by: tests/kernel/test_quantile_ends.py::test_the_loss_of_all_ends_is_at_most_epsilon
        """
        return [
            (rank_misses(weights, fraction, *pad), fraction.denominator * self.spread)
            for fraction in self.fractions
            for pad in self.pads
        ]

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[tuple[int, ...]]:
        """For each row of `weights`, the chosen bins, in the order of the fractions and never decreasing.

        With `miss`, the two ends of one fraction after those of another; ends of different fractions are not sorted.

        Claim: K-31. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-30; sorting is post-processing.
        Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
        """
        _check_weights(weights, self.bins)
        exact = _widen(weights, max(fraction.denominator for fraction in self.fractions), sum(self.pads[0]))
        bins = [permute_and_flip(*_compute_exponents(*miss), entropy) for miss in self.list_misses(exact)]
        cells = zip(*bins, strict=True)
        return [tuple(sorted(cell)) if self.miss is None else tuple(cell) for cell in cells]


@dataclass(frozen=True, slots=True)
class ExtremeChoice:
    """The outermost bin that enough weight reaches: a private maximum (`largest`) or minimum."""

    largest: bool
    bins: int
    reach: int
    neighbours: Neighbours
    epsilon: Decimal

    def __post_init__(self) -> None:
        _check_parameters(self)

    @property
    def spread(self) -> Fraction:
        """The scale of the noise on the target, and of the coins.

        Claim: K-32. An added or removed unit costs reach/spread, a replaced one twice that: epsilon.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_privacy_is_exact
        """
        return self.neighbours.people_moved * self.reach / Fraction(self.epsilon)

    @property
    def target(self) -> int:
        """The weight that must be reached, before noise: a public number that empty bins rarely pass for.

        Claim: K-32. A bin beyond all weight is chosen with probability at most OVERSHOOT, whatever the weights.
        Requires: bins, reach, neighbours and epsilon are public (caller).
        Relies on: K-11 (find_least_tail).
        Checked by: tests/kernel/test_bin_choice.py::test_extremes_rarely_overshoot
        """
        return find_least_tail(self.spread, OVERSHOOT / max(self.bins - 1, 1))

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[int]:
        """For each row of `weights`, come from outside and stop at the first bin whose coin falls heads.

        Claim: K-32. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-06 (coins), K-08 (geometric noise).
        Checked by: tests/kernel/test_bin_choice.py::test_extreme_privacy_is_exact
        """
        _check_weights(weights, self.bins)
        inward = weights[:, ::-1] if self.largest else weights
        noisy = geometric(self.spread, len(weights), entropy).astype(object) + self.target
        wide = len(weights) and max(noisy) >= _FITS
        reached = (inward.astype(object) if wide else _widen(inward, 1)).cumsum(axis=1)
        short = np.maximum(noisy.astype(reached.dtype)[:, np.newaxis] - reached, 0)
        short[:, -1] = 0  # the last bin always accepts
        approximate, exact = _compute_exponents(short, self.spread)
        first = flip_exp_neg(approximate.reshape(-1), exact, entropy).reshape(short.shape).argmax(axis=1)
        chosen: list[int] = (self.bins - 1 - first if self.largest else first).tolist()
        return chosen


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The `k` fullest bins, fullest first."""

    k: int
    bins: int
    reach: int
    neighbours: Neighbours
    epsilon: Decimal

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.bins:
            raise KernelFault("A mode chooses from 1 bin to all of them.")
        _check_parameters(self)

    @property
    def spread(self) -> Fraction:
        """The scale of the flips (k = 1), or of the noise on every bin (k > 1).

        Claim: K-33. An added or removed unit costs reach/spread, a replaced one twice that: epsilon.
        Requires: one unit holds at most `reach` of weight, over all cells (caller).
        Relies on: K-30.
        Checked by: tests/kernel/test_bin_choice.py::test_mode_privacy_is_enumerated
        """
        return self.neighbours.people_moved * self.reach / Fraction(self.epsilon)

    def choose_cells(self, weights: Weights, entropy: Entropy) -> list[tuple[int, ...]]:
        """For each row of `weights`, one bin by permute-and-flip, or k bins by noise on every bin's weight.

        Claim: K-33. The output is epsilon-DP for one unit, with exact probabilities.
        Requires: rows are the cells of one release, and one unit holds at most `reach` of all their weight (caller).
        Relies on: K-30 (k = 1); K-09 and K-18 (k > 1), of which the order is post-processing.
        Checked by: tests/kernel/test_bin_choice.py::test_mode_privacy_is_enumerated
        """
        _check_weights(weights, self.bins)
        if self.k == 1:
            below = weights.max(axis=1, initial=0, keepdims=True) - weights
            return [(fullest,) for fullest in permute_and_flip(*_compute_exponents(below, self.spread), entropy)]
        noise = discrete_laplace(self.spread, weights.size, entropy)
        noisy = add_saturating(weights.reshape(-1), noise).reshape(weights.shape)
        order = np.argsort(-noisy, axis=1, kind="stable")[:, : self.k]
        return [tuple(row) for row in order.tolist()]


def permute_and_flip(approximate: FloatArray, exact: Callable[[int], Fraction], entropy: Entropy) -> list[int]:
    """For each row of exponents, flip a coin exp(-exponent) for every entry, and pick evenly among the heads.

    `approximate` holds the exponents as floats; `exact` gives one of them by its position in all rows together.

    Claim: K-30. This is permute-and-flip, exactly; its loss is at most the range of the exponents' moves.
    Requires: as flip_exp_neg, with a zero in every row (caller).
    Relies on: K-06, K-07, K-20.
    Checked by: tests/kernel/test_bin_choice.py::test_flips_are_scripted_and_enumerated
    """
    flips = flip_exp_neg(approximate.reshape(-1), exact, entropy).reshape(approximate.shape)
    heads = (row.nonzero()[0] for row in flips)
    return [int(row[uniform_below(row.size, 1, entropy)[0]]) for row in heads]


def _compute_exponents(below: IntArray, spread: Fraction) -> tuple[FloatArray, Callable[[int], Fraction]]:
    """below/spread of every entry, as floats and exactly: what flip_exp_neg takes."""
    flat = below.reshape(-1)
    return below.astype(np.float64) * float(1 / spread), lambda index: int(flat[index]) / spread


def rank_misses(weights: IntArray, fraction: Fraction, below: int = 0, above: int = 0) -> IntArray:
    """How much worse than the best bin each bin is, in parts of 1/denominator of a weight.

    A bin is as bad as its ranks are far from the wanted rank. The bin that holds the wanted rank is better the deeper
    the rank lies inside it. `below` more weight in the first bin makes other bins bad that are not far below the
    wanted rank; `above` more weight in the last bin, those that are not far above it.

    Claim: K-31. One unit of weight moves the misses of all bins within a range of max(fraction, 1 - fraction) plus
        what moves all of them alike.
    Requires: parts of a row's sum fit the integers (_widen).
    Relies on: exact integer arithmetic.
    Checked by: tests/kernel/test_bin_choice.py::test_quantile_privacy_is_enumerated
    """
    wanted, parts = fraction.numerator, fraction.denominator
    rank = wanted * weights.sum(axis=1, keepdims=True) + parts * above
    padded = weights.copy()
    padded[:, 0] += below
    padded[:, -1] += above
    upto = padded.cumsum(axis=1)
    misses: IntArray = np.maximum(parts * (upto - padded) - rank, rank - parts * upto)
    best: IntArray = misses - misses.min(axis=1, keepdims=True)
    return best


def _check_weights(weights: Weights, bins: int) -> None:
    if getattr(weights, "dtype", None) != np.int64 or weights.shape[1:] != (bins,) or (weights < 0).any():
        raise KernelFault("Weights are 64-bit integers from zero on, one for each bin.")


def _widen(weights: Weights, parts: int, more: int = 0) -> IntArray:
    """The same integers, as Python's own where `parts` times a row's sum, and `more`, might leave int64."""
    heaviest = weights.sum(axis=1, dtype=np.float64).max(initial=0)
    return weights if parts * (heaviest + more) < _FITS else weights.astype(object)


def _check_parameters(choice: QuantileChoice | ExtremeChoice | ModeChoice) -> None:
    if min(choice.bins, choice.reach) < 1 or not isinstance(choice.neighbours, Neighbours) or choice.epsilon <= 0:
        raise KernelFault("A choice among bins has parameters above zero.")
    check_scale(choice.spread, "epsilon")
