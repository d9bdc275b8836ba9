"""Public grids, from declared bounds alone: for sums, and for bins to choose among."""

from fractions import Fraction
from math import floor, frexp

from sfumato.errors import KernelFault
from sfumato.kernel.plan import MOST_BINS, MOST_STEPS, grid_exponent
from sfumato.query.query import Typed

SPAN_BITS = 14  # of values that are squared: their squares and the sums of those fit 64 bits
BIN_BITS = 12  # of real values: 4,096 to 8,192 bins; more would cost rank, by the logarithm of their number


def steps_of(value: Typed, *, per_row: bool) -> tuple[int, int, int]:
    """Bounds of a value in steps of its grid, and the grid's exponent."""
    if value.lower is None or value.upper is None:
        raise KernelFault("A sum without bounds has no plan.")
    exponent = grid_exponent(value.lower, value.upper, whole=value.whole, per_row=per_row)
    return (*_in_steps(value.lower, value.upper, exponent), exponent)


def squared_steps_of(value: Typed) -> tuple[int, int, int]:
    """Bounds of a value in steps that are few enough to be squared, and the grid's exponent."""
    if value.lower is None or value.upper is None:
        raise KernelFault("A sum without bounds has no plan.")
    exponent = frexp(value.upper - value.lower)[1] - SPAN_BITS
    if value.whole:
        exponent = max(exponent, 0)
    while max(abs(value.lower), abs(value.upper)) > MOST_STEPS * 2.0**exponent:  # narrow bounds, far from zero
        exponent += 1
    return (*_in_steps(value.lower, value.upper, exponent), exponent)


def bins_of(value: Typed) -> tuple[int, int, int]:
    """Bounds of a value in bins: every whole number, where they are few; else bins of one public width."""
    if value.lower is None or value.upper is None:
        raise KernelFault("A choice without bounds has no plan.")
    if value.whole and value.upper - value.lower < MOST_BINS:
        return int(value.lower), int(value.upper), 0
    exponent = frexp(value.upper - value.lower)[1] - 1 - BIN_BITS
    if value.whole:
        exponent = max(exponent, 0)
    while max(abs(value.lower), abs(value.upper)) > MOST_STEPS * 2.0**exponent:  # narrow bounds, far from zero
        exponent += 1
    return (*_in_steps(value.lower, value.upper, exponent), exponent)


def _in_steps(lower: float, upper: float, exponent: int) -> tuple[int, int]:
    step = Fraction(2) ** exponent
    low, high = (floor(Fraction(end) / step + Fraction(1, 2)) for end in (lower, upper))
    return low, high
