"""Which measurements give the count, the sum and the squares of each value: as few as will do, since they share a loss.

A value whose count is wanted with its sum is measured in halves, one whose variance is wanted in thirds
(kernel/split_sums.py): each is one measurement. One such value gives its count to all others that have no NULLs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.kernel.expressions import Column
from sfumato.kernel.plan import Curve, Grid, Halves, Measurement, Split, Thirds
from sfumato.kernel.split_sums import halfway
from sfumato.planning.grids import squared_grid, sum_grid
from sfumato.query.query import Aggregate, Typed

MOST_WIDENED = 1.02  # of halves: a person's distance is rounded up to whole weights
SPREAD = ("VARIANCE", "STDDEV")


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of released vectors, each times a number, and a constant; exact, so that what cancels is gone."""

    terms: tuple[tuple[str, Fraction], ...]
    constant: Fraction = Fraction(0)

    @classmethod
    def of(cls, name: str) -> "Linear":
        """One released vector."""
        return cls(((name, Fraction(1)),))

    def plus(self, other: "Linear", times: Fraction | int = 1) -> "Linear":
        """This, and another so many times."""
        together = dict(self.terms)
        for name, factor in other.terms:
            together[name] = together.get(name, Fraction(0)) + times * factor
        kept = tuple((name, factor) for name, factor in together.items() if factor)
        return Linear(kept, self.constant + times * other.constant)

    def times(self, factor: Fraction) -> "Linear":
        """This, so many times."""
        return Linear(()).plus(self, factor)


@dataclass(frozen=True, slots=True)
class Moments:
    """The count of a value, and the sums of it and of its square, less a centre: what is known of them."""

    count: Linear
    total: Linear
    squares: Linear | None
    centre: Fraction


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of the rows that a question is about."""

    per_row: bool  # a row is a person
    counted: bool  # a count of all of them is there in any case
    known: bool  # their number is public
    one_cell_replaced: bool  # one group, whose rows are replaced: a sum and a count are better apart than together


def together(aggregates: Sequence[Aggregate], rows: Rows) -> dict[Typed, type[Split]]:
    """The values that are measured in parts."""
    per_row = rows.per_row
    asked: dict[Typed, set[str]] = {}
    for each in aggregates:
        if each.value is not None:
            asked.setdefault(each.value, set()).add(each.function)
    found: dict[Typed, type[Split]] = {}
    for value, functions in asked.items():
        known = rows.known and not value.nullable
        if functions & set(SPREAD):
            curved = known and per_row and isinstance(value.expression, Column)  # rows of people are rounded (K-37)
            if squares_fit(value) and (curved or not known):
                found[value] = Curve if known else Thirds
        elif not known and _halves(value, functions, rows) and fits(value, per_row=per_row):
            found[value] = Halves
    wanted = any(each.function == "COUNT" and (each.value is None or not each.value.nullable) for each in aggregates)
    wanted = wanted or any("AVG" in functions for value, functions in asked.items() if not value.nullable)
    useful = {"AVG"} if rows.one_cell_replaced else {"AVG", "SUM"}
    if wanted and not rows.counted and all(value.nullable for value in found):
        for value, functions in sorted(asked.items(), key=lambda item: "AVG" not in item[1]):
            if functions & useful and not value.nullable and fits(value, per_row=per_row):
                return {value: Halves, **found}
    return found


def _halves(value: Typed, functions: set[str], rows: Rows) -> bool:
    """Are both the sum and the count of this very value wanted?"""
    if value.nullable:
        return "AVG" in functions or ({"COUNT", "SUM"} <= functions and not rows.one_cell_replaced)
    return {"AVG", "SUM"} <= functions


def fits(value: Typed, *, per_row: bool) -> bool:
    """Do halves cost next to nothing more than the bounds do?"""
    grid = sum_grid(value, per_row=per_row)
    if per_row or not grid.span:
        return grid.span > 0
    _, down, up = halfway(grid, per_row=False)
    return down + up <= MOST_WIDENED * grid.span


def squares_fit(value: Typed) -> bool:
    """Has a value more than one step to be squared?"""
    return squared_grid(value).span > 0


def of_halves(name: str, grid: Grid, *, per_row: bool) -> Moments:
    """Below and above: the count is their sum, and what is above more than the middle has is the total."""
    middle, down, up = halfway(grid, per_row=per_row)
    step, both = Fraction(2) ** grid.exponent, down + up
    below, above = part_name(name, 0), part_name(name, 1)
    one = 1 / (both * step)
    total = Linear(((above, Fraction(up, both)), (below, Fraction(-down, both))))
    return Moments(Linear(((below, one), (above, one))), total, None, middle * step)


def of_thirds(name: str, grid: Grid) -> Moments:
    """Squared distances from both bounds, and twice their product: around the middle."""
    step = Fraction(2) ** grid.exponent
    span = grid.span * step
    below, both, above = (Linear.of(part_name(name, place)) for place in range(3))
    count = below.plus(both).plus(above).times(1 / span**2)
    total = above.plus(below, -1).times(1 / (2 * span))
    squares = above.plus(both, -1).plus(below).times(Fraction(1, 4))
    return Moments(count, total, squares, Fraction(grid.lower + grid.upper, 2) * step)


def of_curve(name: str, grid: Grid, rows: int) -> Moments:
    """Of a public number of rows."""
    middle, _, half = halfway(grid, per_row=True)
    step = Fraction(2) ** grid.exponent
    first, second = (Linear.of(part_name(name, place)) for place in range(2))
    return Moments(Linear((), Fraction(rows)), first.times(1 / (half * step)), second, middle * step)


def part_name(name: str, place: int) -> str:
    """One part of a measurement, among what was released."""
    return f"{name}.{place}"


def names_of(measurement: Measurement) -> tuple[str, ...]:
    """How a measurement is named among what was released: by itself, or part by part."""
    if isinstance(measurement.quantity, Split):
        return tuple(part_name(measurement.name, place) for place in range(measurement.quantity.width))
    return (measurement.name,)
