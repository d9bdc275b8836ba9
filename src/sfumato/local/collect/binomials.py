"""Upper bounds on binomial probabilities, as arrays."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

TAIL = 1e-22  # the probability outside of an array, on either side
SLACK = 1 + 1e-9  # covers the rounding of sums and products of positive floats


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Upper bounds on P(X = first), P(X = first + 1), ...; X is elsewhere with probability at most `outside`."""

    first: int
    mass: FloatArray
    outside: float

    @property
    def values(self) -> npt.NDArray[np.int64]:
        return self.first + np.arange(self.mass.size)

    def find_excess(self) -> "Excess":
        at_least = np.cumsum(self.mass[::-1])[::-1]
        return Excess(self.first, np.append(at_least, 0.0), np.append(np.cumsum(at_least[::-1])[::-1], [0.0, 0.0]))


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """P(X >= j) and its sums from j on, which give the expected excess over any level."""

    first: int
    at_least: FloatArray
    sums: FloatArray

    def expect_above(self, levels: FloatArray) -> FloatArray:
        """Upper bounds on E[max(X - level, 0)], without the probability outside of the array."""
        above = np.floor(levels) + 1  # the least whole number above the level
        place = above.astype(np.int64) - self.first
        inside = np.clip(place, 0, self.at_least.size - 1)
        surely = np.maximum(-place - 1, 0) * self.at_least[0]  # whole numbers below the array
        further = np.where(place < 0, self.sums[0], self.sums[inside + 1])
        excess: FloatArray = (above - levels) * self.at_least[inside] + further + surely
        return excess


def bound_binomial(trials: int, rate: float) -> Law:
    """Bound a binomial distribution from above: ratios of neighbours from the mode outward, divided by their sum.

    The array holds a probability of at most 1, so dividing by its sum can only raise an entry.
    """
    if rate <= 0 or rate >= 1 or trials == 0:
        return Law(trials if rate >= 1 else 0, np.ones(1), 0.0)
    low, high = _find_end(trials, rate, -1), _find_end(trials, rate, 1)
    mode = min(max(int((trials + 1) * rate), low), high)
    odds = rate / (1 - rate)
    up = np.arange(mode, high, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    rising = np.cumprod((trials - up) / (up + 1) * odds)
    falling = np.cumprod(down / (trials - down + 1) / odds)
    mass = np.concatenate((falling[::-1], [1.0], rising))
    return Law(low, mass / mass.sum() * SLACK, 2 * TAIL)


def _find_end(trials: int, rate: float, side: int) -> int:
    """The value nearest to the mean, on one side, beyond which lies at most TAIL, by Chernoff's bound."""
    limit = trials if side > 0 else 0
    near = math.floor(trials * rate) if side < 0 else math.ceil(trials * rate)
    far = near
    reach = 1
    while far != limit and _chernoff_exponent(trials, rate, far + side) < -math.log(TAIL) + 1:
        far = max(0, far - reach) if side < 0 else min(trials, far + reach)
        reach *= 2
    low, high = (near, far) if side > 0 else (far, near)
    while high - low > 1:  # the end lies between them
        middle = (low + high) // 2
        enough = middle == limit or _chernoff_exponent(trials, rate, middle + side) >= -math.log(TAIL) + 1
        if side > 0:
            low, high = (low, middle) if enough else (middle, high)
        else:
            low, high = (middle, high) if enough else (low, middle)
    return high if side > 0 else low


def _chernoff_exponent(trials: int, rate: float, value: int) -> float:
    """P(X is at least as far from the mean as `value`, on its side) <= exp(-result)."""
    share = value / trials
    if not 0 <= share <= 1:
        return math.inf
    upper = share * math.log(share / rate) if share else 0.0
    return trials * (upper + ((1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0))
