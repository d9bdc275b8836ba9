"""What the rows add to each total, as SQL: steps on a grid, clamped, weighed and added up.

Part of the trusted perimeter: claim K-26.
"""

from collections.abc import Mapping
from functools import reduce
from typing import assert_never

from sqlglot import exp

from sfumato.engines.measured_cells import Added, list_addends
from sfumato.engines.sql.function_sql import DOUBLE, lower_double
from sfumato.engines.sql.scalars import (
    INT128,
    clamp,
    clamp_to_ends,
    lower_expression,
    lower_integer,
    read_column,
    round_half_up,
)
from sfumato.engines.sql.source_sql import is_as_pinned, read_held
from sfumato.ingest.hidden_names import NUMBER, ROUNDED, STEPS
from sfumato.kernel.expressions import Column
from sfumato.kernel.plan import (
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Count,
    Curve,
    Extreme,
    Factor,
    Grid,
    Halves,
    Pivot,
    Products,
    Quantiles,
    Split,
    Strategy,
    Sum,
    Thirds,
)
from sfumato.kernel.row_sources import derive_extent
from sfumato.kernel.split_sums import find_middle

Stored = Mapping[str, Grid]  # the numeric columns that the snapshot holds in steps, and their grids
Valued = Sum | Split | Factor | Quantiles | Extreme  # what has a value on a grid


def lower_totals(name: str, quantity: Added, plan: BoundedPlan, stored: Stored) -> list[exp.Expression]:
    """What the engine adds up for a quantity: its parts, or the sums of `list_addends`."""
    match quantity:
        case Thirds() | Curve():
            return [add_up(part) for part in _split(quantity, clamp_steps(name, quantity), plan)]
        case Products():
            return [add_up(_multiply(name, quantity, term, plan)) for term in quantity.terms]
        case Count() | Sum() | Halves():
            addends = list_addends(quantity, plan)
            return [_lower_total(name, addend, plan, stored) for addend in addends]
        case Strategy(part):
            return lower_totals(name, part, plan, stored)
        case Pivot(part, conditions):
            totals = lower_totals(name, part, plan, stored)
            return [_restrict(total, name, place) for place in range(len(conditions)) for total in totals]
        case _:
            assert_never(quantity)


def _restrict(total: exp.Expression, name: str, place: int) -> exp.Expression:
    """The same total over the rows of one condition of a pivot."""
    here = exp.EQ(this=read_column(NUMBER + name), expression=lower_integer(place))

    def filter_rows(node: exp.Expression) -> exp.Expression:
        added_up = isinstance(node, exp.Sum | exp.Count)
        return exp.Filter(this=node, expression=exp.Where(this=here.copy())) if added_up else node

    return total.transform(filter_rows)


def _multiply(name: str, products: Products, term: tuple[int, ...], plan: BoundedPlan) -> exp.Expression:
    """What one row adds to a term: no product of steps, in this order, is larger than its bounds."""
    steps = [clamp_steps(f"{name}.{place}", products.factors[place]) for place in term]
    multiplier, most = products.find_multiplier(term), max(map(abs, products.find_bounds(term)))
    factors = steps if steps and multiplier == 1 else [*steps, lower_integer(multiplier)]
    product = reduce(lambda one, two: exp.Mul(this=one, expression=two), factors)
    return product if plan.unit.per_row else _weigh(product, plan, most)


def _split(quantity: Thirds | Curve, steps: exp.Expression, plan: BoundedPlan) -> list[exp.Expression]:
    """The parts of one row (docs/claims/K-37.md): at most 2**30 each."""
    if isinstance(quantity, Curve):
        middle, _, half = find_middle(quantity.grid, per_row=True)
        away = subtract(steps, middle)
        return [exp.Mul(this=away, expression=lower_integer(half)), exp.Mul(this=away.copy(), expression=away.copy())]
    above = exp.Paren(this=exp.Sub(this=steps, expression=lower_integer(quantity.grid.lower)))
    below = exp.Paren(this=exp.Sub(this=lower_integer(quantity.grid.upper), expression=steps.copy()))
    both = exp.Mul(this=exp.Mul(this=below.copy(), expression=above.copy()), expression=lower_integer(2))
    least, most = (exp.Mul(this=side, expression=side.copy()) for side in (below, above))
    parts: list[exp.Expression] = [least, both, most]
    return parts if plan.unit.per_row else [_weigh(part, plan, quantity.grid.span**2) for part in parts]


def _lower_total(name: str, addend: Count | Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression:
    if isinstance(addend, Count) and plan.unit.per_row:
        return exp.Count(this=exp.Star() if addend.value is None else lower_expression(addend.value))
    return add_up(_contribute(name, addend, plan, stored))


def add_up(steps: exp.Expression) -> exp.Expression:
    """The sum over all rows; 0 of no rows."""
    return exp.Coalesce(this=exp.Sum(this=steps), expressions=[lower_integer(0)])


def _contribute(name: str, addend: Count | Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression:
    """What one row adds; nothing if its value is NULL."""
    if isinstance(addend, Count):
        if addend.value is None:
            return lower_weight(plan)
        there = exp.Not(this=exp.Is(this=lower_expression(addend.value), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=there, true=lower_weight(plan))], default=lower_integer(0))
    steps = subtract(_find_steps(addend, plan, stored) or clamp_steps(name, addend), addend.offset)
    most = max(abs(end - addend.offset) for end in (addend.grid.lower, addend.grid.upper))
    return steps if plan.unit.per_row else _weigh(steps, plan, most)


def lower_weight(plan: BoundedPlan) -> exp.Expression:
    """A row's weight, in steps of a person's count."""
    return _weigh(lower_integer(1 << -ROW_WEIGHT_EXPONENT), plan, 1 << -ROW_WEIGHT_EXPONENT)


def lacks_steps(quantity: Valued, plan: BoundedPlan, stored: Stored) -> bool:
    """Must its steps be computed from its value for each row? Those of a plain column may be in the snapshot."""
    if not isinstance(quantity, Sum | Halves):
        return True
    total = list_addends(quantity, plan)[0]
    return isinstance(total, Sum) and _find_steps(total, plan, stored) is None


def _find_steps(addend: Sum, plan: BoundedPlan, stored: Stored) -> exp.Expression | None:
    """The steps of a value, if the snapshot has them as a column. Narrower ends are clamped to."""
    column, grid = addend.value, addend.grid
    wide = stored.get(column.name) if isinstance(column, Column) and is_as_pinned(plan.source) else None
    if not isinstance(column, Column) or wide is None or wide.exponent != grid.exponent:
        return None
    low = lower_integer(grid.lower) if grid.lower > wide.lower else None
    high = lower_integer(grid.upper) if grid.upper < wide.upper else None
    return clamp_to_ends(read_column(STEPS + column.name), low, high)


def clamp_steps(name: str, quantity: Valued) -> exp.Expression:
    """A computed value on its grid, clamped before the cast, so that the cast cannot overflow; NULL stays NULL."""
    clamped = clamp(read_column(ROUNDED + name), quantity.grid.lower, quantity.grid.upper)
    return exp.TryCast(this=clamped, to=exp.DataType.build("BIGINT"))


def quantise(value: exp.Expression, grid: Grid) -> exp.Expression:
    """A number on a grid, clamped before the cast."""
    scaled = exp.Paren(this=exp.Mul(this=exp.cast(value, DOUBLE), expression=lower_double(2.0**-grid.exponent)))
    steps = clamp(round_half_up(scaled), grid.lower, grid.upper)
    return exp.TryCast(this=steps, to=exp.DataType.build("BIGINT"))


def subtract(steps: exp.Expression, offset: int) -> exp.Expression:
    return exp.Paren(this=exp.Sub(this=steps, expression=lower_integer(offset))) if offset else steps


def _weigh(steps: exp.Expression, plan: BoundedPlan, most_steps: int) -> exp.Expression:
    """A row weighs numerator/held, and rounds toward zero: integer division truncates."""
    numerator = derive_extent(plan.source).numerator
    held, most = read_held(plan), lower_integer(numerator)
    fits = is_as_pinned(plan.source) and most_steps * numerator < 1 << 63  # dividing narrower integers is faster
    wide = exp.cast(exp.Paren(this=steps.copy()), exp.DataType.build("BIGINT") if fits else INT128)
    whole = exp.IntDiv(this=exp.Paren(this=exp.Mul(this=wide, expression=most)), expression=held.copy())
    return exp.Case(ifs=[exp.If(this=exp.LTE(this=held, expression=most.copy()), true=steps)], default=whole)
