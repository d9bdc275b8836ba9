"""The k fullest bins after noise on every bin: the probability of each ordered choice."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.lab.distributions.enclosed import Enclosed
from sfumato.lab.distributions.finite_distribution import FiniteDistribution
from sfumato.lab.distributions.noise_masses import mass, tail_from

MOST_WORK = 10_000_000  # ordered choices times noisy weights
_DEPTH = 45  # scales of noise beyond every weight: noise further away has a probability below 2**-64
_SLACK = 2.0**-50  # of each sum or product, relatively: all terms are positive, so errors do not grow by cancellation

Floats = npt.NDArray[np.float64]


def distribute_fullest(scale: Fraction, weights: list[int], k: int) -> FiniteDistribution:
    """The probability of each ordered choice of k bins; of bins with equal noisy weights, the first comes first.

    The sums run over all noisy weights within 45 scales, in floats. The enclosures include rounding, and the noise
    beyond: they agree to about 10 digits.
    """
    reach = math.ceil(_DEPTH * scale)
    width = max(weights) - min(weights) + 2 * reach + 1
    if math.perm(len(weights), k) * width > MOST_WORK:
        raise InvalidParameter("weights", "must be fewer or smaller for exact probabilities", "too many", "Use k=1.")
    noise = LaplaceNoise(scale)
    single = np.array([float(mass(noise, at)) for at in range(reach + 1)])
    both_sides = np.concatenate((single[:0:-1], single))
    at = np.zeros((len(weights), width))
    for place, weight in enumerate(weights):
        start = weight - min(weights)
        at[place, start : start + both_sides.size] = both_sides
    below = np.concatenate((np.zeros((len(weights), 1)), np.cumsum(at, axis=1)[:, :-1]), axis=1)
    found: dict[tuple[int, ...], float] = {}
    for place in range(len(weights)):
        _extend((place,), at[place], k, (at, below), found)
    rounding = (width + 100 * len(weights)) * _SLACK
    lost = 2 * len(weights) * float(tail_from(noise, reach + 1))
    ends = ((Fraction(chance * (1 - rounding)), Fraction(chance * (1 + rounding) + lost)) for chance in found.values())
    return FiniteDistribution(tuple(found), tuple(Enclosed(*pair) for pair in ends))


def _extend(
    chosen: tuple[int, ...], last: Floats, k: int, laws: tuple[Floats, Floats], found: dict[tuple[int, ...], float]
) -> None:
    """`last` has the probability that these bins come first, in this order, the last of them with each noisy weight."""
    at, below = laws
    bins = range(len(at))
    if len(chosen) == k:
        for other in bins:
            if other not in chosen:
                last = last * (below[other] + at[other] if other > chosen[-1] else below[other])
        found[chosen] = float(last.sum())
        return
    above = np.concatenate((np.cumsum(last[::-1])[::-1][1:], [0.0]))
    for following in bins:
        if following not in chosen:
            before = above + last if chosen[-1] < following else above
            _extend((*chosen, following), at[following] * before, k, laws, found)
