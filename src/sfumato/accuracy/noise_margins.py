"""Margins of additive noise: a bound that |error| does not exceed with a stated probability, never one too small."""

import math
from fractions import Fraction
from typing import assert_never

import numpy as np

from sfumato.kernel.exact import ExpNeg, enclose, enclose_log
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.normal import enclose_tail
from sfumato.kernel.tails import find_least_tail

SUMMED_DEVIATION = 1 << 12
_BITS = 128
_FLOAT_SLACK = 1e-9
_RARE = Fraction(1, 10**300)


def find_miss_per_coordinate(miss: Fraction, size: int) -> Fraction:
    """A probability b of missing one coordinate, such that `size` independent ones all hold with 1 - miss.

    Claim: K-11. (1 - b)**size >= 1 - miss, exactly for size 1.
    Requires: 0 < miss < 1 and size >= 1 (caller).
    Relies on: K-01.
    Checked by: tests/accuracy/test_noise_margins.py::test_per_coordinate_is_never_too_lax
    """
    if size == 1:
        return miss
    low, _ = enclose_log(1 / (1 - miss), _BITS)  # ln(1/(1 - miss)) = -ln(1 - miss); b = 1 - exp(ln(1 - miss)/size)
    _, high = enclose(ExpNeg(Fraction(max(low, 0), size << _BITS)), _BITS)
    return max(Fraction((1 << _BITS) - high, 1 << _BITS), miss / size)


def compute_noise_margin(noise: Noise, miss: Fraction) -> int:
    """A k, in steps of the grid, with P(|Z| > k) <= miss.

    Claim: K-11. As compute_laplace_margin and compute_gaussian_margin.
    Requires: 0 < miss < 1 (caller).
    Relies on: K-12.
    Checked by: tests/accuracy/test_noise_margins.py::test_margins_follow_the_noise
    """
    match noise:
        case LaplaceNoise(scale):
            return compute_laplace_margin(scale, miss)
        case GaussianNoise(variance, rounded):
            return (compute_rounded_margin if rounded else compute_gaussian_margin)(variance, miss)
        case _:
            assert_never(noise)


def compute_laplace_margin(scale: Fraction, miss: Fraction) -> int:
    """The least k with P(|Z| > k) <= miss, for discrete Laplace noise Z.

    Claim: K-11. k is exact: 2 x^(k+1)/(1 + x) <= miss with x = exp(-1/scale), and k - 1 does not satisfy it.
    Requires: 0 < miss < 1 (caller).
    Relies on: K-01, find_least_tail.
    Checked by: tests/accuracy/test_noise_margins.py::test_laplace_margin_is_the_least
    """
    return find_least_tail(scale, miss / 2) - 1


def compute_gaussian_margin(variance: Fraction, miss: Fraction) -> int:
    """A k with P(|Z| > k) <= miss, for discrete Gaussian noise Z.

    Claim: K-12. k suffices, and is the least or near it: a miss within 1e-9 of an edge may cost one step more.
    Requires: 0 < miss < 1 (caller).
    Relies on: numpy's exp and math.erfc being right to 10 digits.
    Checked by: tests/accuracy/test_noise_margins.py::test_gaussian_margin_suffices
    """
    deviation = math.sqrt(variance)
    if miss < _RARE:  # beyond floats: P(|Z| >= k) <= 2 exp(-k**2 / (2 variance))
        log_miss = math.log(miss.numerator) - math.log(miss.denominator)
        return math.ceil(deviation * math.sqrt(2 * (math.log(2) - log_miss)) * (1 + _FLOAT_SLACK))
    chance = float(miss) * (1 - _FLOAT_SLACK)
    if variance <= SUMMED_DEVIATION**2:
        return _compute_summed_margin(float(variance), chance)
    if chance > 0.3:  # within one deviation the density is not convex, and sums may exceed the integral
        chance -= 1 / float(variance)
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if math.erfc(middle / math.sqrt(2)) <= chance else (middle, high)
    return math.ceil(high * deviation * (1 + 1e-12) - 0.5)


def compute_rounded_margin(variance: Fraction, miss: Fraction) -> int:
    """The least k with P(|Z| > k) <= miss, for a Gaussian Z that is rounded to whole steps.

    Claim: K-71. k suffices: |Z| > k only if the Gaussian is at least k + 1/2 away from 0.
    Requires: 0 < miss < 1 (caller).
    Relies on: K-70.
    Checked by: tests/accuracy/test_noise_margins.py::test_rounded_margins_are_the_least
    """
    bits = _BITS + miss.denominator.bit_length()

    def suffices(steps: int) -> bool:
        square = (steps + Fraction(1, 2)) ** 2 / variance
        root = Fraction(math.isqrt((square.numerator << 2 * bits) // square.denominator), 1 << bits)  # rounded down
        return 2 * Fraction(enclose_tail(root, bits)[1], 1 << bits) <= miss

    high = 1
    while not suffices(high):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _compute_summed_margin(variance: float, miss: float) -> int:
    reach = math.ceil(math.sqrt(variance) * 40) + 2
    mass = np.exp(-(np.arange(reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    beyond = np.concatenate((np.cumsum(mass[:0:-1])[::-1], [0.0]))  # beyond[k] = sum of mass[k+1:]
    return int(np.argmax(2 * beyond <= miss * (mass[0] + 2 * beyond[0])))


def round_up_to_float(value: int | Fraction) -> float:
    """The least float that is not below the value, or the next one.

    Claim: K-11. The result is never below the value.
    Requires: value below the largest float (caller).
    Relies on: Python's exact comparison of floats and fractions.
    Checked by: tests/accuracy/test_noise_margins.py::test_floats_are_rounded_up
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
