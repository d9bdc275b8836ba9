"""The value of an expression for one row, in plain Python. Every function is total."""

import math
import operator
from collections.abc import Mapping, Sequence

from sfumato.catalog.names import is_like
from sfumato.engines.reference.reference_dates import DATE_FUNCTIONS, apply_to_dates
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar

Row = Mapping[str, Scalar]
NUMERIC = (ColumnType.INTEGER, ColumnType.REAL)


def evaluate(expression: Expression, row: Row) -> Scalar:  # noqa: PLR0911 - one return a form
    """The value of an expression for one row. Numbers are doubles; NULL is None; every function is total."""
    match expression:
        case Literal(value):
            return float(value) if type(value) is int else value
        case Column(name, kind):
            value = row[name]
            return float(value) if kind in NUMERIC and value is not None else value  # type: ignore[arg-type]
        case Call("and" | "or" as function, arguments):
            decisive = function == "or"
            outcomes = [evaluate(argument, row) for argument in arguments]
            return decisive if decisive in outcomes else None if None in outcomes else not decisive
        case Call("case", arguments):
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
            for condition, outcome in pairs:
                if evaluate(condition, row) is True:
                    return evaluate(outcome, row)
            return evaluate(arguments[-1], row)
        case Call("is null", (argument,)):
            return evaluate(argument, row) is None
        case Call("coalesce", arguments):
            return next((found for argument in arguments if (found := evaluate(argument, row)) is not None), None)
        case Call(function, arguments, unit):
            values = [evaluate(argument, row) for argument in arguments]
            if None in values:
                return None
            return (
                apply_to_dates(function, unit or "", values) if function in DATE_FUNCTIONS else _apply(function, values)
            )


def _apply(function: str, values: Sequence[Scalar]) -> Scalar:  # noqa: PLR0911, PLR0912 - one line a function
    one: object = values[0]
    two: object = values[1] if len(values) > 1 else None
    match function, one, two:
        case "not", bool(), _:
            return not one
        case "=", _, _:
            return one == two
        case "<>", _, _:
            return one != two
        case (("<" | "<=" | ">" | ">="), _, _):
            return _compare(function, one, two)
        case "neg", float(), _:
            return -one
        case "abs", float(), _:
            return abs(one)
        case "floor", float(), _:
            return float(math.floor(one)) if math.isfinite(one) else one
        case "ceil", float(), _:
            return float(math.ceil(one)) if math.isfinite(one) else one
        case "+", float(), float():
            return one + two
        case "-", float(), float():
            return one - two
        case "*", float(), float():
            return one * two
        case "/", float(), float():
            return None if two == 0 else _divide(one, two)
        case "like", str(), str():
            return is_like(one, two)
    raise AssertionError(f"no such function: {function}")


def _divide(one: float, two: float) -> float:
    try:
        return one / two
    except OverflowError:
        return math.copysign(math.inf, one) * math.copysign(1, two)


def _compare(function: str, one: object, two: object) -> bool:
    if isinstance(one, str) and isinstance(two, str):
        one, two = one.encode(), two.encode()  # by bytes, as engines compare without a locale
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[function]
    return bool(compare(one, two))  # type: ignore[arg-type]
