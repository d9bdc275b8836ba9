"""Margins of choices among bins hold in the worst case, and are not much wider than necessary."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from bin_flips import REST, choose_one, compute_flip_law_in_floats, compute_top_law, flips_of, make_cell

from sfumato.accuracy.choice_margins import compute_bin_margin, compute_least_difference
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.neighbours import Neighbours

ADD = Neighbours.ADD_REMOVE
HALF, QUARTERS = (Fraction(1, 2),), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999"])
@pytest.mark.parametrize("fractions", [HALF, QUARTERS], ids=len)
def test_quantile_margin_holds(confidence, fractions):
    """The worst case: all weight in one bin, the other bins just beyond the margin. It nearly reaches the bound."""
    choice = QuantileChoice(fractions, 150, 1, ADD, False, Decimal("0.2"))
    margin = compute_bin_margin(choice, confidence)
    miss = 1 - float(confidence)

    def bad(weights):
        good = 1.0
        for fraction, flips in zip(fractions, flips_of(choice, weights), strict=True):
            near = np.array([float(x * choice.spread) <= margin for x in flips])
            good *= compute_flip_law_in_floats(flips)[near].sum()
            assert near.any(), fraction
        return 1 - good

    least = min(min(fraction, 1 - fraction) for fraction in fractions)
    just_beyond = math.floor(margin / least) + 1
    rest = [0] * 149
    assert bad(make_cell(just_beyond, *rest)) <= miss * (1 + 1e-6)
    for weights in (
        make_cell(*[3] * 150),
        make_cell(1, *[0] * 148, just_beyond),
        make_cell(*range(150)),
        make_cell(*rest, 0),
    ):
        assert bad(weights) <= miss * (1 + 1e-6)
    if fractions is HALF:  # a fifth less would not hold, where the rank lies between two bins and all others are empty
        narrow, margin = math.ceil(0.8 * margin), 0.8 * margin - 1
        assert bad(make_cell(narrow, narrow, *rest[1:])) > miss


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999"])
def test_extreme_margin_holds(confidence):
    """One heavy bin outside, with more weight than the margin: it is missed with probability at most 1 - confidence."""
    choice = ExtremeChoice(True, 8, 1, ADD, Decimal("0.1"))
    margin = int(compute_bin_margin(choice, confidence))
    x = math.exp(-float(choice.epsilon))
    rate, target = float(1 / choice.spread), choice.target

    def passed_by(weight):
        noise = np.arange(4000)
        tails = -np.expm1(-rate * np.maximum(0, target + noise - weight))
        return ((1 - x) * x**noise * tails).sum()

    assert passed_by(margin + 1) <= 1 - float(confidence)
    assert passed_by(margin) > 1 - float(confidence)
    assert choose_one(ExtremeChoice(True, 1, 1, ADD, Decimal(1)), make_cell(0)) == 0


def test_counts_with_noise_beat_peeling():
    """Why every bin gets noise: its margin hardly grows with k. The margin of k choices at epsilon/k does."""
    single = compute_bin_margin(ModeChoice(1, 1000, 1, ADD, Decimal(1)))
    for k in (2, 5, 20):
        peeled = compute_bin_margin(ModeChoice(1, 1000, 1, ADD, Decimal(1) / k))
        assert compute_bin_margin(ModeChoice(k, 1000, 1, ADD, Decimal(1))) < peeled
    assert single < compute_bin_margin(ModeChoice(2, 1000, 1, ADD, Decimal(1))) < 2 * single


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.99"])
def test_mode_margin_holds(confidence):
    miss = 1 - float(confidence)
    choice = ModeChoice(1, 100, 1, ADD, Decimal("0.5"))
    gap = math.floor(compute_bin_margin(choice, confidence)) + 1
    (flips,) = flips_of(choice, make_cell(gap, *[0] * 99))
    assert compute_flip_law_in_floats(flips)[0] >= 1 - miss
    x, k = 0.5, 2
    mass = (1 - x) / (1 + x) * x ** np.abs(np.arange(-REST, REST + 1))
    margin = compute_least_difference(1 / Fraction(math.log(2)), Fraction(miss) / (k * 2)) - 1
    for weights in product((0, 1, margin, margin + 1, margin + 2), repeat=3):
        law, fullest = compute_top_law(weights, mass, k), sorted(weights, reverse=True)
        bad = sum(
            law[9 * i + 3 * j]
            for i, j in product(range(3), repeat=2)
            if i != j and (weights[i] < fullest[0] - margin or weights[j] < fullest[1] - margin)
        )
        assert bad <= miss


def test_least_difference_is_the_least():
    x = 0.9
    mass = (1 - x) / (1 + x) * x ** np.abs(np.arange(-600, 601))
    differences = np.convolve(mass, mass[::-1])
    for chance in (0.4, 0.1, 0.01, 1e-6):
        n = compute_least_difference(1 / Fraction(-math.log(x)), Fraction(chance))
        assert differences[1200 + n :].sum() <= chance < differences[1200 + n - 1 :].sum()
