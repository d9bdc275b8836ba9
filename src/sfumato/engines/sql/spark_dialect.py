"""How Spark writes a tree: what replaces the nodes that Spark would read in another way.

    node                          why it is replaced
    Sum                           a BIGINT sum fails when it overflows: three sums of 21 bits each do not
    CAST AS INT128                DECIMAL(38, 0), which holds 126 bits
    TRY_CAST                      sqlglot would write CAST, which fails on a value; doubles are rounded to the even one
    Floor, Ceil, Trunc, Round     of doubles, Spark makes BIGINTs: infinities and NaN would be lost
    Sign                          Spark's keeps -0.0 and NaN
    Upper, Lower                  Spark maps ß to SS: letters are translated one by one
    Like                          a backslash escapes in Spark; another letter is named instead
    texts                         in hexadecimal digits, so that no setting changes what a backslash means
    Extract, trunc, DateDiff      Spark numbers days of the week from 1, and goes through the session's time zone
    TimeToStr                     the same; every part is written by itself
    WITH ... AS MATERIALIZED      Spark has no such word

Every replacement is total, and none depends on a setting of the session. Part of the trusted perimeter: claim K-26.
"""

import re
from functools import cache

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from sfumato.engines.sql.dialect import Dialect, Replace
from sfumato.errors import KernelFault
from sfumato.row_meanings.text_meanings import lower_case, raise_case

BITS = 21  # three pieces of a BIGINT: their sums fit a BIGINT for up to 2**41 rows
LOW = (1 << BITS) - 1
LETTERS = 0x11_0000  # code points
SURROGATES = range(0xD800, 0xE000)
PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _:.,+/*=<>()-]*")
ESCAPES = "!#$&~^|@;?"
DAYS = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK"}  # of a date, as TRUNC names them
FIELDS = {
    "Y": ("YEAR", 4),
    "m": ("MONTH", 2),
    "d": ("DAY", 2),
    "H": ("HOUR", 2),
    "M": ("MINUTE", 2),
    "S": ("SECOND", 2),
}
BIGINT, DOUBLE, TEXT, DATE = (exp.DataType.Type[name] for name in ("BIGINT", "DOUBLE", "TEXT", "DATE"))
MOMENT = exp.DataType.Type.TIMESTAMPNTZ
WIDE = "DECIMAL(38, 0)"
WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _integer(value: int) -> exp.Expression:
    return exp.Literal.number(str(value))


def _double(value: str) -> exp.Expression:
    return exp.cast(exp.Literal.string(value), DOUBLE)


def _choose(test: exp.Expression, then: exp.Expression, otherwise: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=test, true=then)], default=otherwise)


def _write_text(value: str) -> exp.Expression:
    if PLAIN_TEXT.fullmatch(value):
        return exp.Literal.string(value)
    return exp.cast(exp.HexString(this=value.encode().hex()), TEXT)


def _replace_text(node: exp.Expression) -> exp.Expression:
    """A text, unless it is part of the syntax: those are written by the node that holds them."""
    syntax = isinstance(node.parent, (exp.Like, exp.Escape, exp.TimeToStr, exp.Interval))
    return node if syntax or not node.args.get("is_string") else _write_text(node.this)


def _replace_sum(node: exp.Expression) -> exp.Expression:
    """The sum of the highest bits, of the middle and of the lowest 21, each exact, put together in 38 digits."""

    def add_up(piece: exp.Expression) -> exp.Expression:
        return exp.cast(exp.Sum(this=piece), WIDE)

    value = exp.cast(node.this, BIGINT)
    high = add_up(_call("SHIFTRIGHT", value, _integer(2 * BITS)))
    middle = add_up(exp.BitwiseAnd(this=_call("SHIFTRIGHT", value.copy(), _integer(BITS)), expression=_integer(LOW)))
    low = add_up(exp.BitwiseAnd(this=value.copy(), expression=_integer(LOW)))
    upper = exp.Add(
        this=exp.Mul(this=high, expression=_integer(1 << 2 * BITS)),
        expression=exp.Mul(this=middle, expression=_integer(1 << BITS)),
    )
    return exp.Paren(this=exp.Add(this=upper, expression=low))


def _replace_filter(node: exp.Expression) -> exp.Expression:
    """FILTER of a sum that was taken apart: of each of its sums."""
    if isinstance(node.this, (exp.Sum, exp.Count)):
        return node

    def restrict(part: exp.Expression) -> exp.Expression:
        added_up = isinstance(part, exp.Sum)
        return exp.Filter(this=part, expression=node.expression.copy()) if added_up else part

    taken_apart: exp.Expression = node.this
    return taken_apart.transform(restrict)


def _replace_cast(node: exp.Expression) -> exp.Expression:
    return exp.cast(node.this, WIDE) if node.args["to"].is_type(exp.DataType.Type.INT128) else node


def _replace_try_cast(node: exp.Expression) -> exp.Expression:
    """TRY_CAST as Spark has it. It cuts doubles off, and makes 2**63 of 2**63 - 1.

    Where a cast to another type follows, any double may come: it is rounded first, halves to the even one. Elsewhere
    lowering gives whole numbers that were clamped, or texts of digits.
    """
    kind, value = node.args["to"].sql(dialect="spark"), node.this
    if kind not in WHOLE or not isinstance(node.parent, exp.Cast):
        return _try(value, kind)
    fits = exp.LT(this=exp.Paren(this=value.copy()), expression=_double(repr(2.0**63)))
    return exp.Case(ifs=[exp.If(this=fits, true=_try(_call("RINT", value), kind))])


def _try(value: exp.Expression, kind: str) -> exp.Expression:
    return _call("TRY_CAST", exp.Alias(this=value, alias=exp.to_identifier(kind)))


def _floor(value: exp.Expression) -> exp.Expression:
    """The nearest whole number, or the one below it where that is above the value. Infinities and NaN stay."""
    nearest = _call("RINT", value.copy())
    below = exp.Sub(this=nearest.copy(), expression=_double("1.0"))
    return _choose(exp.GT(this=nearest.copy(), expression=exp.Paren(this=value.copy())), below, nearest)


def _ceil(value: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Neg(this=exp.Paren(this=_floor(exp.Paren(this=exp.Neg(this=exp.Paren(this=value)))))))


def _is_negative(value: exp.Expression) -> exp.Expression:
    return exp.LT(this=exp.Paren(this=value.copy()), expression=_double("0.0"))


def _replace_trunc(node: exp.Expression) -> exp.Expression:
    return exp.Paren(this=_choose(_is_negative(node.this), _ceil(node.this), _floor(node.this)))


def _replace_round(node: exp.Expression) -> exp.Expression:
    """Halves go away from zero: of the absolute value, the floor, and one more where the rest is at least a half."""
    away = exp.Abs(this=node.this.copy())
    below = _floor(away)
    rest = exp.Sub(this=away.copy(), expression=exp.Paren(this=below.copy()))
    more = exp.Add(this=exp.Paren(this=below.copy()), expression=_double("1.0"))
    nearest = exp.Paren(this=_choose(exp.GTE(this=rest, expression=_double("0.5")), more, below))
    negative = exp.Neg(this=nearest.copy())
    small = _call("RINT", node.this.copy())  # keeps the sign of zero, infinities and NaN
    same = exp.Or(
        this=exp.EQ(this=small, expression=exp.Paren(this=node.this.copy())),
        expression=exp.LT(this=away.copy(), expression=_double("0.5")),
    )
    cases = [exp.If(this=same, true=small.copy()), exp.If(this=_is_negative(node.this), true=negative)]
    return exp.Case(ifs=cases, default=nearest)


def _replace_sign(node: exp.Expression) -> exp.Expression:
    is_number = exp.And(
        this=exp.GT(this=exp.Paren(this=node.this.copy()), expression=_double("0.0")),
        expression=exp.LTE(this=exp.Paren(this=node.this.copy()), expression=_double("Infinity")),
    )
    null = exp.If(this=exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null()), true=exp.Null())
    cases = [null, exp.If(this=is_number, true=_integer(1)), exp.If(this=_is_negative(node.this), true=_integer(-1))]
    return exp.Case(ifs=cases, default=_integer(0))


@cache
def _list_letters(*, upper: bool) -> tuple[str, str]:
    """The letters that change, and what they become."""
    change = raise_case if upper else lower_case
    letters = [chr(point) for point in range(LETTERS) if point not in SURROGATES]
    pairs = [(letter, made) for letter in letters if (made := change(letter)) != letter]
    return "".join(letter for letter, _ in pairs), "".join(made for _, made in pairs)


def _replace_case(node: exp.Expression) -> exp.Expression:
    return _call("TRANSLATE", node.this, *map(_write_text, _list_letters(upper=isinstance(node, exp.Upper))))


def _replace_like(node: exp.Expression) -> exp.Expression:
    """LIKE with an escape that is no letter of the pattern."""
    if isinstance(node.parent, exp.Escape):
        return node
    return _write_like(node, None)


def _replace_escape(node: exp.Expression) -> exp.Expression:
    return _write_like(node.this, node.expression.this)


def _write_like(like: exp.Expression, escape: str | None) -> exp.Expression:
    pattern = like.expression
    if not isinstance(pattern, exp.Literal):
        raise KernelFault("A pattern of LIKE is a literal.")
    own = next((letter for letter in ESCAPES if letter not in pattern.this), None)
    letters = iter(pattern.this)
    made = ""
    for letter in letters:
        literal = letter == escape
        shown = next(letters, None) if literal else letter
        if own is None or shown is None:
            raise KernelFault("A pattern of LIKE has no meaning.")
        made += own + shown if literal and shown in "%_" else shown
    matched = exp.Like(this=like.this, expression=_write_text(made))
    return exp.Escape(this=matched, expression=exp.Literal.string(own or ESCAPES[0]))


def _replace_extract(node: exp.Expression) -> exp.Expression:
    if node.name.lower() != "dow":
        return node
    found = exp.Extract(this=exp.var("DAYOFWEEK"), expression=node.expression)
    return exp.Paren(this=exp.Sub(this=found, expression=_integer(1)))


def _read_moment(value: exp.Expression) -> exp.Expression:
    return exp.cast(value.copy(), MOMENT)


def _replace_truncation(node: exp.Expression) -> exp.Expression:
    """The beginning of a unit: of days by the date alone, of hours and minutes by taking off what is after them."""
    unit = node.args["unit"].name.lower()
    day = exp.cast(node.this.copy(), DATE)
    if unit == "day":
        return day
    if unit in DAYS:
        return _call("TRUNC", day, exp.Literal.string(DAYS[unit]))
    minutes = _call("MINUTE", _read_moment(node.this)) if unit == "hour" else _integer(0)
    seconds = exp.Extract(this=exp.var("SECOND"), expression=_read_moment(node.this))
    after = _call("MAKE_DT_INTERVAL", _integer(0), _integer(0), minutes, seconds)
    return exp.Paren(this=exp.Sub(this=_read_moment(node.this), expression=after))


def _replace_difference(node: exp.Expression) -> exp.Expression:
    """How many units lie between two beginnings of units, by calendar fields and days: whole numbers."""
    last, first, unit = node.this, node.expression, node.args["unit"].name.lower()

    def count(moment: exp.Expression) -> exp.Expression:
        day = _call("UNIX_DATE", exp.cast(moment.copy(), DATE))
        match unit:
            case "day" | "week":
                return day
            case "hour" | "minute":
                hours = exp.Add(
                    this=exp.Mul(this=exp.cast(day, BIGINT), expression=_integer(24)), expression=_call("HOUR", moment)
                )
                if unit == "hour":
                    return exp.Paren(this=hours)
                minutes = exp.Mul(this=exp.Paren(this=hours), expression=_integer(60))
                return exp.Paren(this=exp.Add(this=minutes, expression=_call("MINUTE", moment.copy())))
            case "year":
                return _call("YEAR", moment.copy())
        part, parts = ("QUARTER", 4) if unit == "quarter" else ("MONTH", 12)
        years = exp.Mul(this=_call("YEAR", moment.copy()), expression=_integer(parts))
        return exp.Paren(this=exp.Add(this=years, expression=_call(part, moment.copy())))

    between = exp.Paren(this=exp.Sub(this=count(last.copy()), expression=count(first.copy())))
    return exp.IntDiv(this=between, expression=_integer(7)) if unit == "week" else between


def _replace_format(node: exp.Expression) -> exp.Expression:
    """The parts of a moment, each as a text of its own."""
    form, moment = node.args["format"].this, _read_moment(node.this)
    first, *others = form.split("%")
    parts = [_write_text(first)] if first else []
    for other in others:
        part, width = FIELDS[other[0]]
        digits = exp.cast(_call(part, moment.copy()), TEXT)
        parts.append(_call("LPAD", digits, _integer(width), exp.Literal.string("0")))
        parts += [_write_text(other[1:])] if other[1:] else []
    return exp.Concat(expressions=parts)


def _replace_cte(node: exp.Expression) -> exp.Expression:
    node.set("materialized", None)
    return node


REPLACEMENTS: dict[type[exp.Expression], Replace] = {
    exp.Sum: _replace_sum,
    exp.Filter: _replace_filter,
    exp.Cast: _replace_cast,
    exp.TryCast: _replace_try_cast,
    exp.Floor: lambda node: exp.Paren(this=_floor(node.this)),
    exp.Ceil: lambda node: _ceil(node.this),
    exp.Trunc: _replace_trunc,
    exp.Round: _replace_round,
    exp.Sign: _replace_sign,
    exp.Upper: _replace_case,
    exp.Lower: _replace_case,
    exp.Like: _replace_like,
    exp.Escape: _replace_escape,
    exp.Literal: _replace_text,
    exp.Extract: _replace_extract,
    exp.TimestampTrunc: _replace_truncation,
    exp.DateDiff: _replace_difference,
    exp.TimeToStr: _replace_format,
    exp.CTE: _replace_cte,
}
SPARK = Dialect(Spark(), REPLACEMENTS)
