"""IN (SELECT ...), EXISTS (SELECT ...) and (SELECT COUNT(*) ...) in a condition on rows -> LEFT JOIN.

The subquery is about the same person (one row for each person and value is joined) or about a public table that has at
most one row for each value. A row then meets one row at most, so the join neither repeats rows nor costs anything.
"""

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.query.outer_rows import compare_computed, meet_outer_rows
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.person_subqueries import PersonSubquery, compares_ends
from sfumato.query.public_subqueries import join_public
from sfumato.query.relation import HIDDEN_ALIAS
from sfumato.query.row_expressions import flatten, is_aggregate
from sfumato.query.subquery_links import BindRows, SubqueryRows
from sfumato.query.with_clause import CTEs, collect_ctes

MOST_SUBQUERIES = 50
IN_ON = (
    "Put the condition into a subquery: LEFT JOIN (SELECT * FROM t WHERE x IN (SELECT ...)) AS t ON ... It means the "
    "same if the condition is about the second table alone."
)


def join_subqueries(tree: exp.Select, bind_rows: BindRows, ctes: CTEs) -> exp.Select:
    """The SELECT with its subqueries over rows as joins. One without such subqueries is returned as it is."""
    if all(inner is tree for inner in tree.find_all(exp.Query)) or not _find_subqueries(tree):
        return tree
    made, number, known = tree.copy(), 0, collect_ctes(tree, ctes)
    _move_from_on(made)
    while found := _find_subqueries(made):
        number += 1
        if number > MOST_SUBQUERIES:
            what = f"The question has more than {MOST_SUBQUERIES} subqueries in conditions"
            raise build_syntax_refusal(tree, what, "Ask several questions.")
        _join(found[0], made, f"{HIDDEN_ALIAS}{number}", bind_rows, known)
    return made


def _join(node: exp.Expr, made: exp.Select, alias: str, bind_rows: BindRows, ctes: CTEs) -> None:
    """Replace one subquery by a value, and add the joins that the value needs."""
    select = _read_select(node)
    rows = SubqueryRows(select, bind_rows, ctes)
    if isinstance(node, exp.In) and (written := compare_computed(node, select, rows)) is not None:
        node.replace(written)
        node, select = written, written.this
    links = rows.read_links(select)
    if rows.private:
        if links.mixed or (links.comparisons and not compares_ends(node, select, rows, links)):
            select, links = meet_outer_rows(node, select, alias, rows, links)
            rows = SubqueryRows(select, bind_rows, ctes)
        joined = PersonSubquery(node, select, alias, rows, links).join()
    else:
        joined = join_public(node, select, alias, rows.relation, links)
    joins = list(made.args.get("joins") or [])
    user = node.find_ancestor(exp.Join)  # the condition of an earlier subquery's join: what it compares comes before
    place = next((number for number, join in enumerate(joins) if join is user), len(joins))
    made.set("joins", [*joins[:place], *joined.joins, *joins[place:]])
    node.replace(joined.value)


def _read_select(node: exp.Expr) -> exp.Select:
    """The SELECT of a subquery. Ids that a set operation combines are selected from it."""
    inner = node.args["query"] if isinstance(node, exp.In) else node.this
    inner = inner.unnest() if isinstance(inner, (exp.Subquery, exp.Paren)) else inner
    if isinstance(inner, exp.SetOperation) and isinstance(node, exp.In):
        first: exp.Query = inner
        while isinstance(first, exp.SetOperation):
            first = first.this.unnest()
        column = exp.column(first.expressions[0].alias_or_name) if len(first.expressions) == 1 else exp.Star()
        united = exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.Identifier(this="united")))
        inner = exp.Select(expressions=[column], from_=exp.From(this=united))
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is None:
        raise build_syntax_refusal(node, "A subquery in a condition must be one SELECT", "Write (SELECT ... FROM ...).")
    return inner


def _find_subqueries(tree: exp.Select) -> list[exp.Expr]:
    """The subqueries in WHERE and GROUP BY, those in ON, and those in other clauses that are about the same row."""
    found: list[exp.Expr] = []
    for clause in ("where", "group"):
        if tree.args.get(clause) is not None:
            found += _list_outermost(tree.args[clause])
    for join in tree.args.get("joins") or []:
        if join.args.get("on") is not None:
            found += _list_outermost(join.args["on"])
    for column in tree.expressions:
        found += [node for node in _list_outermost(column) if _is_about_a_row(node, tree)]
    return found


def _move_from_on(tree: exp.Select) -> None:
    """Conditions of inner joins that contain a subquery move to WHERE, which means the same."""
    for join in tree.args.get("joins") or []:
        on = join.args.get("on")
        if on is None or not _list_outermost(on):
            continue
        if any(other.side not in ("", "LEFT") for other in tree.args["joins"]):
            what = "A subquery[at] stands in ON, beside a RIGHT JOIN"
            raise build_syntax_refusal(_list_outermost(on)[0], what, "Write LEFT JOIN, with the tables exchanged.")
        parts = flatten(on) if isinstance(on.unnest(), exp.And) else [on]
        kept = [part.copy() for part in parts if not _list_outermost(part)]
        if join.side or not kept:
            raise build_syntax_refusal(_list_outermost(on)[0], "A subquery[at] stands in ON", IN_ON)
        for part in parts:
            if _list_outermost(part):
                tree.where(part.copy(), copy=False)
        join.set("on", exp.and_(*kept))


def _list_outermost(node: exp.Expr) -> list[exp.Expr]:
    def is_subquery(inner: exp.Expr) -> bool:
        listed = isinstance(inner, exp.In) and inner.args.get("query") is not None
        return listed or isinstance(inner, (exp.Exists, exp.Subquery))

    found: list[exp.Expr] = []
    for inner in node.walk(prune=is_subquery):
        if is_subquery(inner):  # a subquery may be what IN compares: it comes first
            found += [*(_list_outermost(inner.this) if isinstance(inner, exp.In) else []), inner]
    return found


def _is_about_a_row(node: exp.Expr, tree: exp.Select) -> bool:
    """Does a subquery among the selected columns name a table of the outer SELECT, or stand in an aggregate?"""
    items = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
    outer = [item.alias_or_name for item in items] if tree.args.get("from_") is not None else []
    above = node.parent
    while above is not None and above is not tree:
        if is_aggregate(above):
            return True
        above = above.parent
    return any(find_name(column.table, outer) is not None for column in node.find_all(exp.Column) if column.table)
