"""Statistics of two values, computed from released moments."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.planning.formulas import PairFormula
from sfumato.planning.linear import Linear

Floats = npt.NDArray[np.float64]


def compute_pair(formula: PairFormula, read: Callable[[Linear], Floats]) -> Floats:
    """Compute a statistic per cell. NaN, which is shown as NULL, if a noisy variance that divides is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Floats = np.clip(_compute(formula, read), *formula.range)
    return found


def _compute(formula: PairFormula, read: Callable[[Linear], Floats]) -> Floats:  # noqa: PLR0911 - one return a function
    rows: Floats = np.maximum(read(formula.count), 2)
    y, x = read(formula.y), read(formula.x)

    def centre(sums: Linear | None, one: Floats, two: Floats) -> Floats:
        """The sum of products of differences from both means."""
        if sums is None:
            raise KernelFault("A statistic lacks a moment.")
        found: Floats = read(sums) - one * two / rows
        return found

    match formula.function:
        case "COVAR_POP":
            return centre(formula.xy, y, x) / rows
        case "COVAR_SAMP":
            return centre(formula.xy, y, x) / (rows - 1)
        case "REGR_SXY":
            return centre(formula.xy, y, x)
        case "REGR_SXX":
            return centre(formula.xx, x, x)
        case "REGR_SYY":
            return centre(formula.yy, y, y)
        case "CORR" | "REGR_R2" as function:
            spreads = (centre(formula.xx, x, x), centre(formula.yy, y, y))
            root = np.sqrt(_take_positive(spreads[0])) * np.sqrt(_take_positive(spreads[1]))
            correlation: Floats = np.clip(centre(formula.xy, y, x) / root, -1, 1)
            return correlation if function == "CORR" else correlation * correlation
        case _:
            slope = centre(formula.xy, y, x) / _take_positive(centre(formula.xx, x, x))
            if formula.function == "REGR_SLOPE":
                return slope
            return formula.centres[0] + y / rows - slope * (formula.centres[1] + x / rows)


def _take_positive(values: Floats) -> Floats:
    return np.where(values > 0, values, np.nan)
