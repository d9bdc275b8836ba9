"""FROM -> Relation: tables, joins, subqueries, CTEs and views, with the person's id carried along.

A row-level subquery disappears: its expressions replace its column names. Only a union, one row per person, and the
right side of a LEFT JOIN become sources of their own.
"""

from dataclasses import replace

from sqlglot import exp

from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.names import find_name, fold
from sfumato.errors import UnknownName
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.row_sources import Derived, PublicScan, Scan, Union, derive_extent
from sfumato.query import functions
from sfumato.query.hints import ONLY_PUBLIC, PRIVATE_FIRST
from sfumato.query.join import JoinBinder
from sfumato.query.parse import DP_OPTIONS, build_syntax_refusal, locate_errors, name_node, parse
from sfumato.query.per_unit import bind_per_unit, refuse_missing_id
from sfumato.query.projection import bind_projection
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Relation, Scope, refuse_second
from sfumato.query.row_expressions import RowBinder, flatten, has_aggregate
from sfumato.query.row_subqueries import join_subqueries
from sfumato.query.rows_of_nobody import Sides, ignores_rows_of_nobody
from sfumato.query.schema_names import check_schema
from sfumato.query.single_rows import take_single_values
from sfumato.query.source_outline import MOST_SCANS, outline_source
from sfumato.query.tokens import SHORTEN
from sfumato.query.with_clause import CTEs, collect_ctes

OUTER_HINT = (
    "Write LEFT JOIN, which keeps the rows of the first table. It does not mean the same: rows of the second table "
    "without a partner are left out."
)
KEEPS_PUBLIC = (
    "Write an inner join, or keep the private table's rows. The public rows without a partner are known without asking."
)
UNION_ALL = (
    "UNION ALL keeps duplicate rows, so it means the same only if there are none. Ids of people alone can be united by "
    "UNION."
)
OF_IDS = "Combine ids of people alone: SELECT id ... INTERSECT SELECT id ... Results of GROUP BY can be combined too."
MOST_ITEMS = 200  # tables and subqueries in FROM; a CTE counts as often as it is used


class FromBinder:
    """Binds the FROM and WHERE clauses of a question and of its subqueries."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._prefixes = 0
        self._items = 0
        self._views: tuple[str, ...] = ()

    def bind_rows(self, tree: exp.Select, ctes: CTEs, *, prefix: str = "") -> Relation:
        """Bind FROM, JOIN and WHERE of one SELECT."""
        known = collect_ctes(tree, ctes)
        source = tree.args.get("from_")
        if source is None:
            table = next(iter(self.dataset.tables), "a declared table")
            raise build_syntax_refusal(tree, "The question has no FROM", f"Write FROM {table}.")
        joins = tree.args.get("joins") or []
        first = self._bind_item(source.this, known, self._make_prefix() if joins else prefix)
        where = tree.args.get("where")
        conditions = [] if where is None else flatten(where.this) if _is_and(where.this) else [where.this]
        pending = list(joins)
        while pending:
            join = _take_next_join(pending, first, conditions)
            first, conditions = self._bind_join(first, join, known, conditions, tree)
        binder = RowBinder(first.scope)
        filters = [found for condition in conditions for found in binder.bind_conditions(condition)]
        return first.filter(filters) if filters else first

    def groups_by_person(self, tree: exp.Select, ctes: CTEs) -> bool:
        """Does a SELECT group by the person's id, or a link to it? Then it has rows of people, and no result."""
        group = tree.args.get("group")
        if group is None:
            return False
        scope = self.bind_rows(join_subqueries(tree, FromBinder(self.dataset).bind_rows, ctes), ctes).scope
        return any(scope.leads_to_person(key) for key in list_group_keys(tree) if _is_known(scope, key))

    def _make_prefix(self) -> str:
        self._prefixes += 1
        return f"t{self._prefixes}."

    def _bind_item(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """Bind one item of FROM, under its alias."""
        self._items += 1
        if self._items > MOST_ITEMS:
            raise build_syntax_refusal(node, f"The question has more than {MOST_ITEMS} tables and subqueries", SHORTEN)
        if isinstance(node, exp.Subquery):
            inner = self._bind_subquery(node.this, ctes, prefix)
            return _rename_relation(inner, node.alias or "subquery")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise build_syntax_refusal(
                node, "FROM needs a table or a subquery", f"Tables: {', '.join(self.dataset.tables)}."
            )
        check_schema(node, self.dataset)
        cte = find_name(node.name, ctes) if node.args.get("db") is None else None
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
                more = f" Views and parts of WITH: {', '.join(others)}." if others else ""
                raise UnknownName(error.code, error.message, error.hint + more) from None
        return self._bind_table(table, node.alias or table.name, prefix)

    def _bind_table(self, table: Table, alias: str, prefix: str) -> Relation:
        part = FromItem.build_from_table(table, alias, prefix)
        source = (
            PublicScan(table.name, "", prefix)
            if table.public
            else Scan(table.name, "", table.max_rows_per_unit, prefix, unique=table.unique)
        )
        return Relation(source, (), (part,), table.public or table.unit is not ROW)

    def _bind_view(self, node: exp.Expr, view: str, prefix: str) -> Relation:
        if view in self._views:
            raise build_syntax_refusal(node, f"The view {view} refers to itself", "Change the view in the catalog.")
        self._views = (*self._views, view)
        tree = parse(self.dataset.views[view])
        if DP_OPTIONS in tree.meta:
            raise build_syntax_refusal(
                node, f"The view {view} has OPTIONS", "Remove them from the view, and give OPTIONS to the question."
            )
        inner = self._bind_subquery(tree, {}, prefix)
        self._views = self._views[:-1]
        return inner

    def _bind_subquery(self, node: exp.Expr, ctes: CTEs, prefix: str) -> Relation:
        """Bind a subquery: row by row, one row per person, or a union."""
        node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
        if isinstance(node, exp.Union):
            return self._bind_union(node, ctes, prefix)
        if isinstance(node, (exp.Intersect, exp.Except)):
            return self._bind_subquery(self._compare_ids(node), collect_ctes(node, ctes), prefix)
        if not isinstance(node, exp.Select):
            raise build_syntax_refusal(node, "A subquery must be one SELECT", "Write (SELECT ... FROM ...).")
        _refuse_clauses(node, ("limit", "offset", "qualify", "windows"))  # ORDER BY alone changes nothing
        node = join_subqueries(node, FromBinder(self.dataset).bind_rows, ctes)
        inner = self.bind_rows(node, ctes, prefix=prefix)
        if node.args.get("distinct"):
            node = _group_distinct(node, inner.scope)
        node = take_single_values(node, inner)
        if node.args.get("group") is not None or any(has_aggregate(column) for column in node.expressions):
            return self._bind_per_person(node, inner, prefix)
        if node.args.get("having") is not None:
            raise build_syntax_refusal(node.args["having"], "HAVING needs GROUP BY", "Use WHERE.")
        return bind_projection(node, inner)

    def _bind_per_person(self, node: exp.Select, inner: Relation, prefix: str) -> Relation:
        group = node.args.get("group")
        if group is not None and (group.args.get("rollup") or group.args.get("cube")):
            raise build_syntax_refusal(group, "ROLLUP and CUBE are for results[at]", "Group by the person's id alone.")
        if not derive_extent(inner.source).private or not any(item.person or item.has_link for item in inner.items):
            what = "A subquery can group only by the person's id, and these rows[at] have no person's id"
            raise build_syntax_refusal(node, what, "Use GROUP BY in the outer SELECT.")
        tables = [self.dataset.table(name) for name in outline_source(inner.source).tables]
        most = max(table.max_groups_per_unit for table in tables if not table.public)
        source, filters, part = bind_per_unit(node, inner, prefix, most)
        return Relation(source, (), (part,)).filter(filters)

    def _bind_union(self, node: exp.Union, ctes: CTEs, prefix: str) -> Relation:
        _refuse_clauses(node, ("limit", "offset"))
        parts = [self._bind_subquery(side, collect_ctes(node, ctes), "") for side in _list_union_sides(node)]
        shapes = [list(part.items[0].columns.items()) for part in parts]
        if len({len(shape) for shape in shapes}) != 1:
            raise build_syntax_refusal(
                node, "The SELECTs of UNION ALL have different numbers of columns", "Select the same columns in each."
            )
        if any(part.items[0].left_out for part in parts):
            name = next(name for part in parts for name in sorted(part.items[0].left_out))
            refuse_second(node, name, (name,))
        if not all(derive_extent(part.source).private for part in parts):
            raise build_syntax_refusal(
                node, "UNION ALL cannot contain a public table", "Join the public table instead."
            )
        if node.args.get("distinct") and not all(set(part.items[0].columns) == part.items[0].person for part in parts):
            raise build_syntax_refusal(
                node, "UNION[at] drops duplicate rows, which may belong to two people", UNION_ALL
            )
        own = prefix or self._make_prefix()
        columns: dict[str, Typed] = {}
        persons: set[str] = set()
        for place, (name, first) in enumerate(shapes[0]):
            found = [shape[place] for shape in shapes]
            if all(column in part.items[0].person for (column, _), part in zip(found, parts, strict=True)):
                for (column, _), part in zip(found, parts, strict=True):
                    refuse_missing_id(exp.column(column), part.scope)
                persons.add(name)
                columns[name] = replace(first, expression=Column(f"{own}person", ColumnType.ID))
            elif all(typed.type != "id" for _, typed in found):
                with locate_errors(node):
                    columns[name] = functions.merge_union_column(
                        [typed for _, typed in found], f"{own}column{place + 1}"
                    )
        derived = tuple(
            Derived(
                part.source,
                part.filters,
                tuple(
                    (f"{own}column{place + 1}", shape[place][1].expression)
                    for place, (name, _) in enumerate(shapes[0])
                    if name in columns and name not in persons
                ),
            )
            for part, shape in zip(parts, shapes, strict=True)
        )
        made = FromItem("", columns, "this union", frozenset(persons))
        united = Relation(Union(derived), (), (made,), all(part.has_person_id for part in parts))
        if not node.args.get("distinct"):
            return united
        person = exp.column(next(iter(columns)))  # different ids: one row for each person
        once = exp.Select(expressions=[person], group=exp.Group(expressions=[person.copy()]))
        return self._bind_per_person(once, united, prefix)

    def _compare_ids(self, node: exp.Intersect | exp.Except) -> exp.Select:
        """ids INTERSECT ids -> the ids that are among the others; EXCEPT -> those that are not."""
        _refuse_clauses(node, ("limit", "offset"))
        first: exp.Expr = node
        while isinstance(first, exp.SetOperation):
            first = first.this.unnest()
        if not node.args.get("distinct") or not isinstance(first, exp.Select) or len(first.expressions) != 1:
            raise build_syntax_refusal(node, f"{name_node(node)}[at] of rows other than ids is not supported", OF_IDS)
        column = exp.column(first.expressions[0].alias_or_name)
        sides = [
            exp.Subquery(this=side.unnest().copy(), alias=exp.TableAlias(this=exp.Identifier(this=name)))
            for side, name in ((node.this, "one"), (node.expression, "other"))
        ]
        others = exp.Select(expressions=[exp.Star()], from_=exp.From(this=sides[1]))
        found: exp.Expr = exp.In(this=column, query=exp.Subquery(this=others))
        if isinstance(node, exp.Except):
            found = exp.Not(this=found)
        made = exp.Select(expressions=[column.copy()], from_=exp.From(this=sides[0]), where=exp.Where(this=found))
        made.set("group", exp.Group(expressions=[column.copy()]))
        return made

    def _bind_join(
        self,
        left: Relation,
        node: exp.Join,
        ctes: CTEs,
        conditions: list[exp.Expr],
        tree: exp.Select,
    ) -> tuple[Relation, list[exp.Expr]]:
        """Join one more item. Returns the conditions of WHERE that the join did not use as its own.

        `tree` is the SELECT whose FROM it is.
        """
        right = self._bind_item(node.this, ctes, self._make_prefix())
        side, kind = node.side or "", node.kind or ""
        if node.args.get("method") not in (None, "", "NATURAL"):
            raise build_syntax_refusal(node, "This kind of join[at] is not supported", "Write JOIN or LEFT JOIN.")
        if side not in ("", "LEFT", "RIGHT") or kind not in ("", "INNER", "OUTER", "CROSS"):
            what = f"{(side or kind).upper()} JOIN[at] is not supported"
            raise build_syntax_refusal(node, what, OUTER_HINT if side == "FULL" else "Write JOIN or LEFT JOIN.")
        if any(find_name(item.alias, [other.alias for other in right.items]) for item in left.items):
            raise build_syntax_refusal(
                node, "Two tables have the same name", "Give them different names: FROM visits AS v."
            )
        if side == "RIGHT":
            left, right = right, left
        alone = len(tree.args.get("joins") or []) == 1 and not derive_extent(left.source).private
        if side and alone and derive_extent(right.source).private:
            side = "" if ignores_rows_of_nobody(tree, Sides(left.scope, right.scope)) else side
        left, right = self._order_sides(node, left, right, outer=bool(side))
        named = _list_named_columns(tree, node)
        return JoinBinder(node, left, right, bool(side), named).bind_with(conditions, self._make_prefix)

    def _order_sides(
        self, node: exp.Join, left: Relation, right: Relation, *, outer: bool
    ) -> tuple[Relation, Relation]:
        """The private side first. In an outer join it is the side that is kept."""
        if not derive_extent(left.source).private:
            if outer:
                what = "This outer join[at] keeps rows of a public table that have no partner and belong to nobody"
                raise build_syntax_refusal(node, what, KEEPS_PUBLIC)
            if not derive_extent(right.source).private:
                raise build_syntax_refusal(
                    node, "This join[at] combines two public tables", f"{ONLY_PUBLIC} {PRIVATE_FIRST}"
                )
            return right, left
        if derive_extent(right.source).private:
            scans = outline_source(left.source).scans + outline_source(right.source).scans
            if scans > MOST_SCANS:
                raise build_syntax_refusal(
                    node, f"The join has more than {MOST_SCANS} private tables", "Join fewer tables."
                )
        return left, right


def _refuse_clauses(node: exp.Expr, clauses: tuple[str, ...]) -> None:
    """Refuse clauses that would select rows of people by their order."""
    for clause in clauses:
        found = node.args.get(clause)
        if found:
            place = found[0] if isinstance(found, list) else found
            what = f"{clause.upper()}[at] is not supported in a subquery over rows of people"
            raise build_syntax_refusal(place, what, "Leave it out, or use it in the outer SELECT.")


def _group_distinct(node: exp.Select, scope: Scope) -> exp.Select:
    """SELECT DISTINCT id, x: one row for each person and x. Without an id, a row may belong to several people."""
    selected = [one.unalias() for one in node.expressions]
    if (
        node.args.get("group") is not None
        or any(has_aggregate(one) or isinstance(one, exp.Star) for one in selected)
        or not any(map(scope.is_person, selected))
    ):
        what = "SELECT DISTINCT[at] in a subquery drops rows that may belong to several people"
        hint = "Select the person's id too: another question. Or write COUNT(DISTINCT x) in the outer SELECT."
        raise build_syntax_refusal(node, what, hint)
    made = node.copy()
    made.set("distinct", None)
    made.set("group", exp.Group(expressions=[one.copy() for one in selected]))
    return made


def list_group_keys(tree: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY, with numbers and aliases replaced by the selected columns that they mean."""
    group, found = tree.args["group"], []
    if group.args.get("all"):
        return [node.unalias() for node in tree.expressions if not has_aggregate(node) and node.find(exp.Column)]
    for key in group.expressions:
        text = str(key.this) if isinstance(key, exp.Literal) else ""
        place = int(text) - 1 if text.isdigit() and len(text) < 5 else -1
        node = tree.expressions[place].unalias() if 0 <= place < len(tree.expressions) else key.unnest()
        if isinstance(node, exp.Column) and not node.table:
            aliased = [
                selected.unalias()
                for selected in tree.expressions
                if find_name(node.name, (selected.alias,)) is not None
            ]
            found += aliased
        found.append(node)
    return found


def _is_known(scope: Scope, node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and scope.has_column(node.name)


def _take_next_join(pending: list[exp.Join], joined: Relation, conditions: list[exp.Expr]) -> exp.Join:
    """The next join: the first, unless it has no condition yet and WHERE links a later one to what is joined."""
    aliases = {fold(item.alias) for item in joined.items}
    for place, join in enumerate(pending):
        own = join.args.get("on") is not None or join.args.get("using") or join.args.get("method")
        waiting = {"", *(fold(other.this.alias_or_name) for other in pending[:place])}
        on = join.args.get("on") if place else None
        if on is not None and any(fold(column.table) in waiting for column in on.find_all(exp.Column)):
            continue  # its condition may be about a table that is joined before it
        alias = fold(join.this.alias_or_name)
        tables = [{fold(column.table) for column in condition.find_all(exp.Column)} for condition in conditions]
        if own or any(alias in found and found & aliases for found in tables):
            return pending.pop(place)
        if join.side:
            break  # an outer join keeps its place
    return pending.pop(0)


def _list_named_columns(tree: exp.Select, join: exp.Join) -> list[exp.Column]:
    """The columns that a SELECT names outside FROM, and in ON of other joins than this one."""
    parts = [*tree.expressions, *(tree.args.get(name) for name in ("where", "group", "having", "order"))]
    parts += [other.args.get("on") for other in tree.args.get("joins") or [] if other is not join]
    found = [column for part in parts if part is not None for column in part.find_all(exp.Column)]
    return found + [exp.Column(this=exp.Star()) for node in tree.expressions if isinstance(node, exp.Star)]


def _is_and(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.And)


def _rename_relation(relation: Relation, alias: str) -> Relation:
    """Give a subquery its alias."""
    if len(relation.items) == 1:
        return replace(relation, items=(relation.items[0].rename(alias),))
    return relation


def _list_union_sides(node: exp.Expr) -> list[exp.Expr]:
    """The SELECTs of a union, whose sides may be UNION ALLs, from first to last."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        side = waiting.pop()
        bare = side.unnest() if isinstance(side, (exp.Paren, exp.Subquery)) else side
        if isinstance(bare, exp.Union) and (bare is node or not bare.args.get("distinct")):
            waiting += [bare.expression, bare.this]
        else:
            found.append(bare)
    return found
