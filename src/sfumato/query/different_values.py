"""COUNT(DISTINCT x), SUM(DISTINCT x) and AVG(DISTINCT x): aggregates of different values, or of people."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.query import functions
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.query import Aggregate, Typed
from sfumato.query.row_expressions import RowBinder

SPREADS = (exp.Variance, exp.Stddev, exp.StddevSamp, exp.VariancePop, exp.StddevPop)
MOST_TOGETHER = 8  # expressions of which combinations are counted
NULLS = (
    "COUNT(DISTINCT (a, b)) is read as COUNT(DISTINCT a, b): rows in which a or b is NULL are not counted. Some "
    "systems count them."
)


def bind_counted_values(node: exp.Expr, given: Sequence[exp.Expr], rows: RowBinder) -> Aggregate:
    """COUNT(DISTINCT x) or COUNT(DISTINCT x, y). Of the person's id, it counts people."""
    bare = [argument.unnest() for argument in given]
    tuples = len(bare) == 1 and isinstance(bare[0], exp.Tuple)
    if tuples:
        bare = [inner.unnest() for inner in bare[0].expressions]
    if len(bare) == 1 and rows.scope.is_person(bare[0]):
        return Aggregate("PEOPLE", None)
    if not 1 <= len(bare) <= MOST_TOGETHER:
        what = f"COUNT(DISTINCT ...) takes 1 to {MOST_TOGETHER} expressions"
        raise build_syntax_refusal(node, what, "Count fewer expressions together.")
    values = list(dict.fromkeys(_bind_value(argument, rows) for argument in bare))
    if tuples and any(value.nullable for value in values):
        add_caution(NULLS)
    varying = [value for value in values if value.values is None or len(value.values) > 1 or value.nullable]
    if not varying:
        hint = "It is 1, or 0 if there is no row."
        raise build_syntax_refusal(node, "COUNT(DISTINCT ...) of a constant does not need the data", hint)
    return Aggregate("COUNT DISTINCT", varying[0], also=tuple(varying[1:]))


def bind_added_values(node: exp.Expr, function: str, rows: RowBinder) -> Aggregate:
    """SUM(DISTINCT x) or AVG(DISTINCT x) of a number with bounds."""
    given = node.this.expressions
    if len(given) != 1:
        hint = f"Write {function}(DISTINCT x) once for each of them."
        raise build_syntax_refusal(node, f"{function}(DISTINCT ...) takes one expression", hint)
    value = rows.bind(given[0])
    if value.type == "boolean":
        value = functions.convert_truth(value)
    if value.type != "number" or not value.bounded:
        hint = "Declare bounds, or use an expression of columns that have bounds."
        raise MissingBounds("bounds", f"{function}(DISTINCT ...) needs a number with bounds{locate(node)}.", hint)
    if value.lower == value.upper:
        raise build_syntax_refusal(
            node, f"{function} of a constant does not need the data", "Write the constant itself."
        )
    return Aggregate(f"{function} DISTINCT", value)


def spread_different_values(node: exp.Expr, rows: RowBinder) -> exp.Expr:
    """VARIANCE(DISTINCT x), x >= a -> the same from COUNT(DISTINCT x) and SUM(DISTINCT ...) of x - a and its square.

    Different x have different squares of x - a, because x is at least a.
    """
    given = node.this.expressions
    value = rows.bind(given[0]) if len(given) == 1 else None
    if value is None or value.type != "number" or value.lower is None or value.upper is None:
        what = f"{name_node(node)}(DISTINCT ...) needs a number with bounds{locate(node)}."
        raise MissingBounds("bounds", what, "Declare bounds, or use an expression of columns that have bounds.")
    if value.lower == value.upper or (value.values is not None and len(value.values) == 1):
        what = f"{name_node(node)} of a constant does not need the data"
        raise build_syntax_refusal(node, what, "It is 0, or NULL if it is of a sample.")
    least: exp.Expr = exp.Literal.number(repr(abs(value.lower)))
    shift = exp.Add if value.lower < 0 else exp.Sub
    moved = exp.Paren(this=shift(this=exp.Paren(this=given[0].copy()), expression=least))

    def add_up(one: exp.Expr) -> exp.Expr:
        return exp.Sum(this=exp.Distinct(expressions=[one.copy()]))

    count = exp.Count(this=exp.Distinct(expressions=[given[0].copy()]), big_int=True)
    total = add_up(moved)
    squares = add_up(exp.Mul(this=moved.copy(), expression=moved.copy()))
    squared = exp.Mul(this=total, expression=total.copy())
    around = exp.Sub(this=squares, expression=exp.Div(this=exp.Paren(this=squared), expression=count))
    of_all = isinstance(node, exp.VariancePop | exp.StddevPop)
    divisor = count.copy() if of_all else exp.Sub(this=count.copy(), expression=exp.Literal.number(1))
    variance = exp.Div(this=_at_least_zero(around), expression=_at_least_zero(divisor))  # NULL where it is 0
    return variance if isinstance(node, exp.Variance | exp.VariancePop) else exp.Sqrt(this=variance)


def _at_least_zero(node: exp.Expr) -> exp.Expr:
    """Noise can make a number negative that never is."""
    return exp.Greatest(this=node, expressions=[exp.Literal.number(0)], ignore_nulls=True)


def _bind_value(node: exp.Expr, rows: RowBinder) -> Typed:
    """One expression. An id that is not the person's can be counted too: it is a text."""
    if isinstance(node, exp.Column):
        item, name = rows.scope.resolve(node)
        found = item.columns[name]
        if found.type == "id" and name not in item.person:
            return replace(found, type="text")
    value = rows.bind(node)
    if value.type == "null":
        raise build_syntax_refusal(node, "COUNT(DISTINCT NULL) is always 0", "Count a column.")
    return value
