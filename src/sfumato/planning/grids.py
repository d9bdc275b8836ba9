"""Public grids, from declared bounds alone: for sums, and for bins to choose among."""

from fractions import Fraction
from functools import lru_cache
from math import floor, frexp

from sfumato.catalog.public_grid import choose_exponent
from sfumato.errors import KernelFault
from sfumato.kernel.plan import MOST_STEPS, Grid
from sfumato.query.query import Typed
from sfumato.query.size_limits import MOST_BINS

SPAN_BITS = 14  # of values that are squared: their squares and the sums of those fit 64 bits
BIN_BITS = 12  # of real values: 4,096 to 8,192 bins; more would cost rank, by the logarithm of their number


def make_sum_grid(value: Typed, *, per_row: bool) -> Grid:
    """The grid of a value that is added up."""
    lower, upper = _bounds_of(value)
    return _make_grid(lower, upper, choose_exponent(lower, upper, whole=value.whole, per_row=per_row))


def make_squared_grid(value: Typed) -> Grid:
    """The grid of a value that is squared: few enough steps."""
    lower, upper = _bounds_of(value)
    return _make_coarse_grid(lower, upper, frexp(upper - lower)[1] - SPAN_BITS, whole=value.whole)


def make_bin_grid(value: Typed) -> Grid:
    """The bins of a value: every whole number, where they are few; else bins of one public width."""
    lower, upper = _bounds_of(value)
    if value.whole and upper - lower < MOST_BINS:
        return Grid(int(lower), int(upper), 0)
    return _make_coarse_grid(lower, upper, frexp(upper - lower)[1] - 1 - BIN_BITS, whole=value.whole)


def _bounds_of(value: Typed) -> tuple[float, float]:
    if value.lower is None or value.upper is None:
        raise KernelFault("A sum or a choice without bounds has no plan.")
    return value.lower, value.upper


def _make_coarse_grid(lower: float, upper: float, exponent: int, *, whole: bool) -> Grid:
    if whole:
        exponent = max(exponent, 0)
    while max(abs(lower), abs(upper)) > MOST_STEPS * 2.0**exponent:  # narrow bounds, far from zero
        exponent += 1
    return _make_grid(lower, upper, exponent)


@lru_cache(maxsize=1024)
def _make_grid(lower: float, upper: float, exponent: int) -> Grid:
    step = Fraction(2) ** exponent
    low, high = (floor(Fraction(bound) / step + Fraction(1, 2)) for bound in (lower, upper))
    return Grid(low, high, exponent)
