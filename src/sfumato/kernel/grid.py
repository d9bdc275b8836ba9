"""Values onto a public grid and back. A grid step is a power of two, so that scaling by it is exact."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.parameters import kind_of
from sfumato.kernel.samplers import IntArray

FloatArray = npt.NDArray[np.float64]

LARGEST = (1 << 63) - 1
MOST_ON_GRID = 1 << 62
EXACT_IN_A_DOUBLE = 1 << 53
MOST_EXPONENT = 900
_RULE = "must be finite numbers: integers, or floats"


@dataclass(frozen=True, slots=True)
class Values:
    """What a caller wants released, as a flat int64 or float64 array and the shape to give back."""

    flat: npt.NDArray[Any]
    shape: tuple[int, ...] | None  # None: a single number

    @property
    def whole(self) -> bool:
        return self.flat.dtype == np.int64


def read_values(value: object, name: str = "value") -> Values:
    """Take a number, or anything that numpy reads as an array of numbers; `name` is the parameter to blame.

    Claim: K-13. The array equals the input exactly. NaN, infinities, truth values, masks, integers beyond int64,
        numbers that a double would round, and what is no number are refused.
    Requires: nothing.
    Relies on: numpy.asarray.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_values_that_are_refused
    """
    array = plain_array(value, name)
    flat = _as_int64(array, name) if array.dtype.kind in "iu" else _as_float64(array, value, name)
    if not flat.size and not isinstance(value, np.ndarray):
        flat = flat.astype(np.int64)  # numpy calls an empty list an array of floats
    return Values(flat, array.shape if array.ndim else None)


def plain_array(value: object, name: str) -> npt.NDArray[Any]:
    """numpy's view of a value, without masks.

    Claim: K-13. A masked array is refused: its hidden entries would come out.
    Requires: nothing.
    Relies on: numpy.asarray.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_values_that_are_refused
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidParameter(name, "must not be masked", "a masked array", "Fill or drop the masked entries first.")
    try:
        return np.asarray(value)
    except Exception:  # whatever an object's own conversion raises may quote its values
        raise InvalidParameter(name, _RULE, "something that is not a plain array of numbers") from None


def check_one(value: int | float) -> None:
    """Refuse a single number that read_values would refuse.

    Claim: K-13. NaN, infinities and integers beyond int64 are refused.
    Requires: a plain int or float (caller).
    Relies on: nothing.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_values_that_are_refused
    """
    if isinstance(value, int):
        if not -LARGEST <= value <= LARGEST:
            raise _too_large("value")
    elif not math.isfinite(value):
        raise InvalidParameter("value", _RULE, kind_of(value))


def _as_int64(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if array.size and not -LARGEST <= int(array.min()) <= int(array.max()) <= LARGEST:
        raise _too_large(name)
    return array.astype(np.int64, copy=False).reshape(-1)


def _as_float64(array: npt.NDArray[Any], value: object, name: str) -> npt.NDArray[Any]:
    if array.dtype.kind == "b":
        raise InvalidParameter(name, _RULE, "truth values", "Count them: int(flag), or flags.sum().")
    if array.dtype.kind != "f":
        raise _not_numbers(value, array, name)
    if array.dtype.itemsize > 8:
        raise InvalidParameter(name, _RULE, "floats wider than 64 bits", "Convert to float64 first, and pay for it.")
    flat = array.astype(np.float64, copy=False).reshape(-1)
    if not np.isfinite(flat).all():
        raise InvalidParameter(name, _RULE, "NaN" if np.isnan(flat).any() else "an infinite number")
    if not isinstance(value, np.ndarray) and flat.size and np.abs(flat).max() >= EXACT_IN_A_DOUBLE:
        entries = np.asarray(value, object).reshape(-1)
        if any(isinstance(each, (int, np.integer)) and abs(int(each)) > EXACT_IN_A_DOUBLE for each in entries):
            raise InvalidParameter(name, _RULE, "integers that a float would round, among floats")
    return flat


def to_grid(flat: FloatArray, exponent: int) -> npt.NDArray[np.int64]:
    """floor(x / 2**exponent + 1/2) for each x.

    Claim: K-13. The result is exact, so that two inputs a apart are at most floor(a / 2**exponent) + 1 steps apart.
    Requires: finite x (read_values); |exponent| <= MOST_EXPONENT (step_for).
    Relies on: IEEE 754 binary64.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    most = MOST_ON_GRID * 2.0**exponent
    if not np.logical_and.reduce(np.abs(flat) <= most):
        raise _too_large("value")
    scaled = flat * 2.0**-exponent
    below = np.floor(scaled)
    below += scaled - below >= 0.5  # not floor(scaled + 0.5): that sum rounds
    return below.astype(np.int64)


def one_to_grid(value: float, exponent: int) -> int:
    """to_grid for a single float, without numpy's price for each small step.

    Claim: K-13. Equal to to_grid on an array of this one value.
    Requires: as to_grid.
    Relies on: IEEE 754 binary64.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_rounding_is_exact
    """
    if not abs(value) <= MOST_ON_GRID * 2.0**exponent:
        raise _too_large("value")
    scaled = value * 2.0**-exponent
    below = math.floor(scaled)
    return below + (scaled - below >= 0.5)


def from_grid(steps: npt.NDArray[np.int64], exponent: int) -> FloatArray:
    """The floats steps * 2**exponent; where 53 bits do not hold the product, a multiple of the grid near it.

    Claim: K-13. Every result is a multiple of 2**exponent, and a function of `steps` alone.
    Requires: |exponent| <= MOST_EXPONENT (step_for).
    Relies on: IEEE 754 binary64.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_outputs_are_multiples_of_the_grid
    """
    return steps.astype(np.float64) * 2.0**exponent


def add_saturating(values: npt.NDArray[np.int64], noise: IntArray) -> npt.NDArray[np.int64]:
    """values + noise, held at plus or minus LARGEST where the sum does not fit.

    Claim: K-13. Equal to the clamped exact sum: post-processing of values + noise.
    Requires: |values| <= LARGEST (read_values, to_grid).
    Relies on: two's complement addition.
    Proof: docs/claims/K-13.md
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
    """The integer itself, held at plus or minus LARGEST.

    Claim: K-13. Post-processing of `total`.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_addition_saturates
    """
    return max(-LARGEST, min(LARGEST, total))


def step_for(coarsest: Fraction) -> int:
    """The exponent of the greatest power of two that is at most `coarsest`.

    Claim: K-13. 2**result <= coarsest < 2**(result + 1), and |result| <= MOST_EXPONENT.
    Requires: coarsest > 0, from public parameters only (caller).
    Relies on: Python's integers.
    Proof: docs/claims/K-13.md
    Checked by: tests/kernel/test_grid.py::test_step_is_the_greatest_power_of_two
    """
    exponent = coarsest.numerator.bit_length() - coarsest.denominator.bit_length()
    if Fraction(2) ** exponent > coarsest:
        exponent -= 1
    if abs(exponent) > MOST_EXPONENT:
        raise InvalidParameter(
            "sensitivity and epsilon or rho",
            "must give noise that 64-bit floats can carry",
            "a combination far too small or too large",
            "Choose units in which the sensitivity is near 1.",
        )
    return exponent


def _too_large(name: str) -> InvalidParameter:
    return InvalidParameter(
        name,
        "must fit the grid",
        "a number too large for it",
        "Use larger units (thousands, say), or clamp the value to public bounds first.",
    )


def _not_numbers(value: object, array: npt.NDArray[Any], name: str) -> InvalidParameter:
    if array.dtype.kind == "O" and any(type(each) is int and abs(each) > LARGEST for each in array.flat):
        return _too_large(name)
    kind = kind_of(value) if array.ndim == 0 else "an array of something else"
    return InvalidParameter(name, _RULE, kind, "Convert it first, for example with float(...).")
