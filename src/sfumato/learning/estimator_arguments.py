"""What every estimator reads the same way: the arguments of its constructor and of `fit`."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato.answering.desk import DEFAULT_ANALYST
from sfumato.answering.private_tables import choose_private_table
from sfumato.curator import Curator
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.extras import imported
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import ArrayStatistics
from sfumato.learning.curator_statistics import CuratorStatistics
from sfumato.learning.feature_columns import (
    Classes,
    Coded,
    Feature,
    Numeric,
    Target,
    declare_features,
    find_declared_classes,
    find_declared_features,
    find_declared_number,
    read_bounds,
    read_values,
)
from sfumato.learning.noisy_statistics import Statistic, StatisticSource, read_price
from sfumato.learning.row_arrays import (
    NUMBERS,
    ArrayTable,
    RowArrays,
    name_type,
    read_column,
    read_table,
    take_only_column,
)
from sfumato.learning.row_cells import Labels
from sfumato.number_arguments import Number

Predicts = Literal["classes", "number", "nothing"]
LISTED_FROM_DATA = ("category", "categorical", "dictionary")  # types of pandas, polars and Arrow
WHOLE_LABELS = tuple(range(100))  # the possible labels of arrays whose classes are not declared
LABEL_SHARE = Fraction(1, 5)  # of the price: finding the labels in use
SURE = 4  # of 100 fits, about one keeps a label for its noise alone


class LabelWarning(UserWarning):
    """No label of y stands out of the noise. It follows from noisy counts, and is safe to show."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An estimator's declarations, as its constructor was given them."""

    epsilon: Number
    delta: Number = 0
    bounds: object = None
    categories: object = None
    classes: object = None
    target_bounds: object = None
    neighbours: str = "add-remove"


@dataclass(frozen=True, slots=True)
class DatasetColumns:
    """The columns of a protected dataset that `fit` was given."""

    dataset: object
    features: Sequence[str] | None = None
    target: str | None = None
    table: str | None = None
    analyst: str = DEFAULT_ANALYST

    @property
    def budget(self) -> PrivacyLoss | None:
        """The budget that a fit charges; None for arrays. What is no dataset is refused when the source is opened."""
        return self.dataset.dataset.budget.loss if isinstance(self.dataset, Curator) else None


@dataclass(frozen=True, slots=True)
class Opened:
    """A source of statistics, and the names of its features if they have names."""

    source: StatisticSource
    names: tuple[str, ...] | None


def open_source(
    X: object,  # noqa: N803 - scikit-learn's name
    y: object,
    columns: DatasetColumns,
    declared: Declared,
    predicts: Predicts,
) -> Opened:
    """The source that `fit` was given: arrays, or columns of a protected dataset. Nothing is charged yet."""
    if columns.dataset is None:
        if columns.features is not None or columns.target is not None:
            hint = "Pass fit(dataset=..., features=[...], target=...), or fit(X, y)."
            raise InvalidParameter("features and target", "must be given with a dataset", "no dataset", hint)
        return _open_arrays(X, y, declared, predicts)
    if X is not None or y is not None:
        hint = "Pass fit(dataset=..., features=[...], target=...), or fit(X, y)."
        raise InvalidParameter("X and y", "must not be given with a dataset", "both", hint)
    if not isinstance(columns.dataset, Curator):
        hint = "Pass what sf.protect or sf.open returns."
        raise InvalidParameter("dataset", "must be a protected dataset", describe_kind(columns.dataset), hint)
    return _open_dataset(columns.dataset, columns, declared, predicts)


def _open_dataset(curator: Curator, columns: DatasetColumns, declared: Declared, predicts: Predicts) -> Opened:
    for name in ("bounds", "categories", "target_bounds"):
        if getattr(declared, name) is not None:
            hint = f"Remove {name}: the dataset's catalog declares it."
            raise InvalidParameter(name, "must not be given with a dataset", "both", hint)
    if columns.features is None or (columns.target is None) != (predicts == "nothing"):
        wanted = "features" if predicts == "nothing" else "features and target"
        raise InvalidParameter(wanted, "must be given with a dataset", "something else", "Name columns of a table.")
    table = choose_private_table(curator.dataset, columns.table, "A public table needs no noise.")
    features = find_declared_features(table, columns.features)
    target: Target | None = None
    if columns.target is not None:
        if predicts == "classes":
            target = find_declared_classes(table, columns.target, declared.classes)
        else:
            target = find_declared_number(table, columns.target)
        if target.name in {feature.name for feature in features}:
            raise InvalidParameter("features", "must not hold the target", "it too")
    price = read_price(declared.epsilon, declared.delta, curator.dataset.budget.loss)
    source = CuratorStatistics(curator, table, features, target, price, columns.analyst)
    return Opened(source, tuple(feature.name for feature in features))


def _open_arrays(X: object, y: object, declared: Declared, predicts: Predicts) -> Opened:  # noqa: N803
    price, neighbours = read_price(declared.epsilon, declared.delta), Neighbours.read(declared.neighbours)
    table = _read_array_table(X)
    features = declare_features(name_columns(table), declared.bounds, declared.categories)
    labels = take_only_column(y)
    held = None if predicts == "nothing" else read_column(labels, table.rows)
    target = _declare_target(declared, predicts, labels, held)
    source = ArrayStatistics(RowArrays(table, held, features, target), price, neighbours)
    if isinstance(target, Classes) and target.labels == WHOLE_LABELS and declared.classes is None:
        found = Classes(target.name, _find_labels(source))
        source = ArrayStatistics(RowArrays(table, held, features, found), price, neighbours, spent=LABEL_SHARE)
    return Opened(source, table.names)


def _find_labels(source: ArrayStatistics) -> tuple[int, ...]:
    """The labels in use, by noisy counts: those that noise alone seldom reaches, and at least the two largest.

    The warning follows from the noisy counts too.
    """
    (counted,) = source.release([Statistic(None, (Labels(),))], LABEL_SHARE)
    threshold = float(counted.deviation) / math.sqrt(2) * (math.log(len(WHOLE_LABELS)) + SURE)
    likeliest, clear = np.argsort(-counted.sums, kind="stable")[:2], np.flatnonzero(counted.sums > threshold)
    if not clear.size:
        text = "No label from 0 to 99 stands out of the noise, so two were taken by chance. Declare classes=[...]."
        warnings.warn(text, LabelWarning, stacklevel=5)
    return tuple(sorted({*clear.tolist(), *likeliest.tolist()}))


def name_columns(table: ArrayTable) -> tuple[str, ...]:
    """The names of the columns; x0, x1 and so on if they have none."""
    return table.names or tuple(f"x{place}" for place in range(len(table.columns)))


def _declare_target(declared: Declared, predicts: Predicts, y: Any, held: Any) -> Target | None:  # noqa: ANN401
    """The target of arrays."""
    match predicts:
        case "nothing":
            return None
        case "number":
            if declared.target_bounds is None:
                rule, hint = (
                    "must be declared: they are never taken from the data",
                    "For example target_bounds=(0, 100).",
                )
                raise InvalidParameter("target_bounds", rule, "nothing", hint)
            return Numeric("y", *read_bounds(declared.target_bounds, 1)[0])
        case "classes":
            if declared.classes is not None:
                return Classes("y", read_values(declared.classes, "classes"))
            return Classes("y", _find_typed_labels(y, held))


def _find_typed_labels(y: Any, held: Any) -> tuple[Scalar, ...]:  # noqa: ANN401
    """The labels of y, if `classes` does not declare them. They follow from the type of y, never from its values.

    Truth values and polars' Enum declare their labels. Other types that can hold whole numbers get `WHOLE_LABELS`.
    """
    declared_type = name_type(y) or name_type(held)
    if declared_type.startswith("bool"):
        return (False, True)
    if declared_type.startswith("enum("):  # polars: the list is part of the type
        return read_values(list(y.dtype.categories), "categories of y")
    # One missing label turns pandas' truth values or whole numbers into objects: a refusal would show it.
    if isinstance(y, (list, tuple)) or declared_type == "object" or declared_type.startswith(NUMBERS):
        return WHOLE_LABELS
    if declared_type.startswith(LISTED_FROM_DATA):
        rule = "must be declared for this type of y: its list of categories is usually made from the data"
        raise InvalidParameter("classes", rule, "nothing", "For example classes=['no', 'yes']: a public list.")
    if held.dtype.kind == "c":
        raise InvalidParameter("y", "must be labels", "complex numbers. Complex data not supported")
    hint = "For example classes=['no', 'yes']: labels are never taken from the data. Unknown label type."
    raise InvalidParameter("classes", "must be declared for labels that are not whole numbers", "nothing", hint)


def read_rows(estimator: Any, X: object) -> RowArrays:  # noqa: N803, ANN401 - any estimator
    """The rows of a call of `predict` or `transform`, with the columns of `fit`."""
    require_fitted(estimator, "n_features_in_")
    table, features = _read_array_table(X), estimator._features
    names = tuple(getattr(estimator, "feature_names_in_", ())) or None
    if len(table.columns) != len(features):
        count, wanted, kind = len(table.columns), len(features), type(estimator).__name__
        text = f"X has {count} features, but {kind} is expecting {wanted} features as input"
        raise InvalidParameter("X", f"must have the columns of fit: {text}", f"{count} columns")
    if names is not None and table.names is not None and table.names != names:
        text = "The feature names should match those that were passed during fit"
        raise InvalidParameter("X", f"must have the columns of fit, in the same order. {text}", "other names")
    return RowArrays(table, None, features, None)


def count_columns(X: object, columns: DatasetColumns) -> int:  # noqa: N803
    """The number of features, before a source is opened. What is wrong with them is refused when it is opened."""
    if columns.dataset is not None or X is None:
        return max(len(columns.features), 1) if isinstance(columns.features, Sequence) else 1
    return len(_read_array_table(X).columns)


def require_fitted(estimator: Any, attribute: str) -> None:  # noqa: ANN401 - any estimator
    """Refuse to predict before fit."""
    if not hasattr(estimator, attribute):
        name, exceptions = type(estimator).__name__, imported("sklearn.exceptions", "learn")
        raise exceptions.NotFittedError(
            f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments first."
        )


def record_fit(estimator: Any, opened: Opened) -> None:  # noqa: ANN401 - any estimator
    """Store what every fitted estimator has: the loss, the number of features and their names."""
    estimator.loss_ = opened.source.loss
    estimator.n_features_in_ = len(opened.source.features)
    if opened.names is not None:
        estimator.feature_names_in_ = np.array(opened.names, object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator._features = opened.source.features


def _read_array_table(X: object) -> ArrayTable:  # noqa: N803
    """X as columns. A protected dataset is refused: it gives no rows to predict, score or transform."""
    if isinstance(X, Curator):
        hint = "Fit with fit(dataset=..., features=[...]). Scores and predictions need rows of your own."
        raise InvalidParameter(
            "X", "must be rows: no row of a protected dataset leaves it", "a protected dataset", hint
        )
    return read_table(X)


def require_rows(X: object, method: str) -> None:  # noqa: N803
    """Refuse a method that fits and then returns a result for each row, if there are no rows to return it for."""
    if X is None:
        rule = f"must be given to {method}, which returns a result for each row: no row of a dataset leaves it"
        raise InvalidParameter("X", rule, "nothing", "Use fit(dataset=...) instead.")


def require_numeric(features: tuple[Feature, ...], estimator: str) -> tuple[Numeric, ...]:
    """Refuse coded features, for estimators of numbers only."""
    numeric = tuple(feature for feature in features if isinstance(feature, Numeric))
    if len(numeric) != len(features):
        coded = next(feature.name for feature in features if isinstance(feature, Coded))
        hint = f"Leave {coded} out, or encode it as numbers."
        raise InvalidParameter("features", f"must be numbers for {estimator}", "a column of categories", hint)
    return numeric


def encode_labels(classes: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """The classes as the array that scikit-learn calls classes_: of objects, if no other type holds each of them."""
    made = np.array(classes)
    return made if made.tolist() == list(classes) else np.array(classes, object)
