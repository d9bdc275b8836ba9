"""Intervals of quantiles cover the true value as often as they say, on any data, and are not much too wide."""

import math

import numpy as np
import pandas as pd
import pytest

import sfumato as sf

FALSE_ALARM = 1e-6
TIMES = 100


def ask_often(values, times, confidence):
    frame = pd.DataFrame({"x": values})
    columns = {"x": sf.Integer(0, 1000)}
    budget = sf.Budget(epsilon=10**6)
    table = sf.protect(frame, name="t", unit=sf.ROW, columns=columns, budget=budget)
    texts = [f"SELECT MEDIAN(x) AS m FROM t WHERE x > {-1 - number}" for number in range(times)]
    return [table.ask(text, epsilon=1, interval_share="0.5", confidence=confidence).intervals[0]["m"] for text in texts]


def most_misses(times, miss):
    """The number of misses that is exceeded with probability FALSE_ALARM at most, if each has probability `miss`."""
    chance, least, total = (1 - miss) ** times, 0, 0.0
    while total + chance < 1 - FALSE_ALARM:
        total += chance
        chance *= (times - least) / (least + 1) * miss / (1 - miss)
        least += 1
    return least


@pytest.mark.parametrize(
    "values",
    [
        np.repeat([0, 1000], 300),  # nothing between
        np.arange(2000) % 1001,
        np.array([3, 500, 999]),  # fewer rows than the noise
        np.concatenate([np.zeros(520, int), np.full(480, 700)]),
    ],
    ids=["halves", "even", "few", "near"],
)
def test_coverage(values):
    """A miss has probability 0.2 at most. The false-alarm rate of each case is 1e-6."""
    ends = ask_often(values, TIMES, "0.8")
    true = np.quantile(values, [0.5], method="inverted_cdf")[0]
    misses = sum(not low <= true <= high for low, high in ends)
    assert misses <= most_misses(TIMES, 0.2)


def test_intervals_that_are_too_narrow_are_caught():
    """Negative control: half of the width around the middle misses more often than the test allows."""
    values = np.arange(2000) % 1001
    narrow = [((3 * low + high) / 4, (low + 3 * high) / 4) for low, high in ask_often(values, TIMES, "0.8")]
    shifted = sum(not low <= 500 + 30 <= high for low, high in narrow)
    assert shifted > most_misses(TIMES, 0.2)


def test_width_is_what_the_preview_says():
    """For evenly spread values, the mean width is near twice the previewed margin."""
    values = np.arange(4000) % 1001
    table = sf.protect(
        pd.DataFrame({"x": values}), name="t", unit=sf.ROW, columns={"x": sf.Integer(0, 1000)},
        budget=sf.Budget(epsilon=1000),
    )  # fmt: skip
    preview = table.preview("SELECT MEDIAN(x) AS m FROM t", epsilon=1, interval_share=0.5, assume={"n": 4000})
    found = ask_often(values, 25, "0.95")
    mean = sum(high - low for low, high in found) / len(found)
    assert math.isclose(mean / 2, preview.margins["m"], rel_tol=0.2)
