"""How far one unit can move a measurement: one rule for each kind and neighbouring relation."""

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from sfumato.errors import KernelFault
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import PARTS, ROW_WEIGHT_EXPONENT, BoundedPlan, Column, Kind, Measurement
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.split_sums import most_of_parts


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change between neighbours, over all cells, in steps of the measurement's grid."""

    l1: Fraction
    l2_squared: Fraction


def sensitivity(plan: BoundedPlan, measurement: Measurement) -> Sensitivity:
    """Derive the sensitivity of one measurement from the finished plan.

    Claim: K-25. Between neighbours, the vector of the measurement's integers changes by at most this in L1 and L2.
    Requires: the engine computes the plan as its operators say (tests/engines: every engine equals the reference).
    Relies on: K-37 (parts); nothing of the planner.
    Checked by: tests/neighbours/test_sensitivity.py::test_no_neighbour_moves_more
    """
    if measurement.kind in PARTS:
        return _of_parts(plan, measurement)
    rows, several = plan.reach, plan.cells != 1
    match measurement.kind:
        case Kind.COUNT:
            most, least = Fraction(rows) / Fraction(2) ** measurement.exponent, Fraction(0)
        case Kind.SUM:
            upper, lower = measurement.upper - measurement.offset, measurement.lower - measurement.offset
            most, least = Fraction(rows * max(upper, 0)), Fraction(rows * min(lower, 0))
        case Kind.CHOICE:
            times = plan.unit.neighbours.people_moved  # one unit's weights leave, another's enter other bins
            weight = Fraction(weight_of_a_unit(plan))
            return Sensitivity(times * weight, times * weight**2)  # weights are never negative: no cross term adds
        case Kind.PEOPLE | Kind.KEYS:
            most_cells = plan.max_groups_per_unit if plan.cells is None else min(plan.max_groups_per_unit, plan.cells)
            moved = Fraction(most_cells)  # one in each cell
            if plan.unit.neighbours is Neighbours.REPLACE_ONE and several:
                moved *= 2  # all cells of the old and all of the new; a single cell moves by 1 at most
            return Sensitivity(moved, moved)
        case _:
            raise KernelFault("A measurement is of one of these kinds.")
    reach = max(most, -least)
    match plan.unit.neighbours:
        case Neighbours.ADD_REMOVE:
            return Sensitivity(reach, reach**2)
        case Neighbours.REPLACE_ONE if several:
            opposed = most > 0 > least  # the two may meet in one cell with opposite signs
            return Sensitivity(2 * reach, (4 if opposed else 2) * reach**2)
        case Neighbours.REPLACE_ONE:
            span = Fraction(measurement.upper - measurement.lower) if _always_there(plan, measurement) else most - least
            return Sensitivity(span, span**2)
        case _:
            assert_never(plan.unit.neighbours)


def weight_of_a_unit(plan: BoundedPlan) -> int:
    """The most weight, in steps, that one unit has in the bins of a choice, over all bins and cells.

    Claim: K-25. It is the `reach` of K-30 to K-33.
    Requires: as sensitivity.
    Relies on: K-35.
    Checked by: tests/kernel/test_certify.py::test_the_table_of_sensitivities
    """
    return plan.reach if plan.unit.per_row else plan.reach << -ROW_WEIGHT_EXPONENT


def _of_parts(plan: BoundedPlan, measurement: Measurement) -> Sensitivity:
    """Over all parts and cells together (K-37)."""
    most = most_of_parts(measurement, per_row=plan.unit.per_row)
    if measurement.kind is Kind.CURVE:
        if plan.unit.neighbours is not Neighbours.REPLACE_ONE or not _always_there(plan, measurement):
            raise KernelFault("A curve is of rows that are always there.")
        return Sensitivity(most, most**2)
    moved = plan.unit.neighbours.people_moved * plan.reach * most
    return Sensitivity(moved, moved**2)


def _always_there(plan: BoundedPlan, measurement: Measurement) -> bool:
    """Does every row add a value in [lower, upper], and never nothing? Then a replacement moves by the span alone."""
    column = measurement.value
    return (
        measurement.kind in (Kind.SUM, Kind.CURVE)
        and isinstance(plan.source, Scan)
        and plan.unit.per_row
        and not plan.filters
        and not plan.keys
        and isinstance(column, Column)
        and not column.nullable
    )
