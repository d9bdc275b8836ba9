"""Gaussian noise rounded to whole steps, drawn exactly: the continuous value is never computed, only decided."""

from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import enclose_exp_neg
from sfumato.kernel.samplers import GREATEST_SCALE, LEAST_SCALE, IntArray, draw_accepted, draw_in_chunks

FIRST_BITS = 32  # of the position within a step, and of the coin
SLACK = 2.0**-22
LEAST = 2.0**-30


def rounded_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent integers: a Gaussian of this variance and mean 0, rounded to the nearest integer.

    Claim: K-71. P(z) = Phi((z + 1/2)/s) - Phi((z - 1/2)/s) exactly, s**2 = variance, for every rational variance in
        range.
    Requires: LEAST_SCALE <= 2 * variance < GREATEST_SCALE**2 (checked here); no dependence on the data (caller).
    Relies on: K-01, K-04, K-09; numpy's exp being within 2**-40 of the truth, relatively.
    Checked by: tests/kernel/test_rounded_gaussian.py::test_the_mass_is_that_of_the_rounded_gaussian
    """
    if not LEAST_SCALE <= 2 * variance < GREATEST_SCALE**2:
        raise KernelFault("The variance of the noise lies outside what the samplers carry.")
    return draw_in_chunks(size, lambda count: _draw(variance, count, entropy))


def _draw(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Propose a step Y, discrete Laplace of scale t, and a uniform position within it; keep it with e^-exponent."""
    scale = isqrt(variance.numerator // variance.denominator) + 1
    return draw_accepted(scale, size, lambda steps: _keep(steps, variance, scale, entropy), entropy)


def _keep(steps: IntArray, variance: Fraction, scale: int, entropy: Entropy) -> npt.NDArray[np.bool_]:
    """Flip the coin of each proposed step. Floats decide; where they are too close, `_settle` does."""
    words = entropy.take(8 * steps.size).view("<u4").reshape(2, steps.size)
    drawn = words[1] * 2.0**-FIRST_BITS
    away = words[0] * 2.0**-FIRST_BITS + (2.0 ** (-FIRST_BITS - 1) - 0.5) + steps.astype(np.float64)
    constant = float(_find_exponent(Fraction(0), 0, variance, scale))
    middle = np.exp(away * away * float(-1 / (2 * variance)) + (steps.astype(np.float64) / scale - constant))
    kept: npt.NDArray[np.bool_] = drawn < middle * (1 - SLACK) - LEAST
    unsure = (drawn <= middle * (1 + SLACK) + LEAST) & ~kept
    for index in np.flatnonzero(unsure):
        position, coin = (int(word) for word in words[:, index])
        kept[index] = _settle(int(steps[index]), (position, coin, FIRST_BITS), variance, scale, entropy)
    return kept


def _find_exponent(away: Fraction, step: int, variance: Fraction, scale: int) -> Fraction:
    """The exponent at a distance of `away` from 0, within 1/2 of `step`. It is never negative, and grows with it."""
    return away * away / (2 * variance) + variance / (2 * scale**2) + (Fraction(1, 2) - step) / scale


def _settle(step: int, known: tuple[int, int, int], variance: Fraction, scale: int, entropy: Entropy) -> bool:
    """Is the uniform number that begins with `coin` below e^-exponent at the place that begins with `position`?

    `known` is the position, the coin, and the number of bits to which both are known. While these do not decide, both
    get eight more.
    """
    position, coin, bits = known
    while True:
        ends = [abs(step + Fraction(place, 1 << bits) - Fraction(1, 2)) for place in (position, position + 1)]
        low = enclose_exp_neg(_find_exponent(max(ends), step, variance, scale), bits)[0]
        high = enclose_exp_neg(_find_exponent(min(ends), step, variance, scale), bits)[1]
        if coin + 1 <= low or coin >= high:
            return coin < low
        more = entropy.take(2)
        position, coin, bits = position << 8 | int(more[0]), coin << 8 | int(more[1]), bits + 8
