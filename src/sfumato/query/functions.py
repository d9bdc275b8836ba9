"""The allow-list: for each row-level function its types, its bounds by interval arithmetic, its total meaning.

Numbers are doubles. NULL in gives NULL out, except for IS NULL, COALESCE, CASE, AND and OR. Division by zero is NULL.
Bounds follow from declared bounds alone; where none follow, a value can be compared but not added up.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sfumato.errors import MissingBounds, UnsupportedSyntax
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar
from sfumato.query.periods import to_number
from sfumato.query.query import Typed

MOST_REACH = 1e100
MOST_WILDCARDS = 5
MOST_KEYS = 10_000
MOST_WHOLE = 2**53
TRUTHS: tuple[Scalar, ...] = (False, True)


def type_literal(value: Scalar) -> Typed:
    """A value that the analyst wrote."""
    match value:
        case None:
            return Typed(Literal(None), "null")
        case bool():
            return Typed(Literal(value), "boolean", False, values=(value,))
        case int() | float():
            if not abs(value) <= MOST_REACH:
                raise MissingBounds("bounds", "A number in the question is too large.", "Use numbers below 1e100.")
            whole = float(value).is_integer() and abs(value) <= MOST_WHOLE
            return Typed(Literal(value), "number", False, float(value), float(value), whole, (value,))
        case str():
            return Typed(Literal(value), "text", False, values=(value,))
        case _:
            kind, number = "datetime" if isinstance(value, datetime) else "date", to_number(value)
            return Typed(Literal(value), kind, False, number, number, values=(value,))


def compare(function: str, one: Typed, two: Typed) -> Typed:
    """=, <>, <, <=, >, >= of two values of one type."""
    _require_same_type(function, one, two)
    return Typed(
        Call(function, (one.expression, two.expression)), "boolean", one.nullable or two.nullable, values=TRUTHS
    )


def combine_logic(function: str, arguments: Sequence[Typed]) -> Typed:
    """AND, OR, NOT of truth values."""
    for each in arguments:
        _require_type(function, each, "boolean")
    nullable = any(each.nullable for each in arguments)
    return Typed(Call(function, tuple(each.expression for each in arguments)), "boolean", nullable, values=TRUTHS)


def test_null(one: Typed) -> Typed:
    """IS NULL: never NULL itself."""
    return Typed(Call("is null", (one.expression,)), "boolean", False, values=TRUTHS)


def match_pattern(one: Typed, two: Typed) -> Typed:
    """LIKE a pattern that the analyst wrote, with few wildcards: its time is bounded."""
    _require_type("LIKE", one, "text")
    pattern = two.expression.value if isinstance(two.expression, Literal) else None
    if not isinstance(pattern, str) or pattern.count("%") > MOST_WILDCARDS or "\\" in pattern:
        raise UnsupportedSyntax(
            "syntax",
            "LIKE takes a pattern in quotes, with at most five % and no backslash.",
            "Write it out, such as LIKE 'A%'.",
        )
    return Typed(Call("like", (one.expression, two.expression)), "boolean", one.nullable, values=TRUTHS)


def compute(function: str, one: Typed, two: Typed) -> Typed:
    """+, -, * and / of numbers that have bounds."""
    for each in (one, two):
        _require_type(function, each, "number")
        if not each.bounded:
            raise MissingBounds(
                "bounds", f"A part of '{function}' has no bounds.", "Divide only by what cannot be zero, such as a + 1."
            )
    if function == "/" and _divides(two.expression):
        # NULLIF(divisor, 0) holds the divisor twice in an engine: nested, that is exponential
        raise UnsupportedSyntax(
            "syntax", "A divisor holds another division.", "Multiply instead: a / (b / c) = a * c / b."
        )
    lower, upper = _bound_result(function, one, two)
    nullable = one.nullable or two.nullable
    if function == "/":
        nullable = nullable or contains_zero(two)
    whole = function != "/" and one.whole and two.whole and max(abs(lower or 0), abs(upper or 0)) <= MOST_WHOLE
    return Typed(Call(function, (one.expression, two.expression)), "number", nullable, lower, upper, whole)


def _bound_result(function: str, one: Typed, two: Typed) -> tuple[float | None, float | None]:
    a, b, c, d = (float(each) for each in (one.lower, one.upper, two.lower, two.upper) if each is not None)
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
        raise MissingBounds("bounds", f"The bounds of '{function}' are too large.", "Use smaller numbers.")
    return min(ends), max(ends)  # of the same double operations as the engine's, which are monotone


def _divides(expression: Expression) -> bool:
    return isinstance(expression, Call) and (expression.function == "/" or any(map(_divides, expression.arguments)))


def contains_zero(two: Typed) -> bool:
    """Do the bounds of a number contain 0? A number without bounds may be anything."""
    return two.lower is None or two.upper is None or two.lower <= 0 <= two.upper


def apply_unary(function: str, one: Typed) -> Typed:
    """neg, abs, floor, ceil of a number."""
    _require_type(function, one, "number")
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
    return Typed(Call(function, (one.expression,)), "number", one.nullable, lower, upper, whole, values)


def list_whole_values(lower: int, upper: int) -> tuple[Scalar, ...] | None:
    """The whole numbers from one to the other, where they are few enough to be keys."""
    return tuple(range(lower, upper + 1)) if upper - lower < MOST_KEYS else None


def choose(conditions: Sequence[Typed], outcomes: Sequence[Typed], otherwise: Typed) -> Typed:
    """CASE WHEN ... THEN ... ELSE ... END: the outcomes are of one type, or NULL."""
    for each in conditions:
        _require_type("CASE WHEN", each, "boolean")
    parts = [item for pair in zip(conditions, outcomes, strict=True) for item in pair]
    call = Call("case", (*(each.expression for each in parts), otherwise.expression))
    return _merge_outcomes("CASE", call, [*outcomes, otherwise])


def coalesce(arguments: Sequence[Typed]) -> Typed:
    """The first that is not NULL."""
    joined = _merge_outcomes("COALESCE", Call("coalesce", tuple(each.expression for each in arguments)), arguments)
    return replace(joined, nullable=all(each.nullable for each in arguments))


def convert_truth(one: Typed) -> Typed:
    """1 for true, 0 for false, NULL for NULL: what SUM and AVG of a truth value add up."""
    if not one.nullable:
        return choose([one], [type_literal(1)], type_literal(0))
    return choose([one, combine_logic("not", [one])], [type_literal(1), type_literal(0)], type_literal(None))


def _merge_outcomes(function: str, call: Call, outcomes: Sequence[Typed]) -> Typed:
    real = [each for each in outcomes if each.type != "null"]
    if not real:
        raise UnsupportedSyntax("syntax", "Every outcome is NULL.", "Give at least one value.")
    for each in real[1:]:
        _require_same_type(function, real[0], each)
    bounded = all(each.bounded for each in real)
    lower = min(each.lower for each in real if each.lower is not None) if bounded else None
    upper = max(each.upper for each in real if each.upper is not None) if bounded else None
    values: tuple[Scalar, ...] | None = None
    if all(each.values is not None for each in real) and sum(len(each.values or ()) for each in real) <= MOST_KEYS:
        values = tuple(dict.fromkeys(value for each in real for value in each.values or ()))
    nullable = any(each.nullable for each in outcomes)
    return Typed(call, real[0].type, nullable, lower, upper, all(each.whole for each in real), values)


def merge_union_column(parts: Sequence[Typed], name: str) -> Typed:
    """A column of UNION ALL: what can come from any of its parts."""
    kinds = {
        "number": ColumnType.REAL, "text": ColumnType.TEXT, "boolean": ColumnType.BOOLEAN, "date": ColumnType.DATE,
        "datetime": ColumnType.DATETIME,
    }  # fmt: skip
    joined = _merge_outcomes("UNION ALL", Call("case", ()), parts)
    return replace(joined, expression=Column(name, kinds[joined.type], joined.nullable))


def _require_same_type(function: str, one: Typed, two: Typed) -> None:
    if "null" in (one.type, two.type):
        raise UnsupportedSyntax("syntax", f"'{function}' with NULL is never true.", "Use IS NULL or IS NOT NULL.")
    if one.type != two.type:
        raise UnsupportedSyntax(
            "syntax", f"'{function}' mixes a {one.type} with a {two.type}.", "Use values of one type."
        )


def _require_type(function: str, one: Typed, wanted: str) -> None:
    if one.type != wanted:
        raise UnsupportedSyntax("syntax", f"'{function}' takes a {wanted}, not a {one.type}.", f"Give it a {wanted}.")
