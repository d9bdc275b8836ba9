"""Large samples of real reports. Each test must also reject tables with a slightly larger or smaller epsilon."""

import numpy as np
import pytest
from scipy import stats

import sfumato as sf

FALSE_ALARM = 1e-6
PEOPLE = 200_000
NAMES = ["krr", "subset", "oue", "sue", "olh", "hadamard"]
OFF = 0.1  # a table for 10 % more or less epsilon must be rejected


def supports(randomiser, value):
    return randomiser.tally(randomiser.randomise(np.full(PEOPLE, value))).counts


@pytest.mark.parametrize("name", NAMES)
def test_supports_are_binomial_with_the_tables_own_p_and_q(name):
    randomiser, value = sf.local.randomiser(name, k=20, epsilon=1), 13
    counts = supports(randomiser, value)
    true, other = (float(chance) for chance in randomiser.support)
    assert stats.binomtest(int(counts[value]), PEOPLE, true).pvalue > FALSE_ALARM
    for category in (0, 12, 14, 19):
        assert stats.binomtest(int(counts[category]), PEOPLE, other).pvalue > FALSE_ALARM
    for wrong in (1 - OFF, 1 + OFF):
        bold_true, bold_other = (float(chance) for chance in sf.local.randomiser(name, k=20, epsilon=wrong).support)
        told = [
            stats.binomtest(int(counts[value]), PEOPLE, bold_true).pvalue,
            stats.binomtest(int(np.delete(counts, value).sum()), 19 * PEOPLE, bold_other).pvalue,
        ]
        assert min(told) < FALSE_ALARM


@pytest.mark.parametrize("name", NAMES)
def test_errors_have_the_stated_variance(name):
    """Many small surveys of fixed people: the squared errors of one category, in units of the formula's variance."""
    randomiser, people, surveys = sf.local.randomiser(name, k=10, epsilon=2), 300, 2500
    values = np.repeat(np.arange(10), people // 10)
    errors = [randomiser.estimate(randomiser.randomise(values)).frequency[3] - 0.1 for _ in range(surveys)]
    total = float(np.square(errors).sum()) * people / randomiser.variance_asked(0.1)
    assert FALSE_ALARM / 2 < stats.chi2.sf(total, surveys) < 1 - FALSE_ALARM / 2
    for factor in (0.7, 1.4):
        assert not FALSE_ALARM / 2 < stats.chi2.sf(total / factor, surveys) < 1 - FALSE_ALARM / 2


@pytest.mark.parametrize("name", NAMES)
def test_intervals_cover_as_often_as_they_say(name):
    """Exactly, from the binomial law of the supports, when the people are drawn from a population."""
    randomiser, people = sf.local.randomiser(name, k=50, epsilon=1), 20_000
    true, other = (float(chance) for chance in randomiser.support)
    for share in (0.0, 0.02, 0.4, 1.0):
        rate = other + share * (true - other)
        counts = np.arange(people + 1)
        mass = stats.binom.pmf(counts, people, rate)
        likely = np.flatnonzero(mass > 1e-12)
        covered = narrow = 0.0
        for start in range(0, likely.size, 50):
            part = likely[start : start + 50]
            padded = np.resize(part, 50)
            estimate = randomiser.estimate(sf.local.Tally(people, padded))
            inside = ((estimate.low <= share) & (share <= estimate.high))[: part.size]
            covered += float(mass[part][inside].sum())
            close = (np.abs(estimate.frequency - share) <= 0.9 * (estimate.high - estimate.low) / 2)[: part.size]
            narrow += float(mass[part][close].sum())
        assert 0.945 < covered < 0.957
        assert narrow < 0.93  # intervals 10 % narrower would be noticed


def test_simultaneous_intervals_hold_together():
    randomiser, surveys = sf.local.randomiser("krr", k=8, epsilon=2), 1500
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.0])
    generator = np.random.default_rng(11)
    together = alone = 0
    for _ in range(surveys):
        values = np.repeat(np.arange(8), generator.multinomial(1000, shares))
        tally = randomiser.tally(randomiser.randomise(values))
        for simultaneous in (True, False):
            estimate = randomiser.estimate(tally, simultaneous=simultaneous)
            held = bool(((estimate.low <= shares) & (shares <= estimate.high)).all())
            together, alone = together + (held and simultaneous), alone + (held and not simultaneous)
    assert stats.binomtest(together, surveys, 0.95, alternative="less").pvalue > FALSE_ALARM
    assert stats.binomtest(alone, surveys, 0.95, alternative="less").pvalue < FALSE_ALARM


@pytest.mark.parametrize("name", ["duchi", "piecewise", "hybrid", "laplace"])
def test_means_cover_and_have_the_stated_variance(name):
    made, people, surveys = sf.local.mean_randomiser(name, lower=0, upper=10, epsilon=1), 400, 4000
    value = 7.3
    covered, narrow, errors = 0, 0, []
    for _ in range(surveys):
        estimate = made.estimate(made.randomise(np.full(people, value)))
        covered += estimate.low <= value <= estimate.high
        narrow += abs(estimate.mean - value) <= 0.8 * (estimate.high - estimate.low) / 2
        errors.append(estimate.mean - value)
    assert stats.binomtest(covered, surveys, 0.95).pvalue > FALSE_ALARM
    assert stats.binomtest(narrow, surveys, 0.95).pvalue < FALSE_ALARM
    total = float(np.square(errors).sum()) * people / made.variance_asked(value)
    assert FALSE_ALARM / 2 < stats.chi2.sf(total, surveys) < 1 - FALSE_ALARM / 2
    for factor in (0.75, 1.3):
        assert not FALSE_ALARM / 2 < stats.chi2.sf(total / factor, surveys) < 1 - FALSE_ALARM / 2
