"""The standard normal distribution: enclosures of its tail by integer interval arithmetic."""

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from sfumato.kernel.exact import Enclosure, enclose_exp_neg


@lru_cache(maxsize=64)
def enclose_root_two_pi(bits: int) -> Enclosure:
    """Integers (low, high) with low <= 2**bits * sqrt(2 pi) <= high.

    Claim: K-70. The enclosure holds for every bits >= 0; its width is at most 2.
    Relies on: Python's unbounded integers.
    Checked by: tests/kernel/test_normal.py::test_root_two_pi_is_enclosed
    """
    work = bits + 32
    # Machin: pi = 16 arctan(1/5) - 4 arctan(1/239)
    pi = (16 * _sum_arctan(5, work + 32) - 4 * _sum_arctan(239, work + 32)) >> 32
    low, high = (isqrt(2 * ends << work) >> (work - bits) for ends in (pi - 1, pi + 2))
    return low, high + 1


def _sum_arctan(inverse: int, work: int) -> int:
    """About 2**work * arctan(1 / inverse): each of the terms is rounded down, so it is off by their number at most."""
    power, total, count = (1 << work) // inverse, 0, 0
    while power:
        total += (-1) ** count * (power // (2 * count + 1))
        power //= inverse**2
        count += 1
    return total


def enclose_tail(point: Fraction, bits: int) -> Enclosure:
    """Integers (low, high) with low <= 2**bits * P(N >= point) <= high, for a standard normal N.

    Claim: K-70. The enclosure holds for every rational point and every bits >= 0, and closes in as bits grow.
    Relies on: K-01 (e^-x); enclose_root_two_pi.
    Checked by: tests/kernel/test_normal.py::test_the_tail_is_enclosed
    """
    if point < 0:
        low, high = enclose_tail(-point, bits)
        return (1 << bits) - high, (1 << bits) - low
    if point * point >= 2 * bits:
        return 0, 1  # P(N >= x) <= e^(-x^2/2) <= e^-bits
    # P(0 <= N < x) = e^(-x^2/2)/sqrt(2 pi) * (x + x^3/3 + x^5/(3 5) + ...): no term is negative
    rise = int(point * point) + 8  # the sum is below 2**rise
    work = bits + 2 * rise + 32
    x_low = (point.numerator << work) // point.denominator
    x_high = x_low + 1
    low, high = _sum_odd_powers(x_low, work)[0], _sum_odd_powers(x_high, work)[1]
    exp_low, exp_high = enclose_exp_neg(point * point / 2, work)
    root_low, root_high = enclose_root_two_pi(work)
    below_low, below_high = low * exp_low // root_high, high * exp_high // root_low + 1
    half = 1 << (work - 1)
    return max(half - below_high, 0) >> (work - bits), -(-max(half - below_low, 0) >> (work - bits))


def _sum_odd_powers(point: int, work: int) -> Enclosure:
    """Enclose 2**work * sum over n of x^(2n+1)/(1 3 5 ... (2n+1)), for x = point / 2**work."""
    square = point * point >> work
    term, total, count, whole = point, 0, 0, square >> work
    while term or count <= whole:  # beyond, each term is less than half of the one before
        total += term
        count += 1
        term = (term * square >> work) // (2 * count + 1)
    return total, total + ((count + 2) ** 2 << 2 * whole + 5)
