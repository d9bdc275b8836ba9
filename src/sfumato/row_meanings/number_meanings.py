"""Functions of numbers in plain Python. Every function is total, and uses operations that IEEE 754 rounds correctly.

So every engine computes the same bits: + - * / and SQRT are rounded correctly everywhere, and 2 to a whole power is
exact. LN and EXP of an engine's own library are not, so they are computed from these operations (K-62).
"""

import math
from collections.abc import Sequence
from fractions import Fraction

ROOTS = 14  # square roots that LN takes: they bring every double to within 0.05 of 1
ROOT_POWER = float(1 << ROOTS)
# ln(1 + t), as t times one polynomial over another (Padé, from the highest power)
LN_ABOVE = (25.0, 260.0, 630.0, 420.0)
LN_BELOW = (6.0, 120.0, 540.0, 840.0, 420.0)
# e**r for |r| below ln(2) / 2, as one polynomial over its mirror image (Padé, from the highest power)
EXP_ABOVE = (1.0, 30.0, 420.0, 3_360.0, 15_120.0, 30_240.0)
EXP_BELOW = (-1.0, 30.0, -420.0, 3_360.0, -15_120.0, 30_240.0)
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # few enough digits that a whole number times it is exact
LN2_LOW = 1.90821492927058770002e-10
LEAST_EXPONENT, MOST_EXPONENT = -1_074, 1_023
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def choose_extreme(function: str, values: Sequence[object]) -> object:
    """LEAST or GREATEST of values of one kind. NULL is ignored, NaN is above all, and the first of equal ones wins."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    chosen = there[0]
    for value in there[1:]:
        if _is_above(chosen, value) if function == "least" else _is_above(value, chosen):
            chosen = value
    return chosen


def _is_above(one: object, two: object) -> bool:
    if isinstance(one, float) and isinstance(two, float) and (math.isnan(one) or math.isnan(two)):
        return math.isnan(one) and not math.isnan(two)
    return bool(one > two)  # type: ignore[operator]


def find_remainder(one: float, two: float) -> float | None:
    """x % y, with the sign of x. It is exact. NULL if y is 0."""
    if two == 0:
        return None
    return math.nan if math.isinf(one) else math.fmod(one, two)


def round_half_away(one: float) -> float:
    """The nearest whole number; halves go away from zero."""
    if not math.isfinite(one) or abs(one) >= 2.0**52:
        return one
    below = math.floor(abs(one))
    return math.copysign(float(below + (abs(one) - below >= 0.5)), one)


def truncate_number(one: float) -> float:
    """Toward zero."""
    return one if not math.isfinite(one) else math.copysign(float(math.trunc(one)), one)


def find_sign(one: float) -> float:
    return 0.0 if one == 0 or math.isnan(one) else math.copysign(1.0, one)


def take_root(one: float) -> float | None:
    """The square root; NULL of a negative number."""
    if math.isnan(one):
        return one
    return math.sqrt(one) if one >= 0 else None


def take_logarithm(one: float) -> float | None:
    """The natural logarithm, within 2**-37; NULL of 0 and of negative numbers."""
    if one <= 0:
        return None
    root = one
    for _ in range(ROOTS):
        root = math.sqrt(root)
    away = root - 1.0
    return away * _evaluate_polynomial(LN_ABOVE, away) / _evaluate_polynomial(LN_BELOW, away) * ROOT_POWER


def take_exponential(one: float) -> float | None:
    """e**x, within a few units of the last place, for x between -700 and 700."""
    scaled = one * LOG2_E + 0.5
    whole = float(math.floor(scaled)) if math.isfinite(scaled) else scaled
    rest = one - whole * LN2_HIGH - whole * LN2_LOW
    power = _raise_two(whole)
    above, below = _evaluate_polynomial(EXP_ABOVE, rest), _evaluate_polynomial(EXP_BELOW, rest)
    return divide(above, below) * power if below else None


def _evaluate_polynomial(coefficients: Sequence[float], at: float) -> float:
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * at + coefficient
    return value


def _raise_two(whole: float) -> float:
    if math.isnan(whole):
        return whole
    if whole > MOST_EXPONENT:
        return math.inf
    return math.ldexp(1.0, int(whole)) if whole >= LEAST_EXPONENT else 0.0


def divide(one: float, two: float) -> float:
    """Division of doubles by a number that is not 0."""
    try:
        return one / two
    except OverflowError:
        return math.copysign(math.inf, one) * math.copysign(1, two)


def convert_to_integer(one: float, kind: str) -> float | None:
    """CAST AS INTEGER: the nearest whole number, halves to the even one; NULL if it does not fit the type."""
    if not math.isfinite(one):
        return None
    whole = round(Fraction(one))
    bits = INTEGER_BITS[kind]
    return float(whole) if -(1 << (bits - 1)) <= whole < 1 << (bits - 1) else None
