"""CORR, COVAR_SAMP, COVAR_POP and REGR_...: aggregates of two values. A row counts if neither value is NULL."""

from sqlglot import exp

from sfumato.errors import MissingBounds
from sfumato.query import functions
from sfumato.query.date_functions import AS_NUMBER
from sfumato.query.parse import build_syntax_refusal, locate, name_node
from sfumato.query.query import Aggregate, Typed
from sfumato.query.row_expressions import RowBinder

PAIRS: dict[type[exp.Expr], str] = {
    exp.Corr: "CORR", exp.CovarSamp: "COVAR_SAMP", exp.CovarPop: "COVAR_POP", exp.RegrSlope: "REGR_SLOPE",
    exp.RegrIntercept: "REGR_INTERCEPT", exp.RegrR2: "REGR_R2", exp.RegrSxx: "REGR_SXX", exp.RegrSyy: "REGR_SYY",
    exp.RegrSxy: "REGR_SXY", exp.RegrCount: "REGR_COUNT", exp.RegrAvgx: "REGR_AVGX", exp.RegrAvgy: "REGR_AVGY",
}  # fmt: skip


def bind_pair(node: exp.Expr, rows: RowBinder) -> Aggregate:
    """Bind an aggregate of two numbers with bounds: the dependent one, y, comes first."""
    function, name = PAIRS[type(node)], name_node(node)
    first, second = (_bind_number(node, argument, name, rows) for argument in (node.this, node.expression))
    one, two = _mask(first, second), _mask(second, first)
    match function:
        case "REGR_COUNT":
            return Aggregate("COUNT", one if one.nullable else None)
        case "REGR_AVGY":
            return Aggregate("AVG", one)
        case "REGR_AVGX":
            return Aggregate("AVG", two)
        case "REGR_SYY":
            return Aggregate("REGR_SXX", two, also=(one,))
        case _:
            return Aggregate(function, one, also=(two,))


def _bind_number(node: exp.Expr, inner: exp.Expr, name: str, rows: RowBinder) -> Typed:
    value = rows.bind(inner)
    if value.type == "boolean":
        value = functions.convert_truth(value)
    if value.type != "number":
        hint = AS_NUMBER if value.type in ("date", "datetime") else "Use two numbers."
        raise build_syntax_refusal(node, f"{name} needs two numbers, but one is a {value.type}[at]", hint)
    if not value.bounded:
        hint = "Declare bounds, or use an expression of columns that have bounds."
        raise MissingBounds("bounds", f"{name} needs numbers with bounds, and one has none{locate(node)}.", hint)
    if value.lower == value.upper:
        raise build_syntax_refusal(node, f"A value of {name} is constant", "Use two values that vary.")
    return value


def _mask(value: Typed, other: Typed) -> Typed:
    """The value, or NULL where the other is NULL."""
    if not other.nullable:
        return value
    null = functions.type_literal(None)
    return functions.choose([functions.check_null(other)], [null], value)
