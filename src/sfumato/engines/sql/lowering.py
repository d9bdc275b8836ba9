"""BoundedPlan -> SQL: bound contributions, filter, quantise, clamp, add up. Part of the trusted perimeter.

Only trees built here, in row_totals.py, source_sql.py and scalars.py reach an engine: names come from the catalog,
values are literals, and every function is total.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from sfumato.engines.measured_cells import Added
from sfumato.engines.sql.function_sql import DOUBLE, TEXT, lower_double
from sfumato.engines.sql.row_totals import (
    Stored,
    Valued,
    add_up,
    clamp_steps,
    lacks_steps,
    lower_totals,
    lower_weight,
    quantise,
    subtract,
)
from sfumato.engines.sql.scalars import (
    lower_expression,
    lower_integer,
    lower_literal,
    lower_match,
    name_column,
    read_column,
    round_half_up,
    write_real,
)
from sfumato.engines.sql.selection_order import number_unit, place_pair
from sfumato.engines.sql.source_sql import lower_from
from sfumato.ingest.hidden_names import (
    BIN,
    DIFFERENT,
    KEY,
    NUMBER,
    OF_UNITS,
    PAIRS,
    ROUNDED,
    SCALED,
    UNIT,
    UNIT_NUMBER,
)
from sfumato.kernel.expressions import Column, Expression, collect_columns, may_be_negative_zero
from sfumato.kernel.plan import (
    KEY_WEIGHT_EXPONENT,
    BoundedPlan,
    Choice,
    Count,
    Different,
    DistinctSum,
    Factor,
    Key,
    Mode,
    Pivot,
    Products,
    Split,
    Strategy,
    Sum,
    WeightedKeys,
    take_part,
)
from sfumato.kernel.released_steps import number_conditions

HELD_KEYS = "held_keys"  # how many keys a unit has, before at most g of them are kept
Measured = Count | Sum | Split | Factor | Pivot | Strategy | Choice  # what has a value


def lower(plan: BoundedPlan, stored: Stored) -> exp.Expression:
    """The query that adds up: key values first, then the integers of each measurement, as `list_addends` has them.

    `stored` says which columns the snapshot holds ready. With undeclared keys, the result has only keys that at least
    one unit is counted for, and the number of these units before the integers.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    named = [(measurement.name, measurement.quantity) for measurement in plan.measurements]
    added = {name: quantity for name, quantity in named if isinstance(quantity, Added)}
    measured = {name: part for whole, quantity in added.items() for name, part in _list_measured(whole, quantity)}
    parts = {name: part if isinstance(part, Factor) else take_part(part) for name, part in measured.items()}
    valued = {name: part for name, part in parts.items() if isinstance(part, Valued)}
    computed = {name: part for name, part in valued.items() if lacks_steps(part, plan, stored)}
    numbered = {name: quantity for name, quantity in added.items() if isinstance(quantity, Pivot)}
    totals = [
        name_column(total, name if quantity.width == 1 else f"{name}.{place}")
        for name, quantity in added.items()
        for place, total in enumerate(lower_totals(name, quantity, plan, stored))
    ]
    if computed or numbered:
        query, keys = _round_values(plan, measured.values(), computed, numbered), _read_keys(plan)
    else:
        query, keys = _filter(plan, measured.values()), _name_keys(plan)
    query = query.select(*keys, *totals, copy=False).group_by(*_read_keys(plan), copy=False)
    units = [] if plan.holds_pairs else [exp.column("units", "named")]  # else `lower_people` has the pairs, apart
    return query if plan.cells is not None else _keep_counted_keys(plan, query, units)


def lower_bins(plan: BoundedPlan, name: str, choice: Choice) -> exp.Expression:
    """The query of one choice: key values, the bin, and the weight of the rows in it.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    weight = exp.Count(this=exp.Star()) if plan.unit.per_row else exp.Sum(this=lower_weight(plan))
    if isinstance(choice, Mode):
        query = _filter(plan, [choice]).select(*_name_keys(plan), exp.alias_(_lower_key(choice.value), BIN))
    else:
        query = _round_values(plan, [choice], {name: choice})
        query = query.select(*_read_keys(plan), exp.alias_(clamp_steps(name, choice), BIN))
    query = query.select(exp.alias_(weight, "weight")).group_by(*_read_keys(plan), exp.column(BIN))
    return query if plan.cells is not None else _keep_counted_keys(plan, query, [])


def lower_people(plan: BoundedPlan) -> exp.Select:
    """The query that counts units: key values, units. A unit is in at most g cells, those least by a hash.

    Where keys are weighed, it has the sum of the units' weights instead; in two rounds, the list of the units.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35 (widths of integers).
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    inside = _filter(plan, []).select(*_name_keys(plan))
    units: exp.Expression = exp.Count(this=exp.Star())
    if plan.holds_pairs:
        units = exp.ArrayAgg(this=exp.column("unit"))
    elif any(isinstance(measurement.quantity, WeightedKeys) for measurement in plan.measurements):
        units = exp.cast(exp.Sum(this=_weigh_key(plan)), exp.DataType.build("BIGINT"))
    counted = exp.select(*_read_keys(plan), exp.alias_(units, "units"))
    if plan.keys:
        counted = counted.group_by(*_read_keys(plan))
    if plan.unit.per_row:
        rows = inside.select(exp.alias_(lower_integer(1), "one"))
        rows = rows if plan.cells is not None else _keep_declared(rows, _read_keys(plan), plan.keys)
        return counted.from_(rows.subquery("inside"))
    texts = [exp.cast(column, TEXT) for column in _read_keys(plan)]
    declared = _select_held(plan, inside.distinct())
    columns = [*_read_keys(plan), *([exp.column("unit")] if plan.holds_pairs else [])]
    return _keep_least(counted, declared, columns, texts, [], most=plan.max_groups_per_unit)


def lower_held_keys(plan: BoundedPlan) -> exp.Select:
    """The query of keys and the units that hold them, as often as they occur.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Checked by: tests/engines/test_text_counts.py::test_the_counts_are_those_of_one_query
    """
    return _select_held(plan, _filter(plan, []).select(*_name_keys(plan)))


def _select_held(plan: BoundedPlan, inside: exp.Select) -> exp.Select:
    """Keys and units. Undeclared values of declared keys are left out: they must not use up the g cells."""
    return _keep_declared(inside.select(exp.alias_(read_column(UNIT), "unit")), _read_keys(plan), plan.keys)


def _weigh_key(plan: BoundedPlan) -> exp.Expression:
    """The weight of one of a unit's n keys, find_weight(n). Doubles are exact enough (docs/claims/K-74.md)."""
    held = exp.Least(this=exp.column(HELD_KEYS), expressions=[lower_integer(plan.max_groups_per_unit)])
    whole = lower_double(2.0**-KEY_WEIGHT_EXPONENT)
    share = exp.Div(this=whole, expression=exp.Sqrt(this=exp.cast(held, DOUBLE)), typed=False, safe=False)
    return exp.cast(exp.Floor(this=share), exp.DataType.build("BIGINT"))


def lower_different(plan: BoundedPlan, quantity: Different) -> exp.Expression:
    """The query of different values: key values, and their number or their sum. A person keeps at most `reach` pairs.

    Claim: K-26. The SQL computes what the plan's operators say, and no data can make it fail.
    Requires: a snapshot as ingest/pinned_rows.py writes it.
    Relies on: K-24, K-35, K-64.
    Checked by: tests/neighbours/test_distinct.py::test_no_neighbour_moves_more_different_values
    """
    keys, names = (*plan.keys, *quantity.keys), [f"{DIFFERENT}{place}" for place in range(len(quantity.keys))]
    columns = [*_read_keys(plan), *(exp.column(name) for name in names)]
    values = [exp.alias_(_lower_key(key.expression), name) for key, name in zip(quantity.keys, names, strict=True)]
    pairs = _filter(plan, [], quantity.keys).select(*_name_keys(plan), *values).distinct()
    if plan.unit.per_row:
        kept = _keep_declared(pairs, columns, keys)
    else:
        doubles = [may_be_negative_zero(key.expression) for key in keys]
        texts = [
            write_real(column) if double else exp.cast(column, TEXT)
            for column, double in zip(columns, doubles, strict=True)
        ]
        last = [column for column, double in zip(columns, doubles, strict=True) if double]  # far ones have one text
        declared = _keep_declared(pairs.select(exp.alias_(read_column(UNIT), "unit")), columns, keys)
        kept = _keep_least(exp.select(*columns).distinct(), declared, columns, texts, last, most=plan.reach)
    number: exp.Expression = exp.Count(this=exp.Star())
    if isinstance(quantity, DistinctSum):
        number = add_up(subtract(quantise(columns[-1], quantity.grid), quantity.offset))
    query = exp.select(*_read_keys(plan), exp.alias_(number, "different")).from_(kept.subquery("kept"))
    query = query.group_by(*_read_keys(plan)) if plan.keys else query
    return _keep_counted_keys(plan, query, []) if plan.cells is None else query


def _keep_declared(inside: exp.Select, columns: Iterable[exp.Expression], keys: Iterable[Key]) -> exp.Select:
    """The rows in which every key has a value: of its list, where it has one, and never NULL where it has none."""
    declared = exp.select("*").from_(inside.subquery("inside"))
    for column, key in zip(columns, keys, strict=True):
        null = exp.Is(this=column, expression=exp.Null())
        values = None if key.values is None else [lower_literal(value) for value in key.values]
        declared = declared.where(exp.Not(this=null) if values is None else exp.In(this=column, expressions=values))
    return declared


def _keep_least(
    query: exp.Select,
    rows: exp.Select,
    columns: Sequence[exp.Expression],
    texts: Sequence[exp.Expression],
    last: Sequence[exp.Expression],
    *,
    most: int,
) -> exp.Select:
    """Select from at most so many rows of each unit: those least by `place_pair`, by texts, by `last`.

    Only the rows of units that have more are sorted. The number of a unit's rows is the column HELD_KEYS. The names
    of tables have the number of texts: Spark moves those of keys and of their different values to one place.
    """
    unit, held, pairs = exp.column("unit"), exp.column(HELD_KEYS), f"{PAIRS}_{len(texts)}"
    order = [place_pair(texts, exp.column(UNIT_NUMBER)), *texts, *last]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[unit],
        order=exp.Order(expressions=[exp.Ordered(this=term) for term in order]),
    )
    counted = exp.Count(this=exp.Star())
    too_many = exp.GT(this=counted.copy(), expression=lower_integer(most))
    number = exp.Case(ifs=[exp.If(this=too_many, true=number_unit(unit.copy()))])
    held_by_unit = exp.select("unit", exp.alias_(counted, HELD_KEYS), exp.alias_(number, UNIT_NUMBER))
    held_by_unit = held_by_unit.from_(pairs).group_by("unit")
    both = exp.select("*").from_(pairs).join(f"{OF_UNITS}_{len(texts)}", using=["unit"], join_type="inner")
    few = both.where(exp.LTE(this=held, expression=lower_integer(most)))
    many = both.where(exp.GT(this=held.copy(), expression=lower_integer(most)))
    ranked = exp.select("*", exp.alias_(place, "place")).from_(many.subquery("many")).subquery("ranked")
    within = exp.LTE(this=exp.column("place"), expression=lower_integer(most))
    wanted = [*columns, held.copy()]
    kept = exp.union(
        exp.select(*wanted).from_(few.subquery("few")),
        exp.select(*(column.copy() for column in wanted)).from_(ranked).where(within),
        distinct=False,
    )
    query = query.from_(kept.subquery("kept")).with_(pairs, as_=rows, materialized=True)
    return query.with_(f"{OF_UNITS}_{len(texts)}", as_=held_by_unit, materialized=True)


def _keep_counted_keys(plan: BoundedPlan, query: exp.Select, units: Sequence[exp.Expression]) -> exp.Select:
    """The rows of a query whose keys count at least one unit: at most g keys of each unit."""
    names = [column.name for column in _read_keys(plan)]
    others = [column.alias_or_name for column in query.expressions if column.alias_or_name not in names]
    same = [exp.EQ(this=exp.column(name, "found"), expression=exp.column(name, "named")) for name in names]
    keys = [exp.column(name, "named") for name in names]
    kept = exp.select(*keys, *units, *(read_column(name, "found") for name in others))
    kept = kept.from_(lower_people(plan).subquery("named"))
    return kept.join(query.subquery("found"), on=exp.and_(*same), join_type="inner")


def _round_values(
    plan: BoundedPlan,
    measured: Iterable[Measured],
    computed: Mapping[str, Valued],
    numbered: Mapping[str, Pivot] | None = None,
) -> exp.Select:
    """Rows with computed values on their grids: each value is computed once, rounded once, and only then clamped.

    The rows of a pivot have the number of their condition.
    """
    inner = _filter(plan, measured).select(*_name_keys(plan), exp.Star())
    for name, quantity in computed.items():
        step = lower_double(2.0**-quantity.grid.exponent)
        scaled = exp.Mul(this=lower_expression(quantity.value), expression=step)
        inner = inner.select(name_column(scaled, SCALED + name), copy=False)
    for name, pivot in (numbered or {}).items():
        number = lower_expression(number_conditions(pivot.conditions).expression)
        inner = inner.select(name_column(number, NUMBER + name), copy=False)
    whole = [name_column(round_half_up(read_column(SCALED + name)), ROUNDED + name) for name in computed]
    return exp.Select().from_(exp.select(exp.Star(), *whole).from_(inner.subquery("scaled")).subquery("rounded"))


def _filter(plan: BoundedPlan, measured: Iterable[Measured], keys: Iterable[Key] = ()) -> exp.Select:
    """FROM and WHERE, with the columns that measurements and keys read."""
    quantities = list(measured)
    read = [quantity.value for quantity in quantities if quantity.value is not None]
    read += [key.expression for key in (*plan.keys, *keys)]
    read += [condition for quantity in quantities if isinstance(quantity, Pivot) for condition in quantity.conditions]
    needed = set[str]().union(*map(collect_columns, (*read, *plan.filters))) - {UNIT}  # every source has it
    query = exp.Select().from_(lower_from(plan, needed), copy=False)
    return query.where(*map(lower_expression, plan.filters), copy=False)


def _list_measured(name: str, quantity: Added) -> list[tuple[str, Measured]]:
    """What an added quantity reads of a row, with a name for each."""
    if isinstance(quantity, Products):
        return [(f"{name}.{place}", factor) for place, factor in enumerate(quantity.factors)]
    return [(name, quantity)]


def _read_keys(plan: BoundedPlan) -> list[exp.Expression]:
    return [exp.column(f"{KEY}{index}") for index in range(len(plan.keys))]


def _name_keys(plan: BoundedPlan) -> list[exp.Expression]:
    names = [exp.to_identifier(f"{KEY}{index}") for index in range(len(plan.keys))]
    return [exp.Alias(this=_lower_key(key.expression), alias=name) for key, name in zip(plan.keys, names, strict=True)]


def _lower_key(node: Expression) -> exp.Expression:
    """What to group by: a column as it is stored."""
    if isinstance(node, Column) and not may_be_negative_zero(node):
        return read_column(node.name)
    return lower_match(node)
