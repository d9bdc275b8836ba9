"""Intervals of columns that combine released rows: a share of a total, a total, a running total.

One release has many parts of equal sizes, so it repeats each question often. The 95 % intervals must hold in 95 of 100
of them, within binomial error; for each place in a part, the parts are independent.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sfumato as sf

FALSE_ALARM = 1e-6
STATED = 0.95
PARTS = 250
SIZES = {"a": 60, "b": 30, "c": 12, "d": 18}
WHOLE = sum(SIZES.values())
SHARES = {name: size / WHOLE for name, size in SIZES.items()}
RUNNING = dict(zip(SIZES, np.cumsum(list(SIZES.values())).tolist(), strict=True))
QUESTIONS = {
    "share": ("COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY p)", SHARES),
    "percent": ("ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY p), 3) / 100", SHARES),
    "total": ("SUM(COUNT(*)) OVER (PARTITION BY p)", dict.fromkeys(SIZES, WHOLE)),
    "running": ("SUM(COUNT(*)) OVER (PARTITION BY p ORDER BY g)", RUNNING),
}


@pytest.fixture(scope="module")
def curator():
    names = np.repeat(list(SIZES), list(SIZES.values()))
    data = pd.DataFrame({"p": np.repeat(np.arange(PARTS), WHOLE), "g": np.tile(names, PARTS)})
    made = {"p": sf.Integer(0, PARTS - 1), "g": sf.Category(list(SIZES))}
    return sf.protect(data, name="t", unit=sf.ROW, columns=made, budget=sf.Budget(epsilon=100))


def count_hits(curator, column, truth, narrower=1.0):
    """For each place in a part: how many intervals contain their value."""
    answer = curator.ask(f"SELECT p, g, {column} AS v FROM t GROUP BY p, g", epsilon=1)
    hits = dict.fromkeys(SIZES, 0)
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        low, high = ends["v"]
        middle, half = (low + high) / 2, (high - low) / 2 * narrower
        hits[row["g"]] += middle - half <= truth[row["g"]] <= middle + half
    return hits


def is_too_low(hits):
    return stats.binom.cdf(hits, PARTS, STATED) < FALSE_ALARM


@pytest.mark.parametrize(("column", "truth"), QUESTIONS.values(), ids=QUESTIONS)
def test_intervals_of_windows_hold(column, truth, curator):
    hits = count_hits(curator, column, truth)
    assert not any(is_too_low(found) for found in hits.values()), hits
    assert min(hits.values()) < PARTS, "intervals that always hold are too wide"


def test_intervals_that_are_too_narrow_are_noticed(curator):
    """Negative control: half the width."""
    assert all(is_too_low(found) for found in count_hits(curator, *QUESTIONS["share"], narrower=0.5).values())


def test_a_rank_and_a_window_ordered_by_noise_have_no_interval(curator):
    ranked = "RANK() OVER (ORDER BY COUNT(*)) AS r, SUM(COUNT(*)) OVER (ORDER BY COUNT(*)) AS s"
    answer = curator.ask(f"SELECT g, COUNT(*) AS n, {ranked} FROM t GROUP BY g", epsilon=1)
    assert all(set(ends) == {"n"} for ends in answer.intervals)
    assert "No interval is stated for r, s" in answer.interval_note
    assert any("No interval is stated for r, s" in said for said in answer.sentences)
