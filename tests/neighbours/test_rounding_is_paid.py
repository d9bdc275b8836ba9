"""Random neighbouring vectors of floats: on the grid they are never further apart than what the noise pays for."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.kernel.grid import to_grid

shares = st.integers(1, 12).flatmap(
    lambda size: st.tuples(
        st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size),
        st.lists(st.fractions(-1, 1, max_denominator=1000), min_size=size, max_size=size),
        st.lists(st.booleans(), min_size=size, max_size=size),
    )
)


def neighbours(case, exponent, norm):
    """Two vectors at most 1 apart in the norm; entries may sit just beside the points where rounding jumps."""
    values, moves, beside = case
    length = norm(moves)
    one, two = [], []
    for start, move, close in zip(values, moves, beside, strict=True):
        value = start
        if close:
            edge = float(np.floor(start / 2.0**exponent) + 0.5) * 2.0**exponent
            value = float(np.nextafter(edge, np.inf if move < 0 else -np.inf))
        step = move / length if length > 1 else move
        one.append(value)
        two.append(float(Fraction(value) + step))
    return one, two


def apart(one, two):
    return [abs(Fraction(a) - Fraction(b)) for a, b in zip(one, two, strict=True)]


def l1(moves):
    return sum(abs(move) for move in moves)


def l2_squared(moves):
    return sum(move * move for move in moves)


@settings(max_examples=300, deadline=None)
@given(shares, st.sampled_from(["0.01", "1", "30"]))
def test_l1_distance_on_the_grid(case, epsilon):
    size = len(case[0])
    exponent, noise = sf.Laplace(1, epsilon).on_grid(size)
    one, two = neighbours(case, exponent, l1)
    distance = l1(apart(one, two))
    steps = np.abs(to_grid(np.array(one), exponent) - to_grid(np.array(two), exponent))
    moved = int(steps.sum())
    assert moved <= distance / Fraction(2) ** exponent + size
    # and the noise covers it: moved / scale <= epsilon whenever the vectors are neighbours
    if distance <= 1:
        assert moved / noise.scale <= Fraction(epsilon)


@settings(max_examples=300, deadline=None)
@given(shares, st.sampled_from(["0.001", "0.5", "10"]))
def test_l2_distance_on_the_grid(case, rho):
    size = len(case[0])
    exponent, noise = sf.Gaussian(1, rho).on_grid(size)
    one, two = neighbours(case, exponent, lambda moves: Fraction(float(l2_squared(moves)) ** 0.5) + Fraction(1, 10**9))
    if l2_squared(apart(one, two)) <= 1:
        steps = to_grid(np.array(one), exponent) - to_grid(np.array(two), exponent)
        moved = sum(int(step) ** 2 for step in steps)
        assert Fraction(moved) / (2 * noise.variance) <= Fraction(rho)


def test_unpaid_rounding_would_be_seen():
    """Negative control: a pair whose distance on the grid exceeds the plain sensitivity in steps."""
    exponent, noise = sf.Laplace(1, 1).on_grid(1)
    step = 2.0**exponent
    one = np.array([np.nextafter(0.5 * step, 0)])
    two = one + 1
    moved = int(np.abs(to_grid(two, exponent) - to_grid(one, exponent))[0])
    assert moved > 1 / step
    assert Fraction(moved) / noise.scale <= 1


@pytest.mark.parametrize("size", [1, 10, 1000, 10**6])
def test_rounding_costs_next_to_nothing(size):
    """However long the vector, paying for the rounding widens the noise by less than one part in a thousand."""
    for epsilon in ("0.1", "1", "10"):
        exponent, noise = sf.Laplace(1, epsilon).on_grid(size)
        assert noise.scale * Fraction(2) ** exponent <= Fraction(1001, 1000) / Fraction(epsilon)
        exponent, gaussian = sf.Gaussian(1, epsilon).on_grid(size)
        assert gaussian.variance * Fraction(2) ** (2 * exponent) <= Fraction(1002, 1000) / (2 * Fraction(epsilon))
