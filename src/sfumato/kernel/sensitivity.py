"""How far one unit can move a measurement: one rule for each quantity and neighbouring relation."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, prod
from typing import assert_never

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, Expression
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import (
    KEY_WEIGHT_EXPONENT,
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Count,
    Curve,
    Different,
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
    Quantity,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.released_steps import find_exponent, number_conditions
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.split_sums import bound_parts
from sfumato.kernel.strategies import Matrix, bound_columns


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change between neighbours, over all cells, in steps of the released integers."""

    l1: Fraction
    l2_squared: Fraction


def derive_sensitivity(plan: BoundedPlan, quantity: Quantity) -> Sensitivity:  # noqa: PLR0911, PLR0912 - one a rule
    """Derive the sensitivity of one quantity from the finished plan.

    Claim: K-25. Between neighbours, the vector of the quantity's integers changes by at most this in L1 and L2.
    Requires: the engine computes the plan as its operators say (tests/engines: every engine equals the reference).
    Relies on: K-35 (reach), K-37 (split sums), K-64 (different values), K-77 (pivots), K-80; nothing of the planner.
    Checked by: tests/neighbours/test_sensitivity.py::test_no_neighbour_moves_more
    """
    reach, per_row, neighbours = Fraction(plan.reach), plan.unit.per_row, plan.unit.neighbours
    match quantity:
        case Sum(value, grid) if neighbours is Neighbours.REPLACE_ONE and _is_always_there(plan, value):
            return Sensitivity(Fraction(grid.span), Fraction(grid.span**2))
        case Count() | Sum():
            return _bound_weighed(plan, *_bound_unit(plan, quantity))
        case People() | Keys():
            groups = plan.max_groups_per_unit
            moved = Fraction(groups if plan.cells is None else min(groups, plan.cells))  # by one in each cell
            if plan.cells != 1:  # a single cell moves by 1 at most, also where one unit replaces another
                moved *= neighbours.people_moved
            return Sensitivity(moved, moved)
        case Distinct():
            pairs, in_cell = bound_pairs(plan, quantity)
            moved = Fraction(pairs if plan.cells == 1 else pairs * neighbours.people_moved)
            return Sensitivity(moved, moved * in_cell)
        case DistinctSum(_, grid, offset):
            pairs, _ = bound_pairs(plan, quantity)
            low, high = (Fraction(pairs * (end - offset)) for end in (grid.lower, grid.upper))
            return _bound_weighed(plan, min(low, Fraction(0)), max(high, Fraction(0)))
        case WeightedKeys():
            times, square = neighbours.people_moved, 1 << -2 * KEY_WEIGHT_EXPONENT
            largest = isqrt(square * plan.max_groups_per_unit) + 1  # n weights of 1/sqrt(n) add up to sqrt(n)
            return Sensitivity(Fraction(times * largest), Fraction(times * square))
        case Halves() | Thirds():
            moved = neighbours.people_moved * reach * bound_parts(quantity, per_row=per_row)
            return Sensitivity(moved, moved**2)
        case Curve(value):
            if neighbours is not Neighbours.REPLACE_ONE or not _is_always_there(plan, value):
                raise KernelFault("A curve needs rows that always have a value.")
            moved = bound_parts(quantity, per_row=per_row)
            return Sensitivity(moved, moved**2)
        case Pivot(part, conditions):  # as if the number of the condition were one more key (K-77)
            return derive_sensitivity(replace(plan, keys=(*plan.keys, number_conditions(conditions))), part)
        case Strategy(part, matrices):  # by the columns of the cells that one unit moves (K-80)
            return _bound_mixed(plan, *_bound_unit(plan, part), matrices)
        case Products():
            sides = bound_terms(plan, quantity)
            return Sensitivity(sum(sides, Fraction(0)), sum((side**2 for side in sides), Fraction(0)))
        case Quantiles() | Extreme() | Mode():  # one unit's weights leave, and another's enter other bins
            times, weight = neighbours.people_moved, Fraction(bound_unit_weight(plan))
            return Sensitivity(times * weight, times * weight**2)  # weights are never negative: no cross term adds
        case _:
            assert_never(quantity)


def bound_terms(plan: BoundedPlan, products: Products) -> tuple[Fraction, ...]:
    """The box that one unit moves in: the most of each term, in steps.

    Claim: K-57. Divide each term's change by its number here. Of each cell take the largest of these ratios, in size:
        their sum over all cells is at most 1.
    Requires: as sensitivity.
    Relies on: K-25, K-35.
    Checked by: tests/neighbours/test_product_boxes.py::test_no_neighbour_leaves_the_box
    """
    reach, bounds = Fraction(plan.reach), map(products.find_bounds, products.terms)
    return tuple(_bound_weighed(plan, reach * min(least, 0), reach * max(most, 0)).l1 for least, most in bounds)


def bound_pairs(plan: BoundedPlan, quantity: Different) -> tuple[int, int]:
    """The most different (cell, value) pairs of one unit that are kept: in all cells, and in one.

    Claim: K-64. Both are upper bounds.
    Requires: the engine keeps at most `reach` pairs of a unit, and only values of the lists (tests/engines).
    Relies on: K-35.
    Checked by: tests/neighbours/test_distinct.py::test_no_neighbour_moves_more_different_values
    """
    listed = [key.values for key in quantity.keys if key.values is not None]
    if len(listed) < len(quantity.keys):
        return plan.reach, plan.reach
    in_cell = prod(map(len, listed))
    kept = plan.reach if plan.cells is None else min(plan.reach, plan.cells * in_cell)
    return kept, min(kept, in_cell)


def bound_unit_weight(plan: BoundedPlan) -> int:
    """The most weight, in steps, that one unit has in the bins of a choice, over all bins and cells.

    Claim: K-25. It is the `reach` of K-30 to K-33.
    Requires: as sensitivity.
    Relies on: K-35.
    Checked by: tests/kernel/test_certify.py::test_the_table_of_sensitivities
    """
    return plan.reach if plan.unit.per_row else plan.reach << -ROW_WEIGHT_EXPONENT


def _bound_unit(plan: BoundedPlan, quantity: Count | Sum) -> tuple[Fraction, Fraction]:
    """The least (at most 0) and the most (at least 0) that one unit's rows add, over all cells together."""
    reach = Fraction(plan.reach)
    if isinstance(quantity, Count):
        return Fraction(0), reach / Fraction(2) ** find_exponent(quantity, per_row=plan.unit.per_row)
    low, high = quantity.grid.lower - quantity.offset, quantity.grid.upper - quantity.offset
    return reach * min(low, 0), reach * max(high, 0)


def _bound_mixed(plan: BoundedPlan, least: Fraction, most: Fraction, matrices: tuple[Matrix, ...]) -> Sensitivity:
    """Of a strategy's queries, where one unit's rows are between `least` and `most` together.

    A norm is convex, so it is largest where a unit has all its weight in one cell: along the column of that cell.
    """
    l1, l2_squared, product = bound_columns(matrices)
    size = max(-least, most)
    match plan.unit.neighbours:
        case Neighbours.ADD_REMOVE:
            return Sensitivity(size * l1, size**2 * l2_squared)
        case Neighbours.REPLACE_ONE:  # |a - b|**2 = |a|**2 + |b|**2 - 2ab; of opposite signs, at most (|a| + |b|)**2
            squared = 4 * l2_squared if most > 0 > least else 2 * l2_squared - 2 * product
            return Sensitivity(2 * size * l1, size**2 * squared)
        case _:
            assert_never(plan.unit.neighbours)


def _bound_weighed(plan: BoundedPlan, least: Fraction, most: Fraction) -> Sensitivity:
    """Of sums over rows, of which one unit's are between `least` <= 0 and `most` >= 0 together."""
    size = max(most, -least)
    match plan.unit.neighbours:
        case Neighbours.ADD_REMOVE:
            return Sensitivity(size, size**2)
        case Neighbours.REPLACE_ONE if plan.cells != 1:
            opposed = most > 0 > least  # the two units may meet in one cell with opposite signs
            return Sensitivity(2 * size, (4 if opposed else 2) * size**2)
        case Neighbours.REPLACE_ONE:
            return Sensitivity(most - least, (most - least) ** 2)
        case _:
            assert_never(plan.unit.neighbours)


def _is_always_there(plan: BoundedPlan, value: Expression) -> bool:
    """Does every row always add a value within the bounds? Then a replaced row moves a sum by the span alone."""
    stays = isinstance(plan.source, Scan) and plan.unit.per_row and not plan.filters and not plan.keys
    return stays and isinstance(value, Column) and not value.nullable
