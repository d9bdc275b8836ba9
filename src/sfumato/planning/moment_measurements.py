"""The measurements for the count, the sum and the squares of a value: as few as possible, because they share the loss.

A value whose count and sum are both wanted is measured in halves, one whose variance is wanted in thirds
(kernel/split_sums.py): each is one measurement. Other values without NULLs take their count from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.kernel.expressions import Column
from sfumato.kernel.plan import Curve, Grid, Halves, Measurement, Pivot, Split, Thirds
from sfumato.kernel.split_sums import find_middle
from sfumato.planning.grids import make_squared_grid, make_sum_grid
from sfumato.planning.linear import Linear
from sfumato.query.query import Aggregate, Typed

MOST_WIDENED = 1.02  # of halves: a person's distance is rounded up to whole weights
SPREAD = ("VARIANCE", "STDDEV")


@dataclass(frozen=True, slots=True)
class Moments:
    """How the count of a value, the sum of its differences from a centre and the sum of their squares are read."""

    count: Linear
    total: Linear
    squares: Linear | None
    centre: Fraction

    def rescale(self, factor: Fraction, shift: Fraction) -> "Moments":
        """The same of factor * value + shift: the differences from the centre grow by the factor."""
        squares = None if self.squares is None else self.squares.times(factor**2)
        return Moments(self.count, self.total.times(factor), squares, self.centre * factor + shift)


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What the planner knows about the rows of a question."""

    per_row: bool  # a row is a person
    counted: bool  # a count of all of them is measured in any case
    known: bool  # their number is public
    one_cell_replaced: bool  # one group, replace-one: a sum and a count are more accurate apart than together


def choose_splits(aggregates: Sequence[Aggregate], rows: RowFacts) -> dict[Typed, type[Split]]:
    """Choose the values that are measured in parts."""
    per_row = rows.per_row
    asked: dict[Typed, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.value is not None:
            asked.setdefault(aggregate.value, set()).add(aggregate.function)
    found: dict[Typed, type[Split]] = {}
    for value, functions in asked.items():
        known = rows.known and not value.nullable
        if functions & set(SPREAD):
            curved = known and per_row and isinstance(value.expression, Column)  # rows of people are rounded (K-37)
            if squares_fit(value) and (curved or not known):
                found[value] = Curve if known else Thirds
        elif not known and _wants_halves(value, functions, rows) and halves_fit(value, per_row=per_row):
            found[value] = Halves
    counts = [aggregate.value for aggregate in aggregates if aggregate.function == "COUNT"]
    wanted = any(value is None or not value.nullable for value in counts)
    wanted = wanted or any("AVG" in functions for value, functions in asked.items() if not value.nullable)
    useful = {"AVG"} if rows.one_cell_replaced else {"AVG", "SUM"}
    if wanted and not rows.counted and all(value.nullable for value in found):
        for value, functions in sorted(asked.items(), key=lambda item: "AVG" not in item[1]):
            if functions & useful and not value.nullable and halves_fit(value, per_row=per_row):
                return {value: Halves, **found}
    return found


def _wants_halves(value: Typed, functions: set[str], rows: RowFacts) -> bool:
    """Does the question need both the sum and the count of this value?"""
    if value.nullable:
        return "AVG" in functions or ({"COUNT", "SUM"} <= functions and not rows.one_cell_replaced)
    return {"AVG", "SUM"} <= functions


def halves_fit(value: Typed, *, per_row: bool) -> bool:
    """Is the sensitivity of the halves close to the span of the bounds? For a person it is rounded up."""
    grid = make_sum_grid(value, per_row=per_row)
    if per_row or not grid.span:
        return grid.span > 0
    _, down, up = find_middle(grid, per_row=False)
    return down + up <= MOST_WIDENED * grid.span


def squares_fit(value: Typed) -> bool:
    """Has the grid of the squares more than one step?"""
    return make_squared_grid(value).span > 0


def read_halves(name: str, grid: Grid, *, per_row: bool) -> Moments:
    """The count is the sum of both halves; the total is their difference, each half times its distance."""
    middle, down, up = find_middle(grid, per_row=per_row)
    step, both = Fraction(2) ** grid.exponent, down + up
    below, above = name_part(name, 0), name_part(name, 1)
    one = 1 / (both * step)
    total = Linear(((above, Fraction(up, both)), (below, Fraction(-down, both))))
    return Moments(Linear(((below, one), (above, one))), total, None, middle * step)


def read_thirds(name: str, grid: Grid) -> Moments:
    """From the squared distances to both bounds, and twice their product; the centre is the middle."""
    step = Fraction(2) ** grid.exponent
    span = grid.span * step
    below, both, above = (Linear.from_vector(name_part(name, place)) for place in range(3))
    count = below.plus(both).plus(above).times(1 / span**2)
    total = above.plus(below, -1).times(1 / (2 * span))
    squares = above.plus(both, -1).plus(below).times(Fraction(1, 4))
    return Moments(count, total, squares, Fraction(grid.lower + grid.upper, 2) * step)


def read_curve(name: str, grid: Grid, rows: int) -> Moments:
    """From a sum and squares; the number of rows is public."""
    middle, _, half = find_middle(grid, per_row=True)
    step = Fraction(2) ** grid.exponent
    first, second = (Linear.from_vector(name_part(name, place)) for place in range(2))
    return Moments(Linear((), Fraction(rows)), first.times(1 / (half * step)), second, middle * step)


def name_part(name: str, place: int) -> str:
    """Name one part of a measurement as a released vector."""
    return f"{name}.{place}"


def name_vectors(measurement: Measurement) -> tuple[str, ...]:
    """Name the released vectors of a measurement: one, or one for each part."""
    if measurement.quantity.width > 1 and isinstance(measurement.quantity, Split | Pivot):
        return tuple(name_part(measurement.name, place) for place in range(measurement.quantity.width))
    return (measurement.name,)
