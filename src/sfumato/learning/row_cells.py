"""Finite partitions of rows: each row falls in at most one cell, whatever its values.

A cell depends on the row's own values alone. One row is therefore counted in one cell, and all cells of a statistic
share one noise scale. Each partition is computed in numpy (`number_cells`) and as an expression that an engine groups
by (`write_key`): both put every row in the same cell.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, assert_never

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Expression, Literal, Scalar
from sfumato.kernel.plan import Key
from sfumato.learning.feature_columns import SCALE, Classes, Coded, Feature, Target

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NO_CELL = -1


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of a numeric feature: bin i holds the values with i of the edges at or below them."""

    feature: int
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if list(self.edges) != sorted(set(self.edges)):
            raise KernelFault("Edges of bins are in increasing order.")


@dataclass(frozen=True, slots=True)
class Codes:
    """The declared categories of a coded feature. An undeclared code is in no cell."""

    feature: int


@dataclass(frozen=True, slots=True)
class CodeGroups:
    """Groups of the categories of a coded feature: `groups` has the group of each category, numbered from 0.

    An undeclared code is in no cell.
    """

    feature: int
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        if set(self.groups) != set(range(max(self.groups, default=-1) + 1)):
            raise KernelFault("Groups of categories are numbered from 0, without gaps.")


@dataclass(frozen=True, slots=True)
class Labels:
    """The declared classes of the target. An undeclared label is in no cell."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An end of a tree: the cell of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Below:
    """Does a numeric feature lie below a threshold?"""

    feature: int
    threshold: float


@dataclass(frozen=True, slots=True)
class OneOf:
    """Is a coded feature one of these categories? They are given by their positions in the declaration."""

    feature: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A node of a tree: rows that pass the test go to `passed`, all others to `failed`."""

    test: Below | OneOf
    passed: "Split | Leaf"
    failed: "Split | Leaf"


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of a tree, numbered from 0."""

    root: Split | Leaf

    def __post_init__(self) -> None:
        numbers = sorted(leaf.number for leaf in list_leaves(self.root))
        if numbers != list(range(len(numbers))):
            raise KernelFault("The leaves of a tree are numbered from 0, each once.")


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest of several centres, in scaled columns (from -1 to 1); of equally near ones, the first.

    `weights` has the weight of each column's squared distance; without them, all are 1.
    """

    columns: tuple[int, ...]
    centres: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(centre) for centre in self.centres} | ({len(self.weights)} if self.weights else set())
        if sizes != {len(self.columns)}:
            raise KernelFault("A centre, and the weights, have a number for each column.")

    def list_planes(self) -> list[tuple[float, tuple[float, ...]]]:
        """For each centre c an offset and a slope for each column: -|c|²/2 and c, with the weights."""
        weights = self.weights or (1.0,) * len(self.columns)
        slopes = [tuple(w * c for w, c in zip(weights, centre, strict=True)) for centre in self.centres]
        return [
            (-sum(s * c for s, c in zip(slope, centre, strict=True)) / 2, slope)
            for slope, centre in zip(slopes, self.centres, strict=True)
        ]


RowCells = Bins | Codes | CodeGroups | Labels | Leaves | Nearest


class RowValues(Protocol):
    """Rows as arrays: what a partition reads of them."""

    def __len__(self) -> int: ...
    def numbers(self, feature: int) -> Floats: ...  # clamped; a missing number is the middle of the bounds
    def scaled(self, column: int) -> Floats: ...  # whole steps from -SCALE to SCALE
    def codes(self, feature: int) -> Integers: ...  # places in the declaration, or NO_CELL
    def labels(self) -> Integers: ...


class RowTerms(Protocol):
    """Rows in an engine: the expressions that a partition reads of them."""

    features: tuple[Feature, ...]
    target: Target | None

    def number(self, feature: int) -> Expression: ...
    def scaled(self, column: int) -> Expression: ...
    def code(self, feature: int) -> Expression: ...
    def label(self) -> Expression: ...
    def compute(self, expression: Expression) -> Expression: ...  # once for each row, however often it is read


def count_cells(cells: RowCells, features: tuple[Feature, ...], target: Target | None) -> int:
    """The number of cells. It follows from declarations."""
    match cells:
        case Bins(_, edges):
            return len(edges) + 1
        case Codes(place):
            return len(_categories(features[place]))
        case CodeGroups(_, groups):
            return max(groups) + 1
        case Labels():
            return len(_labels(target))
        case Leaves(root):
            return sum(1 for _ in list_leaves(root))
        case Nearest(centres=centres):
            return len(centres)
        case _:
            assert_never(cells)


def number_cells(cells: RowCells, rows: RowValues) -> Integers:
    """The number of each row's cell, or NO_CELL."""
    match cells:
        case Bins(feature, edges):
            bins: Integers = np.searchsorted(np.array(edges, np.float64), rows.numbers(feature), side="right")
            return bins
        case Codes(feature):
            return rows.codes(feature)
        case CodeGroups(feature, groups):
            return np.append(np.array(groups, np.int64), NO_CELL)[rows.codes(feature)]
        case Labels():
            return rows.labels()
        case Leaves(root):
            return _number_leaves(root, rows)
        case Nearest():
            nearest: Integers = np.argmax(np.stack(list(_closeness(cells, rows))), axis=0)
            return nearest
        case _:
            assert_never(cells)


def write_key(cells: RowCells, rows: RowTerms) -> Key:
    """What an engine groups by, and the public values of the cells in their order."""
    match cells:
        case Codes(feature):
            return Key(rows.code(feature), _categories(rows.features[feature]))
        case Labels():
            return Key(rows.label(), _labels(rows.target))
        case CodeGroups(feature, groups):
            same = _write_same(feature, rows)
            return Key(_case(zip(same, groups, strict=True), NO_CELL), tuple(range(max(groups) + 1)))
        case _:
            numbers: tuple[Scalar, ...] = tuple(range(count_cells(cells, rows.features, rows.target)))
            return Key(choose_by_cell(cells, numbers, rows), numbers)


def choose_by_cell(cells: RowCells, values: tuple[Scalar, ...], rows: RowTerms) -> Expression:
    """The value that belongs to a row's cell; 0 for a row in no cell."""
    match cells:
        case Bins(feature, edges):
            return _write_bins(rows.number(feature), edges, values)
        case Codes(feature):
            return _case(zip(_write_same(feature, rows), values, strict=True), 0)
        case CodeGroups(feature, groups):
            return _case(zip(_write_same(feature, rows), (values[group] for group in groups), strict=True), 0)
        case Labels():
            same = [Call("=", (rows.label(), Literal(label))) for label in _labels(rows.target)]
            return _case(zip(same, values, strict=True), 0)
        case Leaves(root):
            return _write_tree(root, values, rows)
        case Nearest():
            near = [rows.compute(closeness) for closeness in _write_closeness(cells, rows)]
            nearest = _write_largest(near, rows)
            # a CASE takes the first condition that holds: of equally near centres, the first
            return _case(
                ((Call(">=", (cell, nearest)), value) for cell, value in zip(near[:-1], values, strict=False)),
                values[-1],
            )
        case _:
            assert_never(cells)


def _write_bins(number: Expression, edges: tuple[float, ...], values: tuple[Scalar, ...]) -> Expression:
    """The value of a number's bin, by halving the edges: a row is compared with few of many edges."""
    if not edges:
        return Literal(values[0])
    half = len(edges) // 2
    below = _write_bins(number, edges[:half], values[: half + 1])
    return Call(
        "case",
        (Call("<", (number, Literal(edges[half]))), below, _write_bins(number, edges[half + 1 :], values[half + 1 :])),
    )


def list_leaves(node: Split | Leaf) -> Iterable[Leaf]:
    """The leaves below a node."""
    if isinstance(node, Leaf):
        yield node
    else:
        yield from list_leaves(node.passed)
        yield from list_leaves(node.failed)


def _number_leaves(root: Split | Leaf, rows: RowValues) -> Integers:
    if isinstance(root, Leaf):
        return np.full(len(rows), root.number, np.int64)
    passed = _pass(root.test, rows)
    return np.where(passed, _number_leaves(root.passed, rows), _number_leaves(root.failed, rows))


def _pass(test: Below | OneOf, rows: RowValues) -> npt.NDArray[np.bool_]:
    if isinstance(test, Below):
        return rows.numbers(test.feature) < test.threshold
    return np.isin(rows.codes(test.feature), test.places)


def _write_tree(node: Split | Leaf, values: tuple[Scalar, ...], rows: RowTerms) -> Expression:
    if isinstance(node, Leaf):
        return Literal(values[node.number])
    if isinstance(node.test, Below):
        test: Expression = Call("<", (rows.number(node.test.feature), Literal(node.test.threshold)))
    else:
        categories = _categories(rows.features[node.test.feature])
        code = rows.code(node.test.feature)
        same = tuple(Call("=", (code, Literal(categories[place]))) for place in node.test.places)
        test = Call("or", same) if len(same) > 1 else same[0] if same else Literal(False)
    return Call("case", (test, _write_tree(node.passed, values, rows), _write_tree(node.failed, values, rows)))


def _closeness(cells: Nearest, rows: RowValues) -> Iterable[Floats]:
    """c·x - |c|²/2 for each centre c: largest where |x - c| is smallest."""
    for offset, slopes in cells.list_planes():
        total = np.full(len(rows), offset)
        for column, slope in zip(cells.columns, slopes, strict=True):
            total = total + rows.scaled(column) * (slope / SCALE)
        yield total


def _write_closeness(cells: Nearest, rows: RowTerms) -> Iterable[Expression]:
    for offset, slopes in cells.list_planes():
        total: Expression = Literal(offset)
        for column, slope in zip(cells.columns, slopes, strict=True):
            total = Call("+", (total, Call("*", (rows.scaled(column), Literal(slope / SCALE)))))
        yield total


def _write_largest(terms: list[Expression], rows: RowTerms) -> Expression:
    """The largest of several numbers, in rounds of pairs: linear in the number of terms."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        larger = [rows.compute(Call("case", (Call(">=", pair), *pair))) for pair in pairs]
        terms = larger + terms[len(terms) - len(terms) % 2 :]
    return terms[0]


def _case(pairs: Iterable[tuple[Expression, Scalar]], otherwise: Scalar) -> Expression:
    parts = [part for condition, value in pairs for part in (condition, Literal(value))]
    return Call("case", (*parts, Literal(otherwise))) if parts else Literal(otherwise)


def _write_same(feature: int, rows: RowTerms) -> list[Call]:
    """Whether the code is this one, for each category of a coded feature."""
    return [Call("=", (rows.code(feature), Literal(code))) for code in _categories(rows.features[feature])]


def _categories(feature: Feature) -> tuple[Scalar, ...]:
    if not isinstance(feature, Coded):
        raise KernelFault("Codes are of a feature with declared categories.")
    return feature.categories


def _labels(target: Target | None) -> tuple[Scalar, ...]:
    if not isinstance(target, Classes):
        raise KernelFault("Labels are of a target with declared classes.")
    return target.labels
