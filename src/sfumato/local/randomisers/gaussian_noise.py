"""Gaussian noise on a grid for a number: the least noise whose table has at most a given delta at a given epsilon.

The shape of the noise affects accuracy only. Delta is computed from the integers of the finished table.
"""

from decimal import Decimal

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.coin_tables import UNITS
from sfumato.local.mechanisms.shifted_noise import MOST_EPSILON, MOST_REACH, ShiftedNoise

STEPS = 16
_HALVINGS = 40
_WIDENED = 1.000001


def find_least_gaussian(epsilon: Decimal, delta: Decimal, steps: int = STEPS) -> ShiftedNoise:
    """The discrete Gaussian of least scale, found with floats, then widened until the exact delta is small enough."""
    if epsilon > MOST_EPSILON:
        raise InvalidParameter("epsilon", f"must be at most {MOST_EPSILON} for gaussian", "more")
    low, high = 0.05, MOST_REACH / 5.0
    wanted, bound = float(delta), float(epsilon)
    if _estimate_delta(_list_units(high), steps, bound) > wanted:
        raise _refuse()
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if _estimate_delta(_list_units(middle), steps, bound) <= wanted else (middle, high)
    for _ in range(64):
        units = _list_units(high)
        if 2 <= len(units) <= MOST_REACH + 1:
            table = ShiftedNoise(steps, units, epsilon)
            if table.delta <= delta:
                return table
        high *= _WIDENED
    raise _refuse()


def _refuse() -> InvalidParameter:
    return InvalidParameter(
        "delta",
        "must let the noise fit a table with units of 2**-32",
        "one that is too small, for this epsilon",
        "Use a delta of 1e-7 or more and an epsilon of 0.1 or more.",
    )


def _list_units(scale: float) -> tuple[int, ...]:
    """The units of the noise 0, 1, 2, ..., as long as they are one or more."""
    places = np.arange(min(int(7 * scale) + 2, 2 * MOST_REACH))
    weights = np.exp(-(places**2) / (2 * scale**2))
    whole = np.floor(UNITS * weights / (2 * weights.sum() - weights[0])).astype(np.int64)
    tail = [int(units) for units in whole[1:] if units >= 1] or [1]
    return (UNITS - 2 * sum(tail), *tail)


def _estimate_delta(units: tuple[int, ...], steps: int, epsilon: float) -> float:
    row = np.array([*reversed(units[1:]), *units], np.float64) / UNITS
    return max(
        float(np.maximum(row - np.exp(epsilon) * np.concatenate((np.zeros(step), row))[: row.size], 0).sum())
        for step in range(1, steps + 1)
    )
