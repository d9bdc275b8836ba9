"""Dates and INTERVAL: d + INTERVAL 3 DAY, DATE_ADD, differences of dates, MAKE_DATE, LAST_DAY, AGE and STRFTIME.

Bounds move with the dates. A result outside the years 1 to 9999 is refused before any data is read.
"""

import re
from dataclasses import replace
from datetime import date

from sqlglot import exp

from sfumato.errors import MissingBounds, UnsupportedSyntax
from sfumato.kernel.expressions import Call, Literal
from sfumato.query.casts import cast_to_date, read_number
from sfumato.query.date_functions import count_boundaries, extract_part, list_keys_between, truncate
from sfumato.query.functions import compute, list_whole_values, require_type, type_literal
from sfumato.query.mapped_values import map_values
from sfumato.query.number_functions import find_remainder, round_number
from sfumato.query.periods import EPOCH, Moment, convert_to_moment, convert_to_number
from sfumato.query.query import Typed
from sfumato.row_meanings.calendar_meanings import add_to_date

STEPS = {  # a unit of INTERVAL -> months, days or seconds, and how many of them
    "year": ("month", 12), "quarter": ("month", 3), "month": ("month", 1), "week": ("day", 7), "day": ("day", 1),
    "hour": ("second", 3_600), "minute": ("second", 60), "second": ("second", 1),
}  # fmt: skip
MOST_STEPS = 10**9
FORMAT = re.compile(r"([^%\\]|%[YmdHMS])*")
POSTGRES_FIELDS = (("YYYY", "%Y"), ("MM", "%m"), ("DD", "%d"), ("HH24", "%H"), ("MI", "%M"), ("SS", "%S"))
FORMAT_HINT = "Write STRFTIME(day, '%Y-%m'), with %Y, %m, %d, %H, %M and %S."


def add_interval(one: Typed, number: int, unit: str) -> Typed:
    """A date or datetime, and a number of units. A month that is too short ends on its last day."""
    if one.type not in ("date", "datetime"):
        hint = "Use a column that is declared as a date or datetime, or DATE '2026-01-31'."
        raise UnsupportedSyntax("syntax", f"INTERVAL needs a date, but this is a {one.type}.", hint)
    step, times = STEPS[unit]
    if one.type == "date" and step == "second":
        raise UnsupportedSyntax("syntax", f"A date has no {unit}.", "Use days, or a column declared as a datetime.")
    if abs(number * times) > MOST_STEPS:
        raise UnsupportedSyntax("syntax", "This interval is too long.", "Use a shorter interval.")
    if isinstance(one.expression, Literal):
        return type_literal(_move(_read_literal(one), number * times, step))
    if one.lower is None or one.upper is None:
        raise MissingBounds("bounds", "A date without bounds cannot be moved.", "Use a declared date.")
    first, last = (_move(convert_to_moment(one.type, end), number * times, step) for end in (one.lower, one.upper))
    call = Call(f"{one.type}_add", (one.expression, Literal(number * times)), step)
    made = Typed(call, one.type, one.nullable, convert_to_number(first), convert_to_number(last))
    if one.values is not None or one.type != "date":
        return map_values(made, (one,))
    return replace(made, values=list_keys_between("date", "day", first, last))


def _read_literal(one: Typed) -> Moment:
    if not isinstance(one.expression, Literal) or one.lower is None:
        raise AssertionError("a literal date has bounds")
    value = one.expression.value
    return value if isinstance(value, Moment) else convert_to_moment(one.type, one.lower)


def _move(moment: Moment, number: int, step: str) -> Moment:
    try:
        return add_to_date(moment, number, step)
    except (OverflowError, ValueError):
        what = "A date would leave the years 1 to 9999."
        raise UnsupportedSyntax("syntax", what, "Use a shorter interval.") from None


def subtract_dates(last: Typed, first: Typed) -> Typed:
    """The number of days from one date to another."""
    if last.type != "date" or first.type != "date":
        hint = "Write DATE_DIFF('hour', first, last), with the unit that you need."
        raise UnsupportedSyntax("syntax", "Only two dates can be subtracted.", hint)
    return count_boundaries("day", first, last)


def compute_dates(kind: type[exp.Expr], one: Typed, two: Typed) -> Typed | None:
    """The difference of two dates, or a date and a whole number of days. None: the values are no dates."""
    if "date" not in (one.type, two.type) and "datetime" not in (one.type, two.type):
        return None
    days = two.expression.value if isinstance(two.expression, Literal) else None
    if kind in (exp.Add, exp.Sub) and one.type == "date" and isinstance(days, int) and not isinstance(days, bool):
        return add_interval(one, days if kind is exp.Add else -days, "day")
    if kind is exp.Sub:
        return subtract_dates(one, two)
    raise UnsupportedSyntax("syntax", "Dates cannot be computed with like this.", "Write d + INTERVAL 3 DAY.")


def find_last_day(one: Typed) -> Typed:
    """LAST_DAY: the last day of the month."""
    begin = truncate("month", cast_to_date(one))
    return add_interval(add_interval(begin, 1, "month"), -1, "day")


def find_iso_day(one: Typed) -> Typed:
    """ISODOW: 1 is Monday, and 7 is Sunday."""
    day = extract_part("dayofweek", one)
    return compute("+", find_remainder(compute("+", day, type_literal(6)), type_literal(7)), type_literal(1))


def find_second(one: Typed) -> Typed:
    """The whole seconds of a datetime, from 0 to 59."""
    if one.type != "datetime":
        hint = "Use a column that is declared as a datetime."
        raise UnsupportedSyntax("syntax", f"A {one.type} has no second.", hint)
    found = read_number("text_integer", format_date(one, "%S"))
    return replace(found, nullable=one.nullable, lower=0.0, upper=59.0, values=list_whole_values(0, 59))


def count_seconds(one: Typed) -> Typed:
    """The whole seconds since 1970: EXTRACT(epoch FROM x), rounded down."""
    if one.type == "date":
        days = count_boundaries("day", type_literal(EPOCH.date()), one)
        return compute("*", replace(days, values=None), type_literal(86_400))
    second = replace(find_second(one), values=None)
    minutes = replace(count_boundaries("minute", type_literal(EPOCH), one), values=None)
    made = compute("+", compute("*", minutes, type_literal(60)), second)
    return replace(made, lower=one.lower, upper=one.upper, values=None)


def count_seconds_between(first: Typed, last: Typed) -> Typed:
    """DATE_DIFF('second', first, last): how often a second begins after `first` and up to `last`."""
    return compute("-", count_seconds(last), count_seconds(first))


def count_years(last: Typed, first: Typed) -> Typed:
    """The complete years from one date to another, as EXTRACT(year FROM AGE(last, first)) counts them."""
    days = [_write_day(argument) for argument in (last, first)]
    years = round_number("trunc", compute("/", compute("-", *days), type_literal(10_000)))
    bounds = count_boundaries("year", first, last)
    if bounds.lower is None or bounds.upper is None:
        return years
    lower = bounds.lower - 1 if bounds.lower > 0 else bounds.lower  # the last year may not be complete
    upper = bounds.upper + 1 if bounds.upper < 0 else bounds.upper
    values = list_whole_values(int(lower), int(upper))
    return replace(years, lower=lower, upper=upper, whole=True, values=values)


def _write_day(one: Typed) -> Typed:
    """20260131 for 31 January 2026, and 20260131.5 for its noon: a number in the order of the moments of years."""
    year, month, day = (extract_part(name, one) for name in ("year", "month", "day"))
    if not all(part.bounded for part in (year, month, day)):
        raise MissingBounds("bounds", "AGE needs dates with bounds.", "Use declared dates.")
    plain = [replace(part, values=None) for part in (year, month, day)]
    months = compute("+", compute("*", plain[0], type_literal(100)), plain[1])
    days = compute("+", compute("*", months, type_literal(100)), plain[2])
    if one.type == "date":
        return days
    hour, minute, second = (
        replace(part, values=None)
        for part in (extract_part("hour", one), extract_part("minute", one), find_second(one))
    )
    minutes = compute("+", compute("*", hour, type_literal(60)), minute)
    seconds = compute("+", compute("*", minutes, type_literal(60)), second)
    return compute("+", days, compute("/", seconds, type_literal(86_400)))


def make_date(year: Typed, month: Typed, day: Typed) -> Typed:
    """MAKE_DATE of three whole numbers. NULL if there is no such day."""
    for part in (year, month, day):
        require_type("MAKE_DATE", part, "number")
        if not part.whole:
            raise UnsupportedSyntax("syntax", "MAKE_DATE needs whole numbers.", "Write CAST(x AS INTEGER).")
    if year.lower is None or year.upper is None or year.upper < 1 or year.lower > 9_999:
        raise MissingBounds("bounds", "MAKE_DATE needs a year between 1 and 9999.", "Use a year with bounds.")
    call = Call("make_date", (year.expression, month.expression, day.expression))
    first, last = date(max(int(year.lower), 1), 1, 1), date(min(int(year.upper), 9_999), 12, 31)
    made = Typed(call, "date", True, convert_to_number(first), convert_to_number(last))
    return map_values(made, (year, month, day))


def format_date(one: Typed, form: str) -> Typed:
    """STRFTIME with %Y, %m, %d, %H, %M and %S."""
    if one.type not in ("date", "datetime"):
        raise UnsupportedSyntax("syntax", f"STRFTIME needs a date, but this is a {one.type}.", FORMAT_HINT)
    if not FORMAT.fullmatch(form) or "%" not in form:
        raise UnsupportedSyntax("syntax", "This format of a date is not supported.", FORMAT_HINT)
    if one.type == "date" and re.search("%[HMS]", form):
        raise UnsupportedSyntax("syntax", "A date has no hour, minute or second.", "Use %Y, %m and %d.")
    made = Typed(Call("strftime", (one.expression,), form), "text", one.nullable)
    unit = "second" if "%S" in form else "minute" if "%M" in form else "hour" if "%H" in form else "day"
    if unit == "second" or one.lower is None or one.upper is None:
        return map_values(made, (one,))
    unit = unit if unit != "day" or "%d" in form else "month" if "%m" in form else "year"
    ends = [convert_to_moment(one.type, end) for end in (one.lower, one.upper)]
    return map_values(made, (replace(one, values=list_keys_between(one.type, unit, *ends)),))


def convert_format(form: str) -> str:
    """The format of PostgreSQL's TO_CHAR as one of STRFTIME."""
    found = form
    for theirs, ours in POSTGRES_FIELDS:
        found = found.replace(theirs, ours)
    if re.search("[A-Za-z]", re.sub("%[YmdHMS]", "", found)) or "%" in form:
        raise UnsupportedSyntax("syntax", "This format of a date is not supported.", FORMAT_HINT)
    return found
