"""Expressions over one row -> SQL, every function total. Part of the trusted perimeter, with lowering.py."""

from datetime import date, datetime

from sqlglot import exp

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar, may_be_negative_zero

BINARY: dict[str, type[exp.Binary]] = {
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul,
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
PARTS = {unit: unit for unit in UNITS} | {"dayofweek": "dow", "dayofyear": "doy"}  # week: ISO 8601; dow: 0 is Sunday
MOMENT = exp.DataType.Type.TIMESTAMPNTZ


def expression(node: Expression) -> exp.Expression:  # noqa: PLR0911, PLR0912 - one return a form
    """The SQL of an expression: numbers as doubles, division by zero as NULL."""
    match node:
        case Literal(value):
            return literal(value)
        case Column(name, kind):
            column = exp.column(name, quoted=True)
            if kind in (ColumnType.TEXT, ColumnType.ID):  # an enumeration, or a number of the owner's
                return exp.cast(column, exp.DataType.Type.TEXT, copy=False)
            return exp.cast(column, exp.DataType.Type.DOUBLE, copy=False) if kind is ColumnType.INTEGER else column
        case Call("and" | "or" as function, arguments):
            combine = exp.and_ if function == "and" else exp.or_
            return exp.Paren(this=combine(*(expression(argument) for argument in arguments)))
        case Call("not", (argument,)):
            return exp.Paren(this=exp.Not(this=exp.Paren(this=expression(argument))))
        case Call("is null", (argument,)):
            return exp.Paren(this=exp.Is(this=expression(argument), expression=exp.Null()))
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            ifs = [exp.If(this=expression(condition), true=expression(outcome)) for condition, outcome in pairs]
            return exp.Case(ifs=ifs, default=expression(arguments[-1]))
        case Call("coalesce", arguments):
            return exp.Coalesce(this=expression(arguments[0]), expressions=[expression(one) for one in arguments[1:]])
        case Call("/", (one, two)):
            divisor = expression(two)
            safe = exp.Nullif(this=divisor, expression=double(0.0))
            return exp.Paren(this=exp.Div(this=expression(one), expression=safe, typed=False, safe=False))
        case Call("neg", (argument,)):
            return exp.Paren(this=exp.Neg(this=exp.Paren(this=expression(argument))))
        case Call("abs" | "floor" | "ceil" as function, (argument,)):
            inner = expression(argument)
            if function == "abs":
                return exp.Abs(this=inner)
            return exp.Floor(this=inner) if function == "floor" else exp.Ceil(this=inner)
        case Call("like", (one, two)):
            return exp.Paren(this=exp.Like(this=expression(one), expression=expression(two)))
        case Call(function, (one, two)) if function in BINARY:
            return exp.Paren(this=BINARY[function](this=expression(one), expression=expression(two)))
        case Call("midnight", (argument,)):
            return exp.cast(expression(argument), MOMENT, copy=False)
        case Call("date_trunc", (one,), str(unit)) if unit in UNITS:
            return _truncated(unit, one, exp.DataType.Type.DATE)
        case Call("datetime_trunc", (one,), str(unit)) if unit in UNITS:
            return _truncated(unit, one, MOMENT)
        case Call("extract", (one,), str(part)) if part in PARTS:
            found = exp.Extract(this=exp.var(PARTS[part]), expression=expression(one))
            return exp.cast(found, exp.DataType.Type.DOUBLE, copy=False)
        case Call("date_diff", (first, last), str(unit)) if unit in UNITS:
            # engines differ in what a difference of two moments is, but agree on that of two beginnings of units
            begins, ends = _truncated(unit, first, MOMENT), _truncated(unit, last, MOMENT)
            units = exp.DateDiff(this=ends, expression=begins, unit=exp.var(unit))
            return exp.cast(units, exp.DataType.Type.DOUBLE, copy=False)
    raise KernelFault("A plan holds a function that has no lowering.")


def _truncated(unit: str, node: Expression, kind: exp.DType) -> exp.Expression:
    """The beginning of a unit, of the type that is said: engines differ in what they give."""
    return exp.cast(exp.TimestampTrunc(this=expression(node), unit=exp.var(unit)), kind, copy=False)


def literal(value: Scalar) -> exp.Expression:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | float():
            return double(float(value))
        case str():
            return exp.Literal.string(value)
        case datetime():
            return exp.cast(exp.Literal.string(value.isoformat(" ")), MOMENT, copy=False)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE, copy=False)
    raise KernelFault("A plan holds a literal that has no lowering.")


def double(value: float) -> exp.Expression:
    return exp.cast(exp.Literal.string(repr(value)), exp.DataType.Type.DOUBLE, copy=False)


def integer(value: int) -> exp.Expression:
    return exp.Paren(this=exp.Literal.number(str(value))) if value < 0 else exp.Literal.number(str(value))


def matched(node: Expression) -> exp.Expression:
    """A value that rows are grouped or joined by: there is one zero, whichever way it was computed."""
    value = expression(node)
    if not may_be_negative_zero(node):
        return value
    zero = exp.If(this=exp.EQ(this=value, expression=double(0.0)), true=double(0.0))
    return exp.Case(ifs=[zero], default=value.copy())


def table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def rounded(scaled: exp.Expression) -> exp.Expression:
    """⌊x + ½⌋ without the sum, which rounds in doubles: the floor, and one more where the rest is at least a half."""
    below = exp.Floor(this=scaled)
    rest = exp.Sub(this=scaled.copy(), expression=below.copy())
    more = exp.If(this=exp.GTE(this=rest, expression=double(0.5)), true=double(1.0))
    return exp.Paren(this=exp.Add(this=below, expression=exp.Case(ifs=[more], default=double(0.0))))


def held_to(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """The value, held to [low, high]; NULL stays NULL."""
    below = exp.If(this=exp.LT(this=value, expression=low), true=low.copy())
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    return exp.Case(ifs=[below, above], default=value.copy())
