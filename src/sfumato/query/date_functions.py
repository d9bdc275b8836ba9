"""DATE_TRUNC, EXTRACT (also YEAR, MONTH, ...), DATE_DIFF, and literals that are compared with dates.

Bounds and possible values follow from declared bounds. DATE_DIFF counts the boundaries between two dates: from
31 December to 1 January it is one year.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from itertools import islice

from sqlglot import exp

from sfumato.errors import UnsupportedSyntax
from sfumato.kernel.expressions import Call, Literal, Scalar
from sfumato.query import functions
from sfumato.query.parse import build_syntax_refusal, locate_errors
from sfumato.query.periods import (
    OF_A_DAY,
    PARTS,
    UNITS,
    Moment,
    convert_to_moment,
    convert_to_number,
    find_part,
    find_period,
    list_starts,
)
from sfumato.query.query import Typed

NAMED: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.Day: "day",
    exp.DayOfWeek: "dayofweek", exp.DayOfYear: "dayofyear", exp.Hour: "hour", exp.Minute: "minute",
}  # fmt: skip
AS_NUMBER = "Use a number: DATE_DIFF('day', DATE '2020-01-01', x), or YEAR(x)."
SHORT = {"dow": "dayofweek", "doy": "dayofyear"}
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOMENT = re.compile(DAY.pattern + r"([T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?")


def bind_date_function(  # noqa: PLR0911 - one return a form
    node: exp.Expr, row: Callable[[exp.Expr], Typed]
) -> Typed | None:
    """Bind a function of dates. `row` binds its arguments. None: the node is not a function of dates."""
    match node:
        case exp.TimestampTrunc() | exp.DateTrunc() if _names_unit_last(node):
            unit, one = node.this.name.lower(), row(exp.column(node.args["unit"].name))  # DATE_TRUNC(day, MONTH)
            with locate_errors(node):
                return truncate(unit, one)
        case exp.TimestampTrunc() | exp.DateTrunc():
            unit = _read_unit(node, node.args.get("unit"), UNITS, "DATE_TRUNC('month', day)")
            one = row(node.this)
            with locate_errors(node):
                return truncate(unit, one)
        case exp.Extract() if isinstance(node.expression.unnest(), exp.Anonymous) or node.this.name.lower() == "isodow":
            return None  # EXTRACT(year FROM AGE(last, first)): see function_calls.py
        case exp.Extract() if node.this.name.lower() in ("epoch", "second"):
            return None  # these too
        case exp.DateDiff() if _is_second(node.args.get("unit")):
            return None
        case exp.Extract():
            name = _read_unit(node, node.this, (*PARTS, *SHORT), "EXTRACT(month FROM day)")
            one = row(node.expression)
            with locate_errors(node):
                return extract_part(SHORT.get(name, name), one)
        case exp.DateDiff():
            unit = _read_unit(node, node.args.get("unit"), UNITS, "DATE_DIFF('day', first, last)")
            last, first = row(node.this), row(node.expression)
            first, last = read_beside(node, first, last), read_beside(node, last, first)
            with locate_errors(node):
                return count_boundaries(unit, first, last)
        case _ if type(node) in NAMED:
            one = row(node.this)
            with locate_errors(node):
                return extract_part(NAMED[type(node)], one)
    return None


def _is_second(unit: exp.Expr | None) -> bool:
    return isinstance(unit, (exp.Var, exp.Literal)) and str(unit.this).lower() == "second"


def _names_unit_last(node: exp.Expr) -> bool:
    """Is it DATE_TRUNC(day, MONTH), as in BigQuery?"""
    unit = node.args.get("unit")
    return unit is not None and unit.name.lower() not in UNITS and node.this.name.lower() in UNITS


def truncate(unit: str, one: Typed) -> Typed:
    """DATE_TRUNC: the first moment of the unit that contains a value. It keeps the type date or datetime."""
    ends = _read_bounds("DATE_TRUNC", one, unit)
    call = Call(f"{one.type}_trunc", (one.expression,), unit)
    if ends is None:
        return Typed(call, one.type, one.nullable)
    lower, upper = (convert_to_number(next(list_starts(one.type, unit, end, end))) for end in ends)
    return Typed(call, one.type, one.nullable, lower, upper, values=list_keys_between(one.type, unit, *ends))


def extract_part(name: str, one: Typed) -> Typed:
    """EXTRACT: a part of a date or datetime. It is a whole number, and all its possible values are known."""
    ends = _read_bounds("EXTRACT", one, PARTS[name][0])
    call = Call("extract", (one.expression,), name)
    if ends is None:
        return Typed(call, "number", one.nullable, whole=True)
    values = _list_parts_between(one.type, name, *ends)
    return Typed(call, "number", one.nullable, float(values[0]), float(values[-1]), True, values)


def count_boundaries(unit: str, first: Typed, last: Typed) -> Typed:
    """DATE_DIFF: how often the unit begins after `first` and up to `last`. Negative if `last` is earlier."""
    begins, ends = _read_bounds("DATE_DIFF", first, unit), _read_bounds("DATE_DIFF", last, unit)
    nullable = first.nullable or last.nullable
    call = Call("date_diff", (first.expression, last.expression), unit)
    if begins is None or ends is None:
        return Typed(call, "number", nullable, whole=True)
    lower = find_period(unit, ends[0]) - find_period(unit, begins[1])
    upper = find_period(unit, ends[1]) - find_period(unit, begins[0])
    values = functions.list_whole_values(lower, upper)
    return Typed(call, "number", nullable, float(lower), float(upper), True, values)


def read_beside(node: exp.Expr, one: Typed, other: Typed) -> Typed:
    """Read a value for comparison with another: text as a date or datetime, and a date as midnight of a datetime."""
    if isinstance(one.expression, Literal):
        value = read_literal_beside(node, one.expression.value, other.type)
        return one if value is one.expression.value else functions.type_literal(value)
    if (one.type, other.type) != ("date", "datetime"):
        return one
    lower, upper = (
        None if bound is None else convert_to_number(_convert_to_midnight(date.fromordinal(int(bound))))
        for bound in (one.lower, one.upper)
    )
    return Typed(Call("midnight", (one.expression,)), "datetime", one.nullable, lower, upper)


def read_literal_beside(node: exp.Expr, value: Scalar, kind: str) -> Scalar:
    """Read a literal for comparison with a value of this kind, as `read_beside` does."""
    match kind, value:
        case "date", str():
            return read_day(node, value)
        case "datetime", str():
            return read_moment(node, value)
        case "datetime", date() if not isinstance(value, datetime):
            return _convert_to_midnight(value)
    return value


def read_day(node: exp.Expr, text: str) -> date:
    try:
        if DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise build_syntax_refusal(node, "This is not a date of the form year-month-day", "Write DATE '2026-01-31'.")


def read_moment(node: exp.Expr, text: str) -> datetime:
    try:
        if MOMENT.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    hint = "Write TIMESTAMP '2026-01-31 23:59:59', without a time zone."
    raise build_syntax_refusal(node, "This is not a time of the form year-month-day hour:minute:second", hint)


@lru_cache(maxsize=256)
def list_keys_between(kind: str, unit: str, first: Moment, last: Moment) -> tuple[Scalar, ...] | None:
    """The first moments of all units between two moments, if there are few enough to be keys."""
    few = find_period(unit, last) - find_period(unit, first) < functions.MOST_KEYS
    return tuple(list_starts(kind, unit, first, last)) if few else None


@lru_cache(maxsize=256)
def _list_parts_between(kind: str, name: str, first: Moment, last: Moment) -> tuple[int, ...]:
    """All values that a part has between two moments, in order."""
    unit, enough = PARTS[name]
    return tuple(sorted({find_part(name, moment) for moment in islice(list_starts(kind, unit, first, last), enough)}))


def _convert_to_midnight(value: date) -> datetime:
    return datetime(value.year, value.month, value.day)


def _read_bounds(function: str, one: Typed, unit: str) -> tuple[Moment, Moment] | None:
    """The bounds of a date or datetime. Any other type is refused. None: there are no bounds."""
    if one.type not in ("date", "datetime"):
        hint = "Use a column that is declared as a date or datetime, or DATE '2026-01-31'."
        raise UnsupportedSyntax("syntax", f"{function} needs a date, but this is a {one.type}.", hint)
    if one.type == "date" and unit in OF_A_DAY:
        hint = "Use a column that is declared as a datetime, or use days."
        raise UnsupportedSyntax("syntax", f"A date has no {unit}.", hint)
    if one.lower is None or one.upper is None:
        return None
    return convert_to_moment(one.type, one.lower), convert_to_moment(one.type, one.upper)


def _read_unit(node: exp.Expr, given: exp.Expr | None, known: tuple[str, ...], example: str) -> str:
    """The name of a unit or of a part of a date."""
    name = str(given.this).lower() if isinstance(given, (exp.Var, exp.Literal)) else ""
    if name not in known:
        shown = f"'{name[:40]}'" if name else "This"
        hint = f"Write {example}, with one of: {', '.join(known)}."
        raise build_syntax_refusal(node, f"{shown} is not a unit of dates", hint)
    return name
