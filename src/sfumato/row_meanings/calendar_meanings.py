"""Arithmetic of dates and datetimes, and their texts, in plain Python. Every function is total."""

import calendar
from datetime import date, datetime, timedelta

FIELDS = {"Y": "{:04}", "m": "{:02}", "d": "{:02}", "H": "{:02}", "M": "{:02}", "S": "{:02}"}
NAMES = {"Y": "year", "m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}


def add_to_date(moment: date, number: int, unit: str) -> date:
    """A date or datetime, and a number of months, days or seconds. A month that is too short ends on its last day.

    A plan gives only numbers that stay between the years 1 and 9999.
    """
    if unit != "month":
        return moment + (timedelta(days=number) if unit == "day" else timedelta(seconds=number))
    year, month = divmod(12 * moment.year + moment.month - 1 + number, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))


def make_date(year: float, month: float, day: float) -> date | None:
    """The date of three whole numbers. NULL if there is no such day."""
    try:
        return date(int(year), int(month), int(day))
    except (ValueError, OverflowError):
        return None


def format_date(moment: date, form: str) -> str:
    """STRFTIME with %Y, %m, %d, %H, %M and %S."""
    pieces, letters = [], iter(form)
    for letter in letters:
        field = next(letters, "") if letter == "%" else ""
        pieces.append(FIELDS[field].format(_read_field(moment, NAMES[field])) if field else letter)
    return "".join(pieces)


def _read_field(moment: date, name: str) -> int:
    return int(getattr(moment, name)) if isinstance(moment, datetime) or hasattr(moment, name) else 0
