"""FROM -> Source: tables, joins, subqueries, CTEs and views, with the person carried through.

Row-level subqueries are written into what reads them; only a union, rows per person, and what LEFT JOIN may turn into
NULLs stay sources of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import find_name
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.row_sources import MOST_SCANS, Derived, PublicScan, Scan, Union, extent
from sfumato.query import functions
from sfumato.query.join import JoinBinder
from sfumato.query.parse import DP_OPTIONS, locate_errors, parse, syntax_refusal
from sfumato.query.per_unit import bind_per_unit
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Relation, Scope
from sfumato.query.row_expressions import AGGREGATES, RowBinder
from sfumato.query.size_limits import refuse_large_expression


@dataclass(frozen=True, slots=True)
class CTE:
    """A part of WITH, and what was named where it stands."""

    node: exp.Expr
    known: "CTEs"


CTEs = Mapping[str, CTE]
MOST_ITEMS = 200  # of FROM, written out: a CTE counts as often as it is read


class FromBinder:
    """Binds FROM, WHERE and what is nested in them, over one dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._prefixes = 0
        self._items = 0
        self._views: tuple[str, ...] = ()

    def bind_rows(self, tree: exp.Select, ctes: CTEs, *, prefix: str = "") -> Relation:
        """FROM, JOIN and WHERE of one SELECT."""
        known = _collect_ctes(tree, ctes)
        source = tree.args.get("from_")
        if source is None:
            table = next(iter(self.dataset.tables), "a declared table")
            raise syntax_refusal(tree, "A question is about one declared table", f"Write FROM {table}.")
        joins = tree.args.get("joins") or []
        first = self._bind_item(source.this, known, self._next_prefix() if joins else prefix)
        for join in joins:
            first = self._bind_join(first, join, known)
        where = tree.args.get("where")
        if where is None:
            return first
        return replace(first, filters=(*first.filters, *RowBinder(first.scope).bind_conditions(where.this)))

    def _next_prefix(self) -> str:
        self._prefixes += 1
        return f"t{self._prefixes}."

    def _bind_item(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """One item of FROM, under its name."""
        self._items += 1
        if self._items > MOST_ITEMS:
            raise syntax_refusal(node, "The question reads too many tables and subqueries", "Ask for less at once.")
        if isinstance(node, exp.Subquery):
            inner = self._bind_subquery(node.this, ctes, prefix)
            return _rename_relation(inner, node.alias or "subquery")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise syntax_refusal(
                node, "FROM takes tables and subqueries", f"Declared: {', '.join(self.dataset.tables)}."
            )
        cte = find_name(node.name, ctes)
        if cte is not None:
            return _rename_relation(self._bind_subquery(ctes[cte].node, ctes[cte].known, prefix), node.alias or cte)
        view = find_name(node.name, self.dataset.views)
        if view is not None:
            return _rename_relation(self._bind_view(node, view, prefix), node.alias or view)
        with locate_errors(node.this):
            try:
                table = self.dataset.table(node.name)
            except UnknownName as error:
                others = [*ctes, *self.dataset.views]
                more = f" Named here: {', '.join(others)}." if others else ""
                raise UnknownName(error.code, error.message, error.hint + more) from None
        return self._bind_table(table, node.alias or table.name, prefix)

    def _bind_table(self, table: Table, alias: str, prefix: str) -> Relation:
        part = FromItem.build_from_table(table, alias, prefix)
        source = (
            PublicScan(table.name, "", prefix)
            if table.public
            else Scan(table.name, "", table.max_rows_per_unit, prefix)
        )
        return Relation(source, (), (part,), table.public or table.unit is not ROW)

    def _bind_view(self, node: exp.Expr, view: str, prefix: str) -> Relation:
        if view in self._views:
            raise syntax_refusal(node, f"The view {view} is about itself", "Change its declaration.")
        self._views = (*self._views, view)
        tree = parse(self.dataset.views[view])
        if DP_OPTIONS in tree.meta:
            raise syntax_refusal(node, f"The view {view} has OPTIONS of its own", "Give them to the question instead.")
        inner = self._bind_subquery(tree, {}, prefix)
        self._views = self._views[:-1]
        return inner

    def _bind_subquery(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """A subquery: row by row, one row for each person, or a union."""
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(node, exp.Union):
            return self._bind_union(node, ctes, prefix)
        if not isinstance(node, exp.Select):
            raise syntax_refusal(node, "A subquery is one SELECT", "Write (SELECT ... FROM ...).")
        for clause in ("order", "limit"):
            if node.args.get(clause) is not None:
                raise syntax_refusal(
                    node.args[clause], f"{clause.upper()} has no meaning in a subquery", "Leave it out there."
                )
        inner = self.bind_rows(node, ctes, prefix=prefix)
        if node.args.get("group") is not None or any(each.find(*AGGREGATES) for each in node.expressions):
            return self._bind_per_person(node, inner, prefix)
        if node.args.get("having") is not None:
            raise syntax_refusal(node.args["having"], "HAVING goes with GROUP BY", "Use WHERE.")
        return self._bind_projection(node, inner)

    def _bind_projection(self, node: exp.Select, inner: Relation) -> Relation:
        """SELECT of row-level expressions: what reads them reads the expressions."""
        binder, scope = RowBinder(inner.scope), inner.scope
        columns: dict[str, Typed] = {}
        person: set[str] = set()
        links: dict[str, tuple[str, str]] = {}
        public: dict[str, int] = {}
        for each in node.expressions:
            if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
                for part in scope.items if isinstance(each, exp.Star) else _find_items(scope, each):
                    for name in part.columns:
                        _refuse_duplicate(each, name, columns)
                        columns[name] = part.columns[name]
                    person |= part.person
                    links |= part.links
                    public |= part.public or {}
                continue
            name = each.alias_or_name
            if not name:
                raise syntax_refusal(each, "A computed column of a subquery needs a name", "Name it with AS.")
            _refuse_duplicate(each, name, columns)
            bare = each.unalias()
            if isinstance(bare, exp.Column):
                part, column = scope.resolve(bare)
                columns[name] = part.columns[column]
                person |= {name} if column in part.person else set()
                links |= {name: part.links[column]} if column in part.links else {}
                public |= {name: part.public[column]} if part.public and column in part.public else {}
            else:
                columns[name] = binder.bind(bare)
                if columns[name].type == "null":
                    raise syntax_refusal(each, "NULL alone is no column", "Leave it out, or give a value.")
                refuse_large_expression(bare, columns[name].expression)
        made = FromItem(
            "", columns, "this subquery", frozenset(person), links, None if extent(inner.source).private else public
        )
        return replace(inner, items=(made,))

    def _bind_per_person(self, node: exp.Select, inner: Relation, prefix: str) -> Relation:
        if not extent(inner.source).private or not any(part.person for part in inner.items):
            hint = "Ask it on its own: GROUP BY in the outer SELECT."
            raise syntax_refusal(node, "A subquery groups by the person's id only, and there is none here", hint)
        source, filters, part = bind_per_unit(node, inner.source, inner.filters, inner.scope, prefix)
        return Relation(source, filters, (part,))

    def _bind_union(self, node: exp.Union, ctes: CTEs, prefix: str) -> Relation:
        if node.args.get("distinct"):
            raise syntax_refusal(node, "UNION drops duplicates, which may be two people's", "Use UNION ALL.")
        parts = [self._bind_subquery(each, _collect_ctes(node, ctes), "") for each in _list_union_sides(node)]
        shapes = [list(each.items[0].columns.items()) for each in parts]
        if len({len(shape) for shape in shapes}) != 1:
            raise syntax_refusal(
                node, "The parts of UNION ALL have different numbers of columns", "Select the same ones."
            )
        if not all(extent(each.source).private for each in parts):
            raise syntax_refusal(node, "UNION ALL takes private tables", "Join a public table instead.")
        own = prefix or self._next_prefix()
        columns: dict[str, Typed] = {}
        persons: set[str] = set()
        for place, (name, first) in enumerate(shapes[0]):
            found = [shape[place] for shape in shapes]
            if all(column in each.items[0].person for (column, _), each in zip(found, parts, strict=True)):
                persons.add(name)
                columns[name] = replace(first, expression=Column(f"{own}person", ColumnType.ID))
            elif all(typed.type != "id" for _, typed in found):
                with locate_errors(node):
                    columns[name] = functions.merge_union_column(
                        [typed for _, typed in found], f"{own}column{place + 1}"
                    )
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
        made = FromItem("", columns, "this union", frozenset(persons))
        return Relation(Union(derived), (), (made,), all(each.has_person_id for each in parts))

    def _bind_join(self, left: Relation, node: exp.Join, ctes: CTEs) -> Relation:
        right = self._bind_item(node.this, ctes, self._next_prefix())
        outer = node.side == "LEFT"
        if (node.side and not outer) or node.kind not in ("", "INNER", "OUTER") or (node.kind == "OUTER" and not outer):
            hint = "Write JOIN or LEFT JOIN, with the private table on the left."
            raise syntax_refusal(node, f"{(node.side or node.kind).upper()} JOIN is not supported", hint)
        if any(find_name(part.alias, [other.alias for other in right.items]) for part in left.items):
            raise syntax_refusal(node, "Two tables have one name", "Name them apart: FROM visits AS v.")
        if not extent(left.source).private:
            if outer or not extent(right.source).private:
                raise syntax_refusal(node, "The left side of this join is public", "Begin with FROM the private table.")
            left, right = right, left
        elif extent(right.source).private and extent(left.source).scans + extent(right.source).scans > MOST_SCANS:
            raise syntax_refusal(node, f"Over {MOST_SCANS} private tables are joined", "Join fewer, or pre-aggregate.")
        return JoinBinder(node, left, right, outer).bind(self._next_prefix)


def _rename_relation(relation: Relation, alias: str) -> Relation:
    """A subquery under its name: one part."""
    if len(relation.items) == 1:
        return replace(relation, items=(relation.items[0].rename(alias),))
    return relation


def _find_items(scope: Scope, node: exp.Column) -> list[FromItem]:
    found = [part for part in scope.items if find_name(node.table, (part.alias,)) is not None]
    if not found:
        raise syntax_refusal(node, f"There is no table '{node.table[:40]}' here", "Name one that FROM has.")
    return found


def _refuse_duplicate(node: exp.Expr, name: str, columns: Mapping[str, Typed]) -> None:
    if find_name(name, columns) is not None:
        raise syntax_refusal(node, f"Two columns are named {name[:100]}", "Name them apart with AS.")


def _collect_ctes(tree: exp.Expr, outer: CTEs) -> CTEs:
    """What is named inside a SELECT: the parts of its WITH, each of which sees those above it, and what is outside."""
    known = dict(outer)
    own: set[str] = set()
    clause = tree.args.get("with_")
    for each in clause.expressions if clause is not None else []:
        if find_name(each.alias, own) is not None:
            raise syntax_refusal(each, f"Two parts of WITH are named {each.alias[:100]}", "Name them apart.")
        own.add(each.alias)
        made = CTE(each.this, dict(known))
        known = {name: cte for name, cte in known.items() if find_name(name, (each.alias,)) is None}
        known[each.alias] = made
    return known


def _list_union_sides(node: exp.Expr) -> list[exp.Expr]:
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
