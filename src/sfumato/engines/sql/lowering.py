"""BoundedPlan -> SQL: bound contributions, filter, quantise, clamp, add up. Part of the trusted perimeter.

Only trees built here, in source_sql.py and in scalars.py reach an engine: names come from the catalog, values are
literals, and every function is total.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard, assert_never

from sqlglot import exp

from sfumato.engines.engine import Added, addends
from sfumato.engines.sql.scalars import double, expression, held_to, integer, literal, matched, rounded
from sfumato.engines.sql.source_sql import from_clause, held_column, is_as_pinned
from sfumato.ingest.hidden_names import BIN, CENTRED, KEY, ROUNDED, SCALED, STEPS, UNIT, WEIGHT
from sfumato.kernel.expressions import Column, Expression, columns_of, may_be_negative_zero
from sfumato.kernel.plan import (
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Choice,
    Count,
    Curve,
    Extreme,
    Grid,
    Halves,
    Mode,
    Quantiles,
    Sum,
    Thirds,
)
from sfumato.kernel.row_sources import extent
from sfumato.kernel.split_sums import halfway

Stored = Mapping[str, Grid]  # the numeric columns that the snapshot holds in steps, and their grids
AddedByName = Mapping[str, Added]
Measured = Added | Choice  # quantities with a value
Valued = Sum | Halves | Thirds | Curve | Quantiles | Extreme  # quantities with a value on a grid


def lower(plan: BoundedPlan, stored: Stored) -> exp.Expression:
    """The query that adds up: key values first, then the integers of each measurement, as `addends` has them.

    `stored` says which columns the snapshot holds ready. Where the data names the keys, only those are there in which
    somebody is counted, each with its units before the integers: a person's other keys stay in the engine.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    added = {measured.name: measured.quantity for measured in plan.measurements if isinstance(measured.quantity, Added)}
    query = _added(plan, added, stored)
    return query if plan.cells is not None else _of_named_keys(plan, query, [exp.column("units", "named")])


def _of_named_keys(plan: BoundedPlan, query: exp.Select, units: list[exp.Expression]) -> exp.Select:
    """The rows of a query whose keys count at least one unit: at most g keys of each unit.

    The plan's source lets in a bounded number of rows of one unit (BoundedPlan checks it), so that neither side of this
    join takes longer because of one unit with very many keys.
    """
    names = [*(f"{KEY}{index}" for index in range(len(plan.keys)))]
    others = [column.alias_or_name for column in query.expressions if column.alias_or_name not in names]
    same = [exp.EQ(this=exp.column(name, "found"), expression=exp.column(name, "named")) for name in names]
    keys = [exp.column(name, "named") for name in names]
    made = exp.select(*keys, *units, *(exp.column(name, "found", quoted=True) for name in others))
    made = made.from_(lower_people(plan).subquery("named"))
    return made.join(query.subquery("found"), on=exp.and_(*same), join_type="inner")


def _added(plan: BoundedPlan, added: AddedByName, stored: Stored) -> exp.Select:
    computed = {name: quantity for name, quantity in added.items() if _is_computed(quantity, plan, stored)}
    totals = [
        exp.alias_(total, name if quantity.width == 1 else f"{name}.{place}", quoted=True, copy=False)
        for name, quantity in added.items()
        for place, total in enumerate(_totals(name, quantity, plan, stored))
    ]
    keys = _key_columns(plan)
    query = (
        _in_steps(plan, added, computed).select(*keys, *totals)
        if computed
        else _rows(plan, added.values()).select(*_keys(plan), *totals)
    )
    return query.group_by(*(key.copy() for key in keys)) if keys else query


def _is_computed(quantity: Added, plan: BoundedPlan, stored: Stored) -> TypeGuard[Valued]:
    """Must its steps be computed from its value for each row? Those of a plain column may be in the snapshot."""
    match quantity:
        case Count():
            return False
        case Sum():
            return _ready(quantity, plan, stored) is None
        case Halves(value, grid):
            return _ready(Sum(value, grid, grid.middle), plan, stored) is None
        case Thirds() | Curve():
            return True
        case _:
            assert_never(quantity)


def lower_bins(plan: BoundedPlan, name: str, choice: Choice) -> exp.Expression:
    """The query of one choice: key values, the bin, and the weight of the rows in it.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    weight = exp.Count(this=exp.Star()) if plan.unit.per_row else exp.Sum(this=_weight(plan))
    keys = _key_columns(plan)
    if isinstance(choice, Mode):
        query = _rows(plan, [choice]).select(*_keys(plan), exp.alias_(_key(choice.value), BIN))
    else:
        query = _in_steps(plan, {name: choice}, {name: choice})
        query = query.select(*keys, exp.alias_(_held_steps(name, choice), BIN))
    query = query.select(exp.alias_(weight, "weight")).group_by(*(one.copy() for one in keys), exp.column(BIN))
    return query if plan.cells is not None else _of_named_keys(plan, query, [])


def _in_steps(plan: BoundedPlan, measured: Mapping[str, Measured], computed: Mapping[str, Valued]) -> exp.Select:
    """Rows with computed values on their grids: each value is computed once, rounded once, and only then clamped."""
    inner = _rows(plan, measured.values()).select(*_keys(plan), exp.Star())
    for name, quantity in computed.items():
        scaled = exp.Mul(this=expression(quantity.value), expression=double(2.0**-quantity.grid.exponent))
        inner = inner.select(exp.alias_(scaled, SCALED + name, quoted=True))
    whole = [
        exp.alias_(rounded(exp.column(SCALED + name, quoted=True)), ROUNDED + name, quoted=True) for name in computed
    ]
    return exp.Select().from_(exp.select(exp.Star(), *whole).from_(inner.subquery("scaled")).subquery("rounded"))


def _key_columns(plan: BoundedPlan) -> list[exp.Expression]:
    return [exp.column(f"{KEY}{index}") for index in range(len(plan.keys))]


def lower_people(plan: BoundedPlan) -> exp.Select:
    """The query that counts units: key values, units. A unit is in at most g cells, those least by a hash.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    keys = _key_columns(plan)
    inside = _rows(plan, []).select(*_keys(plan))
    counted = exp.select(*(key.copy() for key in keys), exp.alias_(exp.Count(this=exp.Star()), "units"))
    if plan.unit.per_row:
        counted = counted.from_(inside.select(exp.alias_(integer(1), "one")).subquery("inside"))
        return counted.group_by(*keys) if keys else counted
    unit = _as_text(exp.column(UNIT, quoted=True))
    declared = exp.select("*").from_(inside.select(exp.alias_(unit, "unit")).distinct().subquery("inside"))
    for column, key in zip(keys, plan.keys, strict=True):  # a person's places are not lost to cells that are none
        if key.values is None:
            declared = declared.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null())))
        else:
            declared = declared.where(exp.In(this=column.copy(), expressions=[literal(value) for value in key.values]))
    texts: list[exp.Expression] = []
    for column in keys:
        texts += [_as_text(column.copy()), exp.Literal.string(":")]
    order = [
        exp.MD5(this=exp.Concat(expressions=[*texts, exp.column("unit")])),
        *(_as_text(key.copy()) for key in keys),
    ]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column("unit")],
        order=exp.Order(expressions=[exp.Ordered(this=term) for term in order]),
    )
    ranked = exp.select("*", exp.alias_(place, "place")).from_(declared.subquery("declared"))
    most = exp.LTE(this=exp.column("place"), expression=integer(plan.max_groups_per_unit))
    counted = counted.from_(ranked.subquery("ranked")).where(most)
    return counted.group_by(*(key.copy() for key in keys)) if keys else counted


def _rows(plan: BoundedPlan, measured: Iterable[Measured]) -> exp.Select:
    """FROM and WHERE."""
    read = [*plan.filters, *(key.expression for key in plan.keys)]
    read += [quantity.value for quantity in measured if quantity.value is not None]
    needed = set().union(*(columns_of(value) for value in read))
    query = exp.Select().from_(from_clause(plan, needed), copy=False)
    for condition in plan.filters:
        query = query.where(expression(condition), copy=False)
    return query


def _keys(plan: BoundedPlan) -> list[exp.Expression]:
    return [
        exp.Alias(this=_key(key.expression), alias=exp.to_identifier(f"{KEY}{index}"))
        for index, key in enumerate(plan.keys)
    ]


def _key(node: Expression) -> exp.Expression:
    """What to group by: a column as it is stored."""
    if isinstance(node, Column) and not may_be_negative_zero(node):
        return exp.column(node.name, quoted=True)
    return matched(node)


def _as_text(column: exp.Expression) -> exp.Expression:
    return exp.cast(column, exp.DataType.Type.TEXT)


def _totals(name: str, quantity: Added, plan: BoundedPlan, stored: Stored) -> list[exp.Expression]:
    """What the engine adds up for a quantity: its parts, or the sums of `addends`."""
    match quantity:
        case Thirds() | Curve():
            parts = _parts(quantity, _held_steps(name, quantity), plan)
            return [exp.Coalesce(this=exp.Sum(this=part), expressions=[integer(0)]) for part in parts]
        case Count() | Sum() | Halves():
            return [_total(name, addend, plan, stored) for addend in addends(quantity, per_row=plan.unit.per_row)]
        case _:
            assert_never(quantity)


def _parts(quantity: Thirds | Curve, steps: exp.Expression, plan: BoundedPlan) -> list[exp.Expression]:
    """The parts that parts_of makes: at most 2**30 each."""
    if isinstance(quantity, Curve):
        middle, _, half = halfway(quantity.grid, per_row=True)
        away = exp.Paren(this=exp.Sub(this=steps, expression=integer(middle)))
        return [exp.Mul(this=away, expression=integer(half)), exp.Mul(this=away.copy(), expression=away.copy())]
    above = exp.Paren(this=exp.Sub(this=steps, expression=integer(quantity.grid.lower)))
    below = exp.Paren(this=exp.Sub(this=integer(quantity.grid.upper), expression=steps.copy()))
    both = exp.Mul(this=exp.Mul(this=below.copy(), expression=above.copy()), expression=integer(2))
    squares = [exp.Mul(this=side, expression=side.copy()) for side in (below, above)]
    made: list[exp.Expression] = [squares[0], both, squares[1]]
    return made if plan.unit.per_row else [_weighed(part, plan) for part in made]


def _total(name: str, addend: Count | Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression:
    if isinstance(addend, Count) and plan.unit.per_row:
        return exp.Count(this=exp.Star() if addend.value is None else expression(addend.value))
    if isinstance(addend, Sum) and plan.unit.per_row and addend.offset:
        # the sum of x - c is the sum of x less c times their number, in integers: nothing is computed for each row
        steps = _contribution(name, replace(addend, offset=0), plan, stored)
        total = exp.Coalesce(this=exp.Sum(this=steps), expressions=[integer(0)])
        always = isinstance(addend.value, Column) and not addend.value.nullable and is_as_pinned(plan.source)
        there = exp.Count(this=exp.Star() if always else steps.copy())
        taken = exp.Mul(this=exp.cast(there, exp.DataType.Type.INT128), expression=integer(addend.offset))
        return exp.Paren(this=exp.Sub(this=total, expression=taken))
    return exp.Coalesce(this=exp.Sum(this=_contribution(name, addend, plan, stored)), expressions=[integer(0)])


def _weight(plan: BoundedPlan) -> exp.Expression:
    """A row's weight, in steps of a person's count."""
    if is_as_pinned(plan.source):
        return exp.column(WEIGHT, quoted=True)
    return _weighed(integer(1 << -ROW_WEIGHT_EXPONENT), plan)


def _contribution(name: str, addend: Count | Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression:
    """What one row adds; nothing where its value is NULL."""
    if isinstance(addend, Count):
        if addend.value is None:
            return _weight(plan)
        there = exp.Not(this=exp.Is(this=expression(addend.value), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=there, true=_weight(plan))], default=integer(0))
    ready = _ready(addend, plan, stored)
    if ready is not None:
        return ready
    steps = _less(_held_steps(name, addend), addend.offset)
    return steps if plan.unit.per_row else _weighed(steps, plan)


def _ready(addend: Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression | None:
    """The contribution to a sum, if the snapshot has it as a column."""
    if not isinstance(addend.value, Column) or not is_as_pinned(plan.source):
        return None
    column, grid = addend.value.name, addend.grid
    if stored.get(column) != grid:
        return None
    if addend.offset == 0 or plan.unit.per_row:
        return _less(exp.column(STEPS + column, quoted=True), addend.offset)
    return exp.column(CENTRED + column, quoted=True) if addend.offset == grid.middle else None


def _held_steps(name: str, quantity: Valued) -> exp.Expression:
    """A computed value on its grid, clamped to its bounds; NULL stays NULL."""
    low, high = double(float(quantity.grid.lower)), double(float(quantity.grid.upper))
    held = held_to(exp.column(ROUNDED + name, quoted=True), low, high)  # before the cast: it cannot overflow
    return exp.TryCast(this=held, to=exp.DataType.build("BIGINT"))


def _less(steps: exp.Expression, offset: int) -> exp.Expression:
    return exp.Paren(this=exp.Sub(this=steps, expression=integer(offset))) if offset else steps


def _weighed(steps: exp.Expression, plan: BoundedPlan) -> exp.Expression:
    """A row weighs numerator/held, and rounds toward zero: integer division truncates."""
    held, most = held_column(plan), extent(plan.source).numerator
    wide = exp.cast(exp.Paren(this=steps.copy()), exp.DataType.Type.INT128)
    most_of_it = exp.Paren(this=exp.Mul(this=wide, expression=integer(most)))
    whole = exp.IntDiv(this=most_of_it, expression=held.copy())
    return exp.Case(ifs=[exp.If(this=exp.LTE(this=held, expression=integer(most)), true=steps)], default=whole)
