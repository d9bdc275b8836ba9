"""MEDIAN, QUANTILE_CONT, PERCENTILE_CONT, MIN, MAX, MODE and TOP_K: aggregates that choose among public bins."""

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.query import functions
from sfumato.query.constants import read_exact_number
from sfumato.query.date_functions import count_boundaries
from sfumato.query.missing_bounds import explain_missing_bound
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.periods import convert_to_moment
from sfumato.query.query import Aggregate, Typed
from sfumato.query.row_expressions import RowBinder
from sfumato.query.size_limits import MOST_BINS, MOST_CHOSEN

FINEST_FRACTION = 10**6  # the greatest denominator of a quantile's fraction
BOUNDS = "Declare bounds, or use an expression of columns that have bounds."


BindValue = Callable[[exp.Expr, str], Typed]


def bind_choice(node: exp.Expr, rows: RowBinder, bind_value: BindValue | None = None) -> Aggregate:
    """Bind an aggregate that chooses among bins. `bind_value` binds values with contribution bounds."""
    value_of = bind_value or (lambda inner, _: rows.bind(inner))
    match node:
        case exp.Min() | exp.Max():
            return _bind_number("MIN" if isinstance(node, exp.Min) else "MAX", node, node.this, value_of)
        case exp.Median():
            return _bind_number("QUANTILE", node, node.this, value_of, Fraction(1, 2))
        case exp.PercentileCont() if node.args.get("expression") is not None:
            return _bind_number("QUANTILE", node, node.this, value_of, _read_fraction(node, node.expression))
        case exp.WithinGroup(this=exp.PercentileCont() as inner) if inner.args.get("expression") is None:
            return _bind_within_group(node, inner, value_of)
        case exp.Mode():
            return Aggregate("MODE", _bind_listed(node, node.this, rows))
        case exp.Anonymous() if str(node.this).upper() == "TOP_K" and len(node.expressions) == 2:
            value = _bind_listed(node, node.expressions[0], rows)
            return Aggregate("TOP_K", value, most=_read_most(node, node.expressions[1], value))
    hint = "Write MEDIAN(x), QUANTILE_CONT(x, 0.9), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x) or TOP_K(x, 3)."
    raise build_syntax_refusal(node, f"{name_node(node)} has other arguments than it takes", hint)


def _bind_within_group(node: exp.WithinGroup, inner: exp.PercentileCont, value_of: BindValue) -> Aggregate:
    terms = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if len(terms) != 1:
        raise build_syntax_refusal(node, "WITHIN GROUP needs one ORDER BY term", "Write WITHIN GROUP (ORDER BY x).")
    fraction = _read_fraction(node, inner.this)
    if terms[0].args.get("desc"):
        fraction = 1 - fraction
    return _bind_number("QUANTILE", node, terms[0].this, value_of, fraction)


def _show_function(node: exp.Expr) -> str:
    match node:
        case exp.WithinGroup() | exp.PercentileCont():
            return "A quantile"
        case exp.Anonymous():
            return "TOP_K"
    return name_node(node)


def _bind_number(
    function: str, node: exp.Expr, inner: exp.Expr, value_of: BindValue, fraction: Fraction | None = None
) -> Aggregate:
    """Bind a choice of a number, or of a date or datetime, which is a number of days or minutes."""
    value, since = value_of(inner, "choice"), None
    if value.type == "boolean":
        value = functions.convert_truth(value)
    if value.type not in ("number", "date", "datetime"):
        what = f"{_show_function(node)} needs a number or a date, but this is a {value.type}[at]"
        raise build_syntax_refusal(
            node, what, "MODE(x) is the most frequent value. That is another question, and it can be answered."
        )
    if value.lower is None or value.upper is None:
        which, hint = ("no bounds", BOUNDS) if value.type != "number" else explain_missing_bound(value)
        message = f"{_show_function(node)} needs a value with bounds, and this has {which}{locate(node)}."
        raise MissingBounds("bounds", message, hint)
    if value.type != "number":
        since = convert_to_moment(value.type, value.lower)
        unit = "day" if value.type == "date" else "minute"
        value = count_boundaries(unit, functions.type_literal(since), value)
    if value.lower == value.upper:
        what = f"{_show_function(node)} of a constant does not need the data"
        raise build_syntax_refusal(node, what, "Write the constant itself.")
    return Aggregate(function, value, fraction, since=since)


def _bind_listed(node: exp.Expr, inner: exp.Expr, rows: RowBinder) -> Typed:
    value = rows.bind(inner)
    if not value.values or len(value.values) > MOST_BINS:
        hint = "Declare the values as a category, or write GROUP BY with ORDER BY COUNT(*) DESC LIMIT 1."
        raise MissingBounds("keys", f"{_show_function(node)} needs declared values{locate(node)}.", hint)
    return value


def _read_fraction(node: exp.Expr, inner: exp.Expr) -> Fraction:
    value = read_exact_number(inner) or Fraction(0)
    if not 0 < value < 1 or value.denominator > FINEST_FRACTION:
        hint = "Write a number such as 0.5 or 0.95. For 0 and 1, use MIN and MAX."
        raise build_syntax_refusal(node, "The fraction of a quantile must be between 0 and 1", hint)
    return value


def _read_most(node: exp.Expr, inner: exp.Expr, value: Typed) -> int:
    text = str(inner.this) if isinstance(inner, exp.Literal) and not inner.is_string else ""
    most = int(text) if text.isdigit() and len(text) < 6 else 0
    if not 1 <= most <= min(MOST_CHOSEN, len(value.values or ())):
        hint = f"Write a whole number from 1 to {min(MOST_CHOSEN, len(value.values or ()))}."
        raise build_syntax_refusal(node, "The second value of TOP_K is not a possible number of values", hint)
    return most
