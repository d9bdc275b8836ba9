"""What the analyst wrote as a constant: values, and arithmetic of numbers, which is exact.

SQL reads 0.06 as a decimal: 0.06 - 0.01 is 0.05. A constant is computed as a fraction, and becomes the double that is
nearest to it only when it meets a column.
"""

from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.kernel.expressions import Literal
from sfumato.query.date_functions import read_day, read_moment
from sfumato.query.parse import locate, syntax_refusal
from sfumato.query.tokens import NUMBER

MOST_SIZE = 10**100  # of a constant: as functions.MOST_REACH
MOST_LETTERS = 400  # of a number, as it is written
MOST_POWER = 400  # of ten
MOST_BITS = 20_000  # of a fraction's parts
MOST_INT = 10**15
COMPUTED = (exp.Neg, exp.Abs, exp.Floor, exp.Ceil, exp.Add, exp.Sub, exp.Mul, exp.Div)


def read_constant(node: exp.Expr) -> Literal | None:
    """A value that the analyst wrote, or computed of such; None for anything else."""
    match node:
        case exp.Null():
            return Literal(None)
        case exp.Boolean():
            return Literal(bool(node.this))
        case exp.Literal() if node.is_string:
            return Literal(str(node.this))
        case exp.Cast():
            kinds = (exp.DType.DATE, exp.DType.TIMESTAMPNTZ)
            if node.to.this not in kinds or not isinstance(node.this, exp.Literal):
                raise syntax_refusal(node, "CAST is not supported", "A read_day is written DATE '2026-01-31'.")
            read = read_day if node.to.this is exp.DType.DATE else read_moment
            return Literal(read(node, str(node.this.this)))
    number = read_exact_number(node)
    if number is None:
        return None
    return Literal(int(number) if _is_whole(node) and abs(number) < MOST_INT else float(number))


def read_exact_number(node: exp.Expr) -> Fraction | None:
    """The number that a node means, where no column stands in it; refused where it divides by zero."""
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


def _compute(node: exp.Expr, one: Fraction, two: Fraction | None) -> Fraction:  # noqa: PLR0911 - one return a form
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
        raise AssertionError("the others are of two numbers")
    match node:
        case exp.Add():
            return one + two
        case exp.Sub():
            return one - two
        case exp.Mul():
            return one * two
    if two == 0:
        raise syntax_refusal(node, "This divides by zero", "Divide by another number.")
    return one / two


def _read_literal(node: exp.Literal) -> Fraction:
    text = str(node.this)
    if not NUMBER.fullmatch(text):  # the parser makes one number of ". 2.5"
        raise syntax_refusal(node, "This is not a number", "Write it as 12, 1.5 or 1e6.")
    _, _, power = text.lower().partition("e")
    if len(text) > MOST_LETTERS or abs(int(power or 0)) > MOST_POWER:
        raise _size_refusal(node)
    return _check_range(node, Fraction(text))


def _check_range(node: exp.Expr, number: Fraction) -> Fraction:
    if abs(number) > MOST_SIZE or max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
        raise _size_refusal(node)
    return number


def _size_refusal(node: exp.Expr) -> MissingBounds:
    message = f"A number in the question is too large, or has too many digits{locate(node)}."
    return MissingBounds("bounds", message, f"Use numbers below 1e100 of at most {MOST_LETTERS} digits.")


def _is_whole(node: exp.Expr) -> bool:
    """Is it written with whole numbers alone, and not divided? Then it is a whole number."""
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
