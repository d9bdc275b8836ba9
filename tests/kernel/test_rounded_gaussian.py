"""Rounded Gaussian noise: the exponent is the one of the law, and every decision is the exact one."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scripted import Exhausted, Scripted

from sfumato.errors import KernelFault
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import enclose_exp_neg
from sfumato.kernel.rounded_gaussian import _find_exponent, _keep, _settle, rounded_gaussian
from sfumato.kernel.samplers import GREATEST_SCALE, LEAST_SCALE

VARIANCES = [Fraction(1, 2048), Fraction(1, 3), Fraction(1), Fraction(100), Fraction(10**20, 3)]
variances = st.fractions(Fraction(1, 2048), 10**6)


def find_scale(variance):
    return int(mpmath.floor(mpmath.sqrt(mpmath.floor(mpmath.mpf(variance.numerator) / variance.denominator)))) + 1


@example(Fraction(3), 2, Fraction(-1, 2))  # the exponent is 0
@given(variances, st.integers(0, 5_000), st.fractions(Fraction(-1, 2), Fraction(1, 2)))
def test_the_exponent_completes_the_law(variance, step, position):
    """P(Y = y) e^-exponent is proportional to the density of the Gaussian at the place: one constant for all."""
    scale = find_scale(variance)
    away = abs(step + position)
    exponent = _find_exponent(away, step, variance, scale)
    constant = Fraction(step, scale) + exponent - away**2 / (2 * variance)
    assert constant == _find_exponent(Fraction(0), 0, variance, scale)
    assert exponent >= 0
    assert exponent <= _find_exponent(away + 1, step, variance, scale)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(30)])
def test_the_mass_is_that_of_the_rounded_gaussian(variance):
    """Every position and coin of six bits is tried: P(Y = y) P(keep | y) encloses the mass of the cell."""
    scale, bits = find_scale(variance), 6
    size = 1 << bits
    deviation = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
    for step in range(4):
        kept = undecided = 0
        for position in range(size):
            for coin in range(size):
                try:
                    kept += _settle(step, (position, coin, bits), variance, scale, Scripted([]))
                except Exhausted:
                    undecided += 1
        low, high = Fraction(kept, size**2), Fraction(kept + undecided, size**2)
        assert undecided < 5 * size
        cell = mpmath.ncdf((step + 0.5) / deviation) - mpmath.ncdf((step - 0.5) / deviation)
        constant = _find_exponent(Fraction(0), 0, variance, scale)
        exponent = mpmath.mpf(step) / scale - mpmath.mpf(constant.numerator) / constant.denominator
        wanted = cell * deviation * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(exponent)
        assert low <= wanted <= high
        assert not low <= wanted * 1.05 + 0.06 <= high  # another law would be seen


@pytest.mark.parametrize("known", [(1, 0, 1), (1, 1, 1), (0, 0, 1)])
def test_a_decision_holds_for_the_whole_cell(known):
    """Within half a step the exponent goes from nearly 1/2 to 256: one bit decides nothing, at either end."""
    with pytest.raises(Exhausted):
        _settle(0, known, Fraction(1, 2048), 1, Scripted([]))


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_floats_decide_as_exact_numbers_do(variance):
    """At words around the edge, and at random ones, the float decision is that of `_settle`."""
    scale = find_scale(variance)
    generator = np.random.default_rng(7)
    steps = [0, 1, 2, 3 * scale, 8 * scale, 40 * scale]
    for step in steps:
        for position in (0, 1, 1 << 31, (1 << 32) - 1, *map(int, generator.integers(0, 1 << 32, 6))):
            ends = [abs(step + Fraction(place, 1 << 32) - Fraction(1, 2)) for place in (position, position + 1)]
            edge = enclose_exp_neg(_find_exponent(min(ends), step, variance, scale), 32)[0]
            near = {edge - (1 << 12), edge - 1, edge, edge + 1, edge + (1 << 12), edge // 2, int(edge * 1.001) + 8}
            for coin in (word for word in near if 0 <= word < 1 << 32):
                more = bytes(generator.integers(0, 256, 64, np.uint8))
                words = position.to_bytes(4, "little") + coin.to_bytes(4, "little") + more
                found = _keep(np.array([step]), variance, scale, Scripted(words))[0]
                assert found == _settle(step, (position, coin, 32), variance, scale, Scripted(more))


def test_each_undecided_draw_gets_its_own_bytes():
    """Two draws at their edge: the first takes the first two bytes, the second the next two."""
    variance, scale = Fraction(1), 2
    words = np.array([0, 0], "<u4").tobytes()
    exponent = _find_exponent(Fraction(1, 2), 0, variance, scale)
    edge = enclose_exp_neg(exponent, 32)[0].to_bytes(4, "little")
    high, low = bytes([255, 0]), bytes([0, 255])
    found = _keep(np.array([0, 0]), variance, scale, Scripted(words + edge + edge + high + low + bytes(64)))
    assert found.tolist() == [True, False]


@pytest.mark.parametrize("variance", [LEAST_SCALE / 2 - Fraction(1, 10**9), GREATEST_SCALE**2 / 2])
def test_variances_outside_are_refused(variance):
    with pytest.raises(KernelFault):
        rounded_gaussian(variance, 1, SYSTEM)


@pytest.mark.parametrize("size", [0, 1, 7, 40_000])
def test_any_size(size):
    assert rounded_gaussian(Fraction(5), size, SYSTEM).shape == (size,)
