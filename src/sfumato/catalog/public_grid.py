"""The public grid of a value, from its declared bounds."""

from math import frexp

from sfumato.kernel.plan import MOST_STEPS

GRID_BITS = 24


def choose_exponent(lower: float, upper: float, *, whole: bool, per_row: bool) -> int:
    """Choose the grid of values in [lower, upper], in steps of 2**exponent. It never depends on epsilon or on data.

    Bounds are at most 2**(GRID_BITS + 1) steps, or whole numbers of at most 2**53.
    """
    reach = max(abs(lower), abs(upper))
    if reach == 0 or (whole and per_row and reach <= MOST_STEPS):
        return 0
    fine = frexp(reach)[1] - 1 - GRID_BITS
    return min(fine, 0) if whole else fine
