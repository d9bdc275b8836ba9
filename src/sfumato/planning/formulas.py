"""How an aggregate is read from released vectors: a closed union, with one class for each form.

To add a form: add its class to `Formula`, and make it in planner.py. mypy (assert_never) then names the places that
need a case: `sums_of` and `list_possible_values` here, answers/released_values.py and answers/possible_ranges.py.
"""

import math
from dataclasses import dataclass, replace
from typing import assert_never

from sfumato.kernel.expressions import Scalar
from sfumato.planning.linear import Linear
from sfumato.query.query import Typed


@dataclass(frozen=True, slots=True)
class CountFormula:
    """A number of rows or of people."""

    count: Linear
    least: float | None = None  # what the catalog makes possible
    most: float | None = None
    value: Typed | None = None  # only rows where it is not NULL are counted
    all_rows: bool = False  # all rows are counted


@dataclass(frozen=True, slots=True)
class SumFormula:
    """The sum of a value."""

    total: Linear
    value: Typed
    least: float | None  # what the catalog makes possible
    most: float | None
    different: bool = False  # each different value is added once, not once for each row


@dataclass(frozen=True, slots=True)
class MeanFormula:
    """centre + total/count, clamped to the bounds of the value. The total is that of the values less the centre."""

    count: Linear
    total: Linear
    centre: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class VarianceFormula:
    """The variance of a sample, or its root. The sums are those of the values less a centre, and of their squares."""

    count: Linear
    total: Linear
    squares: Linear
    reach: float  # no value is further from the centre
    largest: float  # the largest variance that values within the bounds can have
    root: bool  # the standard deviation

    @property
    def cap(self) -> float:
        """Released variances are clamped to [0, cap]: a sample of two values reaches twice the square of the reach."""
        return 2 * self.reach**2


@dataclass(frozen=True, slots=True)
class PairFormula:
    """A statistic of two values y and x. The sums are over rows without NULL, of values minus their centres.

    It is CORR, COVAR_SAMP, COVAR_POP, REGR_SLOPE, REGR_INTERCEPT, REGR_R2, REGR_SXX, REGR_SXY, or the divisor REGR_SYY.
    """

    function: str
    count: Linear
    y: Linear
    x: Linear
    yy: Linear | None  # squares; None: not needed
    xx: Linear | None
    xy: Linear | None  # products
    centres: tuple[float, float]
    range: tuple[float, float]  # what the catalog makes possible

    @property
    def divisors(self) -> "tuple[PairFormula, ...]":
        """The sums of squares that the statistic divides by."""
        needed = ["REGR_SXX"] if self.function in ("CORR", "REGR_R2", "REGR_SLOPE", "REGR_INTERCEPT") else []
        needed += ["REGR_SYY"] if self.function in ("CORR", "REGR_R2") else []
        return tuple(replace(self, function=name, range=(-math.inf, math.inf)) for name in needed)


@dataclass(frozen=True, slots=True)
class BinFormula:
    """The value of a chosen bin: first + number * step, at most `upper`."""

    chosen: str  # the name of the measurement
    place: int  # of the bin among those that are chosen in a cell
    width: int  # how many are chosen in a cell
    first: float
    step: float
    upper: float | None
    since: Scalar = None  # of a date or datetime: the value is so many days or minutes later
    ends: str = ""  # the name of the measurement of its interval; empty: there is none
    lower: float | None = None
    rounding: float = 0.0  # the furthest that a value lies from the middle of its bin


@dataclass(frozen=True, slots=True)
class ListFormula:
    """The most frequent of public values, or a list of the `width` most frequent ones."""

    chosen: str  # the name of the measurement
    values: tuple[Scalar, ...]
    width: int
    several: bool


ChoiceFormula = BinFormula | ListFormula
Formula = CountFormula | SumFormula | MeanFormula | VarianceFormula | PairFormula | ChoiceFormula


def sums_of(formula: Formula) -> tuple[Linear, ...]:
    """The sums of released vectors that an aggregate is computed from. A choice is computed from none."""
    match formula:
        case CountFormula(count):
            return (count,)
        case SumFormula(total):
            return (total,)
        case MeanFormula(count, total):
            return count, total
        case VarianceFormula(count, total, squares):
            return count, total, squares
        case PairFormula(_, count, y, x, yy, xx, xy):
            return tuple(moment for moment in (count, y, x, yy, xx, xy) if moment is not None)
        case BinFormula() | ListFormula():
            return ()
        case _:
            assert_never(formula)


def count_of(formula: Formula) -> Linear | None:
    """The number of rows that an aggregate counts, or divides by."""
    return formula.count if isinstance(formula, CountFormula | MeanFormula | VarianceFormula | PairFormula) else None


def list_possible_values(formula: Formula) -> tuple[float, float]:
    """The smallest and the largest value that the catalog makes possible; of a choice, nothing is said."""
    least: float | None
    most: float | None
    match formula:
        case CountFormula(_, least, most) | SumFormula(_, _, least, most):
            pass
        case MeanFormula(lower=least, upper=most):
            pass
        case VarianceFormula(largest=largest, root=root):
            least, most = 0.0, math.sqrt(largest) if root else largest
        case PairFormula(range=(least, most)):
            pass
        case BinFormula() | ListFormula():
            least, most = None, None
        case _:
            assert_never(formula)
    return -math.inf if least is None else least, math.inf if most is None else most
