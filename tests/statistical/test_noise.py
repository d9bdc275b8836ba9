"""Large samples against the stated laws. Each test must also reject noise that is 10 % too small and 10 % too large."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import ExpNeg, Rational
from sfumato.kernel.samplers import discrete_gaussian, discrete_laplace, geometric, uniform_below
from sfumato.local.mechanisms.biased_coins import bernoulli

FALSE_ALARM = 1e-6
DRAWS = 400_000


def laplace_law(scale):
    def mass(z):
        x = np.exp(-1 / scale)
        return (1 - x) / (1 + x) * x ** np.abs(z)

    return mass


def gaussian_law(deviation):
    def mass(z):
        everything = np.arange(-int(40 * deviation) - 10, int(40 * deviation) + 11)
        return np.exp(-(z**2) / (2 * deviation**2)) / np.exp(-(everything**2) / (2 * deviation**2)).sum()

    return mass


def geometric_law(scale):
    return lambda k: np.where(k >= 0, (1 - np.exp(-1 / scale)) * np.exp(-np.maximum(k, 0) / scale), 0)


def p_value(drawn, mass, spread):
    """Chi-square over about forty bins of equal width, the ends taken together."""
    width = max(1, int(spread / 6))
    reach = 20 * width
    edges = np.arange(-reach, reach + 1, width)
    cells = np.array([mass(np.arange(low, low + width)).sum() for low in edges[:-1]])
    observed, _ = np.histogram(drawn, bins=edges - 0.5)
    cells = np.append(cells, max(1 - cells.sum(), 0))
    observed = np.append(observed, drawn.size - observed.sum())
    enough = cells * drawn.size >= 10
    expected = np.append(cells[enough], cells[~enough].sum()) * drawn.size
    seen = np.append(observed[enough], observed[~enough].sum())
    keep = expected > 0
    assert seen[~keep].sum() == 0
    return stats.chisquare(seen[keep], expected[keep] * seen.sum() / expected[keep].sum()).pvalue


def accepts_the_truth_and_nothing_else(drawn, law, size, spread):
    assert p_value(drawn, law(size), spread) > FALSE_ALARM
    for factor in (0.9, 1.1):
        assert p_value(drawn, law(size * factor), spread) < FALSE_ALARM, f"{factor} of the scale went unnoticed"


@pytest.mark.parametrize(
    "scale", [Fraction(1, 2), Fraction(2), Fraction(10), Fraction(100, 3), Fraction(5000)], ids=str
)
def test_laplace(scale):
    drawn = discrete_laplace(scale, DRAWS, SYSTEM)
    accepts_the_truth_and_nothing_else(drawn, laplace_law, float(scale), 2 * float(scale))
    assert stats.binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(1000)], ids=str)
def test_geometric(scale):
    accepts_the_truth_and_nothing_else(geometric(scale, DRAWS, SYSTEM), geometric_law, float(scale), 2 * float(scale))


@pytest.mark.parametrize("deviation", [Fraction(1, 2), Fraction(3), Fraction(40), Fraction(1000)], ids=str)
def test_gaussian(deviation):
    drawn = discrete_gaussian(deviation**2, DRAWS, SYSTEM)
    accepts_the_truth_and_nothing_else(drawn, gaussian_law, float(deviation), float(deviation))


@pytest.mark.parametrize("scale", [Fraction(10 << 20), Fraction(1 << 40), Fraction(1 << 59)], ids=str)
def test_wide_laplace(scale):
    """Too wide for bins: the continuous law is near enough for Kolmogorov and Smirnov."""
    drawn = np.asarray(discrete_laplace(scale, DRAWS, SYSTEM), float) / float(scale)
    assert stats.kstest(drawn, stats.laplace.cdf).pvalue > FALSE_ALARM
    for factor in (0.9, 1.1):
        assert stats.kstest(drawn * factor, stats.laplace.cdf).pvalue < FALSE_ALARM


def test_neighbouring_draws_are_independent():
    drawn = discrete_laplace(Fraction(10), DRAWS, SYSTEM).astype(float)
    for lag in (1, 2, 8, 256):
        assert stats.pearsonr(drawn[:-lag], drawn[lag:]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("of", ["integers", "reals"])
def test_released_values_have_the_stated_scale(of):
    noise = np.asarray(sf.Laplace(3, 0.5, of=of).release(np.full(DRAWS, 42))) - 42
    if of == "reals":
        for factor, right in ((1, True), (0.9, False), (1.1, False)):
            assert bool(stats.kstest(noise * factor / 6, stats.laplace.cdf).pvalue > FALSE_ALARM) is right
    else:
        accepts_the_truth_and_nothing_else(noise, laplace_law, 6.0, 12.0)


def test_margins_hold_as_often_as_they_say():
    for mechanism, spent in ((sf.Laplace, 0.5), (sf.Gaussian, 0.02)):
        for of, value in (("integers", 0), ("reals", 0.3)):
            errors = np.abs(mechanism(1, spent, of=of).release(np.full(DRAWS, value)) - value)
            margin = mechanism(1, spent, of=of).margin(0.95, size=1)
            held = int((errors <= margin).sum())
            assert stats.binomtest(held, DRAWS, 0.95, "less").pvalue > FALSE_ALARM
            tighter = int((errors <= margin * 0.8).sum())
            assert stats.binomtest(tighter, DRAWS, 0.95, "less").pvalue < FALSE_ALARM


def test_coins_and_dice():
    for probability, p in ((Rational(Fraction(1, 3)), 1 / 3), (ExpNeg(Fraction(2)), np.exp(-2))):
        heads = int(bernoulli(probability, DRAWS, SYSTEM).sum())
        assert stats.binomtest(heads, DRAWS, p).pvalue > FALSE_ALARM
        for factor in (0.9, 1.1):
            assert stats.binomtest(heads, DRAWS, p * factor).pvalue < FALSE_ALARM
    for bound in (6, 300):
        counts = np.bincount(uniform_below(bound, DRAWS, SYSTEM), minlength=bound)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_choice_has_its_law():
    """Scores 0 and -1 at epsilon 2: the worse one survives with 1/e, and is then picked half the time."""
    picks = [sf.choose([0, -1], sensitivity=1, epsilon=2) for _ in range(20_000)]
    chance = float(np.exp(-1)) / 2
    assert stats.binomtest(sum(picks), len(picks), chance).pvalue > FALSE_ALARM
    for factor in (0.85, 1.15):
        assert stats.binomtest(sum(picks), len(picks), chance * factor).pvalue < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(10), Fraction(100, 3)], ids=str)
def test_laplace_to_one_percent(scale):
    """Twenty million draws: a scale that is off by one part in a hundred is rejected."""
    drawn = discrete_laplace(scale, 20_000_000, SYSTEM)
    assert p_value(drawn, laplace_law(float(scale)), 2 * float(scale)) > FALSE_ALARM
    for factor in (0.99, 1.01):
        assert p_value(drawn, laplace_law(float(scale) * factor), 2 * float(scale)) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [Fraction(3), Fraction(40)], ids=str)
def test_gaussian_to_one_percent(deviation):
    drawn = discrete_gaussian(deviation**2, 20_000_000, SYSTEM)
    assert p_value(drawn, gaussian_law(float(deviation)), float(deviation)) > FALSE_ALARM
    for factor in (0.99, 1.01):
        assert p_value(drawn, gaussian_law(float(deviation) * factor), float(deviation)) < FALSE_ALARM
