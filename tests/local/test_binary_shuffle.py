"""Shuffled yes-or-no reports: the bound is never below the truth, and within 5 % of it."""

from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest

import sfumato as sf
from sfumato.local.collect import binary_shuffle
from sfumato.local.collect.binary_shuffle import BinaryBound, _add_laws
from sfumato.local.collect.shuffle import _Bound, find_blanket

TURNED = (Fraction(1, 4), Fraction(1, 20), Fraction(2, 5))


def make_law(yes, no, turned):
    """The number of reported yes, exactly, by multiplying polynomials."""

    def binomial(trials, rate):
        return [comb(trials, value) * rate**value * (1 - rate) ** (trials - value) for value in range(trials + 1)]

    law = [Fraction(0)] * (yes + no + 1)
    for one, first in enumerate(binomial(yes, 1 - turned)):
        for two, second in enumerate(binomial(no, turned)):
            law[one + two] += first * second
    return law


def measure_delta(turned, people, growth):
    """The true delta: the greatest, over all answers of the others and both directions, of the sum of what exceeds."""
    worst = Fraction(0)
    for yes in range(people):
        law = make_law(yes, people - 1 - yes, turned)
        own = {}
        for rate in (turned, 1 - turned):
            own[rate] = [
                (law[number - 1] * rate if number else 0) + (law[number] * (1 - rate) if number < people else 0)
                for number in range(people + 1)
            ]
        for one, two in ((turned, 1 - turned), (1 - turned, turned)):
            pairs = zip(own[one], own[two], strict=True)
            worst = max(worst, sum(max(first - growth * second, Fraction(0)) for first, second in pairs))
    return worst


@pytest.mark.parametrize("turned", TURNED, ids=str)
@pytest.mark.parametrize("people", [1, 2, 3, 10, 32])
def test_the_bound_is_the_true_delta_where_people_are_few(turned, people):
    bound = BinaryBound.prepare(turned, people, 1e-6)
    for epsilon in (0.0, 0.05, 0.3, 1.0, 2.0):
        true = measure_delta(turned, people, Fraction(exp(epsilon)))
        assert true * (1 - Fraction(1, 10**9)) <= Fraction(bound.delta(epsilon))
        assert Fraction(bound.delta(epsilon)) <= true * (1 + Fraction(1, 10**6)) + Fraction(1, 10**18)


@pytest.mark.parametrize("people", [50, 90])
def test_a_block_stands_for_all_numbers_in_it(people):
    bound = BinaryBound.prepare(Fraction(1, 4), people, 1e-6)
    assert len(bound.blocks) == binary_shuffle.BLOCKS
    for epsilon in (0.1, 0.5):
        true = measure_delta(Fraction(1, 4), people, Fraction(exp(epsilon)))
        assert true * (1 - Fraction(1, 10**9)) <= Fraction(bound.delta(epsilon))


def test_a_turned_answer_that_is_claimed_too_often_is_noticed():
    bound, epsilon = BinaryBound.prepare(Fraction(27, 100), 33, 1e-6), 0.3
    assert measure_delta(Fraction(1, 4), 33, Fraction(exp(epsilon))) > bound.delta(epsilon)


def solve(measure, local, delta):
    low, high = 0.0, local
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if measure(middle) <= delta else (middle, high)
    return high


def measure_some(turned, people, delta):
    """A lower bound on the true epsilon: three of the others' possible answers, and nobody is left out."""
    rate = float(turned)
    blocks = [_add_laws(yes, people - 1 - yes, rate, delta) for yes in (0, people // 2, people - 1)]
    below = [binary_shuffle.Others(block.lower, block.upper, 0.0, block.everything) for block in blocks]
    return lambda epsilon: max(block.bound_delta(rate, exp(epsilon)) for block in below)


@pytest.mark.parametrize("epsilon", [0.2, 1, 3])
@pytest.mark.parametrize("people", [500, 20_000, 1_000_000])
@pytest.mark.parametrize("delta", [1e-6, 1e-10])
def test_epsilon_is_within_five_percent_of_the_truth(epsilon, people, delta):
    randomiser = sf.local.randomiser("rr", epsilon=epsilon)
    blanket, _ = find_blanket(randomiser)
    at_least = solve(measure_some(blanket.low / 2, people, delta), epsilon, delta)
    bound = float(sf.local.bound_shuffling(randomiser, people, delta).epsilon)
    assert at_least <= bound <= 1.05 * at_least
    if people == 20_000 and epsilon == 3:
        assert solve(_Bound.prepare(blanket, people, delta).delta, epsilon, delta) > 1.2 * bound  # the blanket's


def test_a_transform_of_tilted_laws_equals_the_sum_term_by_term(monkeypatch):
    for yes, no, delta in ((40_000, 60_000, 1e-6), (0, 100_000, 1e-12), (100_000, 0, 1e-3)):
        direct = _add_laws(yes, no, 0.25, delta)
        assert direct.everything
        with monkeypatch.context() as patch:
            patch.setattr(binary_shuffle, "MOST_TERMS", 0)
            tilted = _add_laws(yes, no, 0.25, delta)
        assert not tilted.everything
        assert (tilted.lower <= tilted.upper).all()
        for epsilon in np.linspace(0.004, 0.03, 14):
            exact, near = (law.bound_delta(0.25, exp(epsilon)) for law in (direct, tilted))
            if 1e-4 * delta < exact < 1e4 * delta and near < 1:
                assert near == pytest.approx(exact, rel=1e-4)
        crossing = solve(lambda epsilon, law=tilted: law.bound_delta(0.25, exp(epsilon)), 1.0, delta)
        assert crossing == pytest.approx(
            solve(lambda epsilon, law=direct: law.bound_delta(0.25, exp(epsilon)), 1.0, delta), rel=1e-6
        )
