"""The limits of an audit are exact: coverage and false alarms are enumerated, and wrong limits are noticed."""

from functools import cache
from math import comb, exp, inf, log

import numpy as np
import pytest
from scipy.stats import beta, binom

from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.lab.auditing.audit_result import CONFIDENCE, FAMILYWISE_ERROR
from sfumato.lab.auditing.binomial_limits import compute_tail, find_lower_limit, find_upper_limit
from sfumato.lab.auditing.event_search import MOST_EVENTS
from sfumato.lab.auditing.mechanism_audit import BOUND_ERROR, VERDICT_ERROR
from sfumato.lab.auditing.tested_claims import ORDERS, TestedClaim

RATES = (1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 0.9999)


@pytest.mark.parametrize("trials", [1, 7, 200, 10_000, 1_000_000])
def test_tails_are_those_of_the_binomial_law(trials):
    for share in (0, 0.001, 0.1, 0.5, 0.97, 1):
        for rate in RATES:
            hits = round(share * trials)
            assert compute_tail(hits, trials, rate) == pytest.approx(
                binom.sf(hits - 1, trials, rate), rel=1e-7, abs=1e-300
            )


@pytest.mark.parametrize("error", [0.025, BOUND_ERROR, VERDICT_ERROR])
def test_limits_are_clopper_and_pearsons(error):
    for trials in (1, 9, 300, 100_000):
        for hits in {0, 1, trials // 3, trials - 1, trials}:
            low = beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
            high = beta.ppf(1 - error, hits + 1, trials - hits) if hits < trials else 1.0
            assert find_lower_limit(hits, trials, error) == pytest.approx(low, rel=1e-5)
            assert find_lower_limit(hits, trials, error) <= low + 1e-15  # rounding is outward
            assert find_upper_limit(hits, trials, error) == pytest.approx(high, rel=1e-5)
            assert find_upper_limit(hits, trials, error) >= high - 1e-12


def miss_probability(found, rate):
    """P(limit > rate), by enumeration: `found` has the limit for each number of hits."""
    trials = len(found) - 1
    return sum(
        comb(trials, hits) * rate**hits * (1 - rate) ** (trials - hits)
        for hits in range(trials + 1)
        if found[hits] > rate
    )


def normal_limit(hits, trials, error):
    """Negative control: the normal approximation."""
    share = hits / trials
    return share - 1.96 * (share * (1 - share) / trials) ** 0.5


def off_by_one_limit(hits, trials, error):
    """Negative control: P(X > hits) instead of P(X >= hits)."""
    return find_lower_limit(hits + 1, trials, error) if hits < trials else 1.0


@pytest.mark.parametrize("trials", [5, 40, 151])
def test_the_lower_limit_is_wrong_at_most_as_often_as_it_says(trials):
    for error in (0.025, 0.2):
        found, _ = limits(trials, error)
        for rate in np.linspace(0.005, 0.995, 67):
            assert miss_probability(found, rate) <= error


@pytest.mark.parametrize("wrong", [normal_limit, off_by_one_limit])
def test_wrong_limits_are_noticed(wrong):
    found = [wrong(hits, 40, 0.025) for hits in range(41)]
    assert max(miss_probability(found, rate) for rate in np.linspace(0.005, 0.995, 67)) > 0.025


@cache
def limits(trials, error):
    counts = range(trials + 1)
    return [find_lower_limit(hits, trials, error) for hits in counts], [
        find_upper_limit(hits, trials, error) for hits in counts
    ]


def alarm_probability(claim, p, q, trials, error):
    """P(the bound of one event exceeds the claim), by enumeration of both numbers of hits."""
    lows, highs = limits(trials, error)
    on_first, on_second = (binom.pmf(np.arange(trials + 1), trials, rate) for rate in (p, q))
    bounds = claim.bounds(np.repeat(lows, trials + 1), np.tile(highs, trials + 1))
    alarms = (bounds > claim.value).reshape(trials + 1, trials + 1)
    return float(on_first @ alarms @ on_second)


def on_the_edge(claim, q):
    """The largest p that the claim allows an event of probability q on the other dataset."""
    if claim.parameter == "epsilon":
        return min(exp(claim.value) * q + claim.delta, 1 - (1 - q - claim.delta) / exp(claim.value), 1.0)
    low, high = q, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if claim.bound(middle, q) <= claim.value else (low, middle)
    return low


CLAIMS = [PureDP(1), PureDP("0.1"), PureDP(3), ApproxDP(1, "0.05"), ZCDP("0.5"), ZCDP("0.2", "0.01")]


@pytest.mark.parametrize("loss", CLAIMS, ids=repr)
def test_false_alarms_are_within_the_design(loss):
    """For events on the edge of the claim: with MOST_EVENTS events, the alarms add up to the familywise error."""
    claim = TestedClaim.from_loss(loss)
    for q in (0.001, 0.02, 0.1, 0.3, 0.5, 0.9):
        p = on_the_edge(claim, q)
        assert alarm_probability(claim, p, q, 120, VERDICT_ERROR) <= FAMILYWISE_ERROR / MOST_EVENTS
        assert alarm_probability(claim, p, q, 120, BOUND_ERROR) <= (1 - CONFIDENCE) / MOST_EVENTS


def test_an_alarm_without_the_factor_for_events_is_noticed():
    """Negative control: uncorrected limits alarm more often than the design allows, and a broken claim does alarm."""
    claim = TestedClaim.from_loss(PureDP(1))
    edge = max(alarm_probability(claim, on_the_edge(claim, q), q, 120, 0.3) for q in (0.02, 0.1, 0.3))
    assert edge > (1 - CONFIDENCE) / MOST_EVENTS
    assert alarm_probability(claim, 0.9, 0.05, 120, VERDICT_ERROR) > 0.8


def test_bounds_of_a_claim():
    pure = TestedClaim.from_loss(PureDP(1))
    assert pure.bound(0.5, 0.25) == pytest.approx(log(2))
    assert pure.bound(0.2, 0.3) == 0
    assert TestedClaim.from_loss(ApproxDP(1, "0.1")).bound(0.5, 0.2) == pytest.approx(log(2))
    assert TestedClaim.from_loss(ApproxDP(1, "0.1")).bound(0.1, 0.0) == 0
    assert pure.bound(0.5, 0.0) == inf


def test_the_bound_on_rho_is_never_above_the_rho_of_a_gaussian():
    """All threshold events of N(0, 1) against N(m, 1), which is exactly m²/2-zCDP; and some come near."""
    from scipy.stats import norm

    for shift in (0.1, 1.0, 2.5):
        thresholds = np.linspace(-6, 8, 400)
        p, q = norm.sf(thresholds - shift), norm.sf(thresholds)
        bounds = TestedClaim.from_loss(ZCDP(1)).bounds(p, q)
        assert bounds.max() <= shift**2 / 2 * (1 + 1e-9)
        assert bounds.max() >= shift**2 / 2 * 0.5


def test_the_bound_on_rho_is_monotone_within_the_limits():
    claim = TestedClaim.from_loss(ZCDP(1, "0.02"))
    grid = np.linspace(0.03, 0.97, 40)
    for q in grid:
        above = grid[grid > q]
        assert (np.diff(claim.bounds(above, np.full(above.size, q))) >= -1e-12).all()
    for p in grid:
        below = grid[grid < p]
        assert (np.diff(claim.bounds(np.full(below.size, p), below)) <= 1e-12).all()
    assert min(ORDERS) > 1
