"""Arrow's days and moments -> those that DuckDB takes: microseconds and days, and infinity for what is beyond them.

It is arithmetic of whole numbers, value by value: no time zone is looked up. Part of the trusted perimeter: K-50.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.ingest.canonical import BEFORE_DAY, BEYOND_DAY

SECONDS_OF_DAY = 86_400
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}
INFINITE_MOMENT, INFINITE_DAY = 2**63 - 1, 2**31 - 1  # and their negatives: infinity, as DuckDB stores it


def microseconds(column: Any) -> Any:  # noqa: ANN401 - an Arrow array, whole or in chunks
    """A column of moments in microseconds, cut and not rounded; beyond DuckDB's calendar: infinity.

    Claim: K-50. A function of the value alone, defined for every value.
    Requires: a column of Arrow timestamps.
    Relies on: K-50.
    Checked by: tests/ingest/test_frames.py::test_moments_beyond_the_calendar_are_clamped
    """
    kind = column.type
    wanted = pa.timestamp("us", kind.tz)
    whole = column.cast(pa.int64())
    if kind.unit == "ns":
        return _floor_divided(whole, 1_000).cast(wanted)
    least, most = (day * SECONDS_OF_DAY * UNITS[kind.unit] for day in (BEFORE_DAY, BEYOND_DAY))
    factor = UNITS["us"] // UNITS[kind.unit]
    return _saturated(whole, least, most, factor, INFINITE_MOMENT).cast(wanted)


def days(column: Any) -> Any:  # noqa: ANN401
    """A column of days as 32-bit numbers of days; beyond them: infinity.

    Claim: K-50. A function of the value alone, defined for every value.
    Requires: a column of Arrow's date32 or date64.
    Relies on: K-50.
    Checked by: tests/ingest/test_frames.py::test_moments_beyond_the_calendar_are_clamped
    """
    if pa.types.is_date64(column.type):
        whole = _floor_divided(column.cast(pa.int64()), SECONDS_OF_DAY * UNITS["ms"])
    else:
        whole = column.cast(pa.int32()).cast(pa.int64())
    return _saturated(whole, -INFINITE_DAY, INFINITE_DAY, 1, INFINITE_DAY).cast(pa.int32()).cast(pa.date32())


def _floor_divided(whole: Any, by: int) -> Any:  # noqa: ANN401
    toward_zero = pc.divide(whole, by)
    above = pc.greater(pc.multiply(toward_zero, by), whole)
    return pc.subtract(toward_zero, above.cast(pa.int64()))


def _saturated(whole: Any, least: int, most: int, factor: int, infinite: int) -> Any:  # noqa: ANN401
    """The numbers times a factor; those from `most` on are infinite, and those up to `least` too."""
    within = pc.max_element_wise(pc.min_element_wise(whole, most, skip_nulls=False), least, skip_nulls=False)
    times = pc.multiply(within, factor)
    above = pc.if_else(pc.greater_equal(whole, most), pa.scalar(infinite, pa.int64()), times)
    return pc.if_else(pc.less_equal(whole, least), pa.scalar(-infinite, pa.int64()), above)
