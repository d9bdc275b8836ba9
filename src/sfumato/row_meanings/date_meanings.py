"""Functions of dates and datetimes in plain Python, for the reference engine: numbers are doubles."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from sfumato.kernel.expressions import Scalar

DATE_FUNCTIONS = ("date_trunc", "datetime_trunc", "extract", "date_diff", "midnight")


def apply_to_dates(function: str, unit: str, values: Sequence[Scalar]) -> Scalar:
    """Apply one of DATE_FUNCTIONS to values of which none is NULL."""
    moments = [_moment(value) for value in values]
    match function:
        case "midnight":
            return moments[0]
        case "datetime_trunc":
            return _beginning(unit, moments[0])
        case "date_trunc":
            return _beginning(unit, moments[0]).date()
        case "extract":
            return float(_part(unit, moments[0]))
        case _:
            return float(_units(unit, moments[1]) - _units(unit, moments[0]))


def moment_text(moment: datetime) -> str:
    """As SQL engines write it: no zeros end the fraction of a second."""
    whole = moment.replace(microsecond=0).isoformat(" ")
    return f"{whole}.{moment.microsecond:06}".rstrip("0") if moment.microsecond else whole


def _moment(value: Scalar) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, datetime.min.time())
    raise AssertionError("a plan gives dates to these functions")


def _beginning(unit: str, moment: datetime) -> datetime:  # noqa: PLR0911 - one return a unit
    minute = moment.replace(second=0, microsecond=0)
    hour = minute.replace(minute=0)
    day = hour.replace(hour=0)
    match unit:
        case "minute":
            return minute
        case "hour":
            return hour
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(day=1, month=3 * ((day.month - 1) // 3) + 1)
        case "year":
            return day.replace(day=1, month=1)
    raise AssertionError(f"no such unit: {unit}")


def _part(name: str, moment: datetime) -> int:
    match name:
        case "year" | "month" | "day" | "hour" | "minute":
            return int(getattr(moment, name))
        case "quarter":
            return (moment.month - 1) // 3 + 1
        case "week":
            return int(moment.strftime("%V"))
        case "dayofweek":
            return int(moment.strftime("%w"))
        case "dayofyear":
            return int(moment.strftime("%j"))
    raise AssertionError(f"no such part: {name}")


def _units(unit: str, moment: datetime) -> int:
    """The number of the unit that a moment is in; the next unit has the next number."""
    if unit in ("year", "quarter", "month"):
        months = 12 * moment.year + moment.month - 1
        return months // {"year": 12, "quarter": 3, "month": 1}[unit]
    since = moment - datetime(1, 1, 1)  # a Monday
    return since // timedelta(**{f"{unit}s": 1})
