"""BoundedPlan -> SQL: bound contributions, filter, quantise, clamp, add up. Part of the trusted perimeter.

Only trees built here reach an engine: names come from the catalog, values are literals, and every function is total.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from sfumato.engines.engine import ROWS_OF_UNIT, UNIT
from sfumato.errors import KernelFault
from sfumato.kernel.plan import BoundedPlan, Call, Column, ColumnType, Expression, Kind, Literal, Measurement, Scalar

# what the snapshot holds ready for each numeric column: its contributions on the grid of its declared bounds, weighed
STEPS = "__sfumato_steps_"
CENTRED = "__sfumato_centred_"  # the same, less the middle of the bounds
KEY = "__sfumato_key_"  # no declared column may begin like this, so that GROUP BY means the alias
WEIGHT = "__sfumato_weight"  # a row's contribution to a person's count
BINARY: dict[str, type[exp.Binary]] = {
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul,
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Steps:
    """The grid of a numeric column that the snapshot holds ready, and its declared bounds in steps."""

    exponent: int
    lower: int
    upper: int

    @property
    def middle(self) -> int:
        """What CENTRED columns are less by."""
        return (self.lower + self.upper) // 2


def lower(plan: BoundedPlan, stored: Mapping[str, Steps]) -> exp.Expression:
    """The query that measures COUNT and SUM: key values first, then one integer for each measurement.

    `stored` says which columns the snapshot holds ready.
    """
    selected = [exp.alias_(_key(key.expression), f"{KEY}{index}") for index, key in enumerate(plan.keys)]
    for index, each in enumerate(plan.measurements):
        if each.kind is not Kind.PEOPLE:
            selected.append(exp.alias_(_total(each, plan, stored), f"m{index}"))
    query = exp.select(*selected).from_(_table(plan.table))
    for condition in plan.filters:
        query = query.where(expression(condition))
    return query.group_by(*(exp.column(f"{KEY}{index}") for index in range(len(plan.keys)))) if plan.keys else query


def lower_people(plan: BoundedPlan) -> exp.Expression:
    """The query that counts units: (cell, units), a unit in at most g cells, those least by a hash of cell and unit."""
    columns = [exp.alias_(_cell(plan), "cell")]
    if not plan.unit.per_row:
        columns.append(exp.alias_(exp.column(UNIT, quoted=True), "unit"))
    inside = exp.select(*columns).from_(_table(plan.table))
    for condition in plan.filters:
        inside = inside.where(expression(condition))
    counted = exp.select("cell", exp.alias_(exp.Count(this=exp.Star()), "units")).group_by("cell")
    if plan.unit.per_row:
        return counted.from_(inside.subquery("inside")).where("cell IS NOT NULL")
    text = exp.DataType.Type.TEXT
    parts = [exp.cast(exp.column("cell"), text), exp.Literal.string(":"), exp.cast(exp.column("unit"), text)]
    order = exp.Order(expressions=[exp.Ordered(this=exp.MD5(this=exp.Concat(expressions=parts)))])
    place = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("unit")], order=order)
    ranked = exp.select("cell", exp.alias_(place, "place")).from_(inside.distinct().subquery("inside"))
    most = exp.LTE(this=exp.column("place"), expression=_integer(plan.bound.max_groups_per_unit))
    return counted.from_(ranked.where("cell IS NOT NULL").subquery("ranked")).where(most)


def _cell(plan: BoundedPlan) -> exp.Expression:
    """The number of the row's cell, or NULL outside all cells."""
    number: exp.Expression = _integer(0)
    for key in plan.keys:
        ifs = [
            exp.If(this=exp.EQ(this=expression(key.expression), expression=_literal(value)), true=_integer(index))
            for index, value in enumerate(key.values)
        ]
        step = exp.Mul(this=exp.Paren(this=number), expression=_integer(len(key.values)))
        number = exp.Add(this=step, expression=exp.Case(ifs=ifs))
    return number


def _key(node: Expression) -> exp.Expression:
    """What to group by: a column as it is stored."""
    return exp.column(node.name, quoted=True) if isinstance(node, Column) else expression(node)


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def _total(each: Measurement, plan: BoundedPlan, stored: Mapping[str, Steps]) -> exp.Expression:
    if each.kind is Kind.COUNT and plan.unit.per_row:
        return exp.Count(this=exp.Star() if each.value is None else expression(each.value))
    steps = _contribution(each, plan, stored)
    return exp.Coalesce(this=exp.Sum(this=steps), expressions=[_integer(0)])


def _contribution(each: Measurement, plan: BoundedPlan, stored: Mapping[str, Steps]) -> exp.Expression:
    """What one row adds; nothing where it is NULL."""
    if each.kind is Kind.COUNT:
        weight: exp.Expression = exp.column(WEIGHT, quoted=True)
        if each.value is None:
            return weight
        there = exp.Not(this=exp.Is(this=expression(each.value), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=there, true=weight)], default=_integer(0))
    if each.value is None:
        raise KernelFault("A sum needs a value.")
    ready = stored.get(each.value.name) if isinstance(each.value, Column) else None
    if isinstance(each.value, Column) and ready == Steps(each.exponent, each.lower, each.upper):
        if each.offset == 0:
            return exp.column(STEPS + each.value.name, quoted=True)
        if not plan.unit.per_row and each.offset == ready.middle:
            return exp.column(CENTRED + each.value.name, quoted=True)
        if plan.unit.per_row:
            return _less(exp.column(STEPS + each.value.name, quoted=True), each.offset)
    scaled = exp.Mul(this=expression(each.value), expression=_double(2.0**-each.exponent))
    low, high = _double(float(each.lower)), _double(float(each.upper))
    held = _held(_rounded(exp.Paren(this=scaled)), low, high)  # before the cast: it cannot overflow
    steps = _less(exp.TryCast(this=held, to=exp.DataType.build("BIGINT")), each.offset)
    return steps if plan.unit.per_row else _weighed(steps, plan.bound.max_rows_per_unit)


def _rounded(scaled: exp.Expression) -> exp.Expression:
    """⌊x + ½⌋ without the sum, which rounds in doubles: the floor, and one more where the rest is at least a half."""
    below = exp.Floor(this=scaled)
    rest = exp.Sub(this=scaled.copy(), expression=below.copy())
    more = exp.If(this=exp.GTE(this=rest, expression=_double(0.5)), true=_double(1.0))
    return exp.Paren(this=exp.Add(this=below, expression=exp.Case(ifs=[more], default=_double(0.0))))


def _held(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """The value, held to [low, high]; NULL stays NULL."""
    below = exp.If(this=exp.LT(this=value, expression=low), true=low.copy())
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    return exp.Case(ifs=[below, above], default=value.copy())


def _less(steps: exp.Expression, offset: int) -> exp.Expression:
    return exp.Paren(this=exp.Sub(this=steps, expression=_integer(offset))) if offset else steps


def _weighed(steps: exp.Expression, most: int) -> exp.Expression:
    """Rows of a unit with n > r rows weigh r/n each, rounded toward zero: integer division truncates."""
    rows = exp.column(ROWS_OF_UNIT, quoted=True)
    wide = exp.cast(exp.Paren(this=steps.copy()), exp.DataType.Type.INT128)
    most_of_it = exp.Paren(this=exp.Mul(this=wide, expression=_integer(most)))
    whole = exp.IntDiv(this=most_of_it, expression=rows.copy())
    return exp.Case(ifs=[exp.If(this=exp.LTE(this=rows, expression=_integer(most)), true=steps)], default=whole)


def expression(node: Expression) -> exp.Expression:  # noqa: PLR0911, PLR0912 - one return a form
    """The SQL of an expression: numbers as doubles, division by zero as NULL."""
    match node:
        case Literal(value):
            return _literal(value)
        case Column(name, kind):
            column = exp.column(name, quoted=True)
            if kind is ColumnType.TEXT:  # which may be stored as an enumeration
                return exp.cast(column, exp.DataType.Type.TEXT)
            return exp.cast(column, exp.DataType.Type.DOUBLE) if kind is ColumnType.INTEGER else column
        case Call("and" | "or" as function, arguments):
            combine = exp.and_ if function == "and" else exp.or_
            return exp.Paren(this=combine(*(expression(each) for each in arguments)))
        case Call("not", (argument,)):
            return exp.Paren(this=exp.Not(this=exp.Paren(this=expression(argument))))
        case Call("is null", (argument,)):
            return exp.Paren(this=exp.Is(this=expression(argument), expression=exp.Null()))
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            ifs = [exp.If(this=expression(condition), true=expression(outcome)) for condition, outcome in pairs]
            return exp.Case(ifs=ifs, default=expression(arguments[-1]))
        case Call("coalesce", arguments):
            return exp.Coalesce(this=expression(arguments[0]), expressions=[expression(each) for each in arguments[1:]])
        case Call("/", (one, two)):
            divisor = expression(two)
            safe = exp.Nullif(this=divisor, expression=_double(0.0))
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
    raise KernelFault("A plan holds a function that has no lowering.")


def _literal(value: Scalar) -> exp.Expression:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | float():
            return _double(float(value))
        case str():
            return exp.Literal.string(value)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE)
    raise KernelFault("A plan holds a literal that has no lowering.")


def _double(value: float) -> exp.Expression:
    return exp.cast(exp.Literal.string(repr(value)), exp.DataType.Type.DOUBLE)


def _integer(value: int) -> exp.Expression:
    return exp.Paren(this=exp.Literal.number(str(value))) if value < 0 else exp.Literal.number(str(value))
