"""COUNT(DISTINCT x), SUM(DISTINCT x) and AVG(DISTINCT x): aggregates of different values, or of people."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.query import functions
from sfumato.query.decided_comparisons import add_caution
from sfumato.query.parse import build_syntax_refusal, locate
from sfumato.query.query import Aggregate, Typed
from sfumato.query.row_expressions import RowBinder

MOST_TOGETHER = 8  # expressions of which combinations are counted
NULLS = (
    "COUNT(DISTINCT (a, b)) is read as COUNT(DISTINCT a, b): rows in which a or b is NULL are not counted. Some "
    "systems count them."
)


def bind_counted_values(node: exp.Expr, given: Sequence[exp.Expr], rows: RowBinder) -> Aggregate:
    """COUNT(DISTINCT x) or COUNT(DISTINCT x, y). Of the person's id, it counts people."""
    bare = [one.unnest() for one in given]
    tuples = len(bare) == 1 and isinstance(bare[0], exp.Tuple)
    if tuples:
        bare = [one.unnest() for one in bare[0].expressions]
    if len(bare) == 1 and rows.scope.is_person(bare[0]):
        return Aggregate("PEOPLE", None)
    if not 1 <= len(bare) <= MOST_TOGETHER:
        what = f"COUNT(DISTINCT ...) takes 1 to {MOST_TOGETHER} expressions"
        raise build_syntax_refusal(node, what, "Count fewer expressions together.")
    values = list(dict.fromkeys(_bind_value(one, rows) for one in bare))
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
    if function not in ("SUM", "AVG") or len(given) != 1:
        hint = f"Write {function}(x): it is of all rows, and not of different values."
        raise build_syntax_refusal(node, f"{function}(DISTINCT ...) is not supported", hint)
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
