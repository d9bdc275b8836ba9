"""Source -> SQL: scans, joins on the unit, unions, and rows per unit. Part of the trusted perimeter: claim K-26.

Each source becomes one SELECT. Its columns are those of the needed columns that the source has. Unless each row is a
unit by itself, the rows of a private source also have their unit (UNIT) and the divisor of their weight (HELD).
"""

from collections.abc import Iterable
from typing import TypeGuard, assert_never

from sqlglot import exp

from sfumato.engines.sql.function_sql import DOUBLE, lower_double
from sfumato.engines.sql.scalars import (
    INT128,
    clamp,
    lower_expression,
    lower_integer,
    lower_match,
    name_column,
    read_column,
    read_table,
    read_text,
    round_half_up,
)
from sfumato.errors import KernelFault
from sfumato.ingest.hidden_names import HELD, MET, ROWS_OF_UNIT, UNIT
from sfumato.kernel.expressions import Expression, Literal, collect_columns
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.row_sources import (
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
    UnitColumn,
    derive_extent,
)

MOST_ADDED = 1 << 53  # of a unit's own total, in steps: beyond any bound, and a double


def is_as_pinned(source: Source) -> TypeGuard[Scan]:
    """Is it one table as the snapshot holds it? Then names and weights are ready."""
    return isinstance(source, Scan) and not source.prefix and source.most_met is None


def lower_from(plan: BoundedPlan, needed: set[str]) -> exp.Expression:
    """What a plan selects from: a pinned table, or a subquery whose rows have UNIT and HELD."""
    if is_as_pinned(plan.source):
        return read_table(plan.source.table)
    return lower_source(plan.source, needed, per_row=plan.unit.per_row).subquery("source")


def read_held(plan: BoundedPlan) -> exp.Expression:
    """The column that weights divide by. A row whose value there is at most the numerator weighs 1."""
    return read_column(ROWS_OF_UNIT if is_as_pinned(plan.source) else HELD)


def lower_source(source: Source, needed: set[str], *, per_row: bool) -> exp.Select:
    """The SELECT of a source. If no column of it is needed, it selects a constant: its rows may be counted."""
    query = _select(source, needed, per_row=per_row)
    return query if query.expressions else query.select(name_column(lower_integer(1), "one"))


def _select(source: Source, needed: set[str], *, per_row: bool) -> exp.Select:  # noqa: PLR0911 - one an operator
    match source:
        case Scan(name, prefix=prefix) | PublicScan(name, prefix=prefix):
            names = [column for column in sorted(needed) if column.startswith(prefix)]
            own = (name_column(read_column(column.removeprefix(prefix)), column) for column in names)
            query = exp.select(*own).from_(read_table(name))
            return query if per_row or isinstance(source, PublicScan) else _weigh_scan(query, source)
        case Derived(inner, filters, columns):
            kept = {name: value for name, value in columns if name in needed}
            query = _filter(inner, filters, kept.values(), per_row=per_row)
            query = query.select(*(name_column(lower_expression(value), name) for name, value in kept.items()))
            private = not per_row and derive_extent(inner).private
            return query.select(read_column(UNIT), read_column(HELD)) if private else query
        case Join():
            return _join(source, needed, per_row=per_row)
        case Union(parts):
            return _unite(parts, derive_extent(source).numerator, needed, per_row=per_row)
        case PerUnit(inner, filters, unit_columns):
            wanted = [column for column in unit_columns if column.name in needed]
            values = [column.value for column in wanted if column.value is not None]
            query = _filter(inner, filters, values, per_row=per_row)
            query = query.select(read_column(UNIT), name_column(lower_integer(1), HELD))
            query = query.select(*(name_column(_aggregate_unit(column), column.name) for column in wanted))
            return query.group_by(read_column(UNIT))
        case Capped(inner, most):
            if per_row:
                raise KernelFault("The rows of a row unit are not counted by unit.")
            return _cap(inner, most, needed)
        case PerKey():
            return _group_by_key(source, needed, per_row=per_row)
        case _:
            assert_never(source)


def _cap(inner: Source, most: int, needed: set[str]) -> exp.Select:
    """The rows of a source, with a new HELD: the number of the unit's rows there, and at least `most`.

    Rows are counted by a query of their own. A window would hold all of them in memory, and one person's rows of a join
    can be so many that it fails.
    """
    below, counted = (lower_source(inner, names, per_row=False) for names in (needed, set[str]()))
    rows = exp.select(read_column(UNIT), name_column(exp.Count(this=exp.Star()), ROWS_OF_UNIT))
    rows = rows.from_(counted.subquery("counted")).group_by(read_column(UNIT))
    names = [column.alias_or_name for column in below.expressions if column.alias_or_name in needed]
    query = exp.select(*(read_column(name, "inside") for name in names)).from_(below.subquery("inside"))
    same = exp.EQ(this=read_column(UNIT, "inside"), expression=read_column(UNIT, "units"))
    held = _call("GREATEST", read_column(ROWS_OF_UNIT, "units"), lower_integer(most))
    query = query.select(read_column(UNIT, "inside"), name_column(held, HELD))
    return query.join(rows.subquery("units"), on=same, join_type="inner")


def _group_by_key(source: PerKey, needed: set[str], *, per_row: bool) -> exp.Select:
    """One row for each unit and key. HELD: the number of the unit's rows here, and at least max_rows."""
    wanted = [column for column in source.columns if column.name in needed]
    read = [column.value for column in wanted if column.value is not None]
    read += [expression for _, expression in source.keys]
    query = _filter(source.source, source.filters, read, per_row=per_row)
    groups = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[read_column(UNIT)])
    held = _call("GREATEST", groups, lower_integer(source.max_rows))
    query = query.select(read_column(UNIT), name_column(held, HELD))
    query = query.select(*(name_column(lower_match(key), name) for name, key in source.keys if name in needed))
    query = query.select(*(name_column(_aggregate_unit(column), column.name) for column in wanted))
    return query.group_by(read_column(UNIT), *(lower_match(key) for _, key in source.keys))


def _weigh_scan(query: exp.Select, scan: Scan) -> exp.Select:
    """Add UNIT and HELD: the number of the unit's rows that are let in, and at least max_rows."""
    rows = read_column(ROWS_OF_UNIT)
    if scan.most_met is not None:
        rows = _call("LEAST", rows, lower_integer(scan.most_met))
        query = query.where(read_column(MET))
    held = _call("GREATEST", rows, lower_integer(scan.max_rows))
    return query.select(read_column(UNIT), name_column(held, HELD))


def _filter(inner: Source, filters: Iterable[Expression], read: Iterable[Expression], *, per_row: bool) -> exp.Select:
    """FROM the inner source, with the columns that are read, WHERE all filters hold."""
    needed = set[str]().union(*map(collect_columns, (*filters, *read))) - {UNIT}  # every private source has it
    query = exp.Select().from_(lower_source(inner, needed, per_row=per_row).subquery("inside"))
    return query.where(*map(lower_expression, filters))


def _join(join: Join, needed: set[str], *, per_row: bool) -> exp.Select:
    """Pairs of rows. Private rows are paired on their unit, whatever else is compared."""
    ones, others = (set[str]().union(*(collect_columns(pair[side]) for pair in join.on)) for side in (0, 1))
    left = lower_source(join.left, needed | ones, per_row=per_row)
    right = lower_source(join.right, needed | others, per_row=per_row)
    found = {column.alias_or_name for column in (*left.expressions, *right.expressions)}
    on = [exp.EQ(this=lower_match(one), expression=lower_match(two)) for one, two in join.on]
    held = read_column(HELD, "l")
    if join.multiplicity is None:
        on.append(exp.EQ(this=read_text(UNIT, "l"), expression=read_text(UNIT, "r")))
    if join.multiplicity is None and not join.meets_one:
        unmatched = lower_integer(derive_extent(join.right).numerator)  # it weighs 1
        theirs = exp.Coalesce(this=read_column(HELD, "r"), expressions=[unmatched])
        held = exp.Mul(this=exp.cast(held, INT128), expression=theirs)
    query = exp.select(*map(read_column, sorted(needed & found))).from_(left.subquery("l"))
    query = query.join(right.subquery("r"), on=exp.and_(*on), join_type="left" if join.outer else "inner")
    return query if per_row else query.select(read_column(UNIT, "l"), name_column(held, HELD))


def _unite(parts: tuple[Source, ...], numerator: int, needed: set[str], *, per_row: bool) -> exp.Select:
    """The rows of all parts, with their weights over one numerator."""
    selects = [lower_source(part, needed, per_row=per_row) for part in parts]
    names = sorted(needed & {column.alias_or_name for column in selects[0].expressions})
    united: list[exp.Select] = []
    for part, select in zip(parts, selects, strict=True):
        query = exp.select(*map(read_column, names)).from_(select.subquery("part"))
        if not per_row:
            times = lower_integer(numerator // derive_extent(part).numerator)
            held = exp.Mul(this=exp.cast(read_column(HELD), INT128), expression=times)
            query = query.select(name_column(read_text(UNIT), UNIT), name_column(held, HELD))
        united.append(query if query.expressions else query.select(name_column(lower_integer(1), "one")))
    columns = [read_column(column.alias_or_name) for column in united[0].expressions]
    return exp.select(*columns).from_(exp.union(*united, distinct=False).subquery("parts"))


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """GREATEST and LEAST as the engine has them: a NULL among their arguments is ignored."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _aggregate_unit(column: UnitColumn) -> exp.Expression:
    """An aggregate over one unit's rows, as a double, or as the day or moment that it is.

    It is NULL if the unit has no value, except for a count.
    """
    value, function = column.value, column.function
    if function in ("count", "distinct"):
        counted: exp.Expression = exp.Star() if value is None or isinstance(value, Literal) else lower_match(value)
        counted = exp.Distinct(expressions=[counted]) if function == "distinct" else counted
        return exp.cast(_call("LEAST", exp.Count(this=counted), lower_integer(column.upper)), DOUBLE)
    if value is None:
        raise KernelFault("An aggregate over a unit's rows needs a value.")
    if function in ("earliest", "latest"):
        return (exp.Min if function == "earliest" else exp.Max)(this=lower_expression(value))
    scaled = exp.Paren(this=exp.Mul(this=lower_expression(value), expression=lower_double(2.0**-column.exponent)))
    steps, step = round_half_up(scaled), lower_double(2.0**column.exponent)
    if function in ("min", "max"):
        outermost = (exp.Min if function == "min" else exp.Max)(this=clamp(steps, column.lower, column.upper))
        return exp.Mul(this=outermost, expression=step)
    total = exp.Sum(this=exp.TryCast(this=clamp(steps, -MOST_ADDED, MOST_ADDED), to=exp.DataType.build("BIGINT")))
    low, high = (column.lower, column.upper) if function == "sum" else (-MOST_ADDED, MOST_ADDED)
    clamped = _call("LEAST", _call("GREATEST", total, lower_integer(low)), lower_integer(high))
    added: exp.Expression = exp.cast(clamped, DOUBLE)
    there = exp.Count(this=lower_expression(value))
    if function == "avg":
        added = exp.Div(this=added, expression=exp.cast(there, DOUBLE), typed=False, safe=False)
    none = exp.If(this=exp.EQ(this=there.copy(), expression=lower_integer(0)), true=exp.Null())
    return exp.Case(ifs=[none], default=exp.Mul(this=exp.Paren(this=added), expression=step))
