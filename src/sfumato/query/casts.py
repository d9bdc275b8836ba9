"""CAST, TRY_CAST and :: to a whole number, a real number, text, a date, a datetime or a truth value.

A value that cannot be converted becomes NULL, in CAST too: an error would depend on the data. A real number becomes
the nearest whole number, and halves go to the even one, as in DuckDB and PostgreSQL.
"""

from dataclasses import replace
from datetime import date

from sqlglot import exp

from sfumato.errors import UnsupportedSyntax
from sfumato.kernel.expressions import Call
from sfumato.query.date_functions import list_keys_between, read_beside
from sfumato.query.functions import (
    MOST_WHOLE,
    compare,
    convert_truth,
    list_whole_values,
    type_literal,
)
from sfumato.query.mapped_values import map_values
from sfumato.query.number_functions import round_number
from sfumato.query.periods import Moment, convert_to_moment, convert_to_number
from sfumato.query.query import Typed

Type = exp.DataType.Type
INTEGERS = {
    Type.TINYINT: "TINYINT", Type.SMALLINT: "SMALLINT", Type.INT: "INT", Type.BIGINT: "BIGINT", Type.INT128: "BIGINT",
    Type.MEDIUMINT: "INT",
}  # fmt: skip
REALS = (Type.DOUBLE, Type.FLOAT, Type.DECIMAL, Type.BIGDECIMAL)
TEXTS = (Type.TEXT, Type.VARCHAR, Type.CHAR, Type.NVARCHAR, Type.NCHAR, Type.NAME)
MOMENTS = (Type.TIMESTAMP, Type.TIMESTAMPNTZ, Type.DATETIME)
KINDS = "INTEGER, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN"
FROM_TEXT = "Compare the text itself, or declare the column with this type."


def cast_value(one: Typed, target: exp.DataType, node: exp.Expr) -> Typed:  # noqa: PLR0911 - one return a type
    """CAST of a value to the type that the analyst wrote."""
    if one.type in ("null", "id"):
        raise UnsupportedSyntax("syntax", "CAST needs a value that is not NULL.", "Leave CAST out.")
    kind = target.this
    if kind in INTEGERS:
        return _cast_to_integer(one, INTEGERS[kind])
    if kind in REALS:
        return _cast_to_real(one, target)
    if kind in TEXTS:
        return cast_to_text(one)
    if kind is Type.DATE:
        return cast_to_date(one)
    if kind in MOMENTS:
        moment = read_beside(node, one, Typed(one.expression, "datetime"))
        return moment if moment.type == "datetime" else _refuse(one, "TIMESTAMP", "Use a date or a datetime.")
    if kind is Type.BOOLEAN:
        if one.type == "number":
            return compare("<>", one, type_literal(0))
        return one if one.type == "boolean" else _refuse(one, "BOOLEAN", "Compare it with a value.")
    raise UnsupportedSyntax("syntax", "CAST to this type is not supported.", f"Use {KINDS}.")


def _refuse(one: Typed, target: str, hint: str) -> Typed:
    raise UnsupportedSyntax("syntax", f"CAST of a {one.type} to {target} is not supported.", hint)


def _cast_to_integer(one: Typed, size: str) -> Typed:
    match one.type:
        case "boolean":
            return convert_truth(one)
        case "text":
            return read_number("text_integer", one)
        case "number":
            if one.whole:
                return one
            call = Call("to_integer", (one.expression,), size)
            lower, upper = (None if end is None else float(round(end)) for end in (one.lower, one.upper))
            limit = min(MOST_WHOLE, _find_limit(size))
            if lower is None or upper is None or max(-lower, upper) > limit:
                return Typed(call, "number", True, lower, upper)
            values = list_whole_values(int(lower), int(upper))
            return map_values(Typed(call, "number", one.nullable, lower, upper, True, values), (one,))
    return _refuse(one, "INTEGER", "Use DATE_DIFF('day', DATE '2020-01-01', x), or YEAR(x).")


def _find_limit(size: str) -> int:
    return {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}[size] - 1


def _cast_to_real(one: Typed, target: exp.DataType) -> Typed:
    if one.type == "boolean":
        return convert_truth(one)
    if one.type == "text":
        return read_number("text_real", one)
    if one.type != "number":
        return _refuse(one, "DOUBLE", "Use DATE_DIFF('day', DATE '2020-01-01', x), or YEAR(x).")
    digits = [part.name for part in target.expressions]
    if target.this is Type.DECIMAL and (len(digits) != 1 or digits[0] != "0"):
        scale = digits[1] if len(digits) > 1 else "0" if digits else "3"  # DECIMAL is DECIMAL(18, 3)
        return round_number("round", one, min(int(scale), 10)) if scale.isdigit() else one
    return one


def cast_to_text(one: Typed) -> Typed:
    """A value as text: dates as 2026-01-31, truth values as true and false, whole numbers by their digits."""
    match one.type:
        case "text":
            return one
        case "number" if not one.whole:
            hint = "Round it first: CAST(ROUND(x) AS INTEGER). Engines write the digits of real numbers differently."
            return _refuse(one, "text", hint)
        case "number":
            function = "integer_text"
        case "boolean" | "date" | "datetime":
            function = f"{one.type}_text"
        case _:
            return _refuse(one, "text", "Leave CAST out.")
    return map_values(Typed(Call(function, (one.expression,)), "text", one.nullable), (one,))


def read_number(function: str, one: Typed) -> Typed:
    """A number that a text contains. NULL if it contains anything else."""
    made = Typed(Call(function, (one.expression,)), "number", True, whole=function == "text_integer")
    listed = map_values(made, (one,))
    numbers = [float(value) for value in listed.values or () if isinstance(value, (int, float))]
    return replace(listed, lower=min(numbers), upper=max(numbers)) if numbers else listed


def cast_to_date(one: Typed) -> Typed:
    """The day of a datetime, or the date that a text contains."""
    match one.type:
        case "date":
            return one
        case "datetime":
            call = Call("datetime_date", (one.expression,))
            if one.lower is None or one.upper is None:
                return Typed(call, "date", one.nullable)
            first, last = (find_day(convert_to_moment("datetime", end)) for end in (one.lower, one.upper))
            values = list_keys_between("date", "day", first, last)
            ends = convert_to_number(first), convert_to_number(last)
            return Typed(call, "date", one.nullable, *ends, values=values)
        case "text":
            listed = map_values(Typed(Call("text_date", (one.expression,)), "date", True), (one,))
            numbers = [convert_to_number(value) for value in listed.values or ()]  # type: ignore[arg-type]
            return replace(listed, lower=min(numbers), upper=max(numbers)) if numbers else listed
    return _refuse(one, "DATE", "Use MAKE_DATE(year, month, day).")


def find_day(moment: Moment) -> date:
    """The day of a date or datetime."""
    return date(moment.year, moment.month, moment.day)
