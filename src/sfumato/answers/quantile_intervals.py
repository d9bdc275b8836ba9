"""Intervals of quantiles in value: two bins that were chosen for this, on either side of the quantile (K-83)."""

import math
from fractions import Fraction

import numpy as np

from sfumato.answers.possible_ranges import Ends
from sfumato.answers.shown_rows import ShownRows
from sfumato.kernel.bin_choice import QuantileChoice
from sfumato.kernel.certify import Certificate
from sfumato.kernel.plan import Quantiles, Quantity
from sfumato.planning.formulas import BinFormula, Formula

NO_ENDS = (
    "The margin of a quantile counts rows: how far its rank is from the wanted one. ask(..., interval_share=0.5) "
    "spends half of its cost on an interval in value."
)


def is_interval(quantity: Quantity) -> bool:
    """Does a measurement choose the ends of intervals?"""
    return isinstance(quantity, Quantiles) and quantity.miss is not None


def find_quantile_ends(formula: Formula, shown: ShownRows) -> Ends:
    """The interval of a quantile in each cell. Its confidence is that of the question: the ends were chosen for it."""
    if not isinstance(formula, BinFormula) or not formula.ends:
        raise AssertionError("only a quantile with chosen ends has an interval")
    place, values = 2 * formula.place, shown.reading.values
    ends = np.sort(values[formula.ends].reshape(-1, 2 * formula.width)[:, place : place + 2], axis=1)
    point = values[formula.chosen].reshape(-1, formula.width)[:, formula.place]
    low, high = np.minimum(ends[:, 0], point), np.maximum(ends[:, 1], point)
    low, high = (formula.first + end * formula.step for end in (low, high))
    least = -math.inf if formula.lower is None else formula.lower
    most = math.inf if formula.upper is None else formula.upper
    return np.maximum(low - formula.rounding, least), np.minimum(high + formula.rounding, most)


def find_even_margin(formula: BinFormula, certificate: Certificate, rows: float) -> float:
    """Half the width of the interval in value for so many rows, if values are spread evenly between the bounds."""
    certified = next(measured for measured in certificate.measurements if measured.name == formula.ends)
    choice = certified.noise
    if not isinstance(choice, QuantileChoice) or formula.lower is None or formula.upper is None:
        raise AssertionError("the ends of a quantile are chosen among bins within bounds")
    apart = float(Fraction(choice.pads[0][0]) * Fraction(2) ** certified.weight_exponent)
    width = formula.upper - formula.lower
    return width * min(apart / max(rows, 1.0), 1.0) + formula.rounding
