"""WITH: the named subqueries that a SELECT can use."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sfumato.catalog.names import find_name
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.tokens import shorten


@dataclass(frozen=True, slots=True)
class CTE:
    """One part of WITH, and the CTEs that it can refer to."""

    node: exp.Expr
    known: "CTEs"


CTEs = Mapping[str, CTE]


def collect_ctes(tree: exp.Expr, outer: CTEs) -> CTEs:
    """The CTEs that a SELECT can use: its own WITH, each part of which sees the parts before it, and the outer ones."""
    known = dict(outer)
    own: set[str] = set()
    clause = tree.args.get("with_")
    for part in clause.expressions if clause is not None else []:
        if find_name(part.alias, own) is not None:
            what = f"A second part of WITH has the name {shorten(part.alias)}"
            raise build_syntax_refusal(part, what, "Give them different names.")
        own.add(part.alias)
        made = CTE(part.this, dict(known))
        known = {name: cte for name, cte in known.items() if find_name(name, (part.alias,)) is None}
        known[part.alias] = made
    return known
