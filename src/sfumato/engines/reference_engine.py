"""Slow, plain Python: what the other engines must equal, bit for bit."""

import hashlib
import math
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from sfumato.engines.engine import UNIT, cell_key, cells_of
from sfumato.kernel.plan import (
    BoundedPlan,
    Call,
    Column,
    ColumnType,
    Expression,
    Kind,
    Literal,
    Measurement,
    Scalar,
    digest,
)
from sfumato.kernel.release import ExactAggregates

Row = Mapping[str, Scalar]
NUMERIC = (ColumnType.INTEGER, ColumnType.REAL)


class ReferenceEngine:
    """Rows as mappings from column names to values, as a snapshot holds them."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        self._tables = tables

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Add up row by row."""
        rows = self._tables[plan.table]
        cells = cells_of(plan)
        rows_of_unit = Counter(row.get(UNIT) for row in rows)
        totals = {each.name: [0] * plan.cells for each in plan.measurements}
        cells_of_unit: dict[Scalar, set[int]] = {}
        for number, row in enumerate(rows):
            cell = cells.get(cell_key(evaluate(key.expression, row) for key in plan.keys))
            if cell is None or not all(evaluate(condition, row) is True for condition in plan.filters):
                continue
            unit, held = (number, 1) if plan.unit.per_row else (row[UNIT], rows_of_unit[row[UNIT]])
            cells_of_unit.setdefault(unit, set()).add(cell)
            for each in plan.measurements:
                if each.kind is not Kind.PEOPLE:
                    totals[each.name][cell] += _contribution(each, row, plan, held)
        for each in plan.measurements:
            if each.kind is Kind.PEOPLE:
                for unit, reached in cells_of_unit.items():
                    kept = sorted((_order(cell, unit), cell) for cell in reached)[: plan.bound.max_groups_per_unit]
                    for _, cell in kept:
                        totals[each.name][cell] += 1
        return ExactAggregates(digest(plan), totals)


def _order(cell: int, unit: Scalar) -> str:
    return hashlib.md5(f"{cell}:{unit}".encode(), usedforsecurity=False).hexdigest()


def _contribution(each: Measurement, row: Row, plan: BoundedPlan, held: int) -> int:
    value = None if each.value is None else evaluate(each.value, row)
    if each.value is not None and value is None:
        return 0
    steps = quantise(float(value), each) if each.kind is Kind.SUM else 1 << -each.exponent  # type: ignore[arg-type]
    most = plan.bound.max_rows_per_unit
    return steps if held <= most else (abs(steps) * most // held) * (1 if steps >= 0 else -1)  # toward zero


def quantise(value: float, each: Measurement) -> int:
    """Onto the measurement's grid, clamped (an infinity becomes a bound), less the offset."""
    scaled = value * 2.0**-each.exponent
    if math.isinf(scaled):
        return (each.upper if scaled > 0 else each.lower) - each.offset
    below = math.floor(scaled)
    return max(each.lower, min(each.upper, below + (scaled - below >= 0.5))) - each.offset


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
            outcomes = [evaluate(each, row) for each in arguments]
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
            return next((found for each in arguments if (found := evaluate(each, row)) is not None), None)
        case Call(function, arguments):
            values = [evaluate(each, row) for each in arguments]
            return None if None in values else _apply(function, values)


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
            return re.fullmatch(_pattern(two), one, re.DOTALL) is not None
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


def _pattern(like: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in like)
