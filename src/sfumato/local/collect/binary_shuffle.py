"""The effect of shuffling reports that are yes or no: the number of yes is all that a reader learns.

Let S be the number of yes among the others. A person turns their answer with probability p, and q = 1 - p. The number
of yes is S + Bern(q) if the person says yes, and S + Bern(p) if not. The ratio of the two probabilities grows with the
number, because S is log-concave. So the delta for a growth g = e**epsilon is the greatest value, over all thresholds t,
of (q - g * p) * P(S = t - 1) - (g - 1) * P(S >= t).

The others' answers are the worst possible ones. S depends only on how many of them say yes. A block of these numbers
leaves out the people in whom it differs: S is then the sum of the rest and something independent of the person, which
can only lower delta. So the rest bounds the whole block.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sfumato.local.collect.binomials import bound_binomial

FloatArray = npt.NDArray[np.float64]

BLOCKS = 32  # leaving out 1/32 of the people raises epsilon by about 1/64
MOST_TERMS = 4096  # of two laws whose sum is computed term by term; above, by a transform of tilted laws
ROUNDED = 1 + 1e-8  # covers the rounding of a sum of positive products
ABSOLUTE = 1e-13  # covers the rounding of a transform, relative to the greatest entry
WIDTH = 5  # standard deviations of a tilted law that are read on either side of its mean


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """Upper and lower bounds on the probabilities of consecutive numbers of yes among the others.

    `everything`: all numbers are there, but for a probability of `outside`. Otherwise they are part of the upper tail.
    """

    upper: FloatArray
    lower: FloatArray
    outside: float
    everything: bool

    def bound_delta(self, turned: float, growth: float) -> float:
        """An upper bound on the delta for this growth."""
        gain = ((1 - turned) - growth * turned) * (1 + 1e-12)
        if gain <= 0:
            return 0.0
        at_least = np.cumsum(self.lower[::-1])[::-1]  # P(S >= t), from below
        told = gain * self.upper[:-1] - (growth - 1) * (1 - 1e-12) * at_least[1:]
        if self.everything:
            return float(max(told.max(initial=0.0), gain * self.upper[-1]) + gain * self.outside)
        if int(np.argmax(told)) == 0:  # the greatest value may lie below these numbers
            return 1.0
        return float(max(told.max(), gain * self.upper[-1]))  # above these numbers, probabilities only fall


@dataclass(frozen=True, slots=True, eq=False)
class BinaryBound:
    """The part of the bound that does not depend on epsilon."""

    turned: float
    blocks: tuple[Others, ...]

    @classmethod
    def prepare(cls, turned: Fraction, people: int, delta: float) -> "BinaryBound":
        """One block for each range of the number of yes among the others."""
        others, rate = people - 1, float(turned)
        edges = sorted({number * people // BLOCKS for number in range(BLOCKS + 1)})
        return cls(rate, tuple(_add_laws(first, others - last + 1, rate, delta) for first, last in pairwise(edges)))

    def delta(self, epsilon: float) -> float:
        """An upper bound on the delta for this epsilon, whatever the others answer."""
        growth = math.exp(epsilon) * (1 - 1e-15)  # a smaller factor can only raise the result
        return min(1.0, max(block.bound_delta(self.turned, growth) for block in self.blocks) * (1 + 1e-7))


def _add_laws(yes: int, no: int, turned: float, delta: float) -> Others:
    """The number of reports that say yes, among people who would say yes and people who would say no."""
    one, two = bound_binomial(yes, 1 - turned), bound_binomial(no, turned)
    if max(one.mass.size, two.mass.size) <= MOST_TERMS:
        upper = np.convolve(one.mass, two.mass) * ROUNDED
        return Others(upper, upper / ROUNDED**2, one.outside + two.outside, everything=True)
    return _add_tilted(yes, no, turned, delta)


def _add_tilted(yes: int, no: int, turned: float, delta: float) -> Others:
    """The same around the threshold: both laws are tilted until their sum is near it, so that no digits are lost.

    P(S = s) = P(T = s) * exp(offset - tilt * s), where T is the sum of two binomials of other rates.
    """
    spread = math.sqrt((yes + no) * turned * (1 - turned))
    height = math.log(max((1 - 2 * turned) / (spread * delta * math.sqrt(2 * math.pi)), 1.0))
    wanted = yes * (1 - turned) + no * turned + min(math.sqrt(2 * height), spread / 4) * spread
    low, high = 0.0, 4.0
    for _ in range(80):
        tilt = (low + high) / 2
        mean = yes * _tilt_rate(1 - turned, tilt) + no * _tilt_rate(turned, tilt)
        low, high = (tilt, high) if mean < wanted else (low, tilt)
    rates = _tilt_rate(1 - turned, tilt), _tilt_rate(turned, tilt)
    one, two = bound_binomial(yes, rates[0]), bound_binomial(no, rates[1])
    size = 1 << (one.mass.size + two.mass.size).bit_length()
    product = np.fft.irfft(np.fft.rfft(one.mass, size) * np.fft.rfft(two.mass, size), size)
    near = int(wanted) - one.first - two.first
    reach = int(WIDTH * spread)
    start, end = max(0, near - reach), min(one.mass.size + two.mass.size - 1, near + reach)
    part, error = product[start:end], ABSOLUTE * float(product.max())
    numbers = one.first + two.first + np.arange(start, end, dtype=np.float64)
    offset = yes * math.log(turned + (1 - turned) * math.exp(tilt)) + no * math.log(
        1 - turned + turned * math.exp(tilt)
    )
    back = np.exp(offset - tilt * numbers)
    return Others(
        (part + error) * back * ROUNDED,
        np.maximum(part - error, 0.0) * back / ROUNDED**2,
        outside=0.0,
        everything=False,
    )


def _tilt_rate(rate: float, tilt: float) -> float:
    """The rate of a yes-or-no variable whose probabilities are multiplied by exp(tilt * value), and divided."""
    more = rate * math.exp(tilt)
    return more / (1 - rate + more)
