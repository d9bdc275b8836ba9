"""Reading the numbers that people pass: exact, or refused by name, rule and kind.

A value is never shown, but for an amount to be charged that was computed in floats.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter, kind_of
from sfumato.kernel.exact import exact_decimal, plain

__all__ = [
    "Number", "decimal_from_zero", "kind_of", "positive_decimal", "positive_fraction", "privacy_amount",
    "probability_inside", "whole_number",
]  # fmt: skip

# what people may pass where a number is wanted; a float means its shortest decimal
Number = int | float | str | Decimal | Fraction | np.integer[Any] | np.floating[Any]

MAX_EXPONENT = 400
MOST_DIGITS = 4000
MOST_WHOLE = 1 << 62
LONG, SHORT = 16, 12  # digits of a float that was computed, and of a decimal that somebody would write
LEFTOVERS = 16  # units in the last place between the two
AMOUNT_DIGITS = 60  # significant digits of an epsilon, delta or rho
AMOUNT_EXPONENT = 30  # it lies between 1e-30 and 1e30
_NUMERAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_POSITIVE = "must be a number above zero"


def positive_decimal(value: object, name: str) -> Decimal:
    """Read a positive finite decimal, such as an epsilon: an int, a str, a Decimal, or a float by its shortest digits.

    Claim: K-03. The result equals the number as a person reads it: 0.1 is one tenth. Everything else is refused.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    number = _above_zero(_read(value, name, _POSITIVE), name, _POSITIVE)
    _refuse_leftovers(value, name)
    return _terminating(number, name)


def decimal_from_zero(value: object, name: str) -> Decimal:
    """Read a finite decimal >= 0, such as a loss.

    Claim: K-03. As positive_decimal, and zero is allowed.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    rule = "must be a number, zero or above"
    number = _read(value, name, rule)
    if number < 0:
        raise InvalidParameter(name, rule, "a negative number")
    _refuse_leftovers(value, name)
    return _terminating(number, name)


def privacy_amount(value: object, name: str) -> Decimal:
    """Read an epsilon, delta or rho that is asked for or declared: positive, at most 60 digits, from 1e-30 to 1e30.

    Claim: K-03. As positive_decimal. Sums and differences of such amounts have few hundred digits, so that none of
    them can be too long to be kept.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_privacy_amounts_are_short
    """
    amount = positive_decimal(value, name)
    in_range = Decimal(f"1e-{AMOUNT_EXPONENT}") <= amount <= Decimal(f"1e{AMOUNT_EXPONENT}")
    if not in_range or len(amount.as_tuple().digits) > AMOUNT_DIGITS:
        rule = f"must have at most {AMOUNT_DIGITS} digits and lie between 1e-{AMOUNT_EXPONENT} and 1e{AMOUNT_EXPONENT}"
        kind = "a longer number, or one outside that range"
        raise InvalidParameter(name, rule, kind, "Round it, for example to '0.1'.")
    return amount


def positive_fraction(value: object, name: str) -> Fraction:
    """Read a positive finite number, such as a sensitivity; a Fraction need not be a finite decimal.

    Claim: K-03. The result equals the number as a person reads it. Everything else is refused.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    return _above_zero(_read(value, name, _POSITIVE), name, _POSITIVE)


def probability_inside(value: object, name: str) -> Fraction:
    """Read a number strictly between 0 and 1, such as a delta or a confidence.

    Claim: K-03. The result equals the number as a person reads it, and lies in (0, 1).
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    rule = "must lie strictly between 0 and 1"
    number = _above_zero(_read(value, name, rule), name, rule)
    if number >= 1:
        raise InvalidParameter(name, rule, "a number of 1 or more")
    return number


def whole_number(value: object, name: str, least: int) -> int:
    """Read an integer of at least `least`.

    Claim: K-03. The result is the integer that was given. Everything else is refused.
    Checked by: tests/kernel/test_parameters.py::test_whole_numbers
    """
    rule = f"must be a whole number, {least} or above"
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameter(name, rule, kind_of(value))
    if value < least:
        raise InvalidParameter(name, rule, "a smaller number")
    if value > MOST_WHOLE:
        raise InvalidParameter(name, f"must be at most {MOST_WHOLE}", "a larger number")
    return int(value)


def _read(value: object, name: str, rule: str) -> Fraction:
    match value:
        case bool() | np.bool_() | np.timedelta64():  # numpy counts a time span among the integers
            raise InvalidParameter(name, rule, kind_of(value), "Pass a number such as 0.5 or '0.5'.")
        case int() | np.integer():
            number = int(value)
            if number.bit_length() > 4 * MAX_EXPONENT:
                raise _out_of_range(name)
            return Fraction(number)
        case Fraction():
            if max(abs(int(value.numerator)), int(value.denominator)).bit_length() > 4 * MAX_EXPONENT:
                raise _out_of_range(name)
            return Fraction(int(value.numerator), int(value.denominator))  # numpy's integers may hide inside
        case Decimal():
            return _in_range(value, name, rule, 3 * MAX_EXPONENT)  # wider: a loss may be a product of losses
        case float():
            numeral = float.__repr__(value)
        case np.floating():
            numeral = str(value)
        case str():
            numeral = value.strip()
        case _:
            raise InvalidParameter(name, rule, kind_of(value), "Pass a number such as 0.5 or '0.5'.")
    if len(numeral) > MOST_DIGITS or not _NUMERAL.fullmatch(numeral):
        kind = "text that is not a plain decimal number" if isinstance(value, str) else kind_of(value)
        raise InvalidParameter(name, rule, kind, "Pass a number such as 0.5 or '0.5'.")
    return _in_range(Decimal(numeral), name, rule, MAX_EXPONENT)


def _in_range(value: Decimal, name: str, rule: str, most: int) -> Fraction:
    if not value.is_finite():
        raise InvalidParameter(name, rule, kind_of(value))
    if (value and not -most <= value.adjusted() <= most) or len(value.as_tuple().digits) > MOST_DIGITS:
        raise _out_of_range(name, most)
    return Fraction(value)


def _out_of_range(name: str, most: int = MAX_EXPONENT) -> InvalidParameter:
    return InvalidParameter(name, f"must lie between 1e-{most} and 1e{most} in size", "a number outside that range")


def _above_zero(number: Fraction, name: str, rule: str) -> Fraction:
    if number == 0:
        raise InvalidParameter(name, rule, "zero")
    if number < 0:
        raise InvalidParameter(name, rule, "a negative number")
    return number


def _refuse_leftovers(value: object, name: str) -> None:
    """Refuse an amount such as 0.1 + 0.2 = 0.30000000000000004: it would be charged with what rounding left over.

    A float like 1/3, which is near no short decimal, is meant as it is.
    """
    if not isinstance(value, float) or len(Decimal(repr(float(value))).normalize().as_tuple().digits) < LONG:
        return
    short = f"{value:.{SHORT}g}"
    if abs(value - float(short)) <= LEFTOVERS * math.ulp(value):
        meant = plain(Decimal(short))
        raise InvalidParameter(
            name, "must be the decimal that is meant", f"a float that arithmetic left beside {meant}",
            f"Pass {meant}, or '{meant}': the charge would be {float(value)!r}.",
        )  # fmt: skip


def _terminating(number: Fraction, name: str) -> Decimal:
    decimal = exact_decimal(number)
    if decimal is None:
        raise InvalidParameter(
            name, "must be a finite decimal", "a fraction that is none", "Round it, for example to '0.333'."
        )
    return decimal
