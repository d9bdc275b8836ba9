"""The exact loss of a private choice on two neighbouring datasets, from the weights in its bins. No sample is drawn.

The kernel's spread and target are used as they are: if they are wrong, the loss is above the certified epsilon.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice

FloatArray = npt.NDArray[np.float64]
Cell = Mapping[int, int]  # weights by bin
Choice = QuantileChoice | ExtremeChoice | ModeChoice

TOLERANCE = 1e-4  # relative: above the error of sums that are integrated
_SUMMED_SPREAD = 100  # up to here, the noise of a target is summed; above, it is integrated
_FAR = 40  # spreads: noise beyond has probability e^-40
_LEAST = 1e-200  # probabilities below are not compared
_LEAST_SUMMED = 1e-13  # the same where noise up to _FAR is summed: what is beyond it would count
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True, slots=True)
class BinDistribution:
    """Probabilities of single bins: the first and the last of each run of bins whose weights look alike."""

    bins: tuple[int, ...]
    chances: FloatArray


def find_choice_loss(choice: Choice, before: Sequence[Cell], after: Sequence[Cell]) -> float:
    """The largest log-ratio of probabilities of one output on the two sides, in the worse direction.

    Cells and fractions are chosen independently, so their losses add up. (Quantiles are then sorted, which is not part
    of the loss.) Of several fullest bins, it is the loss of the noisy weights.
    """
    changed = [(one, two) for one, two in zip(before, after, strict=True) if one != two]
    if isinstance(choice, ModeChoice) and choice.k > 1:
        moved = sum(abs(one.get(place, 0) - two.get(place, 0)) for one, two in changed for place in {**one, **two})
        return float(moved / choice.spread)
    forward = backward = 0.0
    for one, two in changed:
        marks = find_marks(choice, one, two)
        for first, second in zip(list_distributions(choice, one, marks), list_distributions(choice, two, marks),
                                 strict=True):  # fmt: skip
            least = _LEAST_SUMMED if isinstance(choice, ExtremeChoice) else _LEAST
            forward += _find_greatest(first.chances, second.chances, least)
            backward += _find_greatest(second.chances, first.chances, least)
    return max(forward, backward)


def find_marks(choice: Choice, one: Cell, two: Cell) -> list[int]:
    """Bins beside which weights change in either cell: between them, all bins look alike."""
    held = {*one, *two}
    beside = {place + step for place in held for step in (-1, 0, 1)}
    return sorted({0, choice.bins - 1, *(place for place in beside if 0 <= place < choice.bins)})


def list_distributions(choice: Choice, cell: Cell, marks: Sequence[int]) -> list[BinDistribution]:
    """The distribution of each chosen bin of a cell: one of an extreme or a mode, one per fraction of quantiles."""
    weights = np.zeros(choice.bins, object)
    for place, weight in cell.items():
        weights[place] = weight
    match choice:
        case ModeChoice():
            exponents = [(weights.max() - weights) / float(choice.spread)]
        case QuantileChoice():
            exponents = [miss[0] / float(spread) for miss, spread in choice.list_misses(weights[np.newaxis])]
        case ExtremeChoice():
            return [_distribute_extreme(choice, weights, marks)]
        case _:
            assert_never(choice)
    places = np.array(marks)
    return [BinDistribution(tuple(marks), _permute_and_flip(scores.astype(float))[places]) for scores in exponents]


def _find_greatest(first: FloatArray, second: FloatArray, least: float) -> float:
    there = first > least
    if not there.any():
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(first[there]) - np.log(second[there])))


def _permute_and_flip(exponents: FloatArray) -> FloatArray:
    """P(i) = p_i times the integral over u from 0 to 1 of the product over j != i of 1 - p_j u.

    Here p = exp(-exponent) is the chance that a bin survives. Bins with the same exponent have the same chance. The
    product decreases from 1 as exp(-u sum p): the parts of the range are shorter near 0.
    """
    survive, place, count = np.unique(np.exp(-exponents), return_inverse=True, return_counts=True)
    edges = np.array([0.0, *(2.0**-power for power in range(24, -1, -1))])
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    nodes = (middle[:, np.newaxis] + half[:, np.newaxis] * _NODES).reshape(-1)
    weights = (half[:, np.newaxis] * _WEIGHTS).reshape(-1)
    logs = np.log1p(-nodes[:, np.newaxis] * survive)
    product = np.exp((logs @ count)[:, np.newaxis] - logs)
    chances: FloatArray = survive * (weights @ product)
    return chances[place.reshape(-1)]


def _distribute_extreme(
    choice: ExtremeChoice, weights: npt.NDArray[np.object_], marks: Sequence[int]
) -> BinDistribution:
    """P(stop at bin k): come from outside; bin j stops with chance exp(-max(target + G - reached_j, 0) / spread).

    Bins between two marks have the same reached weight. The last bin always stops.
    """
    spread, target = float(choice.spread), choice.target
    inward = weights[::-1] if choice.largest else weights
    reached = np.cumsum(inward)
    places = sorted(choice.bins - 1 - mark if choice.largest else mark for mark in marks)
    noise, mass = _list_noise(choice, sorted({int(value) - target for value in reached}))
    alive = np.ones(len(noise))
    chances, at = {}, 0
    for step in places:
        for start, length in ((at, step - at), (step, 1)):  # the bins before the mark, then the mark itself
            if length <= 0:
                continue
            short = np.maximum(noise + float(target - int(reached[start])), 0.0) / spread
            stops = np.exp(-short) if start + length < choice.bins else np.ones(len(noise))
            chances[start] = float(mass @ (alive * stops))
            alive = alive * (1 - stops) ** length
        at = step + 1
    outward = [chances[step] for step in places]
    listed = outward[::-1] if choice.largest else outward
    return BinDistribution(tuple(marks), np.array(listed))


def _list_noise(choice: ExtremeChoice, kinks: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Values of the geometric noise on a target, with their probabilities; or the nodes of an integral over it.

    A sum over whole numbers is close to an integral that begins half a step earlier (the midpoint rule).
    """
    spread = float(choice.spread)
    first = -math.expm1(-1 / spread)  # P(noise = 0)
    if spread <= _SUMMED_SPREAD:
        values = np.arange(0, max(int(_FAR * spread), _FAR) + 1, dtype=np.float64)
        return values, first * np.exp(-values / spread)
    ends = {-0.5, *(spread * part for part in range(1, _FAR + 1))} | {
        float(kink) for kink in kinks if 0 < kink < _FAR * spread
    }
    edges = np.array(sorted(ends))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    nodes = (middle[:, np.newaxis] + half[:, np.newaxis] * _NODES).reshape(-1)
    return nodes, (half[:, np.newaxis] * _WEIGHTS).reshape(-1) * first * np.exp(-nodes / spread)
