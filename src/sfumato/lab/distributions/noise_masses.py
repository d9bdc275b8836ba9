"""Laplace and Gaussian noise on whole numbers: the probability of each number, and of tails."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise
from sfumato.lab.distributions.enclosed import ONE, Enclosed, enclose_exp, enclose_pi, enclose_sqrt

SUMMED_VARIANCE = 1 << 12  # up to here, sums over all whole numbers; above, the integral and a bound on its error
_RELATIVE_BITS = 200  # of sums whose rest is cut off
_SUM_BITS = 512
_FAR = 15  # standard deviations: tails beyond are below 2**-160


def mass(noise: Noise, at: int) -> Enclosed:
    """P(noise = at)."""
    match noise:
        case LaplaceNoise(scale):
            ratio = enclose_exp(-1 / scale)
            return (1 - ratio) / (1 + ratio) * enclose_exp(-abs(at) / scale)
        case GaussianNoise(rounded=True):
            return (tail_from(noise, abs(at)) - tail_from(noise, abs(at) + 1)).clamp(0, 1)
        case GaussianNoise(variance):
            return enclose_exp(-Fraction(at * at) / (2 * variance)) / _total_weight(variance)
        case _:
            assert_never(noise)


def tail_from(noise: Noise, at: int) -> Enclosed:
    """P(noise >= at)."""
    if at <= 0:  # the noise is symmetric
        return 1 - tail_from(noise, 1 - at)
    match noise:
        case LaplaceNoise(scale):
            return enclose_exp(-at / scale) / (1 + enclose_exp(-1 / scale))
        case GaussianNoise(variance, rounded=True):
            square = (Fraction(at) - Fraction(1, 2)) ** 2 / variance
            return _bound_far_tail(square) if square > _FAR**2 else _normal_tail(square)
        case GaussianNoise(variance) if variance <= SUMMED_VARIANCE:
            return (_sum_weights(variance, at) / _total_weight(variance)).clamp(0, 1)
        case GaussianNoise(variance):
            return _integrate_tail(variance, at)
        case _:
            assert_never(noise)


@lru_cache(maxsize=64)
def _total_weight(variance: Fraction) -> Enclosed:
    """The sum of exp(-z**2 / (2 variance)) over all whole numbers z.

    By Poisson's formula it is sqrt(2 pi variance) * (1 + 2 exp(-2 pi**2 variance) + ...), and for a large variance the
    further terms are below 2**-1000.
    """
    if variance <= SUMMED_VARIANCE:
        return 1 + 2 * _sum_weights(variance, 1)
    root = enclose_sqrt(variance) * _enclose_root_of_two_pi()
    return Enclosed(root.low, root.high * (1 + Fraction(1, 1 << 1000)))


@lru_cache(maxsize=1)
def _enclose_root_of_two_pi() -> Enclosed:
    pi = enclose_pi()
    return Enclosed(enclose_sqrt(2 * pi.low).low, enclose_sqrt(2 * pi.high).high)


def _sum_weights(variance: Fraction, start: int) -> Enclosed:
    """The sum of exp(-z**2 / (2 variance)) over z >= start >= 1."""
    depth = math.ceil(math.sqrt(2 * variance * _RELATIVE_BITS)) + 1
    if start <= depth:
        return _tabulate_sums(variance, depth)[start]
    return _sum_between(variance, start, start + depth)[0]


@lru_cache(maxsize=16)
def _tabulate_sums(variance: Fraction, depth: int) -> tuple[Enclosed, ...]:
    """The sums for each start from 0 to depth, in one pass from the far end."""
    return tuple(_sum_between(variance, 0, 2 * depth)[: depth + 1])


def _sum_between(variance: Fraction, start: int, end: int) -> list[Enclosed]:
    """The sums over z >= k for each k from start to end - 1. Beyond the end, a geometric series is a bound."""
    ratio = enclose_exp(-Fraction(2 * end + 1) / (2 * variance))
    rest = enclose_exp(-Fraction(end * end) / (2 * variance)) / (1 - ratio)
    total = Enclosed(Fraction(0), rest.high)
    sums = []
    for at in reversed(range(start, end)):
        total = total + enclose_exp(-Fraction(at * at) / (2 * variance))
        sums.append(total)
    return sums[::-1]


def _integrate_tail(variance: Fraction, at: int) -> Enclosed:
    """The sum over z >= at >= 1 is the integral from at - 1/2, by the midpoint rule.

    The error of the rule is at most an eighth of the integral of the second derivative's size. Beyond one standard
    deviation the density is convex: there the integral is never below the sum.
    """
    square = (Fraction(at) - Fraction(1, 2)) ** 2 / variance
    if square > _FAR**2:
        return _bound_far_tail(square)
    integral = _normal_tail(square)
    density = enclose_exp(-square / 2) / _enclose_root_of_two_pi()
    if square >= 1:
        excess = enclose_sqrt(square) * density / (8 * variance)
        return Enclosed(max((integral - excess).low, Fraction(0)), integral.high)
    error = Fraction(1, 8) / variance  # the second derivative's size integrates to 4 exp(-1/2) / sqrt(2 pi) < 1
    return (integral + Enclosed(-error, error)).clamp(0, 1)


def _bound_far_tail(square: Fraction) -> Enclosed:
    return Enclosed(Fraction(0), enclose_exp(-square / 2).high)


def _normal_tail(square: Fraction) -> Enclosed:
    """P(N > x) of a standard normal N, for x >= 0 with this square: 1/2 - density(x) * (x + x**3/3 + x**5/15 + ...).

    The sum is computed in integers of 2**-512 that are rounded outwards.
    """
    if square == 0:
        return ONE / 2
    one = 1 << _SUM_BITS
    small = one >> _RELATIVE_BITS + math.ceil(square)
    low, high, count = one, one, 0  # the next term
    least, most = 0, 0
    while count < 2 * square or high > small:
        least, most, count = least + low, most + high, count + 1
        divisor = square.denominator * (2 * count + 1)
        low, high = low * square.numerator // divisor, -(-high * square.numerator // divisor)
    most += 2 * high  # from here on, every term is less than half of the one before
    series = Enclosed(Fraction(least, one), Fraction(most, one))
    density = enclose_exp(-square / 2) / _enclose_root_of_two_pi()
    return (Fraction(1, 2) - density * enclose_sqrt(square) * series).clamp(0, 1)
