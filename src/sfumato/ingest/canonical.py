"""Step 1 of reading: a source's value -> its one exact text, by the value alone, the same for every source and dtype.

    whole number   decimal digits: 7, -3
    float          as a double: whole ones up to 2**53 as whole numbers, others in the shortest form; NaN is NULL
    decimal        without trailing zeros: 1.5, 7
    truth value    true, false
    day            2024-12-31
    moment         2024-12-31 23:59:59.5, to the microsecond and no further; with a zone: in UTC, with Z at the end
    UUID           lower case, with hyphens
    text           itself; of JSON: a text without its quotes, null as NULL, other values as JSON writes them

This text is called canonical. `spell_column` writes SQL for a column of one type. `spell_value` is the same function of
one Python value, for columns of mixed objects. Part of the trusted perimeter: claim K-50.

A column has a type as DuckDB names it. Arrow's days and moments are read as whole numbers, because DuckDB cannot hold
all of them: their type is DAY(unit) or MOMENT(unit), a count of units since 1970, or MOMENT(unit, UTC) with a zone.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite, isnan

import numpy as np

from sfumato.ingest.sql_quoting import prefer

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")  # BIGINT holds them all
WHOLE = (*INTEGERS, "UBIGINT")
WIDE = ("HUGEINT", "UHUGEINT")
FLOATS = ("FLOAT", "DOUBLE")
MOMENTS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")
NANOSECONDS = ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")
ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
COUNTED = re.compile(r"(?P<what>DAY|MOMENT)\((?P<unit>s|ms|us|ns|day)(?P<zone>, UTC)?\)")
TEXTS = ("VARCHAR", "JSON", '"NULL"')
EXACT = 2**53  # beyond it, a double does not tell whole numbers apart
FOREVER, NEVER = "TIMESTAMP 'infinity'", "TIMESTAMP '-infinity'"
BEYOND, BEFORE = "290000-01-01", "290000-01-01 (BC)"  # moments from BEYOND on, or up to BEFORE, are infinite
BEYOND_DAY, BEFORE_DAY = 105_200_797, -106_639_487  # the same, in days since 1970
MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000, "day": 86_400_000_000}
MISSING = ("NAType", "NaTType")


class NoRule(Exception):
    """A Python value of a kind that no rule reads."""


def has_rule(kind: str) -> bool:
    """Is a column of this type read?"""
    return is_text(kind) or is_moment(kind) or kind in (*WHOLE, *WIDE, *FLOATS, "BOOLEAN", "UUID") or is_decimal(kind)


def is_text(kind: str) -> bool:
    return kind in TEXTS or kind.startswith("ENUM")


def is_decimal(kind: str) -> bool:
    return kind.startswith("DECIMAL")


def is_day(kind: str) -> bool:
    return kind == "DATE" or kind.startswith("DAY(")


def is_moment(kind: str) -> bool:
    """Is it a type of days or moments?"""
    return kind in ("DATE", *MOMENTS, *NANOSECONDS, *ZONED) or COUNTED.fullmatch(kind) is not None


def spell_column(column: str, kind: str) -> str:  # noqa: PLR0911 - one return a kind
    """The canonical text of a column's values, as SQL.

    Claim: K-50. A function of the value alone; equal values of different types have one text.
    Requires: has_rule(kind) (checked by check_readable).
    Relies on: K-50.
    Checked by: tests/ingest/test_canonical.py::test_every_type_has_one_text
    """
    if kind == "VARCHAR":
        return f"({column} COLLATE C)"  # by its bytes: a source's own collation would compare 'Bob' and 'bob' as equal
    if kind in FLOATS:
        x = f"CAST({column} AS DOUBLE)"
        whole = f"{x} = FLOOR({x}) AND ABS({x}) <= {EXACT}"
        digits, other = f"CAST(CAST({x} AS BIGINT) AS VARCHAR)", f"CAST({x} AS VARCHAR)"
        return f"CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL WHEN {whole} THEN {digits} ELSE {other} END"
    if is_decimal(kind) and not kind.endswith(",0)"):
        # DuckDB writes DECIMAL(k,k), which has no digit before the point, without the 0 there: .5, -.5, .0
        digits = f"regexp_replace(CAST({column} AS VARCHAR), '^(-?)[.]', '\\10.')"
        return f"rtrim(rtrim({digits}, '0'), '.')"
    if is_day(kind):
        return f"CAST(CAST({write_moment(column, kind)} AS DATE) AS VARCHAR)"
    if is_moment(kind):
        moment = write_moment(column, kind)
        is_zoned = kind in ZONED or kind.endswith("UTC)")
        zone = f" || CASE WHEN isfinite({moment}) THEN 'Z' ELSE '' END" if is_zoned else ""
        return f"CAST({moment} AS VARCHAR){zone}"
    if kind == "JSON":
        json = f"CAST({column} AS VARCHAR)"
        known = f"WHEN 'NULL' THEN NULL WHEN 'VARCHAR' THEN json_extract_string({json}, '$')"
        return f"CASE WHEN json_valid({json}) THEN CASE json_type({json}) {known} ELSE {json} END ELSE {json} END"
    return f"CAST({column} AS VARCHAR)"


def write_moment(column: str, kind: str) -> str:
    """A column of days or moments, to the microsecond below, and in UTC where it has zones, as SQL.

    Moments that a count of microseconds does not reach are infinite: beyond every bound. A cast would fail, round
    nanoseconds up to the next day, and tell a zone's time in the zone of whoever reads.

    Claim: K-50. A function of the value alone, defined for every value.
    Requires: is_moment(kind).
    Relies on: K-50.
    Checked by: tests/ingest/test_canonical.py::test_nanoseconds_are_cut_not_rounded
    """
    if kind in (*MOMENTS, "DATE"):
        beyond = f"WHEN {column} >= {kind} '{BEYOND}' THEN {FOREVER} WHEN {column} <= {kind} '{BEFORE}' THEN {NEVER}"
        return f"CASE {beyond} ELSE CAST({column} AS TIMESTAMP) END"
    counted = COUNTED.fullmatch(kind)
    unit = counted["unit"] if counted else "ns" if kind in NANOSECONDS else "us"
    count = column if counted else f"epoch_{unit}({column})"
    if unit == "ns":
        finite = f"make_timestamp({count} // 1000 - CAST({count} % 1000 < 0 AS BIGINT))"  # // rounds toward zero
    else:
        size = MICROSECONDS[unit]
        most, least = (day * MICROSECONDS["day"] // size for day in (BEYOND_DAY, BEFORE_DAY))
        beyond = f"WHEN {count} >= {most} THEN {FOREVER} WHEN {count} <= {least} THEN {NEVER}"
        finite = f"CASE {beyond} ELSE make_timestamp({count} * {size}) END"
    far = f"CASE CAST({column} AS VARCHAR) WHEN 'infinity' THEN {FOREVER} WHEN '-infinity' THEN {NEVER} END"
    return finite if counted else prefer(finite, far)


def spell_value(value: object, *, exact: bool = False) -> str | None:  # noqa: PLR0911 - one return a kind
    """The canonical text of one Python value. `exact`: refuse floats beyond 2**53, which are not told apart.

    Claim: K-50. Equal to `spell_column` of a column that holds the value.
    Requires: a number, truth value, day, moment, UUID or text; NoRule is raised for anything else.
    Relies on: K-50.
    Checked by: tests/ingest/test_canonical.py::test_mixed_objects_have_the_text_of_their_column
    """
    if value is None or type(value).__name__ in MISSING:
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return _spell_float(float(value), exact=exact)
    if isinstance(value, Decimal):
        return _spell_decimal(value)
    if isinstance(value, datetime):
        return _spell_moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return _spell_numpy(value)
    if type(value).__name__ == "UUID":
        return str(value)
    raise NoRule(type(value).__name__)


def _spell_float(x: float, *, exact: bool) -> str | None:
    if isnan(x):
        return None
    if exact and isfinite(x) and abs(x) > EXACT:
        raise NoRule("float beyond 2**53")
    return str(int(x)) if abs(x) <= EXACT and x == int(x) else repr(x)


def _spell_decimal(value: Decimal) -> str | None:
    if not value.is_finite():
        return None if value.is_nan() else "-inf" if value < 0 else "inf"
    if not value:
        return "0"
    if abs(value.adjusted()) > 1000:
        return str(value)  # its digits would fill memory; as a number it is zero or infinite
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _spell_moment(value: datetime) -> str:
    value = datetime.combine(value.date(), value.timetz())  # of pandas' type: to the microsecond below
    zone = ""
    if value.utcoffset() is not None:
        zone = "Z"
        try:
            value = value.astimezone(UTC)
        except OverflowError:  # the first or the last day of the calendar
            zone = value.strftime("%z")[:5]
    digits = value.replace(tzinfo=None).isoformat(" ", "microseconds").rstrip("0").rstrip(".")
    return digits + zone


def _spell_numpy(value: np.datetime64) -> str | None:
    if np.isnat(value):
        return None
    item = value.astype("datetime64[us]").item()
    if not isinstance(item, datetime):
        raise NoRule("datetime64 beyond year 9999")
    return _spell_moment(item)
