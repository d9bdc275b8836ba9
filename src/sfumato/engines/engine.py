"""What every engine does."""

from collections.abc import Iterable
from itertools import product
from typing import Protocol

from sfumato.kernel.plan import BoundedPlan, Scalar
from sfumato.kernel.release import ExactAggregates

# columns that a snapshot adds to the declared ones
UNIT = "__sfumato_unit"  # whose row it is, as text; no row is without
ROWS_OF_UNIT = "__sfumato_rows"  # how many rows of the snapshot are theirs


CellKey = tuple[tuple[str, Scalar], ...]


def cell_key(values: Iterable[Scalar]) -> CellKey:
    """Key values as they are told apart in every engine: 1 and 1.0 are one number, True is none."""
    return tuple((_sort(value), float(value) if _sort(value) == "number" else value) for value in values)  # type: ignore[arg-type]


def _sort(value: Scalar) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def cells_of(plan: BoundedPlan) -> dict[CellKey, int]:
    """The number of each cell, by its key values."""
    return {cell_key(values): index for index, values in enumerate(product(*(key.values for key in plan.keys)))}


class Engine(Protocol):
    """One job: run a plan and return integers, one for each measurement and cell."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. It reads data, and so comes after the charge; no data can make it raise."""
        ...
