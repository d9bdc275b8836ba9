"""Parts: what one row adds, spread over a few integers by where its value lies between its bounds.

The count and the sum of a value have each their own noise if they are measured apart. Measured as parts that add up
to the row's weight, they share it: whatever one person moves in one part, they do not move in another.
"""

from fractions import Fraction
from typing import assert_never

from sfumato.kernel.plan import ROW_WEIGHT_EXPONENT, Curve, Grid, Halves, Split, Thirds


def find_middle(grid: Grid, *, per_row: bool) -> tuple[int, int, int]:
    """The middle of the bounds, and how far it is down to the lower and up to the upper; for a person, no less.

    Claim: K-37. A person's distances are equal, at least those to the bounds, and whole when times a count.
    Checked by: tests/kernel/test_split_sums.py::test_halves_are_whole_and_reach_both_bounds
    """
    down, up = grid.middle - grid.lower, grid.upper - grid.middle
    if per_row:
        return grid.middle, down, up
    whole = 1 << -ROW_WEIGHT_EXPONENT
    same = -(-max(down, up) // whole) * whole
    return grid.middle, same, same


def compute_halves(total: int, count: int, grid: Grid, *, per_row: bool) -> tuple[int, int]:
    """Weight below and above, from the sum of values less the middle, and their count (a person's in steps of 2**-16).

    Claim: K-37. One unit's halves are, in size, at most both distances together times its reach.
    Requires: total and count are weighed as K-25 says (engine).
    Relies on: K-25.
    Checked by: tests/neighbours/test_sensitivity.py::test_no_neighbour_moves_more
    """
    _, down, up = find_middle(grid, per_row=per_row)
    shift = 0 if per_row else -ROW_WEIGHT_EXPONENT
    return (up * count >> shift) - total, (down * count >> shift) + total


def bound_parts(quantity: Split, *, per_row: bool) -> Fraction:
    """The most that one row of weight 1 adds to all parts together; of a curve, the most that a replaced row moves.

    Claim: K-37. In L1, for every value within the bounds.
    Checked by: tests/kernel/test_split_sums.py::test_what_one_row_adds_is_enumerated
    """
    _, down, up = find_middle(quantity.grid, per_row=per_row)
    match quantity:
        case Halves():
            return Fraction(down + up)
        case Thirds(grid=grid):
            return Fraction(grid.span**2)
        case Curve():
            return Fraction(9 * up * up, 4)
        case _:
            assert_never(quantity)
