"""Expressions over one row -> SQL, every function total. Part of the trusted perimeter, with lowering.py."""

from datetime import date, datetime

from sqlglot import exp

from sfumato.engines.sql.function_sql import DATE, DOUBLE, MOMENT, TEXT, lower_double, lower_function
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import (
    Call,
    Column,
    ColumnType,
    Expression,
    Literal,
    Scalar,
    find_kinds,
    may_be_negative_zero,
)

BINARY: dict[str, type[exp.Binary]] = {
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "like": exp.Like,
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
UNARY: dict[str, type[exp.Abs | exp.Floor | exp.Ceil]] = {"abs": exp.Abs, "floor": exp.Floor, "ceil": exp.Ceil}
PREFIX: dict[str, type[exp.Unary]] = {"not": exp.Not, "neg": exp.Neg}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
PARTS = {unit: unit for unit in UNITS} | {"dayofweek": "dow", "dayofyear": "doy"}  # week: ISO 8601; dow: 0 is Sunday
TYPE_OF_TRUNC = {"date_trunc": DATE, "datetime_trunc": MOMENT}
INT128 = exp.DataType.Type.INT128
FAR, FINE = 2.0**62, 2.0**53


def lower_expression(node: Expression) -> exp.Expression:  # noqa: PLR0911, PLR0912 - one return a form
    """The SQL of an expression: numbers as doubles, division by zero as NULL.

    Values of two kinds are refused: an engine would convert one of them, and fail on a row that it cannot convert.
    """
    alike = node.arguments if isinstance(node, Call) and node.function in COMPARISONS else (node,)
    if len(set[str]().union(*map(find_kinds, alike))) > 1:
        raise KernelFault("A plan compares or chooses between values of two kinds.")
    match node:
        case Literal(value):
            return lower_literal(value)
        case Column(name, ColumnType.TEXT | ColumnType.ID):  # an enumeration, or a number of the owner's
            return exp.cast(read_column(name), TEXT, copy=False)
        case Column(name, ColumnType.INTEGER):
            return exp.cast(read_column(name), DOUBLE, copy=False)
        case Column(name):
            return read_column(name)
        case Call("and", arguments):
            return exp.Paren(this=exp.and_(*map(lower_expression, arguments)))
        case Call("or", arguments):
            return exp.Paren(this=exp.or_(*map(lower_expression, arguments)))
        case Call("is null", (argument,)):
            return exp.Paren(this=exp.Is(this=lower_expression(argument), expression=exp.Null()))
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            ifs = [exp.If(this=lower_expression(one), true=lower_expression(two)) for one, two in pairs]
            return exp.Case(ifs=ifs, default=lower_expression(arguments[-1]))
        case Call("coalesce", arguments):
            first, *others = map(lower_expression, arguments)
            return exp.Coalesce(this=first, expressions=others)
        case Call("/", (one, two)):
            safe = exp.Nullif(this=lower_expression(two), expression=lower_double(0.0))
            return exp.Paren(this=exp.Div(this=lower_expression(one), expression=safe, typed=False, safe=False))
        case Call(function, (argument,), None) if function in PREFIX:
            return exp.Paren(this=PREFIX[function](this=exp.Paren(this=lower_expression(argument))))
        case Call(function, (argument,), None) if function in UNARY:
            return UNARY[function](this=lower_expression(argument))
        case Call(function, (one, two), None) if function in BINARY:
            return exp.Paren(this=BINARY[function](this=lower_expression(one), expression=lower_expression(two)))
        case Call("midnight", (argument,)):
            return exp.cast(lower_expression(argument), MOMENT, copy=False)
        case Call("date_trunc" | "datetime_trunc" as function, (one,), str(unit)) if unit in UNITS:
            return _truncate(unit, one, TYPE_OF_TRUNC[function])
        case Call("extract", (one,), str(part)) if part in PARTS:
            found = exp.Extract(this=exp.var(PARTS[part]), expression=lower_expression(one))
            return exp.cast(found, DOUBLE, copy=False)
        case Call("date_diff", (first, last), str(unit)) if unit in UNITS:
            # engines differ in what a difference of two moments is, but agree on that of two beginnings of units
            begins, ends = _truncate(unit, first, MOMENT), _truncate(unit, last, MOMENT)
            return exp.cast(exp.DateDiff(this=ends, expression=begins, unit=exp.var(unit)), DOUBLE, copy=False)
        case Call("like", (one, two, Literal(str(escape))), None) if len(escape) == 1:
            matched = exp.Like(this=lower_expression(one), expression=lower_expression(two))
            return exp.Paren(this=exp.Escape(this=matched, expression=exp.Literal.string(escape)))
        case Call():
            return lower_function(node, lower_expression)


def _truncate(unit: str, node: Expression, kind: exp.DType) -> exp.Expression:
    """The beginning of a unit, cast to one type: engines differ in the type that they give."""
    return exp.cast(exp.TimestampTrunc(this=lower_expression(node), unit=exp.var(unit)), kind, copy=False)


def lower_literal(value: Scalar) -> exp.Expression:
    """The SQL of a value that the analyst wrote."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | float():
            return lower_double(float(value))
        case str():
            return exp.Literal.string(value)
        case datetime():
            return exp.cast(exp.Literal.string(value.isoformat(" ")), MOMENT, copy=False)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), DATE, copy=False)
    raise KernelFault("A plan holds a literal that has no lowering.")


def lower_integer(value: int) -> exp.Expression:
    """The SQL of an integer of any size."""
    return exp.Paren(this=exp.Literal.number(str(value))) if value < 0 else exp.Literal.number(str(value))


def lower_match(node: Expression) -> exp.Expression:
    """A value by which rows are grouped or joined: -0.0 becomes 0.0."""
    value = lower_expression(node)
    if not may_be_negative_zero(node):
        return value
    zero = exp.If(this=exp.EQ(this=value, expression=lower_double(0.0)), true=lower_double(0.0))
    return exp.Case(ifs=[zero], default=value.copy())


def read_table(name: str) -> exp.Table:
    """A table, as FROM names it."""
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def read_column(name: str, table: str | None = None) -> exp.Expression:
    """A column of the query's source, or of one of its two sides."""
    return exp.column(name, table, quoted=True)


def read_text(name: str, table: str | None = None) -> exp.Expression:
    """A column as text: tables may hold the ids of the same people as numbers and as texts."""
    return exp.cast(read_column(name, table), TEXT, copy=False)


def write_real(value: exp.Expression) -> exp.Expression:
    """A double as two whole numbers: engines write doubles in different ways. Doubles far from zero have one text."""
    below = exp.Floor(this=value)
    rest = exp.Paren(this=exp.Sub(this=value.copy(), expression=below.copy()))
    fine = exp.Floor(this=exp.Mul(this=rest, expression=lower_double(FINE)))
    one, two = (exp.cast(exp.TryCast(this=part, to=exp.DataType.build("BIGINT")), TEXT) for part in (below, fine))
    near = exp.LT(this=exp.Abs(this=value.copy()), expression=lower_double(FAR))
    both = exp.Concat(expressions=[one, exp.Literal.string("/"), two])
    return exp.Case(ifs=[exp.If(this=near, true=both)], default=exp.Literal.string("far"))


def name_column(value: exp.Expression, name: str) -> exp.Expression:
    """A value with a name: value AS name."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def round_half_up(scaled: exp.Expression) -> exp.Expression:
    """⌊x + ½⌋ without the sum, which rounds in doubles: the floor, and one more where the rest is at least a half."""
    below = exp.Floor(this=scaled)
    rest = exp.Sub(this=scaled.copy(), expression=below.copy())
    more = exp.If(this=exp.GTE(this=rest, expression=lower_double(0.5)), true=lower_double(1.0))
    return exp.Paren(this=exp.Add(this=below, expression=exp.Case(ifs=[more], default=lower_double(0.0))))


def clamp(value: exp.Expression, lower: int, upper: int) -> exp.Expression:
    """A double, clamped to [lower, upper]; NULL stays NULL."""
    return clamp_to_ends(value, lower_double(float(lower)), lower_double(float(upper)))


def clamp_to_ends(value: exp.Expression, lower: exp.Expression | None, upper: exp.Expression | None) -> exp.Expression:
    """A value, clamped to the ends that are given; NULL stays NULL."""
    below = [] if lower is None else [exp.If(this=exp.LT(this=value, expression=lower), true=lower.copy())]
    above = [] if upper is None else [exp.If(this=exp.GT(this=value.copy(), expression=upper), true=upper.copy())]
    return exp.Case(ifs=[*below, *above], default=value.copy()) if below or above else value
