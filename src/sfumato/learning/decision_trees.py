"""A decision tree and a forest of them. noisy_trees.py says how they are grown, what is fixed and what is paid for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.errors import InvalidParameter
from sfumato.learning.estimator_arguments import (
    DatasetColumns,
    Declared,
    count_columns,
    encode_labels,
    open_source,
    read_rows,
    record_fit,
)
from sfumato.learning.estimator_cards import bundle_estimator, write_estimator_html
from sfumato.learning.feature_columns import Classes
from sfumato.learning.noisy_statistics import choose_delta
from sfumato.learning.noisy_trees import TreeSettings, grow_trees, predict_shares
from sfumato.learning.public_choices import read_choices
from sfumato.learning.row_cells import Floats
from sfumato.number_arguments import Number, read_whole_number

MOST_DEPTH = 12
ROWS_FOR_A_TREE, ROWS_FOR_A_FOREST = 8, 64  # see TreeSettings.least_rows: random tests suit a forest, not one tree


class DecisionTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree whose nodes of one depth have the same test. At most `max_depth` tests lead to a leaf.

    The price is `epsilon`, or (`epsilon`, `delta`) if `delta` is above 0. `random_state` is a public
    seed of the choices that are random; without one, each fit draws its own. It does not repeat the noise.
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
        max_depth: int = 8,
        neighbours: str = "add-remove",
        random_state: object = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.max_depth = max_depth
        self.neighbours = neighbours
        self.random_state = random_state

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
    ) -> "DecisionTreeClassifier":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        settings = TreeSettings(_read_depth(self.max_depth), 1, ROWS_FOR_A_TREE, random_tests=False)
        _fit(self, X, y, DatasetColumns(dataset, features, target, table, analyst), settings)
        return self

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """P(class | row)."""
        rows = read_rows(self, X)
        return predict_shares(self.trees_, rows)

    def predict_log_proba(self, X: object) -> Floats:  # noqa: N803
        """The logarithm of P(class | row)."""
        logarithms: Floats = np.log(self.predict_proba(X))
        return logarithms

    def predict(self, X: object) -> np.ndarray[Any, Any]:  # noqa: N803
        """The likeliest class of each row."""
        chances = self.predict_proba(X)
        predicted: np.ndarray[Any, Any] = self.classes_[np.argmax(chances, axis=1)]
        return predicted


class RandomForestClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """At most `n_estimators` trees of at most `max_depth` tests. The fewer rows, the fewer trees are grown.

    The price is `epsilon`, or (`epsilon`, `delta`) if `delta` is above 0. `random_state` is a public
    seed of the choices that are random; without one, each fit draws its own. It does not repeat the noise.
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
        n_estimators: int = 30,
        max_depth: int = 7,
        neighbours: str = "add-remove",
        random_state: object = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.neighbours = neighbours
        self.random_state = random_state

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
    ) -> "RandomForestClassifier":
        """Spend the budget on arrays, or on columns of a protected dataset."""
        trees = read_whole_number(self.n_estimators, "n_estimators", 1)
        settings = TreeSettings(_read_depth(self.max_depth), trees, ROWS_FOR_A_FOREST, random_tests=True)
        _fit(self, X, y, DatasetColumns(dataset, features, target, table, analyst), settings)
        return self

    predict_proba = DecisionTreeClassifier.predict_proba
    predict_log_proba = DecisionTreeClassifier.predict_log_proba
    predict = DecisionTreeClassifier.predict


def _fit(model: Any, X: object, y: object, columns: DatasetColumns, settings: TreeSettings) -> None:  # noqa: ANN401, N803
    choices = read_choices(model.random_state)
    statistics = max(count_columns(X, columns), settings.trees)  # of the call that has most of them
    delta = choose_delta(model.epsilon, model.delta, statistics, columns.budget)
    declared = Declared(
        model.epsilon, delta, model.bounds, model.categories, model.classes,
        neighbours=model.neighbours,
    )  # fmt: skip
    opened = open_source(X, y, columns, declared, "classes")
    trees = grow_trees(opened.source, settings, choices)
    record_fit(model, opened)
    if isinstance(opened.source.target, Classes):
        model.classes_ = encode_labels(opened.source.target.labels)
    model.trees_ = trees


def _read_depth(max_depth: object) -> int:
    depth = read_whole_number(max_depth, "max_depth", 1)
    if depth > MOST_DEPTH:
        raise InvalidParameter("max_depth", f"must be at most {MOST_DEPTH}", "a larger number")
    return depth
