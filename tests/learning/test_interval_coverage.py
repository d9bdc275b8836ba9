"""Intervals that follow from the noise cover what they bound, as often as they say.

The rows are fixed and the noise of each fit is independent, so the number of fits whose interval covers a coefficient
is binomial. It is judged by its exact lower tail: sound intervals are rejected with probability FALSE_ALARM at most,
for each coefficient. Every check also rejects intervals that are too narrow.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris

import sfumato as sf
from sfumato.learning.coefficient_intervals import _find_quantile

LEARN = sf.learning
FALSE_ALARM = 1e-6
CONFIDENCE = 0.9
FITS, MANY_FITS = 400, 3000
PRICES = [{"epsilon": 1}, {"epsilon": "0.3"}, {"epsilon": 1, "delta": "1e-6"}]


def find_p_values(covered):
    """For each coefficient, the chance of so few fits that cover it, or fewer, if each covers with CONFIDENCE."""
    return [stats.binomtest(int(found.sum()), len(found), CONFIDENCE, "less").pvalue for found in covered.T]


def is_sound(covered):
    return min(find_p_values(covered)) > FALSE_ALARM


def narrow(low, high, factor):
    """The same middle, and so much of the width."""
    middle, half = (low + high) / 2, (high - low) / 2
    return middle - factor * half, middle + factor * half


def covers(interval, exact):
    return (interval[0] <= exact) & (exact <= interval[1])


def draw_rows(rows, columns):
    rng = np.random.default_rng(rows)
    X = np.clip(rng.normal(0.2, 0.4, (rows, columns)), -1, 1)
    y = np.clip(X @ np.linspace(0.5, 0.1, columns) + rng.normal(0.1, 0.2, rows), -1, 1)
    return X, y, np.linalg.lstsq(np.column_stack([np.ones(rows), X]), y, rcond=None)[0][1:]


def fit_lines(rows, columns, fits, price):
    """The least-squares coefficients, and the intervals of each fit."""
    X, y, exact = draw_rows(rows, columns)
    model = LEARN.LinearRegression(bounds=(-1, 1), target_bounds=(-1, 1), **price)
    intervals = [model.fit(X, y).coefficient_intervals(CONFIDENCE) for _ in range(fits)]
    return exact, intervals


def test_the_check_itself():
    """It accepts what covers as often as it says, and rejects what covers less."""
    rng = np.random.default_rng(1)
    assert is_sound(rng.random((FITS, 5)) < CONFIDENCE)
    assert not is_sound(rng.random((FITS, 5)) < 0.7)
    assert is_sound(rng.random((MANY_FITS, 5)) < CONFIDENCE)
    assert not is_sound(rng.random((MANY_FITS, 5)) < 0.85)
    least = min(count for count in range(FITS) if is_sound(np.arange(FITS)[:, None] < count))
    assert stats.binom.cdf(least - 1, FITS, CONFIDENCE) <= FALSE_ALARM < stats.binom.cdf(least, FITS, CONFIDENCE)


@pytest.mark.parametrize(("rows", "columns", "price"), [(500, 1, 0), (2000, 2, 1), (30_000, 3, 0), (30_000, 3, 2)])
def test_intervals_of_coefficients_cover_them(rows, columns, price):
    exact, intervals = fit_lines(rows, columns, FITS, PRICES[price])
    assert is_sound(np.array([covers(interval, exact) for interval in intervals]))
    assert not is_sound(np.array([covers(narrow(*interval, 0.4), exact) for interval in intervals]))


@pytest.mark.slow
@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(500, 1), (2000, 2), (10_000, 5), (30_000, 3), (100_000, 8)])
def test_intervals_of_coefficients_cover_them_in_many_fits(rows, columns, price):
    exact, intervals = fit_lines(rows, columns, MANY_FITS, price)
    assert is_sound(np.array([covers(interval, exact) for interval in intervals]))
    if rows >= 30_000:  # intervals of fewer rows are wider than they must be
        assert not is_sound(np.array([covers(narrow(*interval, 0.8), exact) for interval in intervals]))


def test_intervals_are_infinite_only_where_the_noise_is_large():
    _, intervals = fit_lines(100, 3, 20, PRICES[0])
    assert np.mean(np.isinf(intervals)) > 0.9
    _, intervals = fit_lines(30_000, 3, 20, PRICES[0])
    assert np.isfinite(intervals).all()


def test_an_interval_holds_the_fitted_coefficient_and_is_never_empty():
    for rows, columns in ((100, 1), (500, 3), (2000, 2)):
        X, y, _ = draw_rows(rows, columns)
        for _ in range(20):
            model = LEARN.LinearRegression(bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, y)
            low, high = model.coefficient_intervals()
            assert np.all(low < high)
            assert np.all(covers((low, high), model.coef_))


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 8, 20])
def test_combinations_of_box_noise_stay_within_the_quantile(terms):
    """For one, two or all terms of a box, at every confidence. Negative control: a smaller quantile is exceeded."""
    rng = np.random.default_rng(terms)
    draws = 200_000
    size, within = rng.gamma(terms + 1, size=draws), rng.uniform(-1, 1, (draws, terms))
    noticed = False
    for used in {1, min(2, terms), terms}:
        deviations = size * within[:, :used].sum(axis=1) / np.sqrt((terms + 1) * (terms + 2) / 3 * used)
        for confidence in (0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
            quantile = _find_quantile(confidence, gaussian=False)
            held = [int((abs(deviations) <= factor * quantile).sum()) for factor in (1, 0.9)]
            assert stats.binomtest(held[0], draws, confidence, "less").pvalue > FALSE_ALARM
            noticed |= stats.binomtest(held[1], draws, confidence, "less").pvalue < FALSE_ALARM
    assert noticed


@pytest.mark.parametrize("price", [{"epsilon": 20}, {"epsilon": 20, "delta": "1e-6"}], ids=str)
def test_intervals_of_class_means_cover_them(price):
    X, y = load_iris(return_X_y=True)
    bounds = (X.min(axis=0), X.max(axis=0))
    exact = np.stack([X[y == label].mean(axis=0) for label in range(3)])
    model = LEARN.GaussianNB(bounds=bounds, classes=range(3), **price)
    intervals = [model.fit(X, y).mean_intervals(CONFIDENCE) for _ in range(100)]
    rounding = 1e-3  # of the grid: the noise is hardly larger
    wide = [(low - rounding, high + rounding) for low, high in intervals]
    assert is_sound(np.array([covers(interval, exact).ravel() for interval in wide]))
    assert not is_sound(np.array([covers(narrow(*interval, 0.1), exact).ravel() for interval in intervals]))
    assert np.median([high - low for low, high in intervals]) < 1.5


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("price", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
@pytest.mark.parametrize("kind", [LEARN.CategoricalNB, LEARN.GaussianNB])
def test_intervals_of_chances_cover_them(kind, price, neighbours):
    rng = np.random.default_rng(3)
    X = rng.choice(4, (1000, 2), p=[0.5, 0.3, 0.2, 0.0])
    y = (X[:, 0] > 0).astype(int)
    exact = np.array([[np.mean(X[y == label, 1] == code) for code in range(4)] for label in range(2)])
    settings = {"categories": [range(4)] * 2, "classes": [0, 1], "neighbours": neighbours}
    intervals = [kind(**settings, **price).fit(X, y).chance_intervals(CONFIDENCE)[1] for _ in range(100)]
    covered = np.array([covers(interval, exact).ravel() for interval in intervals])
    assert is_sound(covered)
    assert all(np.all((low >= 0) & (high <= 1) & (low <= high)) for low, high in intervals)
    assert not is_sound(np.array([covers(narrow(*interval, 0.1), exact).ravel() for interval in intervals]))
    assert np.mean([high - low for low, high in intervals]) < 0.3


def test_chances_are_of_columns_of_codes_and_bins():
    X = np.column_stack([np.arange(100) % 2, np.linspace(-1, 1, 100)])
    model = LEARN.GaussianNB(1, bounds={1: (-1, 1)}, categories={0: [0, 1]}, classes=[0, 1]).fit(X, X[:, 0])
    codes, numbers = model.chance_intervals()
    assert codes[0].shape == codes[1].shape == (2, 2)
    assert numbers is None
    binned = LEARN.CategoricalNB(1, bounds={1: (-1, 1)}, categories={0: [0, 1]}, classes=[0, 1], bins=5)
    _, numbers = binned.fit(X, X[:, 0]).chance_intervals()
    assert numbers[0].shape == (2, 5)
    assert not hasattr(binned, "theta_")
    assert not hasattr(binned, "var_")
    with pytest.raises(sf.errors.InvalidParameter):
        binned.chance_intervals(1)
