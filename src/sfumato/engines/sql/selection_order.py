"""Which of too many keys a unit is counted in: an order of keys for each unit, from the key's text and the unit alone.

A key has two numbers, and a unit has one; the place of the key is (first * unit + second) modulo a prime. So a hash is
computed for each key and each unit, and not for each pair of them. Part of the trusted perimeter: claim K-25.
"""

from collections.abc import Iterable

from sqlglot import exp

PRIME = 2**31 - 1  # products of two numbers below it fit 62 bits
DIGITS = 15  # of each number: a MD5 is 32 digits, in which a to f are written as 0 to 5
LETTERS, FIGURES = "abcdef", "012345"
SHORT = rf"^[0-9]{{1,{DIGITS}}}\z"
BIGINT, TEXT = (exp.DataType.build(name) for name in ("BIGINT", "TEXT"))


def number_unit(unit: exp.Expression, *, is_number: bool = False) -> exp.Expression:
    """The number of a unit: of an id of at most 15 digits the id itself, of others a hash.

    `is_number`: is the column one of whole numbers? Then it is not read as a text.
    """
    text = exp.cast(unit, TEXT)
    if is_number:
        ends = (exp.Literal.number(end) for end in (0, 10**DIGITS - 1))
        short: exp.Expression = exp.Between(this=unit.copy(), low=next(ends), high=next(ends))
        itself: exp.Expression = exp.TryCast(this=unit.copy(), to=BIGINT.copy())
    else:
        short = exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(SHORT))
        itself = exp.TryCast(this=text.copy(), to=BIGINT.copy())
    return exp.Case(ifs=[exp.If(this=short, true=_reduce(itself))], default=_read_digits(text, 1))


def number_key(texts: Iterable[exp.Expression]) -> tuple[exp.Expression, exp.Expression]:
    """The two numbers of a key, from the texts of its parts."""
    parts = [part for text in texts for part in (text.copy(), exp.Literal.string(":"))]
    whole = exp.Concat(expressions=parts) if parts else exp.Literal.string("")
    return _read_digits(whole, 1), _read_digits(whole.copy(), 1 + DIGITS)


def place(first: exp.Expression, second: exp.Expression, unit_number: exp.Expression) -> exp.Expression:
    """The place of a key in the order of one unit, from its two numbers."""
    return _reduce(exp.Add(this=exp.Mul(this=first, expression=unit_number), expression=second))


def place_pair(texts: Iterable[exp.Expression], unit_number: exp.Expression) -> exp.Expression:
    """The place of a key in the order of one unit, from the texts of its parts."""
    return place(*number_key(texts), unit_number)


def _read_digits(text: exp.Expression, start: int) -> exp.Expression:
    figures = exp.Translate(this=exp.MD5(this=text), from_=exp.Literal.string(LETTERS), to=exp.Literal.string(FIGURES))
    some = exp.Substring(this=figures, start=exp.Literal.number(start), length=exp.Literal.number(DIGITS))
    return _reduce(exp.cast(some, BIGINT))


def _reduce(value: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="MOD", expressions=[value, exp.Literal.number(PRIME)])
