"""Reading the numbers of a program: a single number, or anything that numpy reads as an array of numbers.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.saturating_sums import LARGEST

EXACT_IN_A_DOUBLE = 1 << 53
MOST_EXPONENT = 900  # of a grid's step
BEYOND = 1 << 1200  # outside every grid: LARGEST steps of 2**MOST_EXPONENT are less
MISSING = ("NAType", "NaTType")  # pandas's
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
        kind = "an array of something else" if array.ndim else describe_kind(value)
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
            return _replace_beyond(Decimal(str(entry)))
        case Fraction():
            return Fraction(int(entry.numerator), int(entry.denominator))
        case _:
            raise InvalidParameter(name, _NUMBERS, "an array of something else", "Convert it first, with float(...).")


def _replace_beyond(entry: Decimal) -> int:
    """NaN, infinities, and Decimals outside every grid, or less than half a step of every grid in size."""
    if entry.is_nan() or (entry.is_finite() and entry.adjusted() < 0):
        return 0
    return BEYOND if entry > 0 else -BEYOND
