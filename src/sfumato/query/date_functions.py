"""DATE_TRUNC, EXTRACT and its short forms, DATE_DIFF, and literals beside dates: bounds and keys from declared bounds.

DATE_DIFF counts the beginnings of a unit between two moments: from 31 December to 1 January it is one year.
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
from sfumato.query.parse import placed, unsupported
from sfumato.query.periods import OF_A_DAY, PARTS, UNITS, Moment, moment_of, number_of, part_of, period_of, starts
from sfumato.query.query import Typed

NAMED: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.Day: "day",
    exp.DayOfWeek: "dayofweek", exp.DayOfYear: "dayofyear", exp.Hour: "hour", exp.Minute: "minute",
}  # fmt: skip
AS_NUMBER = "Use a number: DATE_DIFF('day', DATE '2020-01-01', x), or YEAR(x)."
SHORT = {"dow": "dayofweek", "doy": "dayofyear"}
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOMENT = re.compile(DAY.pattern + r"([T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?")


def date_function(node: exp.Expr, row: Callable[[exp.Expr], Typed]) -> Typed | None:
    """What a node means, if it is a function of dates; `row` binds what is inside it."""
    match node:
        case exp.TimestampTrunc() | exp.DateTrunc():
            unit = _word(node, node.args.get("unit"), UNITS, "DATE_TRUNC('month', day)")
            one = row(node.this)
            with placed(node):
                return truncate(unit, one)
        case exp.Extract():
            name = _word(node, node.this, (*PARTS, *SHORT), "EXTRACT(month FROM day)")
            one = row(node.expression)
            with placed(node):
                return part(SHORT.get(name, name), one)
        case exp.DateDiff():
            unit = _word(node, node.args.get("unit"), UNITS, "DATE_DIFF('day', first, last)")
            last, first = row(node.this), row(node.expression)
            first, last = read_beside(node, first, last), read_beside(node, last, first)
            with placed(node):
                return difference(unit, first, last)
        case _ if type(node) in NAMED:
            one = row(node.this)
            with placed(node):
                return part(NAMED[type(node)], one)
    return None


def truncate(unit: str, one: Typed) -> Typed:
    """The beginning of the unit that a value is in: a date of a date, a datetime of a datetime."""
    ends = _ends("DATE_TRUNC", one, unit)
    call = Call(f"{one.type}_trunc {unit}", (one.expression,))
    if ends is None:
        return Typed(call, one.type, one.nullable)
    lower, upper = (number_of(next(starts(one.type, unit, each, each))) for each in ends)
    return Typed(call, one.type, one.nullable, lower, upper, values=keys_between(one.type, unit, *ends))


def part(name: str, one: Typed) -> Typed:
    """A part of a date or datetime: a whole number, and every one that its bounds allow is known."""
    ends = _ends("EXTRACT", one, PARTS[name][0])
    call = Call(f"extract {name}", (one.expression,))
    if ends is None:
        return Typed(call, "number", one.nullable, whole=True)
    values = _parts_between(one.type, name, *ends)
    return Typed(call, "number", one.nullable, float(values[0]), float(values[-1]), True, values)


def difference(unit: str, first: Typed, last: Typed) -> Typed:
    """How many times the unit begins after the first moment and until the last; below zero the other way round."""
    begins, ends = _ends("DATE_DIFF", first, unit), _ends("DATE_DIFF", last, unit)
    nullable = first.nullable or last.nullable
    call = Call(f"date_diff {unit}", (first.expression, last.expression))
    if begins is None or ends is None:
        return Typed(call, "number", nullable, whole=True)
    lower = period_of(unit, ends[0]) - period_of(unit, begins[1])
    upper = period_of(unit, ends[1]) - period_of(unit, begins[0])
    values = functions.whole_values(lower, upper)
    return Typed(call, "number", nullable, float(lower), float(upper), True, values)


def read_beside(node: exp.Expr, one: Typed, other: Typed) -> Typed:
    """A value beside a date or datetime: text is read as one, and a day beside a datetime is its midnight."""
    if isinstance(one.expression, Literal):
        value = literal_beside(node, one.expression.value, other.type)
        return one if value is one.expression.value else functions.literal(value)
    if (one.type, other.type) != ("date", "datetime"):
        return one
    lower, upper = (
        None if each is None else number_of(_midnight(date.fromordinal(int(each)))) for each in (one.lower, one.upper)
    )
    return Typed(Call("midnight", (one.expression,)), "datetime", one.nullable, lower, upper)


def literal_beside(node: exp.Expr, value: Scalar, kind: str) -> Scalar:
    """A literal beside something of a kind, as read_beside does it."""
    match kind, value:
        case "date", str():
            return day(node, value)
        case "datetime", str():
            return moment(node, value)
        case "datetime", date() if not isinstance(value, datetime):
            return _midnight(value)
    return value


def day(node: exp.Expr, text: str) -> date:
    try:
        if DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise unsupported(node, "A date is written as year-month-day", "Write DATE '2026-01-31'.")


def moment(node: exp.Expr, text: str) -> datetime:
    try:
        if MOMENT.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    hint = "Write TIMESTAMP '2026-01-31 23:59:59', without a time zone."
    raise unsupported(node, "A moment is written as year-month-day hour:minute:second", hint)


@lru_cache(maxsize=256)
def keys_between(kind: str, unit: str, first: Moment, last: Moment) -> tuple[Scalar, ...] | None:
    """The beginnings of all units between two moments, where they are few enough to be keys."""
    few = period_of(unit, last) - period_of(unit, first) < functions.MOST_KEYS
    return tuple(starts(kind, unit, first, last)) if few else None


@lru_cache(maxsize=256)
def _parts_between(kind: str, name: str, first: Moment, last: Moment) -> tuple[int, ...]:
    """All values of a part between two moments, in order."""
    unit, enough = PARTS[name]
    return tuple(sorted({part_of(name, each) for each in islice(starts(kind, unit, first, last), enough)}))


def _midnight(value: date) -> datetime:
    return datetime(value.year, value.month, value.day)


def _ends(function: str, one: Typed, unit: str) -> tuple[Moment, Moment] | None:
    """The bounds of a date or datetime as moments; refuse anything else."""
    if one.type not in ("date", "datetime"):
        hint = "Give it a column that is declared as a date or a datetime, or DATE '2026-01-31'."
        raise UnsupportedSyntax("syntax", f"{function} takes a date, not a {one.type}.", hint)
    if one.type == "date" and unit in OF_A_DAY:
        hint = "Declare the column as a datetime, or use days."
        raise UnsupportedSyntax("syntax", f"A date has no {unit}.", hint)
    if one.lower is None or one.upper is None:
        return None
    return moment_of(one.type, one.lower), moment_of(one.type, one.upper)


def _word(node: exp.Expr, given: exp.Expr | None, known: tuple[str, ...], example: str) -> str:
    """The unit or the part that was named."""
    name = str(given.this).lower() if isinstance(given, (exp.Var, exp.Literal)) else ""
    if name not in known:
        shown = f"'{name[:40]}'" if name else "This"
        hint = f"Write {example}; known: {', '.join(known)}."
        raise unsupported(node, f"{shown} is not a part of a date that can be named here", hint)
    return name
