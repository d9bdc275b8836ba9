"""Naive Bayes: one noisy statistic for each feature and class, all in one scan.

Fixed: bounds, categories, classes, bins, the shares of the budget. Paid for: everything that depends on the data. A
tenth of the price counts the rows of each class. The features share the rest equally. A numeric feature takes 1, x and
x² by class (`Powers`); with Laplace noise all numeric features are measured together (joint_sums.py). A coded feature,
or a binned one, takes a count by code and class.

Everything after that is post-processing. Noisy class means are shrunk to the mean of all classes, and class variances
to the variance within classes, by as much as the known scale of the noise says. The uncertainty of a mean is added to
its variance, so a feature that is lost in the noise has little say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.learning.coefficient_margins import bound_ratio, bound_shares, find_margin
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    count_columns,
    encode_labels,
    open_source,
    read_rows,
    record_fit,
    require_fitted,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Classes, Coded, Feature, Numeric
from sfumato.learning.noisy_statistics import Noisy, Statistic, StatisticSource, choose_delta
from sfumato.learning.row_cells import Bins, Codes, Floats, Labels, RowCells, number_cells
from sfumato.learning.row_functions import Powers
from sfumato.number_arguments import Number, read_whole_number

COUNT_PART = 10  # the counts of the classes take one part in so many of the price
LEAST_CLASS = 0.02  # of the rows: a class is never read as rarer
USUAL_VARIANCE = 0.05  # of a scaled column within a class, before the data says more
LEAST_VARIANCE = 0.02  # of a scaled column within all classes
VARIANCE_SPREAD = 0.2  # by how much, in relation to its size, the variance of classes usually differs
LEAST_RATIO = 0.1  # a class's variance is never read as a smaller part of that of all classes
LEAST_CHANCE = 1e-3  # of a code, in relation to what independence of the class would give


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Noisy numbers of rows in each class, kept away from zero, and their share."""

    counts: Floats
    deviation: float

    @property
    def shares(self) -> Floats:
        shares: Floats = self.counts / self.counts.sum()
        return shares


class GaussianNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian naive Bayes. Columns with declared `categories` are read as codes, with a table of chances.

    The price is `epsilon`, or (`epsilon`, `delta`) if `delta` is above 0.
    """

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number = 0,
        bounds: object = None,
        categories: object = None,
        classes: object = None,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
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
    ) -> "GaussianNB":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        _fit(self, X, y, DatasetColumns(dataset, features, target, table, analyst), None)
        return self

    def predict_joint_log_proba(self, X: object) -> Floats:  # noqa: N803
        """The logarithm of P(class) P(row | class), up to a constant."""
        return _score_rows(self, X)

    def predict_log_proba(self, X: object) -> Floats:  # noqa: N803
        """The logarithm of P(class | row)."""
        return _normalise(_score_rows(self, X))

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """P(class | row)."""
        chances: Floats = np.exp(_normalise(_score_rows(self, X)))
        return chances

    def predict(self, X: object) -> np.ndarray[Any, Any]:  # noqa: N803
        """The likeliest class of each row."""
        require_fitted(self, "classes_")
        predicted: np.ndarray[Any, Any] = self.classes_[np.argmax(_score_rows(self, X), axis=1)]
        return predicted

    def mean_intervals(self, confidence: Number = "0.95") -> tuple[Floats, Floats]:
        """Bounds of the class means over the data (clamped to their bounds): for each mean, with this confidence.

        They follow from the noise alone: the sum and the count are each within their margin. A column of codes has NaN.
        """
        require_fitted(self, "classes_")
        low, high = np.full(self.theta_.shape, np.nan), np.full(self.theta_.shape, np.nan)
        for place, (feature, noisy) in enumerate(zip(self._features, self._measured, strict=True)):
            if isinstance(feature, Numeric):
                margin = find_margin(noisy, confidence, parts=2)
                ends = bound_ratio(noisy.sums[:, 1], margin[1], noisy.sums[:, 0], margin[0])
                half = (feature.upper - feature.lower) / 2
                low[:, place], high[:, place] = (feature.middle + half * end for end in ends)
        return low, high

    def chance_intervals(self, confidence: Number = "0.95") -> list[tuple[Floats, Floats] | None]:
        """Bounds of the share of a class's rows that have a code: for each column, arrays of classes x codes or bins.

        Each holds with this confidence. They follow from the noise alone: the count of the code and that of the class
        are each within their margin. A column whose mean and variance are measured has None.
        """
        require_fitted(self, "classes_")
        return [
            None if cells is None else bound_shares(noisy, self._class_counts, confidence)
            for cells, noisy in zip(self._partitions, self._measured, strict=True)
        ]


class CategoricalNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes on codes: a table of chances for each column. Numeric columns are cut into `bins` equal bins."""

    _repr_html_ = write_estimator_html
    _repr_mimebundle_ = bundle_estimator

    def __init__(
        self,
        epsilon: Number = 1.0,
        *,
        delta: Number = 0,
        bounds: object = None,
        categories: object = None,
        classes: object = None,
        bins: int = 16,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.bins = bins
        self.neighbours = neighbours

    def fit(
        self,
        X: object = None,  # noqa: N803
        y: object = None,
        *,
        dataset: object = None,
        features: Sequence[str] | None = None,
        target: str | None = None,
        table: str | None = None,
        analyst: str = DEFAULT_ANALYST,
    ) -> "CategoricalNB":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        columns = DatasetColumns(dataset, features, target, table, analyst)
        _fit(self, X, y, columns, read_whole_number(self.bins, "bins", 1))
        return self

    predict_joint_log_proba = GaussianNB.predict_joint_log_proba
    predict_log_proba = GaussianNB.predict_log_proba
    predict_proba = GaussianNB.predict_proba
    predict = GaussianNB.predict
    chance_intervals = GaussianNB.chance_intervals


def _fit(model: Any, X: object, y: object, columns: DatasetColumns, bins: int | None) -> None:  # noqa: ANN401, N803
    statistics, powers = count_columns(X, columns), bins is None
    delta = choose_delta(model.epsilon, model.delta, statistics, columns.budget, powers=powers)
    opened = open_source(X, y, columns, _declare(model, delta), "classes")
    source = opened.source
    coded = [_cut(place, feature, bins) for place, feature in enumerate(source.features)]
    of_classes, measured = _measure(source, coded)
    counted = _combine_counts(of_classes, measured, coded)
    record_fit(model, opened)
    if isinstance(source.target, Classes):
        model.classes_ = encode_labels(source.target.labels)
    model.class_count_, model.class_prior_ = counted.counts, counted.shares
    model._partitions, model._measured, model._class_counts = coded, measured, of_classes
    if bins is None:  # a column of codes has no mean and no variance
        model.theta_ = np.full((len(counted.counts), len(coded)), np.nan)
        model.var_ = np.full_like(model.theta_, np.nan)
    model.feature_log_prob_ = [None] * len(coded)
    spread = _find_spread(measured, coded, counted)
    dependence = _find_dependence(measured, coded, counted)
    for place, (feature, cells, noisy) in enumerate(zip(source.features, coded, measured, strict=True)):
        if cells is None and isinstance(feature, Numeric):
            means, variances = shrink_moments(noisy, counted, spread)
            half = (feature.upper - feature.lower) / 2
            model.theta_[:, place] = feature.middle + half * means
            model.var_[:, place] = np.maximum(half**2, 1e-300) * variances
        else:
            model.feature_log_prob_[place] = shrink_table(noisy, counted, dependence)


def _declare(model: Any, delta: Number) -> Declared:  # noqa: ANN401
    return Declared(
        model.epsilon, delta, model.bounds, model.categories, model.classes, neighbours=model.neighbours
    )  # fmt: skip


def _cut(place: int, feature: Feature, bins: int | None) -> RowCells | None:
    """The partition of a coded or binned feature; None for a numeric one whose mean and variance are measured."""
    if isinstance(feature, Coded):
        return Codes(place)
    if bins is None:
        return None
    return Bins(place, cut_evenly(feature, bins))


def cut_evenly(feature: Numeric, bins: int) -> tuple[float, ...]:
    """The inner edges of equally wide bins between the bounds."""
    edges = np.linspace(feature.lower, feature.upper, bins + 1)[1:-1]
    return tuple(sorted({float(edge) for edge in edges}))


def _measure(source: StatisticSource, coded: list[RowCells | None]) -> tuple[Noisy, list[Noisy]]:
    """The rows of each class, and the statistic of each feature. One call: one scan for each partition."""
    features = [
        Statistic(Powers(place), (Labels(),), COUNT_PART - 1)
        if cells is None
        else Statistic(None, (cells, Labels()), COUNT_PART - 1)
        for place, cells in enumerate(coded)
    ]
    whole = [Statistic(None, (Labels(),), len(coded)), *features]
    counted, *measured = source.release(whole, Fraction(1))
    return counted, measured


def _combine_counts(counted: Noisy, measured: list[Noisy], coded: list[RowCells | None]) -> ClassCounts:
    """The average of all noisy counts of the classes, weighted by their noise."""
    weights = [float(counted.deviation) ** -2 if counted.deviation else 1e12]
    totals = [counted.sums]
    for noisy, cells in zip(measured, coded, strict=True):
        if cells is None:
            totals.append(noisy.sums[:, 0])
            weights.append(float(noisy.deviation[0]) ** -2 if noisy.deviation[0] else 1e12)
            if noisy.box is not None:  # features that are measured together have one count
                break
    counts = np.average(totals, axis=0, weights=weights)
    least = max(1.0, LEAST_CLASS * max(float(counts.sum()), 1.0))
    return ClassCounts(np.maximum(counts, least), float(np.sum(weights) ** -0.5))


def _centre(noisy: Noisy, counted: ClassCounts) -> tuple[Floats, Floats, float]:
    """Class means of a scaled column, the variance of their noise, and the mean of all classes."""
    rows = counted.counts.sum()
    means = noisy.sums[:, 1] / counted.counts
    noise = (float(noisy.deviation[1]) / counted.counts) ** 2
    spare = (float(noisy.deviation[1]) * len(means) ** 0.5 / rows) ** 2
    middle = float(np.clip(noisy.sums[:, 1].sum() / rows, -1, 1)) / (1 + spare / (2 * USUAL_VARIANCE))
    return means, noise, middle


def _find_spread(measured: list[Noisy], coded: list[RowCells | None], counted: ClassCounts) -> float:
    """The variance of class means around the mean of all classes, on average over the numeric features, less noise."""
    found = []
    for noisy, cells in zip(measured, coded, strict=True):
        if cells is None:
            means, noise, middle = _centre(noisy, counted)
            found.append(max(float(np.sum(counted.shares * ((means - middle) ** 2 - noise))), 0.0))
    return float(np.mean(found)) if found else 0.0


def shrink_moments(noisy: Noisy, counted: ClassCounts, spread: float) -> tuple[Floats, Floats]:
    """The mean and the variance of a scaled column in each class."""
    shares, rows = counted.shares, counted.counts.sum()
    means, noise, middle = _centre(noisy, counted)
    trust = spread / (spread + noise + 1e-12)
    shrunk = np.clip(middle + trust * (means - middle), -1, 1)
    squares = _adjust_squares(noisy, counted)
    deviation = float(noisy.deviation[2])
    spare = (deviation * len(means) ** 0.5 / rows) ** 2
    within = squares.sum() / rows - np.sum(shares * shrunk**2)
    usual = USUAL_VARIANCE**2
    pooled = float(np.clip((within * usual + USUAL_VARIANCE * spare) / (usual + spare), LEAST_VARIANCE, 1.0))
    error = (deviation / counted.counts) ** 2 + 4 * shrunk**2 * noise
    usual = (VARIANCE_SPREAD * pooled) ** 2
    own = squares / counted.counts - means**2 + noise
    variances = pooled + usual / (usual + error) * (own - pooled)
    return shrunk, np.maximum(variances, LEAST_RATIO * pooled) + trust * noise


def _adjust_squares(noisy: Noisy, counted: ClassCounts) -> Floats:
    """The sums of squares. With Laplace noise, a third of the noise of the feature's own count is in them."""
    if noisy.gaussian or noisy.box is not None:
        return noisy.sums[:, 2]
    adjusted: Floats = noisy.sums[:, 2] - (noisy.sums[:, 0] - counted.counts) / 3
    return adjusted


def _expect(noisy: Noisy, counted: ClassCounts) -> Floats:
    """The counts by code and class that independence of code and class would give."""
    codes = np.maximum(noisy.sums.sum(axis=1), 0.0) + 1e-9
    expected: Floats = np.outer(codes, counted.shares)
    return expected


def _find_dependence(measured: list[Noisy], coded: list[RowCells | None], counted: ClassCounts) -> float:
    """How far counts differ from independence, in relation to their size: the average of its square, less noise."""
    moved = size = 0.0
    for noisy, cells in zip(measured, coded, strict=True):
        if cells is not None:
            expected = _expect(noisy, counted)
            moved += float(np.sum((noisy.sums - expected) ** 2 - float(noisy.deviation) ** 2))
            size += float(np.sum(expected**2))
    return max(moved, 0.0) / size if size else 0.0


def shrink_table(noisy: Noisy, counted: ClassCounts, dependence: float) -> Floats:
    """ln P(code | class), classes first."""
    expected = _expect(noisy, counted)
    usual = dependence * expected**2
    trust = usual / (usual + float(noisy.deviation) ** 2 + 1e-12)
    shrunk = expected + trust * (noisy.sums - expected)
    chances = np.maximum(shrunk, LEAST_CHANCE * expected)
    table: Floats = np.log(chances / chances.sum(axis=0)).T
    return table


def _score_rows(model: Any, X: object) -> Floats:  # noqa: ANN401, N803
    rows = read_rows(model, X)
    scores = np.tile(np.log(model.class_prior_), (len(rows), 1))
    for place, cells in enumerate(model._partitions):
        if cells is None:
            scores += _score_numbers(rows.numbers(place)[:, None], model.theta_[:, place], model.var_[:, place])
        else:
            table = model.feature_log_prob_[place]
            padded = np.hstack([table, np.zeros((len(table), 1))])  # an undeclared code has no say
            scores += padded.T[number_cells(cells, rows)]
    return scores


def _score_numbers(numbers: Floats, means: Floats, variances: Floats) -> Floats:
    scores: Floats = -0.5 * (np.log(variances) + (numbers - means) ** 2 / variances)
    return scores


def _normalise(scores: Floats) -> Floats:
    away = scores - scores.max(axis=1, keepdims=True, initial=-np.inf)
    normalised: Floats = away - np.log(np.exp(away).sum(axis=1, keepdims=True))
    return normalised
