"""The interface of an engine, and what all engines share: the cells of a plan, bins, and sums that are split."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Protocol

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, Scalar
from sfumato.kernel.plan import BoundedPlan, Choice, Count, Curve, Halves, Mode, Sum, Thirds
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.split_sums import halves

KeyParts = tuple[tuple[str, Scalar], ...]
Bins = dict[int, int]  # the weight in each bin that has any


def make_key(values: Iterable[Scalar]) -> KeyParts:
    """Key values in the form in which every engine compares them: 1 and 1.0 are one number, True is not a number."""
    return tuple((_kind(value), value) for value in map(whole, values))


def whole(value: Scalar) -> Scalar:
    """A float that is a whole number becomes an integer; other values stay."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(value: Scalar) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


class Cells:
    """The cells of a plan: the declared ones, or undeclared ones that are numbered when they are found."""

    def __init__(self, plan: BoundedPlan) -> None:
        self._declared = [None if key.values is None else set(make_key(key.values)) for key in plan.keys]
        self.discovered = plan.cells is None
        self._numbers: dict[KeyParts, int] = {}
        if not self.discovered:
            everything = product(*(key.values or () for key in plan.keys))
            self._numbers = {make_key(values): index for index, values in enumerate(everything)}
            if len(self._numbers) != plan.cells:
                raise KernelFault("Two values of a key are one number.")

    def find(self, values: Iterable[Scalar]) -> int | None:
        """The number of the cell with these key values, if there is one."""
        return self._numbers.get(make_key(values))

    def name(self, values: Iterable[Scalar]) -> int | None:
        """The number of an undeclared cell. None: a key is NULL, or a declared key has an undeclared value."""
        told = make_key(values)
        for value, declared in zip(told, self._declared, strict=True):
            if value[1] is None if declared is None else value not in declared:
                return None
        return self._numbers.setdefault(told, len(self._numbers))

    @property
    def keys(self) -> tuple[tuple[Scalar, ...], ...] | None:
        """The undeclared keys, in the order of their numbers."""
        return tuple(tuple(value for _, value in told) for told in self._numbers) if self.discovered else None

    def __len__(self) -> int:
        return len(self._numbers)


def bin_numbers(choice: Choice) -> Callable[[Scalar], int | None]:
    """Make the function from a row's value, in steps of the grid or from a public list, to the number of its bin."""
    if isinstance(choice, Mode):
        numbers = {make_key((value,)): index for index, value in enumerate(choice.values)}
        return lambda value: numbers.get(make_key((value,)))
    lower = choice.grid.lower
    return lambda value: None if value is None else int(value) - lower  # type: ignore[arg-type]


Added = Count | Sum | Halves | Thirds | Curve  # quantities that add up rows


def list_addends(quantity: Count | Sum | Halves, *, per_row: bool) -> tuple[Count | Sum, ...]:
    """The sums over rows that a quantity is computed from: for halves, a sum and a count.

    A person's rows are weighed, and then rounded: their sum is around the middle. A row unit's sum is not, because
    `compute_integers` subtracts the middle from the total. Nothing is subtracted for each row.
    """
    if not isinstance(quantity, Halves):
        return (quantity,)
    value, grid = quantity.value, quantity.grid
    always = isinstance(value, Column) and not value.nullable
    return Sum(value, grid, 0 if per_row else grid.middle), Count(None if always else value)


def compute_integers(quantity: Added, totals: Sequence[int], plan: BoundedPlan) -> tuple[int, ...]:
    """The integers of one cell, from the sums over its rows."""
    if not isinstance(quantity, Halves):
        return tuple(totals)
    total, count = totals
    if plan.unit.per_row:
        total -= quantity.grid.middle * count
    return halves(total, count, quantity.grid, per_row=plan.unit.per_row)


class Engine(Protocol):
    """One job: run a plan and return integers, one for each measurement and cell."""

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that cannot be run, by the declared columns alone: no data is read. It precedes the charge."""
        ...

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. It reads data, and so comes after the charge; no data can make it raise."""
        ...

    def close(self) -> None:
        """Release connections and memory. A closed engine answers nothing."""
        ...
