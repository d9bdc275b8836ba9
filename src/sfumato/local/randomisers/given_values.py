"""The numbers of people, as a program passes them: read exactly, or refused."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.saturating_sums import LARGEST
from sfumato.number_arrays import EXACT_IN_A_DOUBLE, Values, plain_array

_RULE = "must be finite numbers: integers, or floats"


def read_values(value: object, name: str = "value") -> Values:
    """Take a number, or anything that numpy reads as an array of numbers; `name` is the parameter to blame.

    The array equals the input exactly. NaN, infinities, truth values, masks, integers beyond int64, numbers that a
    double would round, and anything that is not a number are refused.
    """
    array = plain_array(value, name)
    flat = _to_int64(array, name) if array.dtype.kind in "iu" else _to_float64(array, value, name)
    if not flat.size and not isinstance(value, np.ndarray):
        flat = flat.astype(np.int64)  # numpy calls an empty list an array of floats
    return Values(flat, array.shape if array.ndim else None)


def _to_int64(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if array.size and not -LARGEST <= int(array.min()) <= int(array.max()) <= LARGEST:
        raise _build_size_error(name)
    return array.astype(np.int64, copy=False).reshape(-1)


def _to_float64(array: npt.NDArray[Any], value: object, name: str) -> npt.NDArray[Any]:
    if array.dtype.kind == "b":
        raise InvalidParameter(name, _RULE, "truth values", "Count them: int(flag), or flags.sum().")
    if array.dtype.kind != "f":
        raise _build_kind_error(value, array, name)
    if array.dtype.itemsize > 8:
        raise InvalidParameter(name, _RULE, "floats wider than 64 bits", "Convert to float64 first, and pay for it.")
    flat = array.astype(np.float64, copy=False).reshape(-1)
    if not np.isfinite(flat).all():
        raise InvalidParameter(name, _RULE, "NaN" if np.isnan(flat).any() else "an infinite number")
    if not isinstance(value, np.ndarray) and flat.size and np.abs(flat).max() >= EXACT_IN_A_DOUBLE:
        entries = np.asarray(value, object).reshape(-1)
        if any(isinstance(entry, (int, np.integer)) and abs(int(entry)) > EXACT_IN_A_DOUBLE for entry in entries):
            raise InvalidParameter(name, _RULE, "integers that a float would round, among floats")
    return flat


def _build_size_error(name: str) -> InvalidParameter:
    hint = "Use larger units (thousands, say), or clamp the value to public bounds first."
    return InvalidParameter(name, "must fit 64-bit integers", "a number too large for them", hint)


def _build_kind_error(value: object, array: npt.NDArray[Any], name: str) -> InvalidParameter:
    if array.dtype.kind == "O" and any(type(entry) is int and abs(entry) > LARGEST for entry in array.flat):
        return _build_size_error(name)
    kind = describe_kind(value) if array.ndim == 0 else "an array of something else"
    return InvalidParameter(name, _RULE, kind, "Convert it first, for example with float(...).")
