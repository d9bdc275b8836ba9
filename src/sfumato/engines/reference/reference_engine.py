"""The reference engine: slow, plain Python. Every other engine must equal it, bit for bit."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import assert_never

import numpy as np

from sfumato.engines.measured_cells import Added, Bins, Cells, compute_integers, list_addends, number_bins
from sfumato.engines.reference.reference_distinct import Placed, count_different, find_place, read_keys
from sfumato.engines.reference.reference_rows import WeightedRow, key_text, passes, quantise, read_rows
from sfumato.kernel.expressions import Column, Scalar
from sfumato.kernel.key_rounds import Holdings
from sfumato.kernel.plan import (
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Keys,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.release import ExactAggregates
from sfumato.kernel.released_steps import find_exponent
from sfumato.kernel.row_sources import derive_extent
from sfumato.kernel.split_sums import find_middle
from sfumato.kernel.strategies import Matrix
from sfumato.kernel.weighted_keys import find_weight
from sfumato.row_meanings.evaluate import Row, evaluate


class ReferenceEngine:
    """Measures plans over rows that map column names to values, as a snapshot holds them."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._tables = tables

    def check(self, plan: BoundedPlan) -> None:
        """Accept every plan."""

    def close(self) -> None:
        """Nothing is open: the rows are the caller's."""

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Add up row by row."""
        inside = [row for row in read_rows(self._tables, plan.source) if passes(plan.filters, row.values)]
        cells = Cells(plan)
        if cells.discovered:
            for row in inside:
                cells.name(key_values(plan, row.values))
        placed = [(row, cell) for row in inside if (cell := cells.find(key_values(plan, row.values))) is not None]
        integers: dict[str, list[int]] = {}
        bins: dict[str, list[Bins]] = {}
        held: list[tuple[int, int]] = []
        for measurement in plan.measurements:
            match measurement.quantity:
                case Count() | Sum() | Halves() | Thirds() | Curve() | Pivot() | Products() as added:
                    integers[measurement.name] = _add_up(added, placed, len(cells), plan)
                case Strategy(part, matrices):
                    cells_of_part = _add_up(part, placed, len(cells), plan)
                    integers[measurement.name] = _multiply_out(cells_of_part, matrices)
                case People() | Keys():
                    integers[measurement.name] = _count_units(placed, len(cells), plan)
                case WeightedKeys():
                    integers[measurement.name] = _count_units(placed, len(cells), plan, weigh=find_weight)
                    held = list(_list_kept(placed, plan)) if plan.holds_pairs else []
                case Distinct() | DistinctSum() as different:
                    integers[measurement.name] = count_different(different, placed, len(cells), plan)
                case Quantiles() | Extreme() | Mode() as choice:
                    bins[measurement.name] = _fill_bins(choice, placed, len(cells), plan)
                case quantity:
                    assert_never(quantity)
        people, numbers = (np.array(part, np.int64) for part in (zip(*held, strict=True) if held else ((), ())))
        return ExactAggregates(
            plan, integers, cells.keys, bins, Holdings(people, numbers) if plan.holds_pairs else None
        )


def key_values(plan: BoundedPlan, row: Row) -> list[Scalar]:
    """The values of a row's keys."""
    return read_keys(plan.keys, row)


def _count_units(
    placed: Sequence[Placed], cells: int, plan: BoundedPlan, weigh: Callable[[int], int] = lambda _: 1
) -> list[int]:
    """The number of units in each cell, or of their weights, by how many cells a unit is counted in.

    A unit is counted in a bounded number of cells: those least by a hash.
    """
    counted = [0] * cells
    kept = list(_list_kept(placed, plan))
    held = Counter(unit for unit, _ in kept)
    for unit, cell in kept:
        counted[cell] += weigh(held[unit])
    return counted


def _list_kept(placed: Sequence[Placed], plan: BoundedPlan) -> Iterator[tuple[int, int]]:
    """The number of each unit, and the cells in which it is counted."""
    cells_of_unit: dict[Scalar, dict[int, tuple[str, ...]]] = {}
    for number, (row, cell) in enumerate(placed):
        unit: Scalar = number if plan.unit.per_row else row.unit
        cells_of_unit.setdefault(unit, {})[cell] = tuple(map(key_text, key_values(plan, row.values)))
    for place, (unit, reached) in enumerate(cells_of_unit.items()):
        ordered = sorted((find_place(texts, unit), texts, cell) for cell, texts in reached.items())
        yield from ((place, cell) for _, _, cell in ordered[: plan.max_groups_per_unit])


def _fill_bins(choice: Choice, placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[Bins]:
    """The weight in each bin of each cell."""
    most, number_of = derive_extent(plan.source).numerator, number_bins(choice)
    filled = [Bins() for _ in range(cells)]
    for row, cell in placed:
        number = number_of(_chosen_value(choice, row))
        if number is not None:
            weight = 1 if plan.unit.per_row else (1 << -ROW_WEIGHT_EXPONENT) * most // max(row.held, most)
            filled[cell][number] = filled[cell].get(number, 0) + weight
    return filled


def _chosen_value(choice: Choice, row: WeightedRow) -> Scalar:
    """The value that decides the bin: in steps, or from a public list, where a column is taken as it is stored."""
    if isinstance(choice, Mode) and isinstance(choice.value, Column):
        return row.values[choice.value.name]
    value = evaluate(choice.value, row.values)
    return value if isinstance(choice, Mode) or value is None else quantise(value, choice.grid)


def _add_up(quantity: Added, placed: Sequence[Placed], cells: int, plan: BoundedPlan) -> list[int]:
    """The integers of a quantity that adds up rows, cell by cell."""
    totals = [[0] * quantity.width for _ in range(cells)]
    for row, cell in placed:
        for place, added in enumerate(_contributions(quantity, row, plan)):
            totals[cell][place] += added
    return [integer for total in totals for integer in compute_integers(quantity, total, plan)]


def _multiply_out(cells: Sequence[int], matrices: Sequence[Matrix]) -> list[int]:
    """Every query of a strategy, term by term."""
    places = list(product(*(range(len(matrix)) for matrix in matrices)))

    def weigh(query: tuple[int, ...], cell: tuple[int, ...]) -> int:
        return prod(matrix[row][column] for matrix, row, column in zip(matrices, query, cell, strict=True))

    return [sum(weigh(query, cell) * cells[at] for at, cell in enumerate(places)) for query in places]


def _contributions(quantity: Added, row: WeightedRow, plan: BoundedPlan) -> tuple[int, ...]:
    """What one row adds to each of the sums that a quantity is computed from."""
    most, per_row = derive_extent(plan.source).numerator, plan.unit.per_row
    match quantity:
        case Thirds(value, grid) | Curve(value, grid):
            found = evaluate(value, row.values)
            if found is None:
                return (0,) * quantity.width
            return tuple(_weighed(part, row, most) for part in split_row(quantity, quantise(found, grid)))
        case Strategy(part):
            return _contributions(part, row, plan)
        case Pivot(part, conditions):
            true = [place for place, condition in enumerate(conditions) if evaluate(condition, row.values) is True]
            mine = _contributions(part, row, plan)
            return tuple(integer * (place in true[:1]) for place in range(len(conditions)) for integer in mine)
        case Products(terms=terms):
            return tuple(_weighed(multiply(quantity, term, row.values), row, most) for term in terms)
        case Count() | Sum() | Halves():
            addends = list_addends(quantity, plan)
            return tuple(_contribution(addend, row, most, per_row=per_row) for addend in addends)
        case _:
            assert_never(quantity)


def _contribution(addend: Count | Sum, row: WeightedRow, most: int, *, per_row: bool) -> int:
    found = None if addend.value is None else evaluate(addend.value, row.values)
    if addend.value is not None and found is None:
        return 0
    if isinstance(addend, Sum):
        return _weighed(quantise(found, addend.grid) - addend.offset, row, most)
    return _weighed(1 << -find_exponent(addend, per_row=per_row), row, most)


def _weighed(steps: int, row: WeightedRow, most: int) -> int:
    return steps if row.held <= most else (abs(steps) * most // row.held) * (1 if steps >= 0 else -1)  # toward zero


def multiply(products: Products, term: tuple[int, ...], row: Row) -> int:
    """What one row of weight 1 adds to a term."""
    total = products.find_multiplier(term)
    for place in term:
        found = evaluate(products.factors[place].value, row)
        total *= 0 if found is None else quantise(found, products.factors[place].grid)
    return total


def split_row(quantity: Thirds | Curve, steps: int) -> tuple[int, ...]:
    """The parts of one row of weight 1 whose value is so many steps. Thirds add up to the square of the span."""
    match quantity:
        case Thirds(grid=grid):
            below, above = grid.upper - steps, steps - grid.lower
            return below * below, 2 * below * above, above * above
        case Curve(grid=grid):
            middle, _, half = find_middle(grid, per_row=True)  # up is the longer way
            return half * (steps - middle), (steps - middle) ** 2
        case _:
            assert_never(quantity)
