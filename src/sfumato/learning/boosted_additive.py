"""Boosted additive models: the sum of one function of each feature, which can be plotted.

Fixed before the data is read: the bounds, categories and classes; `bins` of equal width for each numeric feature;
the number of `rounds`; the shares of the budget (3/10 for the first histograms, the rest in equal parts for rounds).
Paid for: a histogram of the target for each feature, and in each round the residuals of each feature that is left.
Merging bins, choosing features, step sizes and bands follow from these noisy sums, and cost nothing more
(additive_rounds.py has the details, and the sensitivity).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.drawing.figure import Figure
from sfumato.errors import InvalidParameter, KernelFault
from sfumato.learning.additive_rounds import fit_additive
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    Opened,
    encode_labels,
    open_source,
    record_fit,
    require_fitted,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Classes, Numeric
from sfumato.learning.model_scores import find_chances, score_rows
from sfumato.learning.row_cells import Floats
from sfumato.learning.shape_functions import list_shape_functions, plot_shape_functions
from sfumato.number_arguments import Number, read_whole_number

MOST_BINS, MOST_ROUNDS = 1_000, 1_000


class BoostedAdditiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An explainable classifier: the log-odds of a class are a sum of one function of each feature.

    With more than two classes, each class has a score of its own (one against the rest).

    `shape_functions_` has the function of each feature with a band for its noise; `plot_shapes()` draws them.
    `delta=0` (default) is pure: Laplace noise. With `delta` above 0, Gaussian noise gives a better model.
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
        bins: int = 128,
        rounds: int = 4,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.bins = bins
        self.rounds = rounds
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
    ) -> "BoostedAdditiveClassifier":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        declared = Declared(
            self.epsilon, self.delta, self.bounds, self.categories, self.classes, neighbours=self.neighbours
        )
        bins, rounds = _read_sizes(self.bins, self.rounds)
        columns = DatasetColumns(dataset, features, target, table, analyst)
        opened = open_source(X, y, columns, declared, "classes")
        labels = opened.source.target
        if not isinstance(labels, Classes):
            raise KernelFault("A classifier has a target with classes.")
        _fit(self, opened, bins, rounds)
        self.classes_ = encode_labels(labels.labels)
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The log-odds of the second of two classes; of more classes, one column for each."""
        scores = score_rows(self, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """P(class | row), one column for each class."""
        return find_chances(score_rows(self, X), len(self.classes_))

    def predict(self, X: object) -> np.ndarray[Any, Any]:  # noqa: N803
        """The likeliest class of each row."""
        require_fitted(self, "classes_")
        predicted: np.ndarray[Any, Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return predicted

    def plot_shapes(self) -> Figure:
        """The function of each feature, with a band for its noise. `save` writes the figure as SVG or HTML."""
        require_fitted(self, "shape_functions_")
        scores = ["log-odds"] if len(self.classes_) == 2 else [str(label) for label in self.classes_]
        unit = f"log-odds of {self.classes_[1]}" if len(self.classes_) == 2 else "log-odds"
        return plot_shape_functions(self.shape_functions_, scores, unit)


class BoostedAdditiveRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An explainable regression: the prediction is a sum of one function of each feature.

    The target is clamped to `target_bounds`, and so is every prediction. A residual above half of their width is
    clamped to it. `shape_functions_` are in units of the target.
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
        target_bounds: object = None,
        bins: int = 128,
        rounds: int = 4,
        neighbours: str = "add-remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.target_bounds = target_bounds
        self.bins = bins
        self.rounds = rounds
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
    ) -> "BoostedAdditiveRegressor":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        declared = Declared(
            self.epsilon,
            self.delta,
            self.bounds,
            self.categories,
            target_bounds=self.target_bounds,
            neighbours=self.neighbours,
        )
        bins, rounds = _read_sizes(self.bins, self.rounds)
        columns = DatasetColumns(dataset, features, target, table, analyst)
        opened = open_source(X, y, columns, declared, "number")
        number = opened.source.target
        if not isinstance(number, Numeric):
            raise KernelFault("A regression has a target with bounds.")
        _fit(self, opened, bins, rounds, number)
        self._target = number
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The expected target of each row, between the target's bounds."""
        scores = score_rows(self, X)[:, 0]
        predicted: Floats = np.clip(scores, self._target.lower, self._target.upper)
        return predicted

    def plot_shapes(self) -> Figure:
        """The function of each feature, with a band for its noise. `save` writes the figure as SVG or HTML."""
        require_fitted(self, "shape_functions_")
        return plot_shape_functions(self.shape_functions_, ["target"], self._target.name)


def _read_sizes(bins: object, rounds: object) -> tuple[int, int]:
    read = read_whole_number(bins, "bins", 2), read_whole_number(rounds, "rounds", 1)
    for name, value, most in (("bins", read[0], MOST_BINS), ("rounds", read[1], MOST_ROUNDS)):
        if value > most:
            raise InvalidParameter(name, f"must be at most {most:,}", "a larger number")
    return read


def _fit(estimator: Any, opened: Opened, bins: int, rounds: int, target: Numeric | None = None) -> None:  # noqa: ANN401
    """Fit the model, and store it in units of the target."""
    model = fit_additive(opened.source, bins, rounds)
    if target is not None:
        half = (target.upper - target.lower) / 2
        model = model.rescale(half, target.middle)
    record_fit(estimator, opened)
    estimator.intercept_ = model.intercepts
    estimator.shape_functions_ = list_shape_functions(model, opened.source.features)
    estimator._model = model
