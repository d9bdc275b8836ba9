"""The standard normal distribution against mpmath."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernel.normal import enclose_root_two_pi, enclose_tail

points = st.fractions(-40, 40, max_denominator=10**9)


def upper_tail(point):
    return mpmath.erfc(mpmath.mpf(point.numerator) / point.denominator / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("bits", [0, 1, 53, 192, 3_000])
def test_root_two_pi_is_enclosed(bits):
    low, high = enclose_root_two_pi(bits)
    with mpmath.workprec(bits + 100):
        assert low <= mpmath.sqrt(2 * mpmath.pi) * 2**bits <= high
    assert high - low <= 2


@given(points, st.integers(0, 400))
def test_the_tail_is_enclosed(point, bits):
    low, high = enclose_tail(point, bits)
    with mpmath.workprec(bits + 3_000):
        assert low <= upper_tail(point) * 2**bits <= high
    assert high - low <= 2


@pytest.mark.parametrize("point", [Fraction(64), Fraction(1000), Fraction(-1000)])
def test_far_tails_are_enclosed(point):
    for bits in (0, 64, 2_048):
        low, high = enclose_tail(point, bits)
        with mpmath.workprec(6_000):
            assert low <= upper_tail(point) * 2**bits <= high
