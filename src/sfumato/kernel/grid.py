"""Values to steps of a public grid, and back. A grid step is a power of two, so scaling by it is exact."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, kind_of
from sfumato.kernel.samplers import IntArray

FloatArray = npt.NDArray[np.float64]

LARGEST = (1 << 63) - 1
EXACT_IN_A_DOUBLE = 1 << 53
MOST_EXPONENT = 900
BEYOND = 1 << 1200  # outside every grid: LARGEST steps of 2**MOST_EXPONENT are less
MISSING = ("NAType", "NaTType")  # pandas's
_TWO_63 = 2.0**63
_NUMBERS = "must be numbers"


@dataclass(frozen=True, slots=True)
class Values:
    """What a caller wants released: a flat array of int64, float64 or exact numbers, and the shape to give back."""

    flat: npt.NDArray[Any]
    shape: tuple[int, ...] | None  # None: a single number


def plain_array(value: object, name: str) -> npt.NDArray[Any]:
    """numpy's view of a value, without masks.

    Claim: K-13. A masked array is refused: its hidden entries would come out.
    Relies on: numpy.asarray.
    Checked by: tests/kernel/test_grid.py::test_masked_entries_of_lists_are_refused
    """
    if isinstance(value, np.ma.MaskedArray) or _holds_masked(value):
        raise InvalidParameter(name, "must not be masked", "a masked array", "Fill or drop the masked entries first.")
    try:
        return np.asarray(value)
    except Exception:  # whatever an object's own conversion raises may quote its values
        raise InvalidParameter(name, _NUMBERS, "something that is not a plain array of numbers") from None


def _holds_masked(value: object) -> bool:
    """Is an entry of a list np.ma.masked? numpy would read it as NaN."""
    if not isinstance(value, (list, tuple)):
        return False
    return any(entry is np.ma.masked or _holds_masked(entry) for entry in value)


def read_numbers(value: object, name: str = "value") -> Values:
    """Take a number, or anything that numpy reads as an array of numbers, of any type: no number is refused.

    Claim: K-13. The result is a function of each entry's numeric value alone: 2, 2.0, True + 1 and Decimal(2) are read
        alike, exactly. NaN, None and pandas's missing values are read as 0; an infinite number lies beyond the end of
        every grid.
    Requires: entries are numbers or missing: bool, int, float, Decimal, Fraction or numpy's (checked here); shape is
        public.
    Relies on: numpy.asarray.
    Checked by: tests/kernel/test_grid.py::test_numbers_are_read_by_value_alone
    """
    array = plain_array(value, name)
    shape = array.shape if array.ndim else None
    if array.dtype.kind in "biu":
        if array.dtype.kind != "b" and array.dtype.itemsize == 8:  # the ends of the grid, for uint64 and -2**63
            array = np.minimum(array, LARGEST) if array.dtype.kind == "u" else np.maximum(array, -LARGEST)
        return Values(array.astype(np.int64, copy=False).reshape(-1), shape)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        flat = array.astype(np.float64, copy=False).reshape(-1)
        missing = np.isnan(flat)
        if missing.any():
            flat = np.where(missing, 0.0, flat)
        if isinstance(value, (np.ndarray, np.generic, float)) or not (np.abs(flat) >= EXACT_IN_A_DOUBLE).any():
            return Values(flat, shape)  # else a list may hold integers that numpy has rounded
    elif array.dtype.kind not in "fO":
        kind = "an array of something else" if array.ndim else kind_of(value)
        raise InvalidParameter(name, _NUMBERS, kind, "Convert it first, for example with float(...).")
    entries = np.asarray(value, object).reshape(-1)
    exact = np.empty(entries.size, object)
    exact[:] = [_read_exactly(entry, name) for entry in entries]
    return Values(exact, shape)


def _read_exactly(entry: object, name: str) -> int | Fraction:
    """A number as a rational; what is larger in size than every grid stands for any such number."""
    if entry is None or type(entry).__name__ in MISSING:  # of a sum over no rows, say
        return 0
    match entry:
        case bool() | np.bool_() | int() | np.integer() if not isinstance(entry, np.timedelta64):
            return max(-BEYOND, min(BEYOND, int(entry)))
        case float() | np.floating() if np.isfinite(entry):
            return Fraction(*entry.as_integer_ratio())
        case Decimal() if entry.is_finite() and abs(entry.adjusted()) <= MOST_EXPONENT:
            return Fraction(entry)
        case float() | np.floating() | Decimal():
            return _beyond(Decimal(str(entry)))
        case Fraction():
            return Fraction(int(entry.numerator), int(entry.denominator))
        case _:
            raise InvalidParameter(name, _NUMBERS, "an array of something else", "Convert it first, with float(...).")


def _beyond(entry: Decimal) -> int:
    """NaN, infinities, and Decimals outside every grid, or less than half a step of every grid in size."""
    if entry.is_nan() or (entry.is_finite() and entry.adjusted() < 0):
        return 0
    return BEYOND if entry > 0 else -BEYOND


def to_grid(flat: npt.NDArray[Any], exponent: int) -> npt.NDArray[np.int64]:
    """floor(x / 2**exponent + 1/2) for each x, clamped to plus or minus LARGEST.

    Claim: K-13. The result is exact, and depends on each x's value alone, not on its type; two inputs a apart are at
        most floor(a / 2**exponent) + 1 steps apart, and at most ceil(a / 2**exponent).
    Requires: what read_numbers gives; |exponent| <= MOST_EXPONENT (step_for).
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
    Requires: |exponent| <= MOST_EXPONENT (step_for).
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    return _integers_to_grid(steps, -exponent)


def from_grid(steps: npt.NDArray[np.int64], exponent: int) -> FloatArray:
    """The floats steps * 2**exponent; where 53 bits do not hold the product, a multiple of the grid near it.

    Claim: K-13. Every result is a multiple of 2**exponent, and a function of `steps` alone.
    Requires: |exponent| <= MOST_EXPONENT (step_for).
    Relies on: IEEE 754 binary64.
    Checked by: tests/kernel/test_grid.py::test_outputs_are_multiples_of_the_grid
    """
    return steps.astype(np.float64) * 2.0**exponent


def add_saturating(values: npt.NDArray[np.int64], noise: IntArray) -> npt.NDArray[np.int64]:
    """values + noise, clamped to plus or minus LARGEST where the sum does not fit.

    Claim: K-13. Equal to the clamped exact sum: post-processing of values + noise.
    Requires: |values| <= LARGEST (to_grid).
    Relies on: two's complement addition.
    Checked by: tests/kernel/test_grid.py::test_addition_saturates
    """
    if noise.dtype == object:
        pairs = zip(values.tolist(), noise.tolist(), strict=True)
        return np.array([saturate(value + more) for value, more in pairs], np.int64)
    total = values + noise
    wrapped = (values ^ total) & (noise ^ total) < 0
    if wrapped.any():
        total[wrapped] = np.where(values[wrapped] < 0, -LARGEST, LARGEST)
    return np.maximum(total, -LARGEST)


def saturate(total: int) -> int:
    """The integer itself, clamped to plus or minus LARGEST.

    Claim: K-13. Post-processing of `total`.
    Checked by: tests/kernel/test_grid.py::test_addition_saturates
    """
    return max(-LARGEST, min(LARGEST, total))


def step_for(coarsest: Fraction) -> int:
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
