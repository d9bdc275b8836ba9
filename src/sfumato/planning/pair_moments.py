"""Which moments a statistic of two values needs, and what the catalog says about it. y comes first, then x."""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.kernel.expressions import Call, Literal
from sfumato.query.query import Aggregate, Typed

PAIRS = {  # the sums of squares and products that each statistic needs, beside count and sums
    "COVAR_POP": ("xy",), "COVAR_SAMP": ("xy",), "REGR_SXY": ("xy",), "REGR_SXX": ("xx",),
    "CORR": ("xx", "yy", "xy"), "REGR_R2": ("xx", "yy", "xy"), "REGR_SLOPE": ("xx", "xy"),
    "REGR_INTERCEPT": ("xx", "xy"),
}  # fmt: skip


def list_moments(aggregates: Sequence[Aggregate]) -> list[Aggregate]:
    """The aggregates of one value whose measurements statistics of two values share."""
    found: list[Aggregate] = []
    for aggregate in aggregates:
        if aggregate.function in PAIRS and aggregate.value is not None:
            needed, (x,) = PAIRS[aggregate.function], aggregate.also
            found.append(Aggregate("VARIANCE" if "xx" in needed else "AVG", x))
            if "yy" in needed:
                found.append(Aggregate("VARIANCE", aggregate.value))
    return found


def make_product(y: Typed, y_centre: Fraction, x: Typed, x_centre: Fraction) -> Typed:
    """(y - its centre) * (x - its centre), which is NULL if either is."""
    parts = [Call("-", (one.expression, Literal(float(at)))) for one, at in ((y, y_centre), (x, x_centre))]
    reach = _find_reach(y, float(y_centre)) * _find_reach(x, float(x_centre))
    return Typed(Call("*", (parts[0], parts[1])), "number", y.nullable or x.nullable, -reach, reach)


def bound_pair(function: str, y: Typed, x: Typed) -> tuple[float, float]:
    """The smallest and the largest value that the bounds of both make possible."""
    spans = [(value.upper or 0.0) - (value.lower or 0.0) for value in (y, x)]
    most = spans[0] * spans[1] / 4  # of the covariance of all rows; of a sample of two rows it is twice that
    match function:
        case "CORR":
            return -1.0, 1.0
        case "REGR_R2":
            return 0.0, 1.0
        case "COVAR_POP":
            return -most, most
        case "COVAR_SAMP":
            return -2 * most, 2 * most
        case "REGR_SXX":
            return 0.0, math.inf
        case _:
            return -math.inf, math.inf


def _find_reach(value: Typed, centre: float) -> float:
    return max(abs((value.lower or 0.0) - centre), abs((value.upper or 0.0) - centre))
