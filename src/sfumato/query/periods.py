"""Calendar periods as whole numbers: the year, quarter, month, week, day, hour or minute of a date or datetime.

Weeks begin on Monday and have ISO 8601 numbers. The day of the week counts from 0, which is Sunday. No period is
shorter than a minute, so fractions of a second do not matter here.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

Moment = date | datetime

EPOCH = datetime(1970, 1, 1)  # declared datetimes have no time zone
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
OF_A_DAY = ("hour", "minute")  # a date has neither
MONTHS = {"year": 12, "quarter": 3, "month": 1}
MINUTES = {"hour": 60, "minute": 1}
PARTS = {  # a part of a date -> the unit during which it is constant, and how many units show all its values
    "year": ("year", 9_999), "quarter": ("quarter", 4), "month": ("month", 12), "week": ("week", 8 * 53),
    "day": ("day", 62), "dayofweek": ("day", 7), "dayofyear": ("day", 9 * 366), "hour": ("hour", 24),
    "minute": ("minute", 60),
}  # fmt: skip


def convert_to_number(moment: Moment) -> float:
    """A date as its day number; a datetime as whole seconds since 1970, rounded down."""
    if isinstance(moment, datetime):
        return float((moment - EPOCH) // timedelta(seconds=1))
    return float(moment.toordinal())


def convert_to_moment(kind: str, number: float) -> Moment:
    """The date or datetime with this number."""
    return EPOCH + timedelta(seconds=int(number)) if kind == "datetime" else date.fromordinal(int(number))


def find_period(unit: str, moment: Moment) -> int:
    """The number of the period that contains a moment. Consecutive periods have consecutive numbers."""
    if unit in MONTHS:
        return (12 * moment.year + moment.month - 1) // MONTHS[unit]
    if unit in MINUTES and isinstance(moment, datetime):
        return (1440 * moment.toordinal() + 60 * moment.hour + moment.minute) // MINUTES[unit]
    days = moment.toordinal() - 1  # day 0 is a Monday
    return days // 7 if unit == "week" else days


def find_start(kind: str, unit: str, period: int) -> Moment:
    """The first date or datetime of a period."""
    minutes = 0
    if unit in MONTHS:
        year, month = divmod(period * MONTHS[unit], 12)
        day = date(year, month + 1, 1)
    elif unit in MINUTES:
        ordinal, minutes = divmod(period * MINUTES[unit], 1440)
        day = date.fromordinal(ordinal)
    else:
        day = date.fromordinal(1 + period * (7 if unit == "week" else 1))
    if kind == "date":
        return day
    return datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)


def list_starts(kind: str, unit: str, first: Moment, last: Moment) -> Iterator[Moment]:
    """The first moment of each period, from the period of `first` to the period of `last`."""
    return (find_start(kind, unit, period) for period in range(find_period(unit, first), find_period(unit, last) + 1))


def find_part(name: str, moment: Moment) -> int:
    """A part of a date or datetime, such as its month."""
    match name:
        case "quarter":
            return (moment.month + 2) // 3
        case "week":
            return moment.isocalendar().week
        case "dayofweek":
            return moment.isoweekday() % 7
        case "dayofyear":
            return moment.timetuple().tm_yday
        case _:
            return int(getattr(moment, name))
