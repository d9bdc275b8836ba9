"""A subquery in a condition on rows: its rows, and what its WHERE says about the outer row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.row_sources import derive_extent
from sfumato.query.relation import Relation
from sfumato.query.row_expressions import flatten
from sfumato.query.with_clause import CTEs

BindRows = Callable[[exp.Select, CTEs], Relation]
COMPARED: dict[type[exp.Expr], type[exp.Expr]] = {  # a comparison, and the same with its sides exchanged
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.NEQ: exp.NEQ,
}  # fmt: skip
EQUALITY = (
    "Write conditions of inner and outer columns, joined by AND: comparisons of columns of one outer table, and the "
    "person's id = the outer one."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """inner < outer, or another comparison than '='."""

    kind: type[exp.Expr]
    inner: exp.Expr
    outer: exp.Expr
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Links:
    """The conditions of a subquery's WHERE, by what they are about."""

    pairs: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)  # inner column = outer expression
    comparisons: list[Comparison] = field(default_factory=list)
    mixed: list[exp.Expr] = field(default_factory=list)  # about columns of both, other than one comparison
    inside: list[exp.Expr] = field(default_factory=list)  # about inner columns alone
    outside: list[exp.Expr] = field(default_factory=list)  # about the outer row alone


class SubqueryRows:
    """The rows of a subquery's FROM, before its conditions."""

    def __init__(self, select: exp.Select, bind_rows: BindRows, ctes: CTEs) -> None:
        self._bind_rows, self._ctes = bind_rows, ctes
        self.relation = self._bind_from(select)

    def _bind_from(self, select: exp.Select) -> Relation:
        probe = exp.Select(from_=select.args["from_"].copy(), expressions=[exp.Star()])
        probe.set("joins", [join.copy() for join in select.args.get("joins") or []])
        if select.args.get("with_") is not None:
            probe.set("with_", select.args["with_"].copy())
        if any(join.args.get("on") is None and not join.args.get("using") for join in probe.args["joins"]):
            probe.set("where", self._find_equalities(select, probe))
        return self._bind_rows(probe, self._ctes)

    def _find_equalities(self, select: exp.Select, probe: exp.Select) -> exp.Where | None:
        """FROM b, c WHERE b.id = c.id: the equalities in WHERE that link the tables."""
        items = [probe.args["from_"].this, *(join.this for join in probe.args["joins"])]
        relations = [self.bind_item(item, probe.args.get("with_")) for item in items]
        where = select.args.get("where")
        found = [
            condition.copy()
            for condition in ([] if where is None else _split_and(where.this))
            if isinstance(condition.unnest(), exp.EQ)
            and all(isinstance(side.unnest(), exp.Column) for side in condition.unnest().iter_expressions())
            and all(
                any(_has_column(relation, column) for relation in relations)
                for column in condition.find_all(exp.Column)
            )
        ]
        return exp.Where(this=exp.and_(*found)) if found else None

    def bind_item(self, item: exp.Expr, clause: exp.Expr | None = None) -> Relation:
        """The rows of one item of FROM, with the parts of WITH that it may name."""
        alone = exp.Select(from_=exp.From(this=item.copy()), expressions=[exp.Star()])
        alone.set("with_", None if clause is None else clause.copy())
        return self._bind_rows(alone, self._ctes)

    def is_inner(self, column: exp.Column) -> bool:
        """Is it a column of the subquery's rows?"""
        return _has_column(self.relation, column)

    @property
    def private(self) -> bool:
        return derive_extent(self.relation.source).private

    def is_plain(self, node: exp.Expr) -> bool:
        """Is it a column that a person's rows can be grouped by and joined on? A computed value is compared instead."""
        if not isinstance(node, exp.Column):
            return False
        item, name = self.relation.scope.resolve(node)
        value = item.columns[name].expression
        return not self.private or (isinstance(value, Column) and value.type is not ColumnType.REAL)

    def list_free(self, node: exp.Expr) -> list[exp.Column]:
        """The columns that a condition names, without those that subqueries in it name of their own rows."""
        return list(self._walk(node, ()))

    def _walk(self, node: exp.Expr, above: tuple[Relation, ...]) -> Iterator[exp.Column]:
        if isinstance(node, exp.Column):
            if not any(_has_column(relation, node) for relation in above):
                yield node
            return
        known = above
        if isinstance(node, exp.Select) and node.args.get("from_") is not None:
            known = (*above, self._bind_from(node))
        for child in node.iter_expressions():
            yield from self._walk(child, known)

    def read_links(self, select: exp.Select) -> Links:
        """Sort the conditions of WHERE."""
        found = Links()
        where = select.args.get("where")
        for condition in [] if where is None else _split_and(where.this):
            columns = self.list_free(condition)
            inner = [self.is_inner(column) for column in columns]
            if all(inner):
                found.inside.append(condition)
            elif not any(inner):
                found.outside.append(condition)
            else:
                self._read_link(condition, found)
        return found

    def _read_link(self, condition: exp.Expr, found: Links) -> None:
        bare = condition.unnest()
        if isinstance(bare, (exp.EQ, *COMPARED)):
            for one, two, turned in ((bare.this, bare.expression, False), (bare.expression, bare.this, True)):
                if not self._is_side(one, inner=True) or not self._is_side(two, inner=False):
                    continue
                if isinstance(bare, exp.EQ) and self.is_plain(one.unnest()):
                    found.pairs.append((one.unnest(), two))
                    return
                if not isinstance(bare, exp.EQ):
                    kind = COMPARED[type(bare)] if turned else type(bare)
                    found.comparisons.append(Comparison(kind, one.unnest(), two, condition))
                    return
        found.mixed.append(condition)

    def _is_side(self, node: exp.Expr, *, inner: bool) -> bool:
        columns = self.list_free(node)
        return bool(columns) and all(self.is_inner(column) is inner for column in columns)


def filters_rows(node: exp.Expr) -> bool:
    """Does it stand in WHERE, joined by AND alone? Then unknown and false are the same."""
    above = node.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    return isinstance(above, exp.Where)


def _has_column(relation: Relation, column: exp.Column) -> bool:
    if column.table:
        return find_name(column.table, [item.alias for item in relation.items]) is not None
    return relation.scope.has_column(column.name)


def _split_and(node: exp.Expr) -> list[exp.Expr]:
    return flatten(node) if isinstance(node.unnest(), exp.And) else [node]
