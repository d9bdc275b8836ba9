"""Reading the numbers that people pass: exactly, or refused by name, rule and kind.

A value is never shown, except an amount to be charged that was computed in floats. No privacy proof rests on this file:
the kernel computes both the noise and the charge from the Decimal that it gets.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.exact import find_decimal, write_plain

# what people may pass as a number; a float means its shortest decimal
Number = int | float | str | Decimal | Fraction | np.integer[Any] | np.floating[Any]

MAX_EXPONENT = 400
MOST_DIGITS = 4000
LONG, SHORT = 16, 12  # digits of a float that was computed, and of a decimal that somebody would write
LEFTOVERS = 16  # units in the last place between the two
_NUMERAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
MOST_WHOLE = 1 << 62
AMOUNT_DIGITS = 60  # significant digits of an epsilon, delta or rho
AMOUNT_EXPONENT = 30  # it lies between 1e-30 and 1e30
_POSITIVE = "must be a number above zero"


def read_positive_decimal(value: object, name: str) -> Decimal:
    """Read a positive finite decimal, such as an epsilon; a float means its shortest decimal."""
    return convert_amount(read_positive_fraction(value, name), value, name)


def read_privacy_amount(value: object, name: str) -> Decimal:
    """Read an epsilon, delta or rho that is asked for or declared: positive, at most 60 digits, from 1e-30 to 1e30.

    Sums and differences of such amounts have a few hundred digits, so all of them can be stored.
    """
    amount = read_positive_decimal(value, name)
    in_range = Decimal(f"1e-{AMOUNT_EXPONENT}") <= amount <= Decimal(f"1e{AMOUNT_EXPONENT}")
    if not in_range or len(amount.as_tuple().digits) > AMOUNT_DIGITS:
        rule = f"must have at most {AMOUNT_DIGITS} digits and lie between 1e-{AMOUNT_EXPONENT} and 1e{AMOUNT_EXPONENT}"
        kind = "a longer number, or one outside that range"
        raise InvalidParameter(name, rule, kind, "Round it, for example to '0.1'.")
    return amount


def read_positive_fraction(value: object, name: str) -> Fraction:
    """Read a positive finite number, such as a sensitivity; a Fraction need not be a finite decimal."""
    return _refuse_zero_and_below(read_number(value, name, _POSITIVE), name, _POSITIVE)


def read_probability(value: object, name: str) -> Fraction:
    """Read a number strictly between 0 and 1, such as a delta or a confidence."""
    rule = "must lie strictly between 0 and 1"
    number = _refuse_zero_and_below(read_number(value, name, rule), name, rule)
    if number >= 1:
        raise InvalidParameter(name, rule, "a number of 1 or more")
    return number


def read_whole_number(value: object, name: str, least: int) -> int:
    """Read an integer of at least `least`."""
    rule = f"must be a whole number, {least} or above"
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameter(name, rule, describe_kind(value))
    if value < least:
        raise InvalidParameter(name, rule, "a smaller number")
    if value > MOST_WHOLE:
        raise InvalidParameter(name, f"must be at most {MOST_WHOLE}", "a larger number")
    return int(value)


def read_nonnegative_decimal(value: object, name: str) -> Decimal:
    """Read a finite decimal >= 0, such as a loss.

    Claim: K-03. The result equals the number as a person reads it: 0.1 is one tenth. Everything else is refused.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    if type(value) is Decimal and _is_shortest(value):  # most losses are computed from losses: nothing is to be read
        return value
    rule = "must be a number, zero or above"
    number = read_number(value, name, rule)
    if number < 0:
        raise InvalidParameter(name, rule, "a negative number")
    return convert_amount(number, value, name)


def _is_shortest(value: Decimal) -> bool:
    """Is it finite, zero or above, of few digits, and written as `find_decimal` writes it?"""
    sign, digits, exponent = value.as_tuple()
    if sign or not isinstance(exponent, int) or len(digits) > AMOUNT_DIGITS or exponent < -AMOUNT_DIGITS:
        return False
    return exponent == 0 or (exponent < 0 and digits[-1] != 0)


def read_number(value: object, name: str, rule: str) -> Fraction:
    """Read a number: an int, a str, a Decimal, a Fraction, or a float by its shortest digits.

    Claim: K-03. The result equals the number as a person reads it. Everything else is refused.
    Relies on: float's repr being the shortest decimal that reads back.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    most = MAX_EXPONENT
    match value:
        case bool() | np.bool_() | np.timedelta64():  # numpy counts a time span among the integers
            numeral = ""
        case int() | np.integer() | Fraction():
            numerator, denominator = int(value.numerator), int(value.denominator)  # numpy's integers may hide inside
            if max(abs(numerator), denominator).bit_length() > 4 * most:
                raise _build_range_error(name, most)
            return Fraction(numerator, denominator)
        case Decimal():
            most, numeral = 3 * most, str(value)  # wider: a loss may be a product of losses
        case float():
            numeral = float.__repr__(value)
        case np.floating():
            numeral = str(value)
        case str():
            numeral = value.strip()
        case _:
            numeral = ""
    if len(numeral) > 2 * MOST_DIGITS or not _NUMERAL.fullmatch(numeral):
        kind = "text that is not a plain decimal number" if isinstance(value, str) else describe_kind(value)
        raise InvalidParameter(name, rule, kind, "Pass a number such as 0.5 or '0.5'.")
    number = Decimal(numeral)
    if (number and not -most <= number.adjusted() <= most) or len(number.as_tuple().digits) > MOST_DIGITS:
        raise _build_range_error(name, most)
    return Fraction(number)


def convert_amount(number: Fraction, value: object, name: str) -> Decimal:
    """The number as a finite decimal; `value` is what it was read from.

    A float such as 0.1 + 0.2 = 0.30000000000000004 is refused: the charge would include what rounding left over. A
    float like 1/3, which is near no short decimal, is taken as it is.

    Claim: K-03. The result equals the number.
    Relies on: find_decimal.
    Checked by: tests/kernel/test_parameters.py::test_shortest_decimal_is_meant
    """
    if isinstance(value, float) and len(Decimal(repr(float(value))).normalize().as_tuple().digits) >= LONG:
        meant = write_plain(Decimal(f"{value:.{SHORT}g}"))
        if abs(value - float(meant)) <= LEFTOVERS * math.ulp(value):
            hint = f"Pass {meant}, or '{meant}': the charge would be {float(value)!r}."
            rule, kind = "must be the decimal that is meant", f"a float that arithmetic left beside {meant}"
            raise InvalidParameter(name, rule, kind, hint)
    decimal = find_decimal(number)
    if decimal is None:
        hint = "Round it, for example to '0.333'."
        raise InvalidParameter(name, "must be a finite decimal", "a fraction that is none", hint)
    return decimal


def _build_range_error(name: str, most: int) -> InvalidParameter:
    return InvalidParameter(name, f"must lie between 1e-{most} and 1e{most} in size", "a number outside that range")


def _refuse_zero_and_below(number: Fraction, name: str, rule: str) -> Fraction:
    if number == 0:
        raise InvalidParameter(name, rule, "zero")
    if number < 0:
        raise InvalidParameter(name, rule, "a negative number")
    return number
