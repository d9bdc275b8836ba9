import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.local.randomisers.share_estimates import project_on_simplex

NAMES = ["krr", "subset", "oue", "sue", "olh", "hadamard"]


@pytest.mark.parametrize("name", NAMES)
def test_tallies_add_in_any_order(name):
    randomiser = sf.local.randomiser(name, k=7, epsilon=1)
    reports = randomiser.randomise(np.arange(3000) % 7)
    whole = randomiser.tally(reports)
    parts = [randomiser.tally(reports[start : start + 700]) for start in range(0, 3000, 700)]
    merged = sf.local.Tally.empty(7)
    for part in reversed(parts):
        merged = part + merged
    assert merged == whole
    assert whole.counts.dtype == np.int64
    assert sf.local.Tally.from_json(whole.to_json()) == whole
    estimate = randomiser.estimate(merged)
    assert estimate.frequency == pytest.approx(randomiser.estimate(reports).frequency)
    assert estimate.people == 3000


def test_estimates_on_a_hand_made_tally():
    randomiser = sf.local.randomiser("rr", truth=Fraction(3, 4))
    estimate = randomiser.estimate(sf.local.Tally(100, np.array([40, 60])))
    assert estimate.frequency == pytest.approx([0.3, 0.7])
    assert estimate.consistent == pytest.approx([0.3, 0.7])
    assert estimate.error_asked == pytest.approx([math.sqrt(0.75 * 0.25 / 100) / 0.5] * 2)
    assert estimate.error_population == pytest.approx([math.sqrt(0.4 * 0.6 / 100) / 0.5] * 2)
    assert (estimate.low < estimate.frequency).all()
    assert (estimate.frequency < estimate.high).all()
    outside = randomiser.estimate(sf.local.Tally(100, np.array([10, 90])))
    assert outside.frequency == pytest.approx([-0.3, 1.3])  # nothing is clipped
    assert outside.consistent == pytest.approx([0, 1])


def test_the_projection_is_the_nearest_point_of_the_simplex():
    """Only the nearest point meets these conditions: each entry minus one amount, or zero if that is negative."""
    generator = np.random.default_rng(3)
    for size in (1, 2, 5, 100):
        for _ in range(50):
            values = generator.normal(1 / size, 0.5, size)
            nearest = project_on_simplex(values)
            assert nearest.sum() == pytest.approx(1)
            assert (nearest >= 0).all()
            level = (values - nearest)[nearest > 0]
            assert np.ptp(level) < 1e-9
            assert (values[nearest == 0] <= level[0] + 1e-9).all()
    assert project_on_simplex(np.array([0.2, 0.3, 0.5])) == pytest.approx([0.2, 0.3, 0.5])
    clipped = np.maximum([0.9, 0.4, -0.3], 0)
    assert project_on_simplex(np.array([0.9, 0.4, -0.3])) != pytest.approx(clipped / clipped.sum())  # another thing


def test_simultaneous_intervals_are_wider_by_the_share_of_each():
    randomiser = sf.local.randomiser("oue", k=50, epsilon=1)
    tally = randomiser.tally(randomiser.randomise(np.arange(5000) % 50))
    alone, together = randomiser.estimate(tally), randomiser.estimate(tally, simultaneous=True)
    assert together.simultaneous
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(np.full(50, 3.2905 / 1.9600), rel=0.01)
    by_hand = randomiser.estimate(tally, 1 - 0.05 / 50)
    assert together.low == pytest.approx(by_hand.low)


def test_fakes_by_trying_all_of_them():
    """For all choices of two fakes among eight, the honest reports' estimate is inside, and reaches the ends."""
    randomiser = sf.local.randomiser("krr", k=3, epsilon=2)
    reports = np.array([0, 0, 1, 2, 2, 2, 2, 1])
    estimate = randomiser.estimate(reports)
    low, high = estimate.honest_range("0.25")
    seen = []
    for dropped in product(range(8), repeat=2):
        if dropped[0] < dropped[1]:
            seen.append(randomiser.estimate(np.delete(reports, dropped)).frequency)
    assert np.min(seen, axis=0) == pytest.approx(low)
    assert np.max(seen, axis=0) == pytest.approx(high)
    assert estimate.worst_shift("0.25") == pytest.approx(
        np.maximum(estimate.frequency - low, high - estimate.frequency)
    )
    for bad in (0, 1, "0.99", -1):
        with pytest.raises(sf.errors.InvalidParameter):
            estimate.worst_shift(bad)


def test_what_is_printed_says_both_estimates_and_the_fakes():
    randomiser = sf.local.randomiser("krr", k=30, epsilon=3)
    text = str(randomiser.estimate(randomiser.randomise(np.arange(900) % 30)))
    for words in ("unbiased", "consistent", "95 %", "population", "10 more", "are fake"):
        assert words in text
    assert "simultaneous" in str(randomiser.estimate(np.arange(30), simultaneous=True))


def test_bad_estimates():
    randomiser = sf.local.randomiser("krr", k=3, epsilon=1)
    for bad in ([], [3], [-1], [0.5], ["a"], sf.local.Tally.empty(2), sf.local.Tally.empty(3)):
        with pytest.raises(sf.errors.InvalidParameter):
            randomiser.estimate(bad)
    for confidence in (0, 1, "x", None):
        with pytest.raises(sf.errors.InvalidParameter):
            randomiser.estimate([0, 1], confidence)


def test_bad_tallies():
    for people, counts in ((-1, [0]), (3, [4, 0]), (3, [-1, 0])):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.Tally(people, np.array(counts))
    with pytest.raises(sf.errors.InvalidParameter):
        sf.local.Tally(3, np.array([0.5]))
    with pytest.raises(sf.errors.InvalidParameter):
        sf.local.Tally.empty(3) + sf.local.Tally.empty(4)
    good = {"people": 3, "counts": [1, 2]}
    assert sf.local.Tally.from_json(good).people == 3
    for bad in (
        None, [], {}, {**good, "people": "3"}, {**good, "people": True}, {**good, "counts": [1.0, 2]},
        {**good, "counts": [True]}, {**good, "counts": [1 << 70]}, {**good, "counts": [5]}, {**good, "more": 1},
    ):  # fmt: skip
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.Tally.from_json(bad)
