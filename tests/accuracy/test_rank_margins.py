"""Margins of quantiles in rank, against the exact law of the choice for many lists of weights."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.accuracy.rank_margins import compute_even_rank_margin, compute_rank_margin
from sfumato.kernel.bin_choice import rank_misses

HALF = Fraction(1, 2)


def chance_of_missing(weights, fraction, spread, margin):
    """P(the chosen bin's ranks are further than `margin` from the wanted rank), by the law of permute-and-flip."""
    weights = np.array(weights, np.int64)
    upto = weights.cumsum()
    rank = float(fraction) * upto[-1]
    misses = np.maximum(np.maximum(upto - weights - rank, rank - upto), 0)
    below = rank_misses(weights[np.newaxis], fraction)[0] / fraction.denominator
    return pick_law(np.exp(-below / spread))[misses > margin].sum()


def pick_law(survives):
    """P(a bin is picked) = survives * E[1 / (1 + other heads)], by integrating the heads' generating function."""
    points, weights = np.polynomial.legendre.leggauss(60)
    points, weights = (points + 1) / 2, weights / 2
    generating_functions = 1 - survives[:, None] + survives[:, None] * points
    logs = np.log(np.maximum(generating_functions, 1e-300))
    return survives * (np.exp(logs.sum(axis=0) - logs) @ weights)


def test_the_law_of_a_pick_adds_up():
    survives = np.array([1.0, 0.5, 0.25, 1.0])
    law = pick_law(survives)
    assert law.sum() == pytest.approx(1)
    by_hand = sum(
        np.prod([s if head else 1 - s for s, head in zip(survives, heads, strict=True)]) / sum(heads)
        for heads in product((0, 1), repeat=4)
        if heads[1]
    )
    assert law[1] == pytest.approx(by_hand)


@pytest.mark.parametrize("fraction", [HALF, Fraction(1, 4), Fraction(1, 100), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize(("bins", "miss"), [(2, "0.05"), (3, "0.05"), (5, "0.3"), (40, "0.05"), (200, "0.01")])
def test_no_weights_miss_more_often(fraction, bins, miss):
    """A few full bins at the worst places, and random weights: no miss exceeds the stated probability."""
    spread = 20.0
    margin = compute_rank_margin(Fraction(20), Fraction(miss), bins, fraction)
    rng = np.random.default_rng(bins)
    heavy = [int(margin) + extra for extra in (-3, -1, 0, 1, 2, 5)]
    tried = []
    for one in heavy:
        share = float(fraction)
        for first in (one, int(one * share / (1 - share)), int(one * (1 - share) / share), 1, 3 * one):
            for gap in range(min(3, bins - 1)):
                weights = [0] * bins
                weights[0], weights[1 + gap] = max(first, 0), max(one, 0)
                tried += [weights, weights[::-1]]
    tried += [(rng.random(bins) < 0.2) * rng.integers(0, int(margin) + 2, bins) for _ in range(300)]
    worst = max(chance_of_missing(weights, fraction, spread, margin) for weights in tried)
    assert worst <= float(miss) * (1 + 1e-6)


@pytest.mark.parametrize(("bins", "miss"), [(40, "0.05"), (200, "0.01"), (4096, "0.05")])
def test_the_margin_is_the_least_for_some_weights(bins, miss):
    """Two full bins meet at the wanted rank. Negative control: a margin that is 2 % smaller does not hold."""
    spread = 1000.0
    margin = compute_rank_margin(Fraction(1000), Fraction(miss), bins, HALF)
    full = int(0.98 * margin) + 1
    weights = [full, full, *[0] * (bins - 2)]
    assert chance_of_missing(weights, HALF, spread, 0.98 * margin) > float(miss)


@pytest.mark.parametrize("weight", [1, 3, 10, 40, 200])
@pytest.mark.parametrize("fraction", [HALF, Fraction(1, 10), Fraction(1, 50)], ids=str)
def test_even_weights_miss_less(weight, fraction):
    """If all bins have equal weight, three spreads are enough for 95 % confidence. Half of that is not."""
    for bins in (50, 51, 400):
        margin = compute_even_rank_margin(Fraction(20), Fraction(1, 20))
        assert margin == pytest.approx(59.915, abs=0.01)
        assert chance_of_missing([weight] * bins, fraction, 20.0, margin) <= 0.05
    if weight == 1 and fraction == HALF:
        assert chance_of_missing([1] * 2000, fraction, 20.0, margin / 2) > 0.05


def test_the_margin_of_a_median_is_that_of_its_choice():
    """120 ages, epsilon 1: the bound for any list of scores (K-20) is 7.1 rows."""
    assert compute_rank_margin(Fraction(1), Fraction(1, 20), 121, HALF) == pytest.approx(6.62, abs=0.05)
    assert compute_rank_margin(Fraction(1), Fraction(1, 10**9), 121, HALF) < 26
