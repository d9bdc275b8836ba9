"""Source -> SQL: joins on the person, unions, rows per person; each row with its unit and what its weight divides by.

Part of the trusted perimeter, with lowering.py: claim K-26.
"""

from typing import TypeGuard, assert_never

from sqlglot import exp

from sfumato.engines.sql.scalars import double, expression, held_to, integer, matched, rounded, table
from sfumato.errors import KernelFault
from sfumato.ingest.hidden_names import HELD, MET, ROWS_OF_UNIT, UNIT
from sfumato.kernel.expressions import Expression, Literal, columns_of
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.row_sources import (
    Derived,
    Join,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
    UnitColumn,
    extent,
)

MOST_ADDED = 1 << 53  # of a unit's own total, in steps: beyond any bound, and a double


def is_as_pinned(source: Source) -> TypeGuard[Scan]:
    """Is it one table as the snapshot holds it, with names and weights that are ready?"""
    return isinstance(source, Scan) and not source.prefix and source.most_met is None


def from_clause(plan: BoundedPlan, needed: set[str]) -> exp.Expression:
    """What a plan selects from: a table as it is pinned, or a subquery whose rows have a unit and HELD."""
    if is_as_pinned(plan.source):
        return table(plan.source.table)
    return _Relations(per_row=plan.unit.per_row).select(plan.source, needed).subquery("source")


def held_column(plan: BoundedPlan) -> exp.Expression:
    """The column that weights divide by; a row whose value there is at most the numerator weighs 1."""
    return exp.column(ROWS_OF_UNIT if is_as_pinned(plan.source) else HELD, quoted=True)


class _Relations:
    """Writes sources as nested SELECTs; rows of a row unit have neither a unit nor a weight."""

    def __init__(self, *, per_row: bool) -> None:
        self.per_row = per_row

    def select(self, source: Source, needed: set[str]) -> exp.Select:
        match source:
            case Scan():
                return self._scan(source, needed)
            case PublicScan(name, _, prefix):
                return _something(exp.select(*_prefixed(needed, prefix))).from_(table(name))
            case Derived(inner, filters, columns):
                return self._derived(inner, filters, columns, needed)
            case Join():
                return self._join(source, needed)
            case Union(parts):
                return self._union(source, parts, needed)
            case PerUnit(inner, filters, columns):
                return self._per_unit(inner, filters, columns, needed)
            case _:
                assert_never(source)

    def _scan(self, scan: Scan, needed: set[str]) -> exp.Select:
        query = exp.select(*_prefixed(needed, scan.prefix)).from_(table(scan.table))
        if self.per_row:
            return _something(query)
        rows: exp.Expression = exp.column(ROWS_OF_UNIT, quoted=True)
        if scan.most_met is not None:
            rows = _function("LEAST", rows, integer(scan.most_met))
            query = query.where(exp.column(MET, quoted=True))
        held = _function("GREATEST", rows, integer(scan.max_rows))
        return query.select(exp.column(UNIT, quoted=True), _as(held, HELD))

    def _inside(self, inner: Source, filters: tuple[Expression, ...], read: set[str]) -> exp.Select:
        """The inner source, filtered, as something to select from."""
        wanted = read.union(*(columns_of(condition) for condition in filters))
        query = exp.Select().from_(self.select(inner, wanted).subquery("inside"))
        for condition in filters:
            query = query.where(expression(condition))
        return query

    def _derived(
        self,
        inner: Source,
        filters: tuple[Expression, ...],
        columns: tuple[tuple[str, Expression], ...],
        needed: set[str],
    ) -> exp.Select:
        kept = [(name, value) for name, value in columns if name in needed]
        query = self._inside(inner, filters, set().union(*(columns_of(value) for _, value in kept)))
        query = query.select(*(_as(expression(value), name) for name, value in kept))
        if not self.per_row and extent(inner).private:
            query = query.select(exp.column(UNIT, quoted=True), exp.column(HELD, quoted=True))
        return _something(query)

    def _join(self, join: Join, needed: set[str]) -> exp.Select:
        sides = [set().union(*(columns_of(pair[side]) for pair in join.on)) for side in (0, 1)]
        query = exp.select(*(exp.column(name, quoted=True) for name in sorted(needed)))
        query = query.from_(self.select(join.left, {*sides[0], *extent(join.left).find_columns(needed)}).subquery("l"))
        on = [exp.EQ(this=matched(one), expression=matched(two)) for one, two in join.on]
        if join.multiplicity is None:
            on.append(exp.EQ(this=_text(UNIT, "l"), expression=_text(UNIT, "r")))
        other = self.select(join.right, {*sides[1], *extent(join.right).find_columns(needed)}).subquery("r")
        query = query.join(other, on=exp.and_(*on), join_type="left" if join.outer else "inner")
        if self.per_row:
            return _something(query)
        return query.select(exp.column(UNIT, "l", quoted=True), _as(self._held_by_both(join), HELD))

    def _held_by_both(self, join: Join) -> exp.Expression:
        mine = exp.column(HELD, "l", quoted=True)
        if join.multiplicity is not None:
            return mine
        theirs = exp.Coalesce(
            this=exp.column(HELD, "r", quoted=True), expressions=[integer(extent(join.right).numerator)]
        )
        return exp.Mul(this=exp.cast(mine, exp.DataType.Type.INT128), expression=theirs)

    def _union(self, union: Union, parts: tuple[Source, ...], needed: set[str]) -> exp.Select:
        names = sorted(needed)
        whole = extent(union).numerator
        selects = []
        for part in parts:
            query = exp.Select().from_(self.select(part, needed).subquery("part"))
            query = query.select(*(exp.column(name, quoted=True) for name in names))
            if not self.per_row:
                mine = exp.cast(exp.column(HELD, quoted=True), exp.DataType.Type.INT128)
                more = exp.Mul(this=mine, expression=integer(whole // extent(part).numerator))
                query = query.select(_as(_text(UNIT), UNIT), _as(more, HELD))
            selects.append(_something(query))
        both: exp.Query = selects[0]
        for select in selects[1:]:
            both = exp.union(both, select, distinct=False)
        return exp.select("*").from_(both.subquery("parts"))

    def _per_unit(
        self, inner: Source, filters: tuple[Expression, ...], columns: tuple[UnitColumn, ...], needed: set[str]
    ) -> exp.Select:
        if self.per_row:
            raise KernelFault("Rows that are people are not added up for each person.")
        kept = [column for column in columns if column.name in needed]
        read = set().union(*(columns_of(column.value) for column in kept if column.value is not None))
        query = self._inside(inner, filters, read)
        unit = exp.column(UNIT, quoted=True)
        query = query.select(unit, _as(integer(1), HELD), *(_as(_of_unit(column), column.name) for column in kept))
        return query.group_by(unit.copy())


def _prefixed(needed: set[str], prefix: str) -> list[exp.Expression]:
    return [
        _as(exp.column(name.removeprefix(prefix), quoted=True), name)
        for name in sorted(needed)
        if name.startswith(prefix)
    ]


def _something(query: exp.Select) -> exp.Select:
    """A SELECT of at least one column: rows may be counted, and nothing of them be read."""
    return query if query.expressions else query.select(_as(integer(1), "one"))


def _as(value: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _function(name: str, *arguments: exp.Expression) -> exp.Expression:
    """GREATEST and LEAST as the engine has them: a NULL among their arguments is ignored."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(name: str, of: str | None = None) -> exp.Expression:
    """A unit as text: tables may hold the same people's ids as numbers and as texts."""
    return exp.cast(exp.column(name, of, quoted=True), exp.DataType.Type.TEXT)


def _of_unit(column: UnitColumn) -> exp.Expression:
    """An aggregate over one unit's rows, as a double; NULL where the unit has no value, but for a count."""
    if column.function == "count":
        value = expression(column.value) if column.value is not None and not isinstance(column.value, Literal) else None
        counted = exp.Count(this=exp.Star() if value is None else value)
        return exp.cast(_function("LEAST", counted, integer(column.upper)), exp.DataType.Type.DOUBLE)
    if column.value is None:
        raise KernelFault("An aggregate over a unit's rows needs a value.")
    scaled = exp.Paren(this=exp.Mul(this=expression(column.value), expression=double(2.0**-column.exponent)))
    step = double(2.0**column.exponent)
    if column.function in ("min", "max"):
        least = exp.Min if column.function == "min" else exp.Max
        low, high = double(float(column.lower)), double(float(column.upper))
        return exp.Mul(this=least(this=held_to(rounded(scaled), low, high)), expression=step)
    bounds = double(-float(MOST_ADDED)), double(float(MOST_ADDED))
    steps = exp.TryCast(this=held_to(rounded(scaled), *bounds), to=exp.DataType.build("BIGINT"))
    most = (column.lower, column.upper) if column.function == "sum" else (-MOST_ADDED, MOST_ADDED)
    total = _function("LEAST", _function("GREATEST", exp.Sum(this=steps), integer(most[0])), integer(most[1]))
    there = exp.Count(this=expression(column.value))
    added: exp.Expression = exp.cast(total, exp.DataType.Type.DOUBLE)
    if column.function == "avg":
        added = exp.Div(this=added, expression=exp.cast(there, exp.DataType.Type.DOUBLE), typed=False, safe=False)
    value = exp.Mul(this=exp.Paren(this=added), expression=step)
    none = exp.If(this=exp.EQ(this=there.copy(), expression=integer(0)), true=exp.Null())
    return exp.Case(ifs=[none], default=value)
