"""A subquery about a public table that has at most one row for each value -> LEFT JOIN with that row."""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.query.parse import build_syntax_refusal
from sfumato.query.relation import Relation
from sfumato.query.row_expressions import has_aggregate
from sfumato.query.subquery_links import Links, filters_rows

KNOWN = "The table is public: compute the value from it yourself, and write it into the question."
ONE_ROW = "Compare with a column that has each value once in the public table, and declare that it is unique."
ONE_COLUMN = "Select one column."
AS_EXISTS = (
    "Write EXISTS (SELECT 1 FROM t WHERE t.x = v.x). NOT IN differs where a value is NULL, or where there is none."
)
AGGREGATING = ("group", "having")


@dataclass(frozen=True, slots=True)
class Joined:
    """The joins that replace a subquery, and the value that stands in its place."""

    joins: tuple[exp.Join, ...]
    value: exp.Expr


def make_join(select: exp.Select, alias: str, on: exp.Expr) -> exp.Join:
    """LEFT JOIN (select) AS alias ON on."""
    named = exp.TableAlias(this=exp.Identifier(this=alias, quoted=True))
    return exp.Join(this=exp.Subquery(this=select, alias=named), side="LEFT", on=on)


def equate_pairs(pairs: list[tuple[exp.Expr, exp.Expr]], alias: str) -> exp.Expr:
    """The condition that links the outer row to the row of the subquery, whose columns are k0, k1, ..."""
    equalities = (
        exp.EQ(this=two.copy(), expression=exp.column(f"k{place}", alias)) for place, (_, two) in enumerate(pairs)
    )
    return exp.and_(*equalities)


def name_pairs(pairs: list[tuple[exp.Expr, exp.Expr]]) -> list[exp.Expr]:
    """The compared columns of the subquery, as k0, k1, ..."""
    return [exp.alias_(column.copy(), f"k{place}") for place, (column, _) in enumerate(pairs)]


def read_listed(node: exp.In, select: exp.Select, relation: Relation) -> exp.Expr:
    """The column that IN (SELECT ...) lists. * is the only column of a subquery."""
    shown = [(item.alias, name) for item in relation.items for name in item.columns]
    if [type(selected) for selected in select.expressions] == [exp.Star] and len(shown) == 1:
        return exp.column(shown[0][1], shown[0][0])
    if len(select.expressions) != 1 or isinstance(select.expressions[0], exp.Star):
        raise build_syntax_refusal(node, "IN (SELECT ...) needs one column", ONE_COLUMN)
    found: exp.Expr = select.expressions[0].unalias()
    return found


def pair_listed(node: exp.In, select: exp.Select, relation: Relation) -> list[tuple[exp.Expr, exp.Expr]]:
    """What IN (SELECT ...) lists, and what is compared with it. (a, b) IN (SELECT c, d ...) has two pairs."""
    if not isinstance(node.this, exp.Tuple) or len(node.this.expressions) != len(select.expressions):
        return [(read_listed(node, select, relation), node.this)]
    if not filters_rows(node):
        raise build_syntax_refusal(node, "IN (SELECT ...)[at] may be unknown here", AS_EXISTS)
    return [(one.unalias(), two) for one, two in zip(select.expressions, node.this.expressions, strict=True)]


def _refuse_clauses(node: exp.Expr, select: exp.Select) -> None:
    """Refuse what a join with one row of the public table would leave out."""
    if any(has_aggregate(column) for column in select.expressions) or any(map(select.args.get, AGGREGATING)):
        raise build_syntax_refusal(node, "A subquery[at] aggregates a public table", KNOWN)
    for clause in ("limit", "offset", "qualify", "distinct"):
        given = select.args.get(clause)
        if given and not (clause == "distinct" and given.args.get("on") is None):
            what = f"{clause.upper()}[at] in a subquery about a public table is not supported"
            raise build_syntax_refusal(given, what, "Leave it out, if the question means the same without it.")
    if isinstance(node, exp.In) and not filters_rows(node):
        raise build_syntax_refusal(node, "IN (SELECT ...)[at] may be unknown here", AS_EXISTS)
    if isinstance(node, exp.Subquery) and len(select.expressions) != 1:
        raise build_syntax_refusal(node, "A subquery in the place of a value[at] has several columns", ONE_COLUMN)


def _refuse_several_rows(node: exp.Expr, pairs: list[tuple[exp.Expr, exp.Expr]], relation: Relation) -> None:
    """Refuse values that several rows of the public table may have."""
    most = []
    for column, _ in pairs:
        if isinstance(column, exp.Column):
            item, name = relation.scope.resolve(column)
            most.append((item.public or {}).get(name, 0))
    if not most or min(most) != 1:
        what = "Several rows of the public table may have the same value here"
        raise build_syntax_refusal(node, what, ONE_ROW)


def join_public(node: exp.Expr, select: exp.Select, alias: str, relation: Relation, links: Links) -> Joined:
    """The row of a public table that has the value."""
    pairs = list(links.pairs)
    if isinstance(node, exp.In):
        pairs = [*pair_listed(node, select, relation), *pairs]
    if links.comparisons or links.mixed:
        what = "This condition[at] links a public table to the outer row other than by '='"
        condition = [*(comparison.node for comparison in links.comparisons), *links.mixed][0]
        raise build_syntax_refusal(condition, what, "Join the public table instead.")
    if not pairs:
        raise build_syntax_refusal(node, "A subquery[at] has one value for all rows", KNOWN)
    _refuse_clauses(node, select)
    _refuse_several_rows(node, pairs, relation)
    columns = name_pairs(pairs)
    there: exp.Expr = exp.Not(this=exp.Is(this=exp.column("k0", alias), expression=exp.Null()))
    if links.outside:
        there = exp.and_(*(condition.copy() for condition in links.outside), there)
        there = exp.Case(ifs=[exp.If(this=there, true=exp.true())], default=exp.false())
    value = there
    if isinstance(node, exp.Subquery):
        columns.append(exp.alias_(select.expressions[0].unalias().copy(), "v"))
        value = exp.column("v", alias)
        if links.outside:
            value = exp.Case(ifs=[exp.If(this=exp.and_(*(outer.copy() for outer in links.outside)), true=value)])
    made = exp.Select(expressions=columns, from_=select.args["from_"].copy())
    made.set("joins", [join.copy() for join in select.args.get("joins") or []])
    if select.args.get("with_") is not None:
        made.set("with_", select.args["with_"].copy())
    if links.inside:
        made.set("where", exp.Where(this=exp.and_(*(inner.copy() for inner in links.inside))))
    return Joined((make_join(made, alias, equate_pairs(pairs, alias)),), value)
