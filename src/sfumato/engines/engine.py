"""What every engine does."""

from collections.abc import Iterable
from itertools import product
from typing import Protocol

from sfumato.errors import KernelFault
from sfumato.kernel.plan import BoundedPlan, Scalar
from sfumato.kernel.release import ExactAggregates

# columns that a snapshot adds to the declared ones
UNIT = "__sfumato_unit"  # whose row it is, as text; no row is without
ROWS_OF_UNIT = "__sfumato_rows"  # how many rows of the snapshot are theirs


CellKey = tuple[tuple[str, Scalar], ...]


def cell_key(values: Iterable[Scalar]) -> CellKey:
    """Key values as they are told apart in every engine: 1 and 1.0 are one number, True is none."""
    return tuple(_told_apart(value) for value in values)


def _told_apart(value: Scalar) -> tuple[str, Scalar]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", int(value) if isinstance(value, float) and value.is_integer() else value
    return type(value).__name__, value


def cells_of(plan: BoundedPlan) -> dict[CellKey, int]:
    """The number of each cell, by its key values."""
    cells = {cell_key(values): index for index, values in enumerate(product(*(key.values for key in plan.keys)))}
    if len(cells) != plan.cells:
        raise KernelFault("Two values of a key are one number.")
    return cells


class Engine(Protocol):
    """One job: run a plan and return integers, one for each measurement and cell."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. It reads data, and so comes after the charge; no data can make it raise."""
        ...
