"""FROM sites s LEFT JOIN visits v: the row of a site that nobody visited belongs to nobody, and counts nowhere here.

Such a row has NULL in every column of the visits. If no aggregate counts it and WHERE does not look for it, an inner
join has the same groups and values: groups of declared keys are listed even if nobody is in them.
"""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.query.relation import Scope
from sfumato.query.row_expressions import flatten

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike)
ONE_VALUE = (exp.Paren, exp.Neg, exp.Cast, exp.Abs, exp.Floor, exp.Ceil, exp.Round)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of an outer join that keeps public rows."""

    public: Scope
    private: Scope

    def is_private(self, column: exp.Column) -> bool:
        """Is it a column of the private side? A name that both sides have means the public one, as with USING."""
        if column.table:
            return any(item.alias.lower() == column.table.lower() for item in self.private.items)
        return self.private.has_column(column.name) and not self.public.has_column(column.name)


def ignores_rows_of_nobody(tree: exp.Select, sides: Sides) -> bool:
    """Are the answers the same without the rows in which every column of the private side is NULL?"""
    parts = [*tree.expressions, *(tree.args.get(name) for name in ("having", "order", "qualify"))]
    found = [node for part in parts if part is not None for node in part.find_all(exp.AggFunc)]
    aggregates = [node for node in found if not isinstance(node.parent, exp.Window) and not _has_aggregate_inside(node)]
    if not aggregates or not all(_is_same_without(node, sides) for node in aggregates):
        return False
    where = tree.args.get("where")
    conditions = [] if where is None else flatten(where.this) if _is_and(where.this) else [where.this]
    return all(not _reads(condition, sides) or _is_unknown(condition, sides) for condition in conditions)


def _is_and(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.And)


def _has_aggregate_inside(node: exp.Expr) -> bool:
    return any(inner is not node for inner in node.find_all(exp.AggFunc))


def _reads(node: exp.Expr, sides: Sides) -> bool:
    return any(sides.is_private(column) for column in node.find_all(exp.Column))


def _is_same_without(node: exp.Expr, sides: Sides) -> bool:
    """Does an aggregate leave such rows out, or add 0 for them?"""
    value = node.this
    if isinstance(value, exp.Distinct):
        return len(value.expressions) == 1 and _is_null(value.expressions[0], sides)
    if not isinstance(value, exp.Expr) or node.args.get("expression") is not None:
        return False
    case = value.unnest()
    zero = isinstance(case, exp.Case) and isinstance(case.args.get("default"), exp.Literal)
    if isinstance(node, exp.Sum) and zero and str(case.args["default"].this) == "0":
        return all(_is_unknown(one.this, sides) for one in case.args["ifs"])
    return _is_null(value, sides)


def _is_null(node: exp.Expr, sides: Sides) -> bool:
    """Is an expression NULL wherever the private columns are?"""
    match node:
        case exp.Column():
            return sides.is_private(node)
        case exp.Case():
            return node.args.get("default") is None and all(_is_unknown(one.this, sides) for one in node.args["ifs"])
    if isinstance(node, ARITHMETIC):
        return _is_null(node.this, sides) or _is_null(node.expression, sides)
    return isinstance(node, ONE_VALUE) and _is_null(node.this, sides)


def _is_unknown(node: exp.Expr, sides: Sides) -> bool:
    """Is a condition unknown wherever the private columns are NULL?"""
    bare = node.unnest()
    if isinstance(bare, exp.Not):
        return _is_unknown(bare.this, sides)
    if isinstance(bare, exp.And):
        return _is_unknown(bare.this, sides) or _is_unknown(bare.expression, sides)
    if isinstance(bare, COMPARISONS):
        return _is_null(bare.this, sides) or _is_null(bare.expression, sides)
    listed = isinstance(bare, exp.In) and bare.args.get("query") is None
    return (listed or isinstance(bare, exp.Between)) and _is_null(bare.this, sides)
