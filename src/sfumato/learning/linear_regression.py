"""Linear regression on noisy sufficient statistics, with a ridge that adapts to the noise.

Fixed: bounds, categories, the shares of the budget, the constants below. Paid for: the sums of all columns and of their
products (the Gram matrix), in one call. Those with the target have the larger weight; without delta, the sums of one
weight are measured together (joint_sums.py). A numeric column is scaled to -1 to 1, and a column of codes is one column
of 0 and 1 for each code; the products with a column of codes are sums by code, so that a whole block of the Gram matrix
costs as much as one of its entries. What one row adds to each statistic is at most 1.

Everything after that is post-processing. The noisy covariance matrix is projected to a positive one: its eigenvalues
are kept above the size that noise alone has. In each eigenvector's direction the coefficient is shrunk by the signal
that is estimated over all directions, in relation to the known noise. Last, all coefficients are shrunk together by the
share of the explained variance that noise would explain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import KernelFault
from sfumato.learning.coefficient_intervals import NoisyGram, bound_coefficients
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    open_source,
    read_rows,
    record_fit,
    require_fitted,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import SCALE, Coded, Feature, Numeric
from sfumato.learning.noisy_statistics import Noisy, Statistic, StatisticSource
from sfumato.learning.row_arrays import RowArrays
from sfumato.learning.row_cells import NO_CELL, Codes, Floats, RowCells
from sfumato.learning.row_functions import TARGET, Moment
from sfumato.number_arguments import Number

USUAL_MEAN = 0.1  # the variance of a scaled mean, before the data says more
LEAST_EIGENVALUE = 0.3  # in deviations of the noise times the root of the number of columns
NOISE_EXPLAINED = 0.5  # the part of what noise explains, on average, that is taken off
USUAL_COEFFICIENTS = 0.3  # the sum of their squares, before the data says more
MOST_COEFFICIENT = 4.0  # the variance of a scaled coefficient, at most
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy means, covariances of the columns and with the target, and the deviations of their noise."""

    means: Floats
    target_mean: float
    covariance: Floats
    with_target: Floats
    noise: Floats  # of `covariance`, entry by entry
    target_noise: Floats  # of `with_target`
    gram: NoisyGram  # the same without shrinking, for intervals


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression. The price is `epsilon`, or (`epsilon`, `delta`) with Gaussian noise.

    Rows are clamped to the bounds in `fit` and `predict`, and predictions to `target_bounds`.
    """

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number = 0,
        bounds: object = None,
        target_bounds: object = None,
        categories: object = None,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.categories = categories
        self.neighbours = neighbours

    def fit(
        self,
        X: object = None,  # noqa: N803 - scikit-learn's name
        y: object = None,
        *,
        dataset: object = None,
        features: Sequence[str] | None = None,
        target: str | None = None,
        table: str | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> "LinearRegression":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        declared = Declared(
            self.epsilon, self.delta, self.bounds, self.categories, None, self.target_bounds, self.neighbours
        )
        opened = open_source(X, y, DatasetColumns(dataset, features, target, table, analyst), declared, "number")
        source = opened.source
        if not isinstance(source.target, Numeric):
            raise KernelFault("A regression has a numeric target.")
        moments = measure_moments(source)
        coefficients = solve(moments)
        record_fit(self, opened)
        self._target = source.target
        self._write(moments, coefficients, source.target)
        return self

    def _write(self, moments: Moments, coefficients: Floats, target: Numeric) -> None:
        """Store the coefficients in the units of the columns and of the target."""
        half = (target.upper - target.lower) / 2
        units = np.array([half * unit for unit in _list_units(self._features)])
        middles = np.array(_list_middles(self._features))
        self.coef_ = coefficients * units
        centre = target.middle + half * moments.target_mean
        scaled_units = np.array(_list_units(self._features))
        safe = np.divide(moments.means, scaled_units, out=np.zeros_like(units), where=scaled_units > 0)
        self.intercept_ = float(centre - self.coef_ @ (middles + safe))
        self.design_names_ = np.array(_list_names(self._features), object)
        self._gram, self._units = moments.gram, units

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The target of each row, between its bounds."""
        rows = read_rows(self, X)
        predicted: Floats = np.clip(
            _design(rows) @ self.coef_ + self.intercept_, self._target.lower, self._target.upper
        )
        return predicted

    def coefficient_intervals(self, confidence: Number = "0.95") -> tuple[Floats, Floats]:
        """Bounds of each least-squares coefficient of the data (clamped to its bounds), and of `coef_`.

        They follow from the scale of the noise, to first order in it, and say nothing of sampling. A bound is infinite
        where the noise is too large to bound the coefficients, or the columns do not determine them: for example if
        columns repeat each other, or no row has a category. The coefficients of a column's codes add up to 0.
        """
        require_fitted(self, "coef_")
        low, high = bound_coefficients(self._gram, confidence)
        with np.errstate(invalid="ignore"):  # a column whose bounds are equal has 0 units and an infinite interval
            low, high = np.nan_to_num(low * self._units, nan=-np.inf, neginf=-np.inf), high * self._units
        return np.minimum(low, self.coef_), np.maximum(np.nan_to_num(high, nan=np.inf, posinf=np.inf), self.coef_)


def measure_moments(source: StatisticSource) -> Moments:
    """Ask for all sums and products in one call."""
    features = source.features
    places = range(len(features))
    weight = max(1, round((2 * len(features)) ** (1 / 3)))
    pairs = [(one, two) for one in places for two in places if one <= two]
    statistics = [
        Statistic(Moment((TARGET,)), (), weight),
        *(_sum_up((place,), features, 1) for place in places if isinstance(features[place], Numeric)),
        *(_sum_up((place, TARGET), features, weight) for place in places),
        *(_sum_up(pair, features, 1) for pair in pairs),
        *([Statistic(None)] if source.rows is None else []),
    ]
    released = iter(source.release(statistics, Fraction(1)))
    target = next(released)
    sums = {place: next(released) for place in places if isinstance(features[place], Numeric)}
    with_target = [next(released) for _ in places]
    blocks = {pair: next(released) for pair in pairs}
    rows, row_noise = float(source.rows or 0), 0.0
    if source.rows is None:
        counted = next(released)
        rows, row_noise = float(counted.sums), float(counted.deviation)
    sums |= {place: blocks[place, place] for place in places if place not in sums}  # counts by code
    measured = [sums[place] for place in places]
    gram = _read_gram(max(rows, 1.0), row_noise, target, measured, with_target, blocks, features)
    return _centre(gram)


def _sum_up(columns: tuple[int, ...], features: tuple[Feature, ...], weight: int) -> Statistic:
    """The products of one or two columns: numbers are multiplied, codes are cells."""
    coded = [column for column in dict.fromkeys(columns) if column != TARGET and isinstance(features[column], Coded)]
    numeric = tuple(column for column in columns if column not in coded)
    cells: tuple[RowCells, ...] = tuple(Codes(column) for column in coded)
    return Statistic(Moment(numeric) if numeric else None, cells, weight)


def _read_gram(  # noqa: PLR0917 - one caller
    rows: float,
    row_noise: float,
    target: Noisy,
    sums: list[Noisy],
    with_target: list[Noisy],
    blocks: dict[tuple[int, int], Noisy],
    features: tuple[Feature, ...],
) -> NoisyGram:
    """Noisy means of the columns, of the target and of their products."""
    gram, noise = _fill(sums, blocks)
    return NoisyGram(
        _join_sums(sums) / rows,
        float(target.sums) / rows,
        gram / rows,
        _join_sums(with_target) / rows,
        _join_deviations(sums) / rows,
        float(target.deviation) / rows,
        noise / rows,
        _join_deviations(with_target) / rows,
        row_noise / rows,
        np.concatenate([np.full(np.size(noisy_sum.sums), np.ndim(noisy_sum.sums) > 0) for noisy_sum in sums]),
        _list_directions(features),
        target.gaussian,
    )


def _join_sums(noisy: list[Noisy]) -> Floats:
    return np.concatenate([np.atleast_1d(noisy_sum.sums) for noisy_sum in noisy])


def _join_deviations(noisy: list[Noisy]) -> Floats:
    return np.concatenate([np.full(np.size(noisy_sum.sums), float(noisy_sum.deviation)) for noisy_sum in noisy])


def _list_directions(features: tuple[Feature, ...]) -> Floats:
    """What coefficients are determined: each of a number, and differences of those of a column's codes."""
    blocks = []
    for feature in features:
        if isinstance(feature, Numeric):
            blocks.append(np.ones((1, 1)) if feature.steps_per_unit > 0 else np.zeros((1, 0)))
        else:
            ones = np.ones((len(feature.categories), 1))
            blocks.append(np.linalg.qr(np.hstack([ones, np.eye(len(ones))[:, 1:]]))[0][:, 1:])
    directions = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        directions[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return directions


def _centre(gram: NoisyGram) -> Moments:
    """Means and covariances from means of one and of two columns. Noisy means are shrunk to the middle."""
    error, spare = gram.mean_noise, gram.target_noise**2
    means = np.clip(gram.means, -1, 1) * USUAL_MEAN / (USUAL_MEAN + error**2)
    target_mean = float(np.clip(gram.target_mean, -1, 1)) * USUAL_MEAN / (USUAL_MEAN + spare)
    ones = (means * error) ** 2
    return Moments(
        means,
        target_mean,
        gram.squares - np.outer(means, means),
        gram.products - means * target_mean,
        np.sqrt(gram.square_noise**2 + ones[:, None] + ones[None, :]),
        np.sqrt(gram.product_noise**2 + (target_mean * error) ** 2 + means**2 * spare),
        gram,
    )


def _fill(sums: list[Noisy], blocks: dict[tuple[int, int], Noisy]) -> tuple[Floats, Floats]:
    """The whole Gram matrix, and the deviation of the noise of each entry."""
    sizes = [int(np.size(noisy.sums)) for noisy in sums]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    gram, noise = np.zeros((starts[-1], starts[-1])), np.zeros((starts[-1], starts[-1]))
    for (one, two), noisy in blocks.items():
        rows, columns = slice(starts[one], starts[one + 1]), slice(starts[two], starts[two + 1])
        shape = (sizes[one], sizes[two])
        codes = one == two and np.ndim(noisy.sums) > 0  # two codes of one column exclude each other
        block = np.diag(noisy.sums) if codes else np.reshape(_turn(noisy.sums, shape), shape)
        spread = np.eye(shape[0]) if codes else np.ones(shape)
        gram[rows, columns], gram[columns, rows] = block, block.T
        noise[rows, columns] = spread * float(noisy.deviation)
        noise[columns, rows] = noise[rows, columns].T
    return gram, noise


def _turn(sums: Floats, shape: tuple[int, int]) -> Floats:
    return sums if sums.ndim < 2 or sums.shape == shape else sums.T


def solve(moments: Moments) -> Floats:
    """Coefficients that the noise cannot make large: see the module's text."""
    columns = len(moments.means)
    spread, target_spread = float(np.mean(moments.noise**2)), float(np.mean(moments.target_noise**2))
    eigenvalues, vectors = np.linalg.eigh((moments.covariance + moments.covariance.T) / 2)
    along = vectors.T @ moments.with_target
    positive = np.maximum(eigenvalues, 0)
    kept = np.maximum(eigenvalues, max(LEAST_EIGENVALUE * (spread * columns) ** 0.5, 1e-9))
    size = USUAL_COEFFICIENTS
    for _ in range(ROUNDS):  # the noise of a coefficient depends on the size of all
        noise = target_spread + spread * size
        signal = min(max(float(np.sum(along**2 - noise)), 0.0) / float(np.sum(kept**2)), MOST_COEFFICIENT)
        trust = kept**2 * signal / (kept**2 * signal + noise + 1e-15)
        found = trust * along / kept
        size = (size + min(float(np.sum(found**2)), 10.0)) / 2
    explained = float(np.sum(found * along)) - NOISE_EXPLAINED * float(np.sum(trust / kept)) * noise
    varied = float(np.sum(positive * found**2))
    shrink = min(max(explained / varied, 0.0), 1.0) if varied > 0 else 0.0
    coefficients: Floats = shrink * vectors @ (trust / kept * along)
    return coefficients


def _list_units(features: tuple[Feature, ...]) -> list[float]:
    """Scaled units in one unit of each column of the design."""
    return [
        unit
        for feature in features
        for unit in (
            [feature.steps_per_unit / SCALE] if isinstance(feature, Numeric) else [1.0] * len(feature.categories)
        )
    ]


def _list_middles(features: tuple[Feature, ...]) -> list[float]:
    return [
        middle
        for feature in features
        for middle in ([feature.middle] if isinstance(feature, Numeric) else [0.0] * len(feature.categories))
    ]


def _list_names(features: tuple[Feature, ...]) -> list[str]:
    return [
        name
        for feature in features
        for name in (
            [feature.name]
            if isinstance(feature, Numeric)
            else [f"{feature.name}={category}" for category in feature.categories]
        )
    ]


def _design(rows: RowArrays) -> Floats:
    """The columns that coefficients multiply: clamped numbers, and 0 and 1 for codes."""
    columns = []
    for place, feature in enumerate(rows.features):
        if isinstance(feature, Numeric):
            columns.append(rows.numbers(place)[:, None])
        else:
            codes = rows.codes(place)[:, None]
            columns.append((codes == np.arange(len(feature.categories))) & (codes != NO_CELL))
    return np.hstack(columns).astype(np.float64)
