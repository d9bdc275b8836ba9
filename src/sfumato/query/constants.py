"""Constants that the analyst wrote: values, and exact arithmetic of numbers.

SQL reads 0.06 as a decimal, so 0.06 - 0.01 is 0.05. A constant is computed as a fraction. It is rounded to the nearest
double only when it is combined with a column.
"""

from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.kernel.expressions import Literal
from sfumato.query.date_functions import read_day, read_moment
from sfumato.query.parse import build_syntax_refusal, locate
from sfumato.query.tokens import NUMBER

MOST_SIZE = 10**100  # of a constant, like functions.MOST_REACH
MOST_DIGITS = 400  # of a number
MOST_POWER = 400  # the exponent of ten
MOST_BITS = 20_000  # of a numerator or denominator
MOST_INT = 10**15
MOMENTS = (exp.DType.DATE, exp.DType.TIMESTAMPNTZ)
COMPUTED = (exp.Neg, exp.Abs, exp.Floor, exp.Ceil, exp.Add, exp.Sub, exp.Mul, exp.Div)


def read_constant(node: exp.Expr) -> Literal | None:
    """A value that the analyst wrote, or arithmetic of such values. None for anything else."""
    match node:
        case exp.Null():
            return Literal(None)
        case exp.Boolean():
            return Literal(bool(node.this))
        case exp.Literal() if node.is_string:
            return Literal(str(node.this))
        case exp.Cast() if node.to.this in MOMENTS and isinstance(node.this, exp.Literal):
            read = read_day if node.to.this is exp.DType.DATE else read_moment
            return Literal(read(node, str(node.this.this)))
    number = read_exact_number(node)
    if number is None:
        return None
    return Literal(int(number) if _is_whole(node) and abs(number) < MOST_INT else float(number))


def read_exact_number(node: exp.Expr) -> Fraction | None:
    """The number that a node means. None if it contains anything but numbers. Division by zero is refused."""
    if isinstance(node, exp.Paren):
        return read_exact_number(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _read_literal(node)
    if not isinstance(node, COMPUTED):
        return None
    one = read_exact_number(node.this)
    two = read_exact_number(node.expression) if one is not None and isinstance(node, exp.Binary) else None
    if one is None or (two is None and isinstance(node, exp.Binary)):
        return None
    return _check_range(node, _compute(node, one, two))


def _compute(node: exp.Expr, one: Fraction, two: Fraction | None) -> Fraction:  # noqa: PLR0911 - one return for each form
    match node:
        case exp.Neg():
            return -one
        case exp.Abs():
            return abs(one)
        case exp.Floor():
            return Fraction(floor(one))
        case exp.Ceil():
            return Fraction(ceil(one))
    if two is None:
        raise AssertionError("the other operations have two operands")
    match node:
        case exp.Add():
            return one + two
        case exp.Sub():
            return one - two
        case exp.Mul():
            return one * two
    if two == 0:
        raise build_syntax_refusal(node, "This divides by 0", "Divide by another number.")
    return one / two


def _read_literal(node: exp.Literal) -> Fraction:
    text = str(node.this)
    if len(text) < 16 and text.isascii() and text.isdigit():  # the common case, and five times as fast
        return Fraction(int(text))
    if not NUMBER.fullmatch(text):  # the parser reads ". 2.5" as one number
        raise build_syntax_refusal(node, "This is not a number", "Write it as 12, 1.5 or 1e6.")
    _, _, power = text.lower().partition("e")
    if len(text) > MOST_DIGITS or abs(int(power or 0)) > MOST_POWER:
        raise _build_size_refusal(node)
    return _check_range(node, Fraction(text))


def _check_range(node: exp.Expr, number: Fraction) -> Fraction:
    if abs(number) > MOST_SIZE or max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
        raise _build_size_refusal(node)
    return number


def _build_size_refusal(node: exp.Expr) -> MissingBounds:
    message = f"This number is too large or has too many digits{locate(node)}."
    return MissingBounds("bounds", message, f"Use numbers below 1e100 with at most {MOST_DIGITS} digits.")


def _is_whole(node: exp.Expr) -> bool:
    """Does it contain only whole numbers, and no division? Then it is a whole number."""
    match node:
        case exp.Literal():
            return str(node.this).isdigit()
        case exp.Paren() | exp.Neg() | exp.Abs() | exp.Floor() | exp.Ceil():
            return _is_whole(node.this)
        case exp.Div():
            return False
        case exp.Binary():
            return _is_whole(node.this) and _is_whole(node.expression)
    return False
