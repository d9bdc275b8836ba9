"""Values to steps of a public grid, and back. A grid step is a power of two, so scaling by it is exact.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.saturating_sums import LARGEST, saturate
from sfumato.number_arrays import MOST_EXPONENT

FloatArray = npt.NDArray[np.float64]

_TWO_63 = 2.0**63


def to_grid(flat: npt.NDArray[Any], exponent: int) -> npt.NDArray[np.int64]:
    """floor(x / 2**exponent + 1/2) for each x, clamped to plus or minus LARGEST.

    Claim: K-13. The result is exact, and depends on each x's value alone, not on its type; two inputs a apart are at
        most floor(a / 2**exponent) + 1 steps apart, and at most ceil(a / 2**exponent).
    Requires: what read_numbers gives; |exponent| <= MOST_EXPONENT (choose_step).
    Relies on: IEEE 754 binary64.
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    if flat.dtype == object:
        return np.array([one_to_grid(value, exponent) for value in flat], np.int64)
    if flat.dtype != np.float64:
        return _integers_to_grid(flat, exponent)
    with np.errstate(over="ignore"):
        scaled = np.clip(flat * 2.0**-exponent, -_TWO_63, _TWO_63)
    below = np.floor(scaled)
    below += scaled - below >= 0.5  # not floor(scaled + 0.5): that sum rounds
    low, high = below <= -_TWO_63, below >= _TWO_63
    if low.any() or high.any():
        below[low | high] = 0
        steps = below.astype(np.int64)
        steps[low], steps[high] = -LARGEST, LARGEST
        return steps
    return below.astype(np.int64)


def _integers_to_grid(flat: npt.NDArray[np.int64], exponent: int) -> npt.NDArray[np.int64]:
    if exponent == 0:
        return flat
    if exponent > 0:  # the quotient's floor, and the bit that says whether a half or more is left
        return (flat >> exponent) + ((flat >> (exponent - 1)) & 1) if exponent < 64 else np.zeros_like(flat)
    most = LARGEST >> min(-exponent, 63)
    steps = np.clip(flat, -most, most) << min(-exponent, 63)
    steps[flat > most], steps[flat < -most] = LARGEST, -LARGEST
    return steps


def one_to_grid(value: int | float | Fraction, exponent: int) -> int:
    """to_grid for a single number: at this size numpy's steps cost more than the noise.

    Claim: K-13. Equal to to_grid on an array of this one value, as read_numbers reads it.
    Requires: as to_grid.
    Relies on: Python's unbounded integers.
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    if isinstance(value, float) and not math.isfinite(value):
        return 0 if math.isnan(value) else LARGEST if value > 0 else -LARGEST
    numerator, denominator = value.as_integer_ratio()
    if exponent < 0:
        numerator <<= -exponent
    else:
        denominator <<= exponent
    return saturate((2 * numerator + denominator) // (2 * denominator))


def to_integers(steps: npt.NDArray[np.int64], exponent: int) -> npt.NDArray[np.int64]:
    """The integers nearest to steps * 2**exponent, clamped to plus or minus LARGEST.

    Claim: K-13. A function of `steps` alone: post-processing.
    Requires: |exponent| <= MOST_EXPONENT (choose_step).
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    return _integers_to_grid(steps, -exponent)


def from_grid(steps: npt.NDArray[np.int64], exponent: int) -> FloatArray:
    """The floats steps * 2**exponent; where 53 bits do not hold the product, a multiple of the grid near it.

    Claim: K-13. Every result is a multiple of 2**exponent, and a function of `steps` alone.
    Requires: |exponent| <= MOST_EXPONENT (choose_step).
    Relies on: IEEE 754 binary64.
    Checked by: tests/kernel/test_grid.py::test_outputs_are_multiples_of_the_grid
    """
    return steps.astype(np.float64) * 2.0**exponent


def choose_step(coarsest: Fraction) -> int:
    """The exponent of the greatest power of two that is at most `coarsest`.

    Claim: K-13. 2**result <= coarsest < 2**(result + 1), and |result| <= MOST_EXPONENT.
    Requires: coarsest > 0, from public parameters only (caller).
    Relies on: Python's integers.
    Checked by: tests/kernel/test_grid.py::test_step_is_the_greatest_power_of_two
    """
    exponent = coarsest.numerator.bit_length() - coarsest.denominator.bit_length()
    if Fraction(2) ** exponent > coarsest:
        exponent -= 1
    if abs(exponent) > MOST_EXPONENT:
        kind, hint = "a combination far too small or too large", "Choose units in which the sensitivity is near 1."
        names = "sensitivity and epsilon or rho"
        raise InvalidParameter(names, "must give noise that 64-bit floats can carry", kind, hint)
    return exponent


def sqrt_up(argument: Fraction, bits: int = 64) -> Fraction:
    """A rational that is at least the square root, and at most 2**-bits above it.

    Claim: K-01. sqrt_up(a)**2 >= a, for every rational a >= 0.
    Requires: argument >= 0 (checked here).
    Relies on: math.isqrt.
    Checked by: tests/kernel/test_exact.py::test_sqrt_up_is_never_below
    """
    if argument < 0:
        raise ValueError("sqrt_up takes an argument >= 0")
    scaled = -((-argument.numerator << 2 * bits) // argument.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << bits)
