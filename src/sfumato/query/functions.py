"""The row-level functions: the types that each takes, and the bounds of its result by interval arithmetic.

Numbers are doubles. A NULL argument gives NULL, except in IS NULL, COALESCE, CASE, AND and OR. Division by zero gives
NULL. Bounds follow from declared bounds alone. A value without bounds can be compared, but not added up.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sfumato.catalog.names import split_pattern
from sfumato.errors import MissingBounds, UnsupportedSyntax
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar
from sfumato.query.mapped_values import map_values
from sfumato.query.missing_bounds import explain_missing_bound
from sfumato.query.periods import convert_to_number
from sfumato.query.query import Typed

MOST_REACH = 1e100
MOST_WILDCARDS = 5
MOST_KEYS = 10_000
MOST_WHOLE = 2**53
KINDS = {  # the type of a column that a subquery makes
    "number": ColumnType.REAL, "text": ColumnType.TEXT, "boolean": ColumnType.BOOLEAN, "date": ColumnType.DATE,
    "datetime": ColumnType.DATETIME,
}  # fmt: skip
TRUTHS: tuple[Scalar, ...] = (False, True)


def type_literal(value: Scalar) -> Typed:
    """Type a value that the analyst wrote."""
    match value:
        case None:
            return Typed(Literal(None), "null")
        case bool():
            return Typed(Literal(value), "boolean", False, values=(value,))
        case int() | float():
            if not abs(value) <= MOST_REACH:
                raise MissingBounds("bounds", "This number is too large.", "Use numbers below 1e100.")
            whole = float(value).is_integer() and abs(value) <= MOST_WHOLE
            return Typed(Literal(value), "number", False, float(value), float(value), whole, (value,))
        case str():
            return Typed(Literal(value), "text", False, values=(value,))
        case _:
            kind, number = "datetime" if isinstance(value, datetime) else "date", convert_to_number(value)
            return Typed(Literal(value), kind, False, number, number, values=(value,))


def compare(function: str, one: Typed, two: Typed) -> Typed:
    """=, <>, <, <=, >, >= of two values of the same type. Beside a number, a boolean is 1 or 0."""
    if {one.type, two.type} == {"boolean", "number"}:
        one, two = (convert_truth(side) if side.type == "boolean" else side for side in (one, two))
    require_same_type(function, one, two)
    return Typed(
        Call(function, (one.expression, two.expression)), "boolean", one.nullable or two.nullable, values=TRUTHS
    )


def combine_logic(function: str, arguments: Sequence[Typed]) -> Typed:
    """AND, OR, NOT of conditions."""
    for argument in arguments:
        require_type(function.upper(), argument, "boolean")
    nullable = any(argument.nullable for argument in arguments)
    call = Call(function, tuple(argument.expression for argument in arguments))
    return Typed(call, "boolean", nullable, values=TRUTHS)


def check_null(one: Typed) -> Typed:
    """IS NULL. The result is never NULL."""
    return Typed(Call("is null", (one.expression,)), "boolean", False, values=TRUTHS)


def match_pattern(one: Typed, two: Typed, escape: str | None = None) -> Typed:
    """LIKE with a constant pattern. Few wildcards bound the time that it takes."""
    require_type("LIKE", one, "text")
    pattern = two.expression.value if isinstance(two.expression, Literal) else None
    if not isinstance(pattern, str) or pattern.count("%") > MOST_WILDCARDS or (escape is None and "\\" in pattern):
        raise UnsupportedSyntax(
            "syntax",
            f"LIKE needs a pattern in quotes, with at most {MOST_WILDCARDS} signs % and no backslash.",
            "Write a pattern such as LIKE 'A%'.",
        )
    if escape is None:
        return Typed(Call("like", (one.expression, two.expression)), "boolean", one.nullable, values=TRUTHS)
    if len(escape) != 1 or "=" in split_pattern(pattern, escape):
        what = "ESCAPE needs one character, and a pattern that does not end with it."
        raise UnsupportedSyntax("syntax", what, "Write LIKE '10!%' ESCAPE '!'.")
    if any(part[1:] not in ("%", "_", escape) for part in _list_escaped(pattern, escape)):
        what = "In a pattern, the escape character must stand before %, _ or itself."
        raise UnsupportedSyntax("syntax", what, "Write LIKE '10!%' ESCAPE '!'.")
    call = Call("like", (one.expression, two.expression, Literal(escape)))
    return Typed(call, "boolean", one.nullable, values=TRUTHS)


def _list_escaped(pattern: str, escape: str) -> list[str]:
    """The escape character and what follows it, each time."""
    found, place = [], 0
    while place < len(pattern):
        escaped = pattern[place] == escape
        found += [pattern[place : place + 2]] if escaped else []
        place += 2 if escaped else 1
    return found


def compute(function: str, one: Typed, two: Typed) -> Typed:
    """+, -, * and / of numbers that have bounds."""
    for operand in (one, two):
        require_type(function, operand, "number")
        if not operand.bounded:
            which, hint = explain_missing_bound(operand)
            raise MissingBounds("bounds", f"An operand of '{function}' has {which}.", hint)
    if function == "/" and contains_division(two.expression):
        # an engine's SQL contains the divisor twice, as NULLIF(divisor, 0): nested divisors would grow exponentially,
        # unless the inner ones are constants
        hint = "Multiply instead: a / (b / c) = a * c / b."
        raise UnsupportedSyntax("syntax", "A divisor contains another division.", hint)
    lower, upper = _bound_result(function, one, two)
    nullable = one.nullable or two.nullable
    if function == "/":
        nullable = nullable or contains_zero(two)
    whole = function != "/" and one.whole and two.whole and max(abs(lower or 0), abs(upper or 0)) <= MOST_WHOLE
    made = Typed(Call(function, (one.expression, two.expression)), "number", nullable, lower, upper, whole)
    return map_values(made, (one, two))


def _bound_result(function: str, one: Typed, two: Typed) -> tuple[float | None, float | None]:
    a, b, c, d = (float(end) for end in (one.lower, one.upper, two.lower, two.upper) if end is not None)
    match function:
        case "+":
            ends = [a + c, b + d]
        case "-":
            ends = [a - d, b - c]
        case "*":
            ends = [a * c, a * d, b * c, b * d]
        case _:
            if contains_zero(two):
                return None, None
            ends = [a / c, a / d, b / c, b / d]
    if not all(math.isfinite(end) and abs(end) <= MOST_REACH for end in ends):
        raise MissingBounds(
            "bounds", f"The bounds of '{function}' are too large.", "Use smaller numbers, or declare narrower bounds."
        )
    return min(ends), max(ends)  # the engine computes with the same double operations, which are monotone


def contains_division(expression: Expression) -> bool:
    """Does an expression divide by more than a constant? An engine writes a divisor twice."""
    if not isinstance(expression, Call):
        return False
    divides = expression.function == "mod" or (
        expression.function == "/" and not isinstance(expression.arguments[1], Literal)
    )
    return divides or any(map(contains_division, expression.arguments))


def contains_zero(two: Typed) -> bool:
    """Do the bounds of a number contain 0? A number without bounds may be anything."""
    return two.lower is None or two.upper is None or two.lower <= 0 <= two.upper


def apply_unary(function: str, one: Typed) -> Typed:
    """-x, ABS, FLOOR or CEIL of a number."""
    require_type({"neg": "-"}.get(function, function.upper()), one, "number")
    lower, upper, whole = one.lower, one.upper, one.whole
    values: tuple[Scalar, ...] | None = None
    if lower is not None and upper is not None:
        match function:
            case "neg":
                lower, upper = -upper, -lower
            case "abs":
                lower, upper = (
                    (0.0 if lower <= 0 <= upper else min(abs(lower), abs(upper))),
                    max(abs(lower), abs(upper)),
                )
            case _:
                rounded = math.floor if function == "floor" else math.ceil
                lower, upper = float(rounded(lower)), float(rounded(upper))
                whole = max(abs(lower), abs(upper)) <= MOST_WHOLE
                values = list_whole_values(int(lower), int(upper)) if whole else None
    made = Typed(Call(function, (one.expression,)), "number", one.nullable, lower, upper, whole, values)
    return map_values(made, (one,))


def list_whole_values(lower: int, upper: int) -> tuple[Scalar, ...] | None:
    """The whole numbers between two bounds, if there are few enough to be keys."""
    return tuple(range(lower, upper + 1)) if upper - lower < MOST_KEYS else None


def choose(conditions: Sequence[Typed], outcomes: Sequence[Typed], otherwise: Typed) -> Typed:
    """CASE WHEN ... THEN ... ELSE ... END. The outcomes have the same type, or are NULL."""
    for condition in conditions:
        require_type("CASE WHEN", condition, "boolean")
    parts = [part for pair in zip(conditions, outcomes, strict=True) for part in pair]
    call = Call("case", (*(part.expression for part in parts), otherwise.expression))
    merged = _merge_outcomes("CASE", call, [*outcomes, otherwise])
    return replace(merged, restricted=(conditions[0], outcomes[0], otherwise)) if len(conditions) == 1 else merged


def coalesce(arguments: Sequence[Typed]) -> Typed:
    """The first argument that is not NULL."""
    call = Call("coalesce", tuple(argument.expression for argument in arguments))
    merged = _merge_outcomes("COALESCE", call, arguments)
    return replace(merged, nullable=all(argument.nullable for argument in arguments))


def convert_truth(one: Typed) -> Typed:
    """1 for true, 0 for false, NULL for NULL. SUM and AVG of a condition add these up."""
    if not one.nullable:
        return choose([one], [type_literal(1)], type_literal(0))
    made = choose([one, combine_logic("not", [one])], [type_literal(1), type_literal(0)], type_literal(None))
    return replace(made, restricted=(one, type_literal(1), type_literal(0)))  # as far as SUM can tell


def _merge_outcomes(function: str, call: Call, outcomes: Sequence[Typed]) -> Typed:
    real = [outcome for outcome in outcomes if outcome.type != "null"]
    if not real:
        raise UnsupportedSyntax("syntax", f"Every value of {function} is NULL.", "Give at least one other value.")
    for outcome in real[1:]:
        require_same_type(function, real[0], outcome)
    bounded = all(outcome.bounded for outcome in real)
    lower = min(outcome.lower for outcome in real if outcome.lower is not None) if bounded else None
    upper = max(outcome.upper for outcome in real if outcome.upper is not None) if bounded else None
    values: tuple[Scalar, ...] | None = None
    listed = [outcome.values for outcome in real if outcome.values is not None]
    if len(listed) == len(real) and sum(map(len, listed)) <= MOST_KEYS:
        values = tuple(dict.fromkeys(value for possible in listed for value in possible))
    nullable = any(outcome.nullable for outcome in outcomes)
    return Typed(call, real[0].type, nullable, lower, upper, all(outcome.whole for outcome in real), values)


def merge_union_column(parts: Sequence[Typed], name: str) -> Typed:
    """A column of UNION ALL, with the bounds and values of all its SELECTs."""
    merged = _merge_outcomes("UNION ALL", Call("case", ()), parts)
    return replace(merged, expression=Column(name, KINDS[merged.type], merged.nullable))


def require_same_type(function: str, one: Typed, two: Typed) -> None:
    """Refuse values of two types, and NULL."""
    if "null" in (one.type, two.type):
        hint = "Use IS NULL or IS NOT NULL for rows without a value. In a list of IN, leave NULL out."
        raise UnsupportedSyntax("syntax", f"'{function}' with NULL is never true.", hint)
    if one.type != two.type:
        message = f"'{function}' combines a {one.type} with a {two.type}."
        raise UnsupportedSyntax("syntax", message, _suggest_type(one, two))


def _suggest_type(one: Typed, two: Typed) -> str:
    """How to write a literal that stands beside a value of another type."""
    for value, other in ((one, two), (two, one)):
        written = value.expression.value if isinstance(value.expression, Literal) else None
        match other.type, written:
            case "number", str() if written.strip().lstrip("+-").replace(".", "", 1).isdigit():
                return f"Write the number without quotes: {written.strip()[:20]}."
            case "boolean", str():
                return "Write TRUE or FALSE, without quotes."
            case "date" | "datetime", int() | float() if not isinstance(written, bool):
                return "Write a date, DATE '2000-01-31', or compare the year: YEAR(x) > 2000."
    return "Use values of the same type."


def require_type(function: str, one: Typed, wanted: str) -> None:
    """Refuse a value of another type."""
    if one.type != wanted:
        message = f"'{function}' needs a {wanted}, but this is a {one.type}."
        raise UnsupportedSyntax("syntax", message, f"Use a {wanted}.")
