"""FROM -> Source: tables, joins, subqueries, CTEs and views, with the person carried through.

Row-level subqueries are written into what reads them; only a union, rows per person, and what LEFT JOIN may turn into
NULLs stay sources of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.catalog.model import Dataset, Table
from sfumato.catalog.names import find
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.row_sources import (
    MOST_SCANS,
    Derived,
    PublicScan,
    Scan,
    Union,
    is_private,
    scans,
)
from sfumato.query import functions
from sfumato.query.join import Joined, Relation
from sfumato.query.parse import TERMS, parse, placed, unsupported
from sfumato.query.per_unit import per_unit
from sfumato.query.query import Typed
from sfumato.query.row_expressions import AGGREGATES, RowBinder
from sfumato.query.scope import Part, Scope
from sfumato.query.size_limits import small_enough


@dataclass(frozen=True, slots=True)
class CTE:
    """A part of WITH, and what was named where it stands."""

    node: exp.Expr
    known: "CTEs"


CTEs = Mapping[str, CTE]
MOST_ITEMS = 200  # of FROM, written out: a CTE counts as often as it is read


class RelationBinder:
    """Binds FROM, WHERE and what is nested in them, over one dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._prefixes = 0
        self._items = 0
        self._views: tuple[str, ...] = ()

    def rows_of(self, tree: exp.Select, ctes: CTEs, *, prefix: str = "") -> Relation:
        """FROM, JOIN and WHERE of one SELECT."""
        known = _with(tree, ctes)
        source = tree.args.get("from_")
        if source is None:
            table = next(iter(self.dataset.tables), "a declared table")
            raise unsupported(tree, "A question is about one declared table", f"Write FROM {table}.")
        joins = tree.args.get("joins") or []
        first = self._item(source.this, known, self._next_prefix() if joins else prefix)
        for join in joins:
            first = self._join(first, join, known)
        where = tree.args.get("where")
        if where is None:
            return first
        return replace(first, filters=(*first.filters, *RowBinder(first.scope).conditions(where.this)))

    def _next_prefix(self) -> str:
        self._prefixes += 1
        return f"t{self._prefixes}."

    def _item(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """One item of FROM, under its name."""
        self._items += 1
        if self._items > MOST_ITEMS:
            raise unsupported(node, "The question reads too many tables and subqueries", "Ask for less at once.")
        if isinstance(node, exp.Subquery):
            inner = self._nested(node.this, ctes, prefix)
            return _named(inner, node.alias or "subquery")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise unsupported(node, "FROM takes tables and subqueries", f"Declared: {', '.join(self.dataset.tables)}.")
        cte = find(node.name, ctes)
        if cte is not None:
            return _named(self._nested(ctes[cte].node, ctes[cte].known, prefix), node.alias or cte)
        view = find(node.name, self.dataset.views)
        if view is not None:
            return _named(self._view(node, view, prefix), node.alias or view)
        with placed(node.this):
            try:
                table = self.dataset.table(node.name)
            except UnknownName as error:
                others = [*ctes, *self.dataset.views]
                more = f" Named here: {', '.join(others)}." if others else ""
                raise UnknownName(error.code, error.message, error.hint + more) from None
        return self._table(table, node.alias or table.name, prefix)

    def _table(self, table: Table, alias: str, prefix: str) -> Relation:
        part = Part.of_table(table, alias, prefix)
        source = (
            PublicScan(table.name, "", prefix)
            if table.public
            else Scan(table.name, "", table.max_rows_per_unit, prefix)
        )
        return Relation(source, (), (part,), table.public or table.unit is not ROW)

    def _view(self, node: exp.Expr, view: str, prefix: str) -> Relation:
        if view in self._views:
            raise unsupported(node, f"The view {view} is about itself", "Change its declaration.")
        self._views = (*self._views, view)
        tree = parse(self.dataset.views[view])
        if TERMS in tree.meta:
            raise unsupported(node, f"The view {view} has OPTIONS of its own", "Give them to the question instead.")
        inner = self._nested(tree, {}, prefix)
        self._views = self._views[:-1]
        return inner

    def _nested(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """A subquery: row by row, one row for each person, or a union."""
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(node, exp.Union):
            return self._union(node, ctes, prefix)
        if not isinstance(node, exp.Select):
            raise unsupported(node, "A subquery is one SELECT", "Write (SELECT ... FROM ...).")
        for clause in ("order", "limit"):
            if node.args.get(clause) is not None:
                raise unsupported(
                    node.args[clause], f"{clause.upper()} has no meaning in a subquery", "Leave it out there."
                )
        inner = self.rows_of(node, ctes, prefix=prefix)
        if node.args.get("group") is not None or any(each.find(*AGGREGATES) for each in node.expressions):
            return self._per_person(node, inner, prefix)
        if node.args.get("having") is not None:
            raise unsupported(node.args["having"], "HAVING goes with GROUP BY", "Use WHERE.")
        return self._projected(node, inner)

    def _projected(self, node: exp.Select, inner: Relation) -> Relation:
        """SELECT of row-level expressions: what reads them reads the expressions."""
        binder, scope = RowBinder(inner.scope), inner.scope
        columns: dict[str, Typed] = {}
        person: set[str] = set()
        links: dict[str, tuple[str, str]] = {}
        public: dict[str, int] = {}
        for each in node.expressions:
            if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
                for part in scope.parts if isinstance(each, exp.Star) else _called(scope, each):
                    for name in part.columns:
                        _fresh(each, name, columns)
                        columns[name] = part.columns[name]
                    person |= part.person
                    links |= part.links
                    public |= part.public or {}
                continue
            name = each.alias_or_name
            if not name:
                raise unsupported(each, "A computed column of a subquery needs a name", "Name it with AS.")
            _fresh(each, name, columns)
            bare = each.unalias()
            if isinstance(bare, exp.Column):
                part, column = scope.column(bare)
                columns[name] = part.columns[column]
                person |= {name} if column in part.person else set()
                links |= {name: part.links[column]} if column in part.links else {}
                public |= {name: part.public[column]} if part.public and column in part.public else {}
            else:
                columns[name] = binder.row(bare)
                if columns[name].type == "null":
                    raise unsupported(each, "NULL alone is no column", "Leave it out, or give a value.")
                small_enough(bare, columns[name].expression)
        made = Part(
            "", columns, "this subquery", frozenset(person), links, None if is_private(inner.source) else public
        )
        return replace(inner, parts=(made,))

    def _per_person(self, node: exp.Select, inner: Relation, prefix: str) -> Relation:
        if not is_private(inner.source) or not any(part.person for part in inner.parts):
            hint = "Ask it on its own: GROUP BY in the outer SELECT."
            raise unsupported(node, "A subquery groups by the person's id only, and there is none here", hint)
        source, filters, part = per_unit(node, inner.source, inner.filters, inner.scope, prefix)
        return Relation(source, filters, (part,))

    def _union(self, node: exp.Union, ctes: CTEs, prefix: str) -> Relation:
        if node.args.get("distinct"):
            raise unsupported(node, "UNION drops duplicates, which may be two people's", "Use UNION ALL.")
        parts = [self._nested(each, _with(node, ctes), "") for each in _sides(node)]
        shapes = [list(each.parts[0].columns.items()) for each in parts]
        if len({len(shape) for shape in shapes}) != 1:
            raise unsupported(node, "The parts of UNION ALL have different numbers of columns", "Select the same ones.")
        if not all(is_private(each.source) for each in parts):
            raise unsupported(node, "UNION ALL takes private tables", "Join a public table instead.")
        own = prefix or self._next_prefix()
        columns: dict[str, Typed] = {}
        persons: set[str] = set()
        for place, (name, first) in enumerate(shapes[0]):
            found = [shape[place] for shape in shapes]
            if all(column in each.parts[0].person for (column, _), each in zip(found, parts, strict=True)):
                persons.add(name)
                columns[name] = replace(first, expression=Column(f"{own}person", ColumnType.ID))
            elif all(typed.type != "id" for _, typed in found):
                with placed(node):
                    columns[name] = functions.merged([typed for _, typed in found], f"{own}column{place + 1}")
        derived = tuple(
            Derived(
                each.source,
                each.filters,
                tuple(
                    (f"{own}column{place + 1}", shape[place][1].expression)
                    for place, (name, _) in enumerate(shapes[0])
                    if name in columns and name not in persons
                ),
            )
            for each, shape in zip(parts, shapes, strict=True)
        )
        made = Part("", columns, "this union", frozenset(persons))
        return Relation(Union(derived), (), (made,), all(each.of_people for each in parts))

    def _join(self, left: Relation, node: exp.Join, ctes: CTEs) -> Relation:
        right = self._item(node.this, ctes, self._next_prefix())
        outer = node.side == "LEFT"
        if (node.side and not outer) or node.kind not in ("", "INNER", "OUTER") or (node.kind == "OUTER" and not outer):
            hint = "Write JOIN or LEFT JOIN, with the private table on the left."
            raise unsupported(node, f"{(node.side or node.kind).upper()} JOIN is not supported", hint)
        if any(find(part.alias, [other.alias for other in right.parts]) for part in left.parts):
            raise unsupported(node, "Two tables have one name", "Name them apart: FROM visits AS v.")
        if not is_private(left.source):
            if outer or not is_private(right.source):
                raise unsupported(node, "The left side of this join is public", "Begin with FROM the private table.")
            left, right = right, left
        elif is_private(right.source) and scans(left.source) + scans(right.source) > MOST_SCANS:
            raise unsupported(node, f"Over {MOST_SCANS} private tables are joined", "Join fewer, or pre-aggregate.")
        return Joined(node, left, right, outer).relation(self._next_prefix)


def _named(relation: Relation, alias: str) -> Relation:
    """A subquery under its name: one part."""
    if len(relation.parts) == 1:
        return replace(relation, parts=(relation.parts[0].renamed(alias),))
    return relation


def _called(scope: Scope, node: exp.Column) -> list[Part]:
    found = [part for part in scope.parts if find(node.table, (part.alias,)) is not None]
    if not found:
        raise unsupported(node, f"There is no table '{node.table[:40]}' here", "Name one that FROM has.")
    return found


def _fresh(node: exp.Expr, name: str, columns: Mapping[str, Typed]) -> None:
    if find(name, columns) is not None:
        raise unsupported(node, f"Two columns are named {name[:100]}", "Name them apart with AS.")


def _with(tree: exp.Expr, outer: CTEs) -> CTEs:
    """What is named inside a SELECT: the parts of its WITH, each of which sees those above it, and what is outside."""
    known = dict(outer)
    own: set[str] = set()
    clause = tree.args.get("with_")
    for each in clause.expressions if clause is not None else []:
        if find(each.alias, own) is not None:
            raise unsupported(each, f"Two parts of WITH are named {each.alias[:100]}", "Name them apart.")
        own.add(each.alias)
        made = CTE(each.this, dict(known))
        known = {name: cte for name, cte in known.items() if find(name, (each.alias,)) is None}
        known[each.alias] = made
    return known


def _sides(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a UNION ALL of UNION ALLs, first to last."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        bare = each.unnest() if isinstance(each, (exp.Paren, exp.Subquery)) else each
        if isinstance(bare, exp.Union) and not bare.args.get("distinct"):
            waiting += [bare.expression, bare.this]
        else:
            found.append(bare)
    return found
