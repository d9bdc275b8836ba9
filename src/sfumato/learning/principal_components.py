"""Principal components of a noisy covariance matrix.

Fixed: bounds, the shares of the budget. Paid for:

- A third of the price measures 1, x and x² of every column (`Powers`): the number of rows, the means, the variances.
- The rest measures the products of pairs of columns, together. Each product is in [-1, 1] for each row. If there are
  too many pairs for the noisy number of rows, only the columns with the largest noisy variances take part, and the
  others count as uncorrelated.

A bound on the norm of a row is not used: a person moves the sums within the box that follows from the bounds of the
columns, and the noise is made for that box (box noise, or Gaussian noise).

The noisy means and covariances are shrunk by as much as the known scale of the noise says. The matrix is projected to
the nearest one without negative eigenvalues. All of that is post-processing.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import InvalidParameter
from sfumato.learning.column_spreads import ColumnSpreads, measure_spreads
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    count_columns,
    open_source,
    read_rows,
    record_fit,
    require_fitted,
    require_numeric,
    require_rows,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.noisy_statistics import Statistic, StatisticSource, choose_delta
from sfumato.learning.row_cells import Floats
from sfumato.learning.row_functions import Moment
from sfumato.number_arguments import Number, read_whole_number

SPREAD_SHARE = Fraction(1, 3)
# of a covariance of two columns, scaled to -1 to 1: with more noise, fewer columns take part. It is in deviations of
# Laplace noise or of Gaussian noise; box noise has √6 times less.
MOST_NOISE = 0.15


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components. Columns are not scaled: their declared bounds say how large they are.

    The price is `epsilon`, or (`epsilon`, `delta`) if `delta` is above 0. `n_components`: all, if it is None.
    """

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number = 1.0,
        delta: Number = 0,
        bounds: object = None,
        neighbours: str = "add-remove",
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours

    def fit(
        self,
        X: object = None,  # noqa: N803 - scikit-learn's name
        y: object = None,
        *,
        dataset: object = None,
        features: Sequence[str] | None = None,
        table: str | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> "PCA":
        """Spend the budget on an array, or on columns of a protected dataset."""
        columns = DatasetColumns(dataset, features, None, table, analyst)
        pairs = count_columns(X, columns) ** 2 // 2
        delta = choose_delta(self.epsilon, self.delta, max(pairs, 1), columns.budget, together=True)
        declared = Declared(self.epsilon, delta, self.bounds, neighbours=self.neighbours)
        opened = open_source(X, None, columns, declared, "nothing")
        source = opened.source
        wanted = _read_components(self.n_components, len(source.features))
        numeric = require_numeric(source.features, "principal components")
        half = np.array([(feature.upper - feature.lower) / 2 for feature in numeric])
        if len(half) > 1:  # all pairs, or only one
            pairs, one = len(half) * (len(half) - 1) // 2, Statistic(Moment((0, 1)))
            source.foresee([(one, (1 - SPREAD_SHARE) / pairs), (one, 1 - SPREAD_SHARE)])
        spreads = measure_spreads(source, SPREAD_SHARE if len(half) > 1 else Fraction(1))
        covariances = measure_covariances(source, spreads, half)
        record_fit(self, opened)
        self.mean_ = np.array([feature.middle for feature in numeric]) + half * spreads.means
        _record_components(self, half[:, None] * covariances * half, wanted)
        return self

    def fit_transform(self, X: object, y: object = None, **fit: Any) -> Floats:  # noqa: N803, ANN401
        """Fit, and then the rows of X as multiples of the components. That is a property of the rows, not private."""
        require_rows(X, "fit_transform")
        return self.fit(X, y, **fit).transform(X)

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Rows (clamped to the bounds) as multiples of the components."""
        rows = read_rows(self, X)
        numbers = np.column_stack([rows.numbers(place) for place in range(len(self._features))])
        transformed: Floats = (numbers - self.mean_) @ self.components_.T
        return transformed

    def inverse_transform(self, X: object) -> Floats:  # noqa: N803
        """Multiples of the components, back in the columns of `fit`."""
        require_fitted(self, "components_")
        restored: Floats = np.asarray(X, np.float64) @ self.components_ + self.mean_
        return restored

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def _read_components(n_components: object, columns: int) -> int:
    wanted = columns if n_components is None else read_whole_number(n_components, "n_components", 1)
    if wanted > columns:
        raise InvalidParameter("n_components", f"must be at most the number of columns, {columns}", "a larger number")
    return wanted


def measure_covariances(source: StatisticSource, spreads: ColumnSpreads, half: Floats) -> Floats:
    """The covariance matrix of the scaled columns. Noisy covariances are shrunk towards 0."""
    covariances = np.diag(spreads.variances)
    if len(half) == 1:
        return covariances
    share = 1 - SPREAD_SHARE
    pairs = _choose_pairs(spreads, half, share)
    released = source.release([Statistic(Moment(pair)) for pair in pairs], share)
    noise = float(released[0].deviation) / spreads.rows
    found = np.array([float(noisy.sums) for noisy in released]) / spreads.rows
    first, second = np.array(pairs).T
    found -= spreads.means[first] * spreads.means[second]
    power = float(np.sum(found**2))
    found *= max(1 - len(found) * noise**2 / power, 0.0) if power > 0 else 0.0
    most = np.sqrt(spreads.variances[first] * spreads.variances[second])
    covariances[first, second] = covariances[second, first] = np.clip(found, -most, most)
    return covariances


def _choose_pairs(spreads: ColumnSpreads, half: Floats, share: Fraction) -> list[tuple[int, int]]:
    """Pairs of the columns with the largest noisy variances: as many as the noise allows, and at least one."""
    strength = MOST_NOISE * spreads.signal
    most = float(share) * (strength**2 if spreads.gaussian else strength)
    columns = int(np.clip((1 + math.sqrt(1 + 8 * max(most, 0.0))) / 2, 2, len(half)))
    largest = np.sort(np.argsort(-spreads.variances * half**2, kind="stable")[:columns])
    return list(combinations(largest.tolist(), 2))


def _record_components(model: PCA, covariances: Floats, wanted: int) -> None:
    values, vectors = np.linalg.eigh(covariances)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
    signs = np.sign(vectors[np.arange(len(vectors)), np.argmax(np.abs(vectors), axis=1)])
    total = max(float(values.sum()), 1e-300)
    model.n_components_ = wanted
    model.components_ = (vectors * signs[:, None])[:wanted]
    model.explained_variance_ = values[:wanted]
    model.explained_variance_ratio_ = values[:wanted] / total
