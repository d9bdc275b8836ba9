from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accuracy.noise_margins import (
    SUMMED_DEVIATION,
    compute_gaussian_margin,
    compute_laplace_margin,
    compute_noise_margin,
    compute_rounded_margin,
    find_miss_per_coordinate,
    round_up_to_float,
)
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise

scales = st.fractions(min_value=Fraction(1, 50), max_value=10**9).filter(bool)
chances = st.fractions(min_value=Fraction(1, 10**15), max_value=1 - Fraction(1, 10**9)).filter(lambda c: 0 < c < 1)


def upper_tail(scale, k):
    """P(Z >= k) for k >= 1."""
    x = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return x**k / (1 + x)


@given(scales, chances)
def test_laplace_margin_is_the_least(scale, miss):
    k = compute_laplace_margin(scale, miss)
    with mpmath.workprec(300):
        wanted = mpmath.mpf(miss.numerator) / miss.denominator
        assert 2 * upper_tail(scale, k + 1) <= wanted
        assert k == 0 or 2 * upper_tail(scale, k) > wanted
        assert k <= mpmath.mpf(scale.numerator) / scale.denominator * mpmath.log(1 / wanted) + mpmath.mpf(1) / 2


@given(chances, st.integers(1, 10**7))
def test_per_coordinate_is_never_too_lax(miss, size):
    miss_per_coordinate = find_miss_per_coordinate(miss, size)
    with mpmath.workprec(400):
        missed = 1 - (1 - mpmath.mpf(miss_per_coordinate.numerator) / miss_per_coordinate.denominator) ** size
        wanted = mpmath.mpf(miss.numerator) / miss.denominator
        assert missed <= wanted * (1 + mpmath.mpf(10) ** -60)  # mpmath's own rounding
        assert missed >= wanted * (1 - mpmath.mpf(10) ** -9)
    assert size > 1 or miss_per_coordinate == miss


def gaussian_beyond(variance, k):
    """P(|Z| > k), summed term by term with 50 digits."""
    with mpmath.workprec(170):
        v = 2 * mpmath.mpf(variance.numerator) / variance.denominator
        reach = int(mpmath.sqrt(v) * 20) + 10
        mass = [mpmath.exp(-(mpmath.mpf(z) ** 2) / v) for z in range(reach)]
        return 2 * mpmath.fsum(mass[k + 1 :]) / (mass[0] + 2 * mpmath.fsum(mass[1:]))


@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1), Fraction(7, 3), Fraction(100), Fraction(10**4)], ids=str
)
@pytest.mark.parametrize("miss", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6), Fraction(1, 10**12)], ids=str)
def test_gaussian_margin_suffices(variance, miss):
    k = compute_gaussian_margin(variance, miss)
    assert gaussian_beyond(variance, k) <= float(miss)
    assert k == 0 or gaussian_beyond(variance, k - 1) > float(miss) * (1 - 1e-8)


@pytest.mark.parametrize(
    "miss", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**7), Fraction(1, 10**11)], ids=str
)
def test_gaussian_margins_agree_where_the_two_ways_meet(miss):
    """Just below and just above the deviation where summing stops."""
    below = compute_gaussian_margin(Fraction(SUMMED_DEVIATION**2), miss)
    above = compute_gaussian_margin(Fraction(SUMMED_DEVIATION**2) + Fraction(1, 10**6), miss)
    assert below <= above <= below * (1 + 2e-3) + 2


def test_gaussian_margin_for_vast_variances():
    for variance in (Fraction(1 << 60), Fraction(1 << 110)):
        for miss in (Fraction(1, 20), Fraction(1, 10**40)):
            margin = compute_gaussian_margin(variance, miss)
            with mpmath.workprec(200):
                ideal = mpmath.sqrt(2 * variance.numerator) * mpmath.erfinv(
                    1 - mpmath.mpf(miss.numerator) / miss.denominator
                )
            assert ideal <= margin + 1
            assert margin <= float(ideal) * 1.0001 + 2
    assert 37 < compute_gaussian_margin(Fraction(1), Fraction(1, 10**301)) < 39
    assert 45 < compute_gaussian_margin(Fraction(1), Fraction(1, 10**450)) < 48


def test_margins_follow_the_noise():
    miss = Fraction(1, 20)
    assert compute_noise_margin(LaplaceNoise(Fraction(30)), miss) == compute_laplace_margin(Fraction(30), miss) == 90
    assert (
        compute_noise_margin(GaussianNoise(Fraction(900)), miss) == compute_gaussian_margin(Fraction(900), miss) == 59
    )
    assert compute_noise_margin(GaussianNoise(Fraction(900), rounded=True), miss) == 59


@given(st.fractions(Fraction(1, 100), 10**9), chances)
def test_rounded_margins_are_the_least(variance, miss):
    k = compute_rounded_margin(variance, miss)
    deviation = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
    with mpmath.workprec(400):
        wanted = mpmath.mpf(miss.numerator) / miss.denominator
        assert 2 * mpmath.ncdf(-(k + 0.5) / deviation) <= wanted * (1 + mpmath.mpf(10) ** -12)
        assert k == 0 or 2 * mpmath.ncdf(-(k - 0.5) / deviation) >= wanted * (1 - mpmath.mpf(10) ** -12)


@given(st.integers(0, 1 << 200) | st.fractions(0, 10**9))
def test_floats_are_rounded_up(value):
    assert Fraction(round_up_to_float(value)) >= value
    assert round_up_to_float(value) <= float(value) * (1 + 2**-50)
