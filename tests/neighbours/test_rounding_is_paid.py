"""Random neighbouring vectors of floats: on the grid, their distance is at most what the noise is scaled to."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.number_arrays import read_numbers
from sfumato.standalone.mechanisms import additive_noise
from sfumato.standalone.mechanisms.additive_noise import choose_grid_and_noise
from sfumato.standalone.mechanisms.value_grid import to_grid

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


def on_integers(mechanism):
    """The noise for one whole number."""
    exponent, noise = choose_grid_and_noise(replace(mechanism.mechanism, of="integers"), 1)
    assert exponent == 0
    return noise


def on_grid(mechanism, size):
    """The grid's exponent, and the noise for so many reals."""
    return choose_grid_and_noise(replace(mechanism.mechanism, of="reals"), size)


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
    exponent, noise = on_grid(sf.Laplace(1, epsilon), size)
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
    exponent, noise = on_grid(sf.Gaussian(1, rho), size)
    one, two = neighbours(case, exponent, lambda moves: Fraction(float(l2_squared(moves)) ** 0.5) + Fraction(1, 10**9))
    if l2_squared(apart(one, two)) <= 1:
        steps = to_grid(np.array(one), exponent) - to_grid(np.array(two), exponent)
        moved = sum(int(step) ** 2 for step in steps)
        assert Fraction(moved) / (2 * noise.variance) <= Fraction(rho)


def test_unpaid_rounding_would_be_seen():
    """Negative control: a pair whose distance on the grid exceeds the plain sensitivity in steps."""
    exponent, noise = on_grid(sf.Laplace(1, 1), 1)
    step = 2.0**exponent
    one = np.array([np.nextafter(0.5 * step, 0)])
    two = one + 1
    moved = int(np.abs(to_grid(two, exponent) - to_grid(one, exponent))[0])
    assert moved > 1 / step
    assert Fraction(moved) / noise.scale <= 1


@pytest.mark.parametrize("size", [1, 10, 1000, 10**6])
def test_rounding_costs_next_to_nothing(size):
    """For vectors of any length, the rounding widens the noise by less than 0.1 %."""
    for epsilon in ("0.1", "1", "10"):
        exponent, noise = on_grid(sf.Laplace(1, epsilon), size)
        assert noise.scale * Fraction(2) ** exponent <= Fraction(1001, 1000) / Fraction(epsilon)
        exponent, gaussian = on_grid(sf.Gaussian(1, epsilon), size)
        assert gaussian.variance * Fraction(2) ** (2 * exponent) <= Fraction(1002, 1000) / (2 * Fraction(epsilon))


@given(
    st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6).map(lambda n: n + 0.5),
    st.floats(0, 1) | st.sampled_from([0.0, 1.0, np.nextafter(1, 0)]),
    st.sampled_from([1, 7, 1000, Fraction(5, 2), Fraction(1, 3)]),
)
def test_rounding_one_number_to_the_integers_is_free(value, part, sensitivity):
    """Two numbers at most the sensitivity apart are at most its ceiling apart when rounded: what the noise pays for."""
    mechanism = sf.Laplace(sensitivity, 1, of="integers")
    other = Fraction(value) + Fraction(part) * Fraction(sensitivity)
    steps = int(to_grid(read_numbers([other]).flat, 0)[0] - to_grid(read_numbers([value]).flat, 0)[0])
    assert Fraction(abs(steps)) / on_integers(mechanism).scale <= 1
    assert Fraction(steps) ** 2 / (2 * on_integers(sf.Gaussian(sensitivity, 1, of="integers")).variance) <= 1


@pytest.mark.parametrize("size", [2, 1000])
def test_rounding_a_vector_to_the_integers_is_not_free(size):
    """Negative control: so a vector that is not declared whole is not rounded to the integers before its noise."""
    one, two = np.full(size, 0.5), np.full(size, 0.5 - 0.9 / size)  # less than 1 apart
    rounded = int(np.abs(to_grid(one, 0) - to_grid(two, 0)).sum())
    assert rounded == size > on_integers(sf.Laplace(1, 1)).scale
    exponent, noise = on_grid(sf.Laplace(1, 1), size)
    assert Fraction(int(np.abs(to_grid(one, exponent) - to_grid(two, exponent)).sum())) / noise.scale <= 1
    seen = []
    entropy = SYSTEM
    for value in (one, two):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(additive_noise, "add_saturating", lambda steps, noise: seen.append(steps) or steps)
            additive_noise.release_on_grid(sf.Laplace(1, 1).mechanism, value, entropy)
    _, added = choose_grid_and_noise(sf.Laplace(1, 1).mechanism, size)  # the noise that release_on_grid adds
    assert Fraction(int(np.abs(seen[0] - seen[1]).sum())) / added.scale <= 1
