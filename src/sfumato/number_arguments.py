"""Reading the numbers that people pass to functions: exact, or refused by name, rule and kind.

The kernel checks its own parameters again; these functions give the messages.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter, kind_of
from sfumato.kernel.parameters import exact_amount, read_number

MOST_WHOLE = 1 << 62
AMOUNT_DIGITS = 60  # significant digits of an epsilon, delta or rho
AMOUNT_EXPONENT = 30  # it lies between 1e-30 and 1e30
_POSITIVE = "must be a number above zero"


def positive_decimal(value: object, name: str) -> Decimal:
    """Read a positive finite decimal, such as an epsilon; a float means its shortest decimal."""
    return exact_amount(positive_fraction(value, name), value, name)


def privacy_amount(value: object, name: str) -> Decimal:
    """Read an epsilon, delta or rho that is asked for or declared: positive, at most 60 digits, from 1e-30 to 1e30.

    Sums and differences of such amounts have a few hundred digits, so all of them can be stored.
    """
    amount = positive_decimal(value, name)
    in_range = Decimal(f"1e-{AMOUNT_EXPONENT}") <= amount <= Decimal(f"1e{AMOUNT_EXPONENT}")
    if not in_range or len(amount.as_tuple().digits) > AMOUNT_DIGITS:
        rule = f"must have at most {AMOUNT_DIGITS} digits and lie between 1e-{AMOUNT_EXPONENT} and 1e{AMOUNT_EXPONENT}"
        kind = "a longer number, or one outside that range"
        raise InvalidParameter(name, rule, kind, "Round it, for example to '0.1'.")
    return amount


def positive_fraction(value: object, name: str) -> Fraction:
    """Read a positive finite number, such as a sensitivity; a Fraction need not be a finite decimal."""
    return _refuse_zero_and_below(read_number(value, name, _POSITIVE), name, _POSITIVE)


def probability_inside(value: object, name: str) -> Fraction:
    """Read a number strictly between 0 and 1, such as a delta or a confidence."""
    rule = "must lie strictly between 0 and 1"
    number = _refuse_zero_and_below(read_number(value, name, rule), name, rule)
    if number >= 1:
        raise InvalidParameter(name, rule, "a number of 1 or more")
    return number


def whole_number(value: object, name: str, least: int) -> int:
    """Read an integer of at least `least`."""
    rule = f"must be a whole number, {least} or above"
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameter(name, rule, kind_of(value))
    if value < least:
        raise InvalidParameter(name, rule, "a smaller number")
    if value > MOST_WHOLE:
        raise InvalidParameter(name, f"must be at most {MOST_WHOLE}", "a larger number")
    return int(value)


def _refuse_zero_and_below(number: Fraction, name: str, rule: str) -> Fraction:
    if number == 0:
        raise InvalidParameter(name, rule, "zero")
    if number < 0:
        raise InvalidParameter(name, rule, "a negative number")
    return number
