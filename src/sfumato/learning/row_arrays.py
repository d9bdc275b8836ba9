"""Rows as numpy arrays: how X and y are read.

Each entry is read by its own value and its declaration alone: 2, 2.0 and Decimal(2) are one number, and True is 1. An
entry that is no number counts as missing. What the caller's array can hold (its shape and its type) is public; an array
of a type that cannot hold numbers is refused.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, KernelFault, describe_kind
from sfumato.extras import imported
from sfumato.kernel.expressions import Scalar
from sfumato.learning.feature_columns import MOST_BOUND, MOST_COLUMNS, SCALE, Classes, Coded, Feature, Numeric, Target
from sfumato.learning.row_cells import NO_CELL, Floats, Integers
from sfumato.learning.row_functions import TARGET

Column = npt.NDArray[Any]
NUMBERS = ("int", "uint", "float", "double", "halffloat")  # how names of types begin, in pandas, polars and Arrow
TEXTS = ("str", "utf8", "large_string", "categorical", "enum(")


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """The columns of X, and their names if X has them."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] | None
    rows: int
    texts: frozenset[int] = frozenset()  # the columns of a frame whose type is text


def read_table(X: object) -> ArrayTable:  # noqa: N803 - scikit-learn's name
    """X as columns: a two-dimensional array, a list of rows, or a data frame."""
    if hasattr(X, "toarray"):
        raise InvalidParameter("X", "must not be sparse", "a sparse array", "Pass X.toarray().")
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray):
        frame: Any = X
        labels = list(getattr(frame, "column_names", frame.columns))  # Arrow's columns are not their names
        take = frame.iloc.__getitem__ if hasattr(frame, "iloc") else None
        series = [take((slice(None), place)) if take else frame[label] for place, label in enumerate(labels)]
        names = tuple(labels) if labels and all(isinstance(label, str) for label in labels) else None
        texts = frozenset(place for place, column in enumerate(series) if _is_typed(column, TEXTS))
        return _check_table(ArrayTable(tuple(map(_read_series, series)), names, len(frame), texts))
    array = _list_cells(X) if isinstance(X, (list, tuple)) else _as_array(X, "X")
    if array.ndim != 2:
        hint = "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row."
        raise InvalidParameter("X", "must be two-dimensional. Expected 2D array", f"{array.ndim}D array instead", hint)
    return _check_table(ArrayTable(tuple(array.T), None, len(array)))


def name_type(column: object) -> str:
    """The name of the type that a column declares, nullable or not: bool, int64, double, string and so on."""
    return str(getattr(column, "dtype", getattr(column, "type", ""))).lower()


def _is_typed(series: object, beginnings: tuple[str, ...]) -> bool:
    return name_type(series).startswith(beginnings)


def _read_series(series: Any) -> Column:  # noqa: ANN401 - a column of pandas, polars or Arrow
    """A column of a frame, by the frame's own type. numpy's type would depend on whether one entry is missing."""
    if not _is_typed(series, NUMBERS):
        return _list_entries(series.to_list() if hasattr(series, "to_list") else series.to_pylist())
    with np.errstate(all="ignore"):
        values = series.to_numpy(np.float64, na_value=np.nan) if hasattr(series, "iloc") else series
        return np.array(values, np.float64)


def _check_table(table: ArrayTable) -> ArrayTable:
    if not 1 <= len(table.columns) <= MOST_COLUMNS:
        count = len(table.columns)
        found = f"{count} feature(s) (shape=({table.rows}, {count})) while a minimum of 1 is required"
        raise InvalidParameter("X", f"must have from 1 to {MOST_COLUMNS:,} columns", found)
    return table


def _as_array(value: object, name: str) -> Column:
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidParameter(name, "must not be masked", "a masked array", "Fill or drop the masked entries first.")
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(value)
    except Exception:  # whatever an object's own conversion raises may quote its values
        raise InvalidParameter(name, "must be an array", describe_kind(value)) from None


def _list_cells(rows: Sequence[object]) -> Column:
    """A list of rows, cell by cell: no entry decides how the others are read. The number of cells is public."""
    lists = [list(row) if isinstance(row, (list, tuple, np.ndarray)) else None for row in rows]
    width = len(lists[0]) if lists and lists[0] is not None else 0
    if not lists or lists[0] is None:
        return np.empty(len(lists), object)  # one dimension: refused
    if any(row is None or len(row) != width for row in lists):
        raise InvalidParameter("X", "must have as many entries in each row", "rows of different lengths")
    cells = np.empty((len(lists), width), object)
    for place, row in enumerate(lists):
        for column, entry in enumerate(row or ()):
            cells[place, column] = entry
    return cells


def _list_entries(entries: Sequence[object]) -> Column:
    """A list of entries, one by one. An entry that is a list of one is that one."""
    column = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        several = isinstance(entry, (list, tuple)) or (isinstance(entry, np.ndarray) and entry.ndim > 0)
        column[place] = entry[0] if several and len(entry) == 1 else entry  # type: ignore[arg-type, index]
    return column


def take_only_column(y: Any) -> Any:  # noqa: ANN401 - a data frame of pandas or polars
    """The column of a frame with one column."""
    if hasattr(y, "columns") and len(y.columns) == 1:
        return y.iloc[:, 0] if hasattr(y, "iloc") else y[getattr(y, "column_names", y.columns)[0]]
    return y


def read_column(y: object, rows: int) -> Column:
    """y as one column of so many rows."""
    if y is None:
        raise InvalidParameter(
            "y", "must be given: this estimator requires y to be passed, but the target y is None", "nothing"
        )
    if isinstance(y, (list, tuple)):
        array = _list_entries(y)
    else:
        typed = name_type(y) and (hasattr(y, "to_list") or hasattr(y, "to_pylist"))
        array = _read_series(y) if typed else _as_array(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        sklearn_exceptions = imported("sklearn.exceptions", "learn")
        text = (
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)."
        )
        warnings.warn(text, sklearn_exceptions.DataConversionWarning, stacklevel=4)
        array = array.ravel()
    if array.ndim != 1:
        raise InvalidParameter("y", "must have one dimension", f"{array.ndim} dimensions: bad input shape")
    if len(array) != rows:
        raise InvalidParameter("y", "must have as many entries as X has rows", "another number: inconsistent lengths")
    return array


def read_floats(column: Column, name: str) -> Floats:
    """Numbers as doubles. Entries that are no numbers are NaN."""
    if column.dtype.kind in "biuf":
        return _cast(column)
    if column.dtype.kind != "O":
        hint = "Convert it to numbers, or declare its values with categories=."
        kind = "Complex data not supported" if column.dtype.kind == "c" else "another type"
        raise InvalidParameter(name, "must be numbers", kind, hint)
    with np.errstate(all="ignore"):
        return np.array([_read_float(entry) for entry in column], np.float64)


def _cast(column: Column) -> Floats:
    """Numbers as doubles. No warning is given for one that is too large: it would show that value."""
    with np.errstate(all="ignore"):
        return column.astype(np.float64, copy=False)


def _read_float(entry: object) -> float:
    if not isinstance(entry, (Real, Decimal, np.bool_)):
        return np.nan
    try:
        return float(entry)
    except OverflowError:  # a whole number or a fraction, beyond every bound
        return np.inf if entry > 0 else -np.inf  # type: ignore[operator]
    except Exception:  # a signalling NaN, or a number whose own conversion fails
        return np.nan


def clamp_column(values: Floats, feature: Numeric) -> Floats:
    """Numbers between the bounds; NaN is the middle."""
    clamped = np.clip(values, feature.lower, feature.upper)
    missing = np.isnan(clamped)
    if missing.any():
        clamped[missing] = feature.middle
    return clamped


def scale_column(clamped: Floats, feature: Numeric) -> Floats:
    """Clamped numbers as whole steps from -SCALE to SCALE."""
    return round_steps(clamped - feature.middle, feature.steps_per_unit)


def round_steps(away: Floats, steps_per_unit: float | Floats) -> Floats:
    """Distances from the middle as whole steps from -SCALE to SCALE; NaN stays. The array is changed."""
    away *= steps_per_unit
    away += 0.5
    return np.clip(np.floor(away, out=away), -SCALE, SCALE, out=away)  # the middle and the factor are rounded


def read_codes(column: Column, values: Sequence[Scalar]) -> Integers:
    """The place of each entry in a declared list; NO_CELL if it is not there."""
    kinds = {type(value) for value in values}
    exact = all(isinstance(value, (int, float)) and abs(value) < MOST_BOUND for value in values)
    if column.dtype.kind in "biuf" and exact:  # below 2**53, different whole numbers are different doubles
        return _find_sorted(_cast(column), np.array(values, np.float64))
    if column.dtype.kind == "U" and kinds == {str}:
        return _find_sorted(column, np.array(values))
    places = {value: place for place, value in enumerate(values)}
    return np.array([_find_place(entry, places) for entry in column.tolist()], np.int64).reshape(len(column))


def _find_sorted(column: Column, values: Column) -> Integers:
    order = np.argsort(values)
    found = np.searchsorted(values[order], column).clip(max=len(values) - 1)
    places = order[found].astype(np.int64)
    return np.where(values[places] == column, places, NO_CELL)


def _find_place(entry: object, places: dict[Scalar, int]) -> int:
    try:
        return places.get(entry, NO_CELL)  # type: ignore[call-overload, no-any-return]
    except Exception:  # an entry that cannot be hashed or compared is in no list
        return NO_CELL


class RowArrays:
    """Columns of X and y, read as their declarations say. Columns are read when a statistic needs them."""

    def __init__(
        self, table: ArrayTable, y: Column | None, features: tuple[Feature, ...], target: Target | None
    ) -> None:
        self.features, self.target = features, target
        self._table, self._y = table, y
        self._numbers: dict[int, Floats] = {}
        self._scaled: dict[int, Floats] = {}
        self._codes: dict[int, Integers] = {}
        for place, (feature, column) in enumerate(zip(features, table.columns, strict=True)):
            if isinstance(feature, Numeric):  # refuse a type that holds no numbers
                read_floats(np.empty(0, "U1") if place in table.texts else column[:0], f"column {feature.name}")
        if isinstance(target, Numeric) and y is not None:
            read_floats(y[:0], "y")

    def __len__(self) -> int:
        return self._table.rows

    def numbers(self, feature: int) -> Floats:
        if feature not in self._numbers:
            declared, entries = self.read_numbers(feature, 0, len(self))
            self._numbers[feature] = clamp_column(entries, declared)
        return self._numbers[feature]

    def scaled(self, column: int) -> Floats:
        if column not in self._scaled:
            declared, _ = self.read_numbers(column, 0, 0)
            self._scaled[column] = scale_column(self.numbers(column), declared)
        return self._scaled[column]

    def read_numbers(self, column: int, start: int, stop: int) -> tuple[Numeric, Floats]:
        """A numeric column's declaration, and some of its numbers as they are: not clamped."""
        declared, entries = self._find(column)
        if not isinstance(declared, Numeric):
            raise KernelFault("Numbers are of a numeric column.")
        return declared, read_floats(entries[start:stop], declared.name)

    def codes(self, feature: int) -> Integers:
        if feature not in self._codes:
            declared, column = self._find(feature)
            match declared:
                case Coded(categories=values) | Classes(labels=values):
                    self._codes[feature] = read_codes(column, values)
                case _:
                    raise KernelFault("Codes are of a coded column.")
        return self._codes[feature]

    def labels(self) -> Integers:
        return self.codes(TARGET)

    def is_label(self, place: int) -> Floats:
        chosen: Floats = (self.labels() == place).astype(np.float64)
        return chosen

    def is_labelled(self) -> Floats:
        known: Floats = (self.labels() != NO_CELL).astype(np.float64)
        return known

    def _find(self, column: int) -> tuple[Feature | Target, Column]:
        if column != TARGET:
            return self.features[column], self._table.columns[column]
        if self.target is None or self._y is None:
            raise KernelFault("This estimator has no target.")
        return self.target, self._y
