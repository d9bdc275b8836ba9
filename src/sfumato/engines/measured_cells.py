"""Rows of an engine's results -> exact aggregates: the cells of a plan, its bins, and sums that are split.

Part of the trusted perimeter: claim K-26. Where a row is counted depends on its own key values alone, and what it adds
must be integers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import add, index
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, Scalar, find_kinds
from sfumato.kernel.key_rounds import Holdings, weigh_holdings
from sfumato.kernel.plan import (
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Different,
    Halves,
    Keys,
    Mode,
    People,
    Pivot,
    Products,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.split_sums import compute_halves
from sfumato.kernel.strategies import mix_cells

KeyParts = tuple[tuple[str, Scalar], ...]
Bins = dict[int, int]  # the weight in each bin that has any
Rows = Iterable[tuple[Any, ...]]  # of a result: key values first
Added = Count | Sum | Halves | Thirds | Curve | Pivot | Products | Strategy  # quantities that add up rows


def make_key(values: Iterable[Scalar]) -> KeyParts:
    """Key values in the form in which every engine compares them: 1 and 1.0 are one number, True is not a number."""
    return tuple(map(_make_part, values))


def _make_part(value: Scalar) -> tuple[str, Scalar]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", int(value) if isinstance(value, float) and value.is_integer() else value
    return type(value).__name__, value


class Cells:
    """The cells of a plan: the declared ones, or undeclared ones that are numbered when they are found."""

    def __init__(self, plan: BoundedPlan) -> None:
        self._declared = [None if key.values is None else set(make_key(key.values)) for key in plan.keys]
        self.discovered = plan.cells is None
        everything = [] if self.discovered else product(*(key.values or () for key in plan.keys))
        self._numbers = {make_key(values): number for number, values in enumerate(everything)}
        if plan.cells is not None and len(self._numbers) != plan.cells:
            raise KernelFault("Two values of a key are one number.")

    def find(self, values: Iterable[Scalar]) -> int | None:
        """The number of the cell with these key values, if there is one."""
        return self._numbers.get(make_key(values))

    def name(self, values: Iterable[Scalar]) -> int | None:
        """The number of an undeclared cell. None: a key is NULL, or a declared key has an undeclared value."""
        parts = make_key(values)
        for part, declared in zip(parts, self._declared, strict=True):
            if part[1] is None if declared is None else part not in declared:
                return None
        return self._numbers.setdefault(parts, len(self._numbers))

    @property
    def keys(self) -> tuple[tuple[Scalar, ...], ...] | None:
        """The undeclared keys, in the order of their numbers."""
        return tuple(tuple(value for _, value in parts) for parts in self._numbers) if self.discovered else None

    def __len__(self) -> int:
        return len(self._numbers)


def number_bins(choice: Choice) -> Callable[[Scalar], int | None]:
    """Make the function from a row's value, in steps of the grid or from a public list, to the number of its bin."""
    if isinstance(choice, Mode):
        numbers = {_make_part(value): number for number, value in enumerate(choice.values)}
        return lambda value: numbers.get(_make_part(value))
    lower = choice.grid.lower
    return lambda value: None if value is None else index(value) - lower  # type: ignore[arg-type]


def list_addends(quantity: Count | Sum | Halves, plan: BoundedPlan) -> tuple[Count | Sum, ...]:
    """The sums over rows that a quantity is computed from: for halves, a sum and a count.

    A person's rows are weighed, and then rounded: their sum is around the middle. A row unit's sum is not, because
    `compute_integers` subtracts the middle from the total, once for each row that has a value. All rows are counted for
    that only where `check_nullability` has compared the plan with the declaration: in one table.
    """
    if not isinstance(quantity, Halves):
        return (quantity,)
    value, grid = quantity.value, quantity.grid
    always = isinstance(plan.source, Scan) and isinstance(value, Column) and not value.nullable
    return Sum(value, grid, 0 if plan.unit.per_row else grid.middle), Count(None if always else value)


def compute_integers(quantity: Added, totals: Sequence[int], plan: BoundedPlan) -> tuple[int, ...]:
    """The integers of one cell, from the sums over its rows."""
    if isinstance(quantity, Pivot):
        places = range(0, quantity.width, quantity.part.width)
        parts = [compute_integers(quantity.part, totals[at : at + quantity.part.width], plan) for at in places]
        return tuple(integer for part in parts for integer in part)
    if not isinstance(quantity, Halves):
        return tuple(totals)
    total, count = totals
    if plan.unit.per_row:
        total -= quantity.grid.middle * count
    return compute_halves(total, count, quantity.grid, per_row=plan.unit.per_row)


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """Undeclared keys, how many people hold each, and the numbers of these people, one key after the other."""

    keys: Sequence[tuple[Scalar, ...]]
    counts: npt.NDArray[np.int64]
    people: npt.NDArray[np.int64]

    @classmethod
    def read(cls, rows: Rows) -> "HeldKeys":
        """Rows of key values and a list of people's ids. A person's number is the place where the id came first."""
        numbers: dict[Scalar, int] = {}
        keys, counts, people = [], [], list[int]()
        for *values, ids in rows:
            keys.append(tuple(values))
            counts.append(len(ids))
            people += [numbers.setdefault(person, len(numbers)) for person in ids]
        return cls(keys, np.array(counts, np.int64), np.array(people, np.int64))

    def place(self, cells: Cells) -> Holdings:
        """Who holds which cell. Keys that are none are left out."""
        found = [cells.name(values) for values in self.keys]
        numbers = [cell for cell in found if cell is not None]
        if len(set(numbers)) != len(numbers):  # a person could be there twice
            raise KernelFault("Two rows name the people of one cell.")
        placed = np.repeat(np.array([-1 if cell is None else cell for cell in found], np.int64), self.counts)
        return Holdings(self.people[placed >= 0], placed[placed >= 0])


def collect_aggregates(
    plan: BoundedPlan, people: Rows | HeldKeys | None, added: Rows | None, apart: Mapping[str, Rows]
) -> ExactAggregates:
    """The aggregates of a plan, from the results of its queries. With undeclared keys, `added` also counts units.

    `apart` has the results of choices and of different values, which have a query each. Where keys are weighed in two
    rounds, `people` are rows of key values and lists of units.
    """
    cells, width = Cells(plan), len(plan.keys)
    sums = {} if added is None else _collect(added, cells, width, counts_units=cells.discovered)
    holdings = None
    if plan.holds_pairs:
        holdings = (people if isinstance(people, HeldKeys) else HeldKeys.read(people or ())).place(cells)
        weights = weigh_holdings(holdings, len(cells), plan.max_groups_per_unit)
        units: dict[int, tuple[int, ...]] = {cell: (weight,) for cell, weight in enumerate(weights.tolist())}
    elif isinstance(people, HeldKeys):
        raise KernelFault("Only keys that are weighed in two rounds need to know who holds them.")
    else:
        units = sums if people is None else _collect(people, cells, width, counts_units=True)
    begin = int(people is None and cells.discovered)  # where the sums begin, after the units
    integers: dict[str, list[int]] = {}
    bins: dict[str, list[Bins]] = {}
    for measurement in plan.measurements:
        name, quantity = measurement.name, measurement.quantity
        if isinstance(quantity, People | Keys | WeightedKeys):
            integers[name] = [units.get(cell, (0,))[0] for cell in range(len(cells))]
        elif isinstance(quantity, Choice):
            bins[name] = _fill_bins(apart[name], cells, width, number_bins(quantity))
        elif isinstance(quantity, Different):
            integers[name] = _place(apart[name], cells, width)
        else:
            end, nothing = begin + quantity.width, (0,) * quantity.width
            totals = [sums[cell][begin:end] if cell in sums else nothing for cell in range(len(cells))]
            integers[name] = [integer for total in totals for integer in compute_integers(quantity, total, plan)]
            if isinstance(quantity, Strategy):
                integers[name] = mix_cells(integers[name], quantity.matrices)
            begin = end
    return ExactAggregates(plan, integers, cells.keys, bins, holdings)


def names_texts(plan: BoundedPlan) -> bool:
    """Does a plan measure one undeclared text key and nothing else? Its result can then be read as two columns."""
    one_key = len(plan.keys) == 1 and plan.keys[0].values is None and find_kinds(plan.keys[0].expression) == {"text"}
    alone = all(isinstance(measurement.quantity, Keys | WeightedKeys) for measurement in plan.measurements)
    return one_key and alone and not plan.holds_pairs


def collect_texts(plan: BoundedPlan, texts: Sequence[str], units: npt.NDArray[np.int64]) -> ExactAggregates:
    """The aggregates of such a plan, from its keys and their units. The same as `collect_aggregates`, with less work.

    Millions of keys can be there, of which few are released.
    """
    if not names_texts(plan) or set(map(type, texts)) - {str} or len(set(texts)) != len(texts):
        raise KernelFault("Two rows count the people of one cell, or a key is no text.")
    return ExactAggregates(plan, {plan.measurements[0].name: units}, tuple(zip(texts, strict=True)))


def _collect(rows: Rows, cells: Cells, width: int, *, counts_units: bool) -> dict[int, tuple[int, ...]]:
    """The integers of each cell. Undeclared keys are numbered as they come."""
    found: dict[int, tuple[int, ...]] = {}
    for row in rows:
        cell = cells.name(row[:width]) if cells.discovered else cells.find(row[:width])
        if cell in found and counts_units:  # a unit could be counted in both
            raise KernelFault("Two rows count the people of one cell.")
        if cell is not None:
            values = tuple(map(index, row[width:]))
            found[cell] = tuple(map(add, found[cell], values)) if cell in found else values
    return found


def _place(rows: Rows, cells: Cells, width: int) -> list[int]:
    """One integer for each cell. Keys that nobody is counted for have no cell."""
    placed = [0] * len(cells)
    for row in rows:
        cell = cells.find(row[:width])
        if cell is not None:
            if placed[cell]:  # a value could be counted in both
                raise KernelFault("Two rows count the values of one cell.")
            placed[cell] = index(row[width])
    return placed


def _fill_bins(rows: Rows, cells: Cells, width: int, number: Callable[[Scalar], int | None]) -> list[Bins]:
    """The weight in each bin of each cell. A row is its key values, its value and its weight."""
    filled = [Bins() for _ in range(len(cells))]
    for *values, value, weight in rows:
        cell, chosen = cells.find(values), number(value)
        if cell is not None and chosen is not None:
            filled[cell][chosen] = filled[cell].get(chosen, 0) + index(weight)
    return filled
