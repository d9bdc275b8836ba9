"""The low bits of value + Laplace noise in floats distinguish 0 from 1. This attack must fail on Sfumato."""

from fractions import Fraction

import numpy as np

import sfumato as sf
from sfumato.standalone.mechanisms.additive_noise import choose_grid_and_noise

DRAWS = 200_000


def guesses_one(released):
    """Near zero, doubles are finer than 2**-53; but 1 + noise, where noise is near -1, is always a multiple of that."""
    return released * 2.0**53 == np.floor(released * 2.0**53)


def success(release):
    """How often the attacker is right about outputs near zero, and on how many outputs it guessed."""
    from_zero, from_one = release(0.0), release(1.0)
    near_zero, near_one = from_zero[np.abs(from_zero) < 1 / 64], from_one[np.abs(from_one) < 1 / 64]
    right = (~guesses_one(near_zero)).sum() / near_zero.size, guesses_one(near_one).sum() / near_one.size
    return right, near_zero.size + near_one.size


def test_the_attack_succeeds_against_textbook_noise():
    generator = np.random.default_rng()
    (zero, one), tries = success(lambda value: value + generator.laplace(0, 1, DRAWS))
    assert tries > 1000
    assert one == 1.0  # every release of 1 is recognised
    assert zero > 0.95  # nearly every release of 0 is known not to be one: far beyond e / (1 + e) = 0.73


def test_the_attack_fails_against_ours():
    mechanism = sf.Laplace(sensitivity=1, epsilon=1, of="reals")
    (zero, one), tries = success(lambda value: mechanism.release(np.full(DRAWS, value)))
    assert tries > 1000
    assert zero + one < 1.01  # no better than always saying the same: on the grid, all low bits look alike


def test_every_output_is_on_the_grid_and_possible_under_both():
    """For every value, the set of possible outputs is the same: all multiples of the grid."""
    mechanism = sf.Laplace(sensitivity=1, epsilon=1, of="reals")
    exponent, _ = choose_grid_and_noise(mechanism.mechanism, DRAWS)
    assert exponent >= -53
    released = np.concatenate([mechanism.release(np.full(DRAWS, value)) for value in (0.0, 1.0)])
    steps = released / 2.0**exponent
    assert (steps == np.floor(steps)).all()
    for value in (0.0, 1.0, 0.123456789):
        for output in released[::20_000]:
            noise = Fraction(float(output)) / Fraction(2) ** exponent - round(Fraction(value) / Fraction(2) ** exponent)
            assert noise.denominator == 1  # an integer number of steps: positive probability under every value
