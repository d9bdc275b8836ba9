"""Enclosures hold the true number, and stay narrow."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.distributions.enclosed import Enclosed, enclose_exp, enclose_pi, enclose_sqrt
from sfumato.lab.distributions.noise_masses import mass, tail_from


def holds(enclosed, truth):
    low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (enclosed.low, enclosed.high))
    return low <= truth <= high and high - low <= mpmath.mpf(10) ** -50 * abs(truth)


def real(number):
    return mpmath.mpf(number.numerator) / number.denominator


@given(st.fractions(-40, 40, max_denominator=10**6))
def test_exponentials_are_enclosed(exponent):
    with mpmath.workprec(400):
        assert exponent == 0 or holds(enclose_exp(exponent), mpmath.exp(real(exponent)))


def test_roots_and_pi_are_enclosed():
    with mpmath.workprec(400):
        assert holds(enclose_pi(), mpmath.pi)
        assert holds(enclose_sqrt(Fraction(22, 7)), mpmath.sqrt(real(Fraction(22, 7))))


@given(*(st.fractions(-5, 5, max_denominator=100) for _ in range(2)))
def test_arithmetic_of_points_is_exact(first, second):
    one, two = Enclosed(first, first), Enclosed(second, second)
    assert (one + two, one - two, one * two) == tuple(
        Enclosed(value, value) for value in (first + second, first - second, first * second)
    )
    if second:
        assert one / two == Enclosed(first / second, first / second)


def test_what_may_be_zero_does_not_divide():
    with pytest.raises(InvalidParameter):
        1 / Enclosed(Fraction(-1), Fraction(1))
    with pytest.raises(InvalidParameter):
        Enclosed(Fraction(1), Fraction(0))


def gaussian_weight(variance, at):
    return mpmath.exp(-mpmath.mpf(at * at) / (2 * real(variance)))


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1), Fraction(5), Fraction(4096)], ids=str)
def test_gaussian_masses_and_tails_are_sums(variance):
    noise = GaussianNoise(variance)
    with mpmath.workprec(400):
        reach = int(40 * mpmath.sqrt(real(variance))) + 20
        weights = [gaussian_weight(variance, at) for at in range(reach)]
        total = weights[0] + 2 * sum(weights[1:])
        for at in (0, 1, 3):
            assert holds(mass(noise, at), weights[at] / total)
            assert holds(mass(noise, -at), weights[at] / total)
            assert holds(tail_from(noise, at + 1), sum(weights[at + 1 :]) / total)
            assert holds(tail_from(noise, -at), 1 - sum(weights[at + 1 :]) / total)


@pytest.mark.parametrize("at", [1, 30, 66, 100, 300, 900, 2000], ids=str)
def test_integrated_tails_hold_the_sum(at):
    """Just above the variance up to which tails are summed: the integral's enclosure must hold the sum."""
    variance = Fraction(4097)
    with mpmath.workprec(300):
        weights = [gaussian_weight(variance, z) for z in range(3000)]
        truth = sum(weights[at:]) / (weights[0] + 2 * sum(weights[1:]))
        found = tail_from(GaussianNoise(variance), at)
        assert real(found.low) <= truth <= real(found.high)
        assert at > 900 or real(found.width) < truth * mpmath.mpf("0.02")


def test_laplace_tails_are_sums():
    noise = LaplaceNoise(Fraction(3, 2))
    with mpmath.workprec(400):
        x = mpmath.exp(-real(Fraction(2, 3)))
        for at in (-4, 0, 1, 7):
            truth = x**at / (1 + x) if at >= 1 else 1 - x ** (1 - at) / (1 + x)
            assert holds(tail_from(noise, at), truth)
            assert holds(mass(noise, at), (1 - x) / (1 + x) * x ** abs(at))
