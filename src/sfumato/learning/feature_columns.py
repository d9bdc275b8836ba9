"""The columns that an estimator reads: numbers with declared bounds, or codes with declared categories.

Bounds, categories and classes are declared, and never taken from the data. A value that does not fit its declaration
has a defined meaning, so that it causes no error:

- A number outside the bounds is clamped. A missing number (NULL, NaN) is read as the middle of the bounds.
- A code that is not declared, or missing, falls in no cell. A row with an undeclared label falls in no class.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.expressions import Column, Literal, Scalar, find_kinds

SCALE_BITS = 14  # a scaled column is a whole number of steps of 2**-14
SCALE = 1 << SCALE_BITS
MOST_COLUMNS = 2_000
MOST_CATEGORIES = 10_000
MOST_BOUND = 2.0**53
NARROWEST = 2.0**-32  # of bounds, as a part of the larger one: scaled steps are rounded to one part in 2**15
MOST_LABELS = 100  # of a column of whole numbers


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number between declared bounds."""

    name: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)

    @property
    def middle(self) -> float:
        """How a missing value is read."""
        return (self.lower + self.upper) / 2

    @property
    def steps_per_unit(self) -> float:
        """Scaled steps in one unit of the value: the bounds are at -2**14 and 2**14 steps."""
        half = (self.upper - self.lower) / 2
        return SCALE / half if half > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Coded:
    """One of a declared list of values."""

    name: str
    categories: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _check_list(self.categories, f"categories of {self.name}", 1)


Feature = Numeric | Coded


@dataclass(frozen=True, slots=True)
class Classes:
    """The labels that a classifier tells apart, in their declared order."""

    name: str
    labels: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _check_list(self.labels, "classes", 1)


Target = Numeric | Classes


def read_bounds(bounds: object, columns: int) -> list[tuple[float, float]]:
    """The bounds of each column: `bounds` is two numbers, or two arrays with a number for each column."""
    hint = "For example bounds=(0, 100), or bounds=(lowers, uppers) with a number for each column."
    if bounds is None:
        raise InvalidParameter("bounds", "must be declared: they are never taken from the data", "nothing", hint)
    if isinstance(bounds, (str, bytes)) or not isinstance(bounds, (Sequence, np.ndarray)) or len(bounds) != 2:
        raise InvalidParameter("bounds", "must be a pair: lower and upper", describe_kind(bounds), hint)
    ends = []
    for end in bounds:
        try:
            values = np.asarray(end, np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter("bounds", "must be numbers", "something else", hint) from None
        if values.ndim > 1 or (values.ndim == 1 and len(values) != columns):
            raise InvalidParameter(
                "bounds", f"must have one number, or one for each of {columns} columns", "another number", hint
            )
        ends.append(np.broadcast_to(values, (columns,)))
    pairs = [(float(lower), float(upper)) for lower, upper in zip(*ends, strict=True)]
    for pair in pairs:
        _check_bounds(*pair)
    if isinstance(bounds, list) and all(isinstance(end, tuple) for end in bounds) and any(a == b for a, b in pairs):
        lowers, uppers = (list(ends) for ends in zip(*bounds, strict=True))  # a list of pairs: one for each column?
        meant = (
            f"For a pair for each column, write bounds=({lowers}, {uppers}): all lower bounds, then all upper bounds."
        )
        raise InvalidParameter("bounds", "must be (lowers, uppers)", "a list of pairs", meant)
    return pairs


def declare_features(names: Sequence[str], bounds: object, categories: object) -> tuple[Feature, ...]:
    """The columns of an array: numbers with `bounds`, except those that `categories` names.

    `categories` is None, one list of values for each column (None in it: a number), or a mapping from a column's name
    or position to its values.
    """
    listed = _read_categories(names, categories)
    numeric = [place for place, values in enumerate(listed) if values is None]
    declared = bounds
    if isinstance(bounds, Mapping):
        missing = [
            name
            for place, name in enumerate(names)
            if listed[place] is None and name not in bounds and place not in bounds
        ]
        if missing:
            raise InvalidParameter(
                "bounds", "must name every column of numbers", "others only", f"Missing: {missing[0]}."
            )
        found = [bounds[names[place]] if names[place] in bounds else bounds[place] for place in numeric]
        pairs = [read_bounds(pair, 1)[0] for pair in found]
    elif numeric:
        whole = read_bounds(declared, len(names)) if _fits(declared, len(names)) else None
        pairs = [whole[place] for place in numeric] if whole else read_bounds(declared, len(numeric))
    else:
        pairs = []
    between = dict(zip(numeric, pairs, strict=True))
    return tuple(
        Numeric(name, *between[place]) if values is None else Coded(name, values)
        for place, (name, values) in enumerate(zip(names, listed, strict=True))
    )


def _fits(bounds: object, columns: int) -> bool:
    """Whether the ends are single numbers, or arrays of so many."""
    if not isinstance(bounds, (Sequence, np.ndarray)) or isinstance(bounds, str):
        return True  # read_bounds refuses it
    return all(np.ndim(end) == 0 or len(end) == columns for end in bounds)


def _read_categories(names: Sequence[str], categories: object) -> list[tuple[Scalar, ...] | None]:
    if categories is None:
        return [None] * len(names)
    if isinstance(categories, Mapping):
        unknown = [key for key in categories if key not in names and key not in range(len(names))]
        if unknown:
            raise InvalidParameter("categories", "must name columns, or give their positions", "another name or number")
        found = [categories.get(name, categories.get(place)) for place, name in enumerate(names)]
    elif isinstance(categories, (Sequence, np.ndarray)) and not isinstance(categories, str):
        if len(categories) != len(names):
            raise InvalidParameter(
                "categories", f"must have a list for each of {len(names)} columns", f"{len(categories)}"
            )
        found = list(categories)
    else:
        hint = "For example categories=[['a', 'b'], [0, 1, 2]]."
        raise InvalidParameter(
            "categories", "must be a list of values for each column", describe_kind(categories), hint
        )
    return [
        None if values is None else read_values(values, f"categories of {name}")
        for name, values in zip(names, found, strict=True)
    ]


def read_values(values: object, what: str) -> tuple[Scalar, ...]:
    """A declared list of values, as plain Python values. A whole number n stands for 0 to n - 1."""
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool) and 0 < values <= MOST_CATEGORIES:
        return tuple(range(int(values)))
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray, range)):
        raise InvalidParameter(what, "must be a list of values", describe_kind(values), "For example ['a', 'b'].")
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    made = tuple(value.item() if isinstance(value, np.generic) else value for value in plain)
    _check_list(made, what, 1)
    return made


def find_declared_features(table: Table, names: Sequence[str]) -> tuple[Feature, ...]:
    """Columns of a protected table, as its catalog declares them."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidParameter("features", "must be a list of names of columns", describe_kind(names))
    if not names or len({name.casefold() for name in names}) != len(names):
        raise InvalidParameter("features", "must be different columns, at least one", "none, or one of them twice")
    return tuple(_find_declared(table, name) for name in names)


def find_declared_classes(table: Table, name: str, classes: object) -> Classes:
    """The labels of a target, as its catalog declares them. `classes` names those of a column of numbers."""
    found = _find_target(table, name)
    declared = table.columns[found]
    match declared:
        case _ if classes is not None:
            return _check_labels(table.column(found), Classes(found, read_values(classes, "classes")))
        case Category(values=values):
            return Classes(found, tuple(values))
        case Boolean():
            return Classes(found, (False, True))
        case Integer(lower=lower, upper=upper) if upper - lower < MOST_LABELS:
            return Classes(found, tuple(range(lower, upper + 1)))
        case _:
            hint = "For example classes=[0, 1], or declare the column as a Category."
            raise InvalidParameter("classes", f"must be declared for the target {found}", "nothing", hint)


def _check_labels(column: Column, classes: Classes) -> Classes:
    """Refuse labels of another kind than the column's values: an engine would convert values, and fail on some."""
    (kind,) = find_kinds(column)
    if any(find_kinds(Literal(label)) != {kind} for label in classes.labels):
        words = {"number": "numbers", "text": "texts", "boolean": "truth values"}
        rule = f"must be {words[kind]}, as the values of {column.name} are" if kind in words else "must not be given"
        hint = "For example ['0', '1'] for a column of texts, [0, 1] for numbers, [False, True] for truth values."
        raise InvalidParameter("classes", rule, "labels of another kind", hint)
    return classes


def find_declared_number(table: Table, name: str) -> Numeric:
    """A target that is a number, with its declared bounds."""
    declared = _find_declared(table, _find_target(table, name))
    if not isinstance(declared, Numeric):
        raise InvalidParameter("target", "must be a column of numbers", "a column of categories")
    return declared


def _find_target(table: Table, name: object) -> str:
    if not isinstance(name, str):
        raise InvalidParameter("target", "must be the name of a column", describe_kind(name))
    return table.column(name).name


def _find_declared(table: Table, name: str) -> Feature:
    found = table.column(name).name
    declared: ColumnDeclaration = table.columns[found]
    match declared:
        case Integer(lower=lower, upper=upper) | Real(lower=lower, upper=upper):
            return Numeric(found, float(lower), float(upper))
        case Category(values=values):
            return Coded(found, tuple(values))
        case Boolean():
            return Coded(found, (False, True))
        case _:
            hint = "Estimators read columns that are Integer, Real, Category or Boolean."
            raise InvalidParameter(f"column {found}", "must have declared bounds or categories", "another column", hint)


def is_nan(value: Scalar) -> bool:
    """Is it a number that is none?"""
    return isinstance(value, float) and math.isnan(value)


def _check_bounds(lower: float, upper: float) -> None:
    if not -MOST_BOUND <= lower <= upper <= MOST_BOUND or math.isnan(upper - lower):
        rule = "must be finite numbers within 2**53, the lower one first"
        raise InvalidParameter("bounds", rule, "something else")
    if lower != upper and upper - lower < NARROWEST * max(abs(lower), abs(upper), NARROWEST):
        rule = "must be equal, or further apart: a double has too few values between them"
        raise InvalidParameter("bounds", rule, "numbers that are nearly equal", "Subtract the lower bound from them.")


def _check_list(values: tuple[Scalar, ...], what: str, least: int) -> None:
    plain = all(isinstance(value, (bool, int, float, str)) and not is_nan(value) for value in values)
    if not plain or not least <= len(values) <= MOST_CATEGORIES:
        rule = f"must be from {least} to {MOST_CATEGORIES:,} texts, numbers or truth values"
        raise InvalidParameter(what, rule, "something else")
    if len(set(values)) != len(values):
        raise InvalidParameter(what, "must have each value once", "one of them twice")
