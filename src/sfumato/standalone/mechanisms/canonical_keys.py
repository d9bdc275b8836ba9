"""One form for all keys that are equal. 1, 1.0 and True are one key: the output must not show whose form came first.

Part of the trusted perimeter of the stand-alone mechanisms.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from sfumato.number_arrays import BEYOND

MOST_DEPTH = 20  # of tuples in tuples
_MOST_DIGITS = 800  # a Decimal of more has a numerator or a denominator above BEYOND


class NoKey:
    """A key without a canonical form. It is never released."""


NO_KEY: Final = NoKey()
Ordered = tuple[Any, ...]


def canonical(key: object, depth: int = 0) -> tuple[object, Ordered] | NoKey:  # noqa: PLR0911 - one for each kind
    """The form in which all keys equal to this one come out, and its place in the order of keys.

    Claim: K-21. Equal keys have one form, different keys have different ones; it depends on the key alone, and never
        fails. NaN, numbers whose numerator or denominator exceeds BEYOND, tuples deeper than MOST_DEPTH and kinds of
        objects that are not listed here have none.
    Requires: a key that can be hashed (a mapping's).
    Relies on: Python's == on the listed kinds.
    Checked by: tests/kernel/test_keys.py::test_equal_keys_come_out_alike
    """
    match key:
        case None:
            return None, (0,)
        case np.timedelta64() | np.datetime64():  # numpy counts them among its numbers, and so may their Python forms
            return NO_KEY
        case bool() | int() | float() | Decimal() | Fraction() | np.bool_() | np.integer() | np.floating():
            return _number(key)
        case complex() | np.complexfloating() if key.imag == 0:
            return _number(key.real)
        case str():
            return (text := str.__str__(key)), (2, text.encode("utf-8", "surrogatepass"))
        case bytes():
            return (plain := bytes(bytearray(key))), (3, plain)
        case date() | timedelta():
            return _rebuild_moment(key)
        case tuple() if depth < MOST_DEPTH:
            parts = [canonical(part, depth + 1) for part in key]
            whole = [part for part in parts if not isinstance(part, NoKey)]
            if len(whole) < len(parts):
                return NO_KEY
            return tuple(form for form, _ in whole), (8, *(place for _, place in whole))
        case _:
            return NO_KEY


def _number(key: Any) -> tuple[object, Ordered] | NoKey:  # noqa: ANN401 - any kind of real number
    """An int if it is whole, else a float if one equals it, else a Fraction: one form for each rational."""
    if isinstance(key, Decimal):
        digits = len("".join(map(str, key.as_tuple().digits)).rstrip("0"))
        if not key.is_finite() or (key and (abs(key.adjusted()) > BEYOND.bit_length() // 3 or digits > _MOST_DIGITS)):
            return NO_KEY
    elif isinstance(key, (float, np.floating)) and not np.isfinite(key):
        return NO_KEY
    exact = Fraction(int(key)) if isinstance(key, (int, np.bool_, np.integer)) else Fraction(*key.as_integer_ratio())
    if max(abs(exact.numerator), exact.denominator) > BEYOND:
        return NO_KEY
    if exact.denominator == 1:
        return exact.numerator, (1, exact)
    nearest = exact.numerator / exact.denominator
    return (nearest if Fraction(nearest) == exact else exact), (1, exact)


def _rebuild_moment(key: date | timedelta) -> tuple[object, Ordered] | NoKey:
    """A plain object of the same fields, if it equals the key: pandas has subclasses that hold more, and a NaT."""
    try:
        match key:
            case datetime():
                fields = (key.year, key.month, key.day, key.hour, key.minute, key.second, key.microsecond)
                moment = datetime(*fields, key.tzinfo, fold=key.fold)
                form: Any = moment.replace(fold=0) if moment.tzinfo is None else moment.astimezone(UTC)
                place: Ordered = (5 if moment.tzinfo is None else 6, form)
            case date():
                form = date(key.year, key.month, key.day)
                place = (4, form)
            case timedelta():
                form = timedelta(key.days, key.seconds, key.microseconds)
                place = (7, form)
        return (form, place) if form == key else NO_KEY
    except Exception:  # its fields are missing, or it lies outside the years 1 to 9999
        return NO_KEY
