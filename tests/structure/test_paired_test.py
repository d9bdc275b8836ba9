"""The test by which `bench/learn.py` calls a row better, worse or a tie."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from peers.paired_test import LEVEL, compute_p_value, correct_for_many, count_needed_seeds, find_verdict


@pytest.mark.parametrize("shift", [0, 0.3, -1])
def test_the_p_value_is_wilcoxons(shift):
    draw = np.random.default_rng(3)
    ours, theirs = draw.standard_normal(20) + shift, draw.standard_normal(20)
    assert compute_p_value(ours, theirs) == pytest.approx(stats.wilcoxon(ours, theirs, method="exact").pvalue)


def test_equal_differences_have_the_exact_distribution():
    """20 equal gains: all signs alike has the chance 2 / 2**20. The normal approximation says 8e-6 or more."""
    assert compute_p_value([0.5] * 20, [0.4] * 20) == pytest.approx(2 / 2**20)
    assert compute_p_value([1, 1, 0, 0], [0, 0, 1, 1]) == 1
    assert compute_p_value([0.5] * 5, [0.5] * 5) == 1


def test_holm_multiplies_by_the_rows_that_are_left():
    assert correct_for_many([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_for_many([]) == []


def test_a_verdict_needs_significance():
    better, worse = [1.0] * 20, [0.0] * 20
    p_value = compute_p_value(better, worse)
    assert [find_verdict(*pair, p_value) for pair in ((better, worse), (worse, better))] == ["better", "worse"]
    assert find_verdict(better, worse, 2 * LEVEL) == "tie"


def test_the_needed_seeds_are_enough_and_one_fewer_is_not():
    rows = 120
    seeds = count_needed_seeds(rows)
    assert rows * 2 / 2**seeds <= LEVEL < rows * 2 / 2 ** (seeds - 1)
