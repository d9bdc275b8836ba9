"""Equal values have the same canonical text in columns of every type."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.ingest import canonical as module
from sfumato.ingest.canonical import NoRule, spell_column, spell_value

DUCKDB = duckdb.connect()
ROME = timezone(timedelta(hours=2))


def texts(values, kind):
    """The canonical texts of an Arrow column of a type."""
    DUCKDB.register("frame", pa.table({"x": pa.array(values, kind)}))
    name = DUCKDB.execute("DESCRIBE frame").fetchall()[0][1]
    return [row[0] for row in DUCKDB.execute(f"SELECT {spell_column('x', name)} FROM frame").fetchall()]


CASES = [
    ("7", 7, [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]),
    ("7", 7.0, [pa.float32(), pa.float64()]),
    ("7", Decimal("7.00"), [pa.decimal128(9, 2), pa.decimal128(38, 10)]),
    ("700", Decimal("700"), [pa.decimal128(9, 0), pa.decimal128(9, 2)]),
    ("0", -0.0, [pa.float32(), pa.float64()]),
    ("-3", -3, [pa.int8(), pa.int64()]),
    ("9007199254740992", 2**53, [pa.int64(), pa.float64()]),
    ("9007199254740993", 2**53 + 1, [pa.int64(), pa.uint64()]),
    ("0.10000000149011612", float(np.float32(0.1)), [pa.float32(), pa.float64()]),
    ("0.5", 0.5, [pa.float32(), pa.float64()]),
    ("0.5", Decimal("0.50"), [pa.decimal128(9, 2), pa.decimal128(2, 2), pa.decimal128(38, 38)]),
    ("-0.05", Decimal("-0.05"), [pa.decimal128(9, 2), pa.decimal128(2, 2), pa.decimal128(38, 38)]),
    ("0", Decimal("0.0"), [pa.decimal128(1, 0), pa.decimal128(1, 1), pa.decimal128(9, 2), pa.decimal128(38, 38)]),
    ("1e-05", 1e-5, [pa.float64()]),
    ("inf", float("inf"), [pa.float64()]),
    (None, float("nan"), [pa.float64()]),
    ("true", True, [pa.bool_()]),
    ("2024-12-31", date(2024, 12, 31), [pa.date32(), pa.date64()]),
    ("0001-01-01", date(1, 1, 1), [pa.date32()]),
    ("2024-12-31 23:59:59", datetime(2024, 12, 31, 23, 59, 59), [pa.timestamp(unit) for unit in ("s", "ms", "us")]),
    ("2024-12-31 23:59:59.5", datetime(2024, 12, 31, 23, 59, 59, 500_000), [pa.timestamp("ms"), pa.timestamp("ns")]),
    ("1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999_999), [pa.timestamp("us")]),
    ("2024-12-31 22:30:00Z", datetime(2025, 1, 1, 0, 30, tzinfo=ROME), [pa.timestamp("us", "Europe/Rome")]),
    ("2024-12-31 22:30:00Z", datetime(2025, 1, 1, 0, 30, tzinfo=ROME), [pa.timestamp("ns", "Asia/Tokyo")]),
    ("a", "a", [pa.string(), pa.large_string(), pa.string_view()]),
]


@pytest.mark.parametrize(("wanted", "value", "kinds"), CASES, ids=lambda value: repr(value)[:40])
def test_every_type_has_one_text(wanted, value, kinds):
    for kind in kinds:
        assert texts([value, None], kind) == [wanted, None], kind
    assert spell_value(value) == wanted


def test_nanoseconds_are_cut_not_rounded():
    for zone in (None, "Europe/Rome"):
        found = texts([-1, 999, 86_399_999_999_999], pa.timestamp("ns", zone))
        assert [text.rstrip("Z") for text in found] == [
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:00",
            "1970-01-01 23:59:59.999999",
        ]


def test_wide_numbers_and_uuids_of_duckdb():
    name = UUID("ABCDEF01-2345-6789-ABCD-EF0123456789")
    for value, kind, wanted in [
        ("170141183460469231731687303715884105727", "HUGEINT", "170141183460469231731687303715884105727"),
        (f"'{name}'", "UUID", str(name)),
        ("'b'", "ENUM('a', 'b')", "b"),
        ("1.10", "DECIMAL(3,2)", "1.1"),
    ]:
        found = DUCKDB.execute(
            f"SELECT {spell_column('x', kind)} FROM (SELECT CAST({value} AS {kind}) AS x)"
        ).fetchall()
        assert found == [(wanted,)]
    assert spell_value(name) == str(name)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=64),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
    st.decimals(-(10**9), 10**9, places=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, ROME, timezone(timedelta(hours=-11))])),
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(pd.Timestamp),
    st.uuids().map(str),
    st.text(max_size=5),
)


@settings(max_examples=400, deadline=None)
@given(value=scalars)
@example(value=2.0**60)
@example(value=-(2.0**53))
@example(value=1e22)
@example(value=np.float32(0.1))
@example(value=pd.Timestamp("1969-12-31 23:59:59.999999999"))
@example(value=datetime(1, 1, 1, tzinfo=ROME))
def test_mixed_objects_have_the_text_of_their_column(value):
    """Python's canonical text of a value equals SQL's text for a column with that value."""
    kind = None
    if isinstance(value, np.float32):
        kind = pa.float32()
    elif isinstance(value, datetime) and value.tzinfo is not None:
        kind = pa.timestamp("us", "UTC")
        if value.year in (1, 9999):
            return
    column = pa.array([value], kind) if value is not None else pa.nulls(1, pa.string())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal128(38, column.type.scale))
    assert texts(column, column.type) == [spell_value(value)]


def test_the_comparison_sees_another_text(monkeypatch):
    """Negative control: Python's str() of a value differs."""
    monkeypatch.setattr(module, "_spell_float", lambda x, exact: str(x))
    assert texts([7.0], pa.float64()) != [spell_value(7.0)]


@pytest.mark.parametrize(
    "value", [b"1", [1], {}, timedelta(1), np.timedelta64(1, "s"), 1j, object(), pd.Period("2020")]
)
def test_other_values_have_no_rule(value):
    with pytest.raises(NoRule):
        spell_value(value)


@pytest.mark.parametrize("value", [None, float("nan"), np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT")])
def test_missing_values_are_missing(value):
    assert spell_value(value) is None
