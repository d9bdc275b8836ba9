"""SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t) -> SELECT COUNT(DISTINCT a, b) FROM t."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.relation import Relation
from sfumato.query.row_expressions import has_aggregate
from sfumato.query.sql_text import name_expression

ALONE = ("where", "group", "having", "joins", "distinct", "order", "limit", "offset", "qualify", "windows")
INSIDE = ("group", "having", "order", "limit", "offset", "qualify", "windows")
NULLS = "Different values are counted, and NULL is none: SELECT DISTINCT would have a row of NULL too."


def count_different_rows(
    outer: exp.Select, inner: exp.Expr | None, bind_rows: Callable[[exp.Select], Relation]
) -> exp.Select | None:
    """The question as COUNT(DISTINCT ...). None: it is another question, or the rows are those of people."""
    if not isinstance(inner, exp.Select) or any(outer.args.get(clause) for clause in ALONE):
        return None
    distinct = inner.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or any(inner.args.get(clause) for clause in INSIDE):
        return None
    values = [one.unalias() for one in inner.expressions]
    if any(has_aggregate(one) or one.find(exp.Star) is not None for one in values):
        return None
    names = [one.alias_or_name for one in inner.expressions]
    if not all(_counts_rows(one.unalias(), names) for one in outer.expressions):
        return None
    scope = bind_rows(inner).scope
    if any(map(scope.leads_to_person, values)):
        return None
    add_caution(NULLS)
    made = inner.copy()
    made.set("distinct", None)
    made.set(
        "expressions",
        [
            exp.Alias(
                this=exp.Count(this=exp.Distinct(expressions=[value.copy() for value in values]), big_int=True),
                alias=exp.Identifier(this=one.alias or name_expression(one), quoted=True),
            )
            for one in outer.expressions
        ],
    )
    return made


def _counts_rows(node: exp.Expr, names: list[str]) -> bool:
    """Is it COUNT(*), or COUNT of the one column of the rows?"""
    if not isinstance(node, exp.Count):
        return False
    if isinstance(node.this, exp.Star | exp.Literal):
        return True
    return isinstance(node.this, exp.Column) and len(names) == 1 and find_name(node.this.name, names) is not None
