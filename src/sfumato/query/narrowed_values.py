"""Conditions narrow what is declared: WHERE cost BETWEEN 0 AND 100, CASE WHEN cost > 100 THEN 100 ELSE cost END.

A condition compares an expression with literals, so what follows from it is public. Where it holds, the expression has
narrower bounds and fewer possible values. The plan states these bounds as the grid of its sums, so an engine clamps
to them, and the kernel derives the sensitivity from that clamp. The clamp changes no row that passes the filter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import MAXYEAR, date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor

from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal, Scalar, find_kinds
from sfumato.query.date_functions import list_keys_between
from sfumato.query.functions import MOST_KEYS, list_whole_values
from sfumato.query.periods import EPOCH, convert_to_moment, find_period, find_start
from sfumato.query.query import Typed

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
End = tuple[Fraction, int]  # an end of a range; 1 (lower) or -1 (upper): the end itself is not in the range


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is known of an expression: it is NULL or within these ends, and among these values. None: not limited."""

    lower: End | None = None
    upper: End | None = None
    values: tuple[Scalar, ...] | None = None
    present: bool = False  # it is not NULL

    def combine(self, other: "Narrowing") -> "Narrowing":
        """Both hold."""
        lowers = [end for end in (self.lower, other.lower) if end is not None]
        uppers = [end for end in (self.upper, other.upper) if end is not None]
        values = self.values
        if values is None or other.values is None:
            values = other.values if values is None else values
        else:
            values = tuple(value for value in values if value in other.values)
        present = self.present or other.present
        return Narrowing(max(lowers, default=None), min(uppers, default=None), values, present)

    def widen(self, other: "Narrowing") -> "Narrowing":
        """At least one of them holds."""
        lower = None if self.lower is None or other.lower is None else min(self.lower, other.lower)
        upper = None if self.upper is None or other.upper is None else max(self.upper, other.upper)
        listed = self.values is not None and other.values is not None
        values = tuple(dict.fromkeys((*(self.values or ()), *(other.values or ())))) if listed else None
        return Narrowing(lower, upper, values, self.present and other.present)


Narrowings = Mapping[Expression, Narrowing]


def combine_narrowings(parts: Iterable[Narrowings]) -> Narrowings:
    """All of them hold."""
    found: dict[Expression, Narrowing] = {}
    for part in parts:
        for expression, narrowing in part.items():
            found[expression] = found[expression].combine(narrowing) if expression in found else narrowing
    return found


def _widen_all(parts: Sequence[Narrowings]) -> Narrowings:
    """At least one of them holds: only an expression that all of them narrow is narrowed."""
    if not all(parts):
        return {}
    found = dict(parts[0])
    for part in parts[1:]:
        found = {
            expression: narrowing.widen(part[expression])
            for expression, narrowing in found.items()
            if expression in part
        }
    return found


def read_narrowings(  # noqa: PLR0911 - one return for each form
    condition: Expression, *, holds: bool = True, certain: bool = True
) -> Narrowings:
    """What follows from a condition that is true (`holds`) or false. Not `certain`: it may also be NULL.

    Claim: K-61. Each expression of the result is NULL or within its narrowing; if `certain`, it is not NULL.
    Checked by: tests/query/test_narrowed_values.py::test_rows_that_pass_are_within_what_is_derived
    """
    match condition:
        case Call("and" | "or" as function, parts):
            read = [read_narrowings(part, holds=holds, certain=certain) for part in parts]
            return combine_narrowings(read) if (function == "and") == holds else _widen_all(read)
        case Call("not", (part,)):
            return read_narrowings(part, holds=not holds, certain=certain)
        case Call("is null", (part,)):
            return {} if holds else {part: Narrowing(present=True)}
        case Call(sign, (part, Literal(value))) if sign in MIRRORED and not isinstance(part, Literal):
            return _read_comparison(sign if holds else NEGATED[sign], part, value, certain)
        case Call(sign, (Literal(value), part)) if sign in MIRRORED and not isinstance(part, Literal):
            return _read_comparison(MIRRORED[sign if holds else NEGATED[sign]], part, value, certain)
        case Column(_, ColumnType.BOOLEAN):
            return {condition: Narrowing(values=(holds,), present=certain)}
    return {}


def _read_comparison(sign: str, part: Expression, value: Scalar, certain: bool) -> Narrowings:
    at = _measure(value)
    lower = None if at is None or sign not in (">", ">=", "=") else (at, int(sign == ">"))
    upper = None if at is None or sign not in ("<", "<=", "=") else (at, -int(sign == "<"))
    found = {part: Narrowing(lower, upper, (value,) if sign == "=" else None, certain)}
    while isinstance(part, Call) and (inside := _reach_inside(part, lower, upper)) is not None:
        part, (lower, upper) = part.arguments[0], inside
        found[part] = Narrowing(lower, upper, None, certain)
    return found


def _reach_inside(part: Call, lower: End | None, upper: End | None) -> tuple[End | None, End | None] | None:
    """The ends of a date, where those of its day, its year or its unit are given. None: nothing follows."""
    match part:
        case Call("datetime_date", _):
            first, last = _list_whole_ends(lower, upper)
            below = None if first is None else (_begin_day(first), 0)
            return below, None if last is None else (_begin_day(last + 1), -1)
        case Call("extract", (inner,), "year"):
            first, last = _list_whole_ends(lower, upper)
            begin = None if first is None or not 1 <= first <= MAXYEAR else _measure_day(inner, date(first, 1, 1))
            end = None if last is None or not 0 <= last < MAXYEAR else _measure_day(inner, date(last + 1, 1, 1))
            return None if begin is None else (begin, 0), None if end is None else (end, -1)
        case Call("date_trunc" | "datetime_trunc" as function, _, str(unit)):
            kind = function.removesuffix("_trunc")
            after = None if upper is None else _find_next(kind, unit, upper[0])
            return lower, None if after is None else (after, -1)
    return None


def _list_whole_ends(lower: End | None, upper: End | None) -> tuple[int | None, int | None]:
    first = None if lower is None else floor(lower[0]) + 1 if lower[1] else ceil(lower[0])
    return first, None if upper is None else ceil(upper[0]) - 1 if upper[1] else floor(upper[0])


def _begin_day(ordinal: int) -> Fraction:
    """The first second of a day, as the number of a datetime."""
    return Fraction(86_400 * (ordinal - EPOCH.toordinal()))


def _measure_day(inner: Expression, day: date) -> Fraction:
    return Fraction(day.toordinal()) if "date" in find_kinds(inner) else _begin_day(day.toordinal())


def _find_next(kind: str, unit: str, at: Fraction) -> Fraction | None:
    """The beginning of the unit that follows a date or datetime."""
    try:
        moment = convert_to_moment(kind, float(floor(at)))
        return _measure(find_start(kind, unit, find_period(unit, moment) + 1))
    except (ValueError, OverflowError):  # outside the years 1 to 9999
        return None


def _measure(value: Scalar) -> Fraction | None:
    """A number, a date or a datetime as a number: that of periods.py, with fractions of a second."""
    match value:
        case None | str() | bool():
            return None
        case datetime():
            return Fraction((value - EPOCH) // timedelta(microseconds=1), 10**6)
        case date():
            return Fraction(value.toordinal())
        case _:
            return Fraction(value)


def narrow_value(typed: Typed, narrowing: Narrowing) -> Typed:
    """A value where a condition holds. If no declared value fits the condition, nothing is narrowed.

    Claim: K-61. The bounds and values are those of all rows for which the narrowing is true.
    Checked by: tests/query/test_narrowed_values.py::test_rows_that_pass_are_within_what_is_derived
    """
    nullable = typed.nullable and not narrowing.present
    lower = _find_lower(typed, narrowing.lower)
    upper = _find_upper(typed, narrowing.upper)
    values = typed.values
    if _lists_its_range(typed) and narrowing.values is None:
        values = None  # listed again below: comparing each with fractions takes longer
    elif values is not None:
        values = tuple(value for value in values if _fits(value, narrowing))
    elif narrowing.values is not None and len(narrowing.values) <= MOST_KEYS:
        values = tuple(value for value in narrowing.values if _fits(value, Narrowing(narrowing.lower, narrowing.upper)))
    empty = lower is not None and upper is not None and lower > upper
    if empty or (values is not None and not values):
        return replace(typed, nullable=nullable)
    if values is None and lower is not None and upper is not None:
        values = _list_values(typed, lower, upper)
    if lower == upper:  # one value is left: of use as a key, but bounds must enclose more than a point
        lower, upper = typed.lower, typed.upper
    return replace(typed, nullable=nullable, lower=lower, upper=upper, values=values)


def _lists_its_range(typed: Typed) -> bool:
    if not typed.whole or typed.values is None or typed.lower is None or typed.upper is None:
        return False
    return typed.values == list_whole_values(int(typed.lower), int(typed.upper))


def _find_lower(typed: Typed, end: End | None) -> float | None:
    if end is None:
        return typed.lower
    at, strict = end
    stepped = typed.whole or typed.type == "date"
    found = floor(at) + 1 if stepped and strict else ceil(at) if stepped else floor(at)
    number = float(at) if typed.type == "number" and not stepped else float(found)
    return number if typed.lower is None else max(typed.lower, number)


def _find_upper(typed: Typed, end: End | None) -> float | None:
    if end is None:
        return typed.upper
    at, strict = end
    found = ceil(at) - 1 if strict else floor(at)  # a datetime has the number of its second, rounded down
    number = float(at) if typed.type == "number" and not typed.whole else float(found)
    return number if typed.upper is None else min(typed.upper, number)


def _fits(value: Scalar, narrowing: Narrowing) -> bool:
    at = _measure(value)
    if at is not None and narrowing.lower is not None and (at, 0) < narrowing.lower:
        return False
    if at is not None and narrowing.upper is not None and (at, 0) > narrowing.upper:
        return False
    return narrowing.values is None or value in narrowing.values


def _list_values(typed: Typed, lower: float, upper: float) -> tuple[Scalar, ...] | None:
    """All values of a narrowed range, if there are few enough to be keys."""
    if typed.whole:
        return list_whole_values(int(lower), int(upper))
    if typed.type != "date":
        return None
    first, last = convert_to_moment("date", lower), convert_to_moment("date", upper)
    return list_keys_between("date", "day", first, last)
