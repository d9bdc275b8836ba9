"""Logistic regression: weights of scaled numeric features, and of each category of coded ones.

Fixed before the data is read: the bounds, categories and classes, the shares of the budget, and the most rounds. Paid
for: class counts, class sums of each feature, and the gradients of the rounds. The number of rounds follows from the
noisy class counts (linear_rounds.py has the details, and the sensitivity).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import KernelFault
from sfumato.learning.additive_model import AdditiveModel
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    encode_labels,
    open_source,
    record_fit,
    require_fitted,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Classes, Coded, Feature, Numeric
from sfumato.learning.linear_rounds import fit_linear
from sfumato.learning.model_scores import find_chances, score_rows
from sfumato.learning.row_cells import CodeGroups, Floats
from sfumato.number_arguments import Number


class LogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression. A column with declared `categories` has one weight for each category.

    `coef_` has one column for each name in `coef_names_`, and one row for each score: one for two classes, and one for
    each of more classes. `n_iter_` is the number of rounds that the budget allowed; with 0, the weights follow from
    the class sums of each feature alone. Shrinkage follows from the noise: there is no penalty to choose.
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
    ) -> "LogisticRegression":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        declared = Declared(
            self.epsilon, self.delta, self.bounds, self.categories, self.classes, neighbours=self.neighbours
        )
        columns = DatasetColumns(dataset, features, target, table, analyst)
        opened = open_source(X, y, columns, declared, "classes")
        labels = opened.source.target
        if not isinstance(labels, Classes):
            raise KernelFault("A classifier has a target with classes.")
        fitted = fit_linear(opened.source, len(labels.labels))
        record_fit(self, opened)
        self.classes_ = encode_labels(labels.labels)
        self.n_iter_ = fitted.rounds
        self.coef_names_, self.coef_, self.intercept_ = _find_weights(fitted.model, opened.source.features)
        self._model, self._joint = fitted.model, fitted.joint
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The log-odds of the second of two classes; of more classes, one column for each."""
        scores = score_rows(self, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """P(class | row), one column for each class."""
        scores = score_rows(self, X)
        return find_chances(scores, len(self.classes_), joint=self._joint)

    def predict(self, X: object) -> np.ndarray[Any, Any]:  # noqa: N803
        """The likeliest class of each row."""
        require_fitted(self, "classes_")
        predicted: np.ndarray[Any, Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return predicted


def _find_weights(model: AdditiveModel, features: tuple[Feature, ...]) -> tuple[tuple[str, ...], Floats, Floats]:
    """The names, weights and intercepts, in units of the features. A category's weight is for the value 1 or 0."""
    slopes = {slope.feature: slope.values for slope in model.slopes}
    tables = {term.cells.feature: term for term in model.terms}
    names: list[str] = []
    weights: list[Floats] = []
    intercepts = model.intercepts.copy()
    for place, feature in enumerate(features):
        match feature:
            case Numeric(name, lower, upper):
                half = (upper - lower) / 2
                weight = slopes[place] / half if half > 0 else np.zeros_like(slopes[place])
                intercepts -= weight * feature.middle
                names.append(name)
                weights.append(weight)
            case Coded(name, categories):
                term = tables[place]
                groups = term.cells.groups if isinstance(term.cells, CodeGroups) else ()
                names += [f"{name}={category}" for category in categories]
                weights += [term.values[group] for group in groups]
    return tuple(names), np.stack(weights, axis=1), intercepts
