"""Clopper–Pearson intervals against scipy, and the limit of any guess against enumeration."""

import math

import pytest
from scipy import stats

from sfumato.errors import InvalidParameter
from sfumato.lab.guess_limits import limit_guess, name_limit
from sfumato.lab.success_rate import SuccessRate, show_share


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (5, 5), (3, 7), (50, 100), (731, 1000), (199_000, 200_000)])
@pytest.mark.parametrize("confidence", [0.95, 1 - 2e-6])
def test_intervals_equal_those_of_scipy(successes, trials, confidence):
    expected = stats.binomtest(successes, trials).proportion_ci(confidence, "exact")
    assert SuccessRate(successes, trials).interval(confidence) == pytest.approx((expected.low, expected.high), abs=1e-7)


def test_wrong_counts_are_refused():
    for successes, trials in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(InvalidParameter):
            SuccessRate(successes, trials)


def test_shares_are_shown_with_enough_digits():
    assert [show_share(share) for share in (0, 1, 0.5, 0.731, 0.0004, 0.99987)] == [
        "0 %", "100 %", "50.0 %", "73.1 %", "0.04 %", "99.987 %",
    ]  # fmt: skip


def test_the_limit_is_reached_by_k_ary_randomised_response():
    """Its success rate is the limit exactly; so the limit is not too high."""
    for values in (2, 3, 10):
        for epsilon in (0.1, 1, 3):
            weights = [math.exp(epsilon), *[1.0] * (values - 1)]
            assert limit_guess(epsilon, values=values) == pytest.approx(weights[0] / sum(weights))


def test_the_limit_with_delta():
    assert limit_guess(1, delta=0.01) == pytest.approx((math.e + 0.01) / (math.e + 1))
    assert limit_guess(1, values=9, delta=0.99) == pytest.approx(1, abs=0.01)
    assert limit_guess(10_000) == 1
    assert name_limit() == "e^ε / (e^ε + 1)"
    assert name_limit(values=4, delta=1e-6) == "(e^ε + 3δ) / (e^ε + 3)"
