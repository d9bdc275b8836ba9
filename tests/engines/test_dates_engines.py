"""Dates and datetimes: how they are pinned; every function has the same value and type in DuckDB and in Python."""

from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.engines.sql.scalars import lower_expression
from sfumato.errors import KernelFault
from sfumato.ingest.snapshot import pin
from sfumato.kernel.expressions import Call, Column, ColumnType, Literal
from sfumato.kernel.losses import ApproxDP, PureDP
from sfumato.kernel.neighbours import Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Key, Keys, Measurement
from sfumato.kernel.row_sources import Scan
from sfumato.row_meanings.date_meanings import moment_text
from sfumato.row_meanings.evaluate import evaluate

FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
UNITS = ("year", "quarter", "month", "week", "day")
PARTS = (*UNITS, "dayofweek", "dayofyear")
TIMES = ("hour", "minute")
A, B = Column("a", ColumnType.DATE), Column("b", ColumnType.DATE)
X, Y = Column("x", ColumnType.DATETIME), Column("y", ColumnType.DATETIME)
FUNCTIONS = [
    *(Call("date_trunc", (A,), unit) for unit in UNITS),
    *(Call("extract", (A,), part) for part in PARTS),
    *(Call("date_diff", (A, B), unit) for unit in UNITS),
    Call("midnight", (A,)),
    *(Call("datetime_trunc", (X,), unit) for unit in (*UNITS, *TIMES)),
    *(Call("extract", (X,), part) for part in (*PARTS, *TIMES)),
    *(Call("date_diff", (X, Y), unit) for unit in (*UNITS, *TIMES)),
    *(Call("date_diff", (Call("midnight", (A,)), X), unit) for unit in (*UNITS, *TIMES)),
    *(Call(sign, (A, B)) for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *(Call(sign, (X, Y)) for sign in ("=", "<>", "<", "<=", ">", ">=")),
    Call("<", (Call("midnight", (B,)), Y)),
    Call(">=", (A, Literal(date(1970, 1, 1)))),
    Call("=", (X, Literal(datetime(1969, 12, 31, 23, 59, 59, 999_999)))),
    Call("<", (X, Literal(datetime(2000, 2, 29)))),
    Call("coalesce", (A, B, Literal(date(1, 1, 1)))),
    Call("case", (Call("is null", (X,)), Literal(datetime(9999, 12, 31, 23, 59, 59)), Y)),
    Call("date_trunc", (Call("date_trunc", (A,), "week"),), "month"),
]
ODD_DAYS = [
    FIRST, LAST, date(1, 12, 31), date(4, 2, 29), date(1900, 2, 28), date(1904, 2, 29), date(1969, 12, 28),
    date(1969, 12, 29), date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 4), date(1970, 1, 5), date(2000, 2, 29),
    date(2020, 12, 31), date(2021, 1, 1), date(2021, 1, 3), date(2021, 1, 4), date(2024, 12, 30), date(2026, 12, 31),
]  # fmt: skip
ODD_TIMES = [
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(hours=12),
    timedelta(days=1) - timedelta(microseconds=1),
]
days = st.one_of(st.none(), st.sampled_from(ODD_DAYS), st.dates())
moments = st.one_of(
    st.none(),
    st.tuples(st.sampled_from(ODD_DAYS), st.sampled_from(ODD_TIMES)).map(lambda pair: at_midnight(pair[0]) + pair[1]),
    st.datetimes(),
)


def at_midnight(day):
    return datetime(day.year, day.month, day.day)


def by_duckdb(rows, functions=FUNCTIONS):
    """The value of each function for each row, computed by the lowered SQL."""
    types = [("a", pa.date32()), ("b", pa.date32()), ("x", pa.timestamp("us")), ("y", pa.timestamp("us"))]
    data = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types})
    with duckdb.connect() as connection:
        connection.register("data", data)
        return connection.execute(f"SELECT {', '.join(map(lowered, functions))} FROM data").fetchall()


@cache
def lowered(function):
    return lower_expression(function).sql("duckdb")


def same(one, two):
    return type(one) is type(two) and one == two


def compare(rows, functions=FUNCTIONS):
    for row, found in zip(rows, by_duckdb(rows, functions), strict=True):
        for function, value in zip(functions, found, strict=True):
            wanted = evaluate(function, row)
            assert same(value, wanted), (function, row, value, wanted)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.fixed_dictionaries({"a": days, "b": days, "x": moments, "y": moments}), min_size=1, max_size=20)
)
def test_every_function_is_the_same_on_both(rows):
    compare(rows)


def test_every_function_is_the_same_at_the_ends_of_years():
    """31 December, 1 January and the end of February, in near and in distant years."""
    rows = []
    for year in (*range(1, 10_000, 7), *range(1890, 2110)):
        for day in (date(year, 1, 1), date(year, 3, 1) - timedelta(days=1), date(year, 12, 31)):
            moment = at_midnight(day) + timedelta(seconds=86_399, microseconds=year)
            rows.append({"a": day, "b": date(1970, 1, 1), "x": moment, "y": datetime(1970, 1, 1)})
    compare(rows, [call for call in FUNCTIONS if call.function.split()[0] in ("extract", "date_trunc", "date_diff")])


def test_differences_count_beginnings_as_duckdb_does():
    """Compare with DuckDB's own date_diff, except for weeks: DuckDB does not count Mondays."""
    units = [unit for unit in UNITS if unit != "week"]
    rows = [{"a": one, "b": two, "x": None, "y": None} for one in ODD_DAYS for two in ODD_DAYS]
    ours = by_duckdb(rows, [Call("date_diff", (A, B), unit) for unit in units])
    with duckdb.connect() as connection:
        connection.register("data", pa.table({name: [row[name] for row in rows] for name in "ab"}))
        asked = ", ".join(f"CAST(date_diff('{unit}', a, b) AS DOUBLE)" for unit in units)
        assert connection.execute(f"SELECT {asked} FROM data").fetchall() == ours


@settings(max_examples=50, deadline=None)
@given(moments=st.lists(moments.filter(lambda moment: moment is not None), min_size=1, max_size=20))
def test_moments_are_written_alike(moments):
    with duckdb.connect() as connection:
        connection.register("data", pa.table({"x": pa.array(moments, pa.timestamp("us"))}))
        texts = [row[0] for row in connection.execute("SELECT CAST(x AS VARCHAR) FROM data").fetchall()]
    assert texts == [moment_text(moment) for moment in moments]


def test_a_week_begins_on_monday():
    days = [date(2024, 12, 27) + timedelta(days=number) for number in range(12)]
    rows = [{"a": date(2024, 12, 29), "b": day, "x": None, "y": None} for day in days]
    found = by_duckdb(
        rows, [Call("date_diff", (A, B), "week"), Call("date_trunc", (B,), "week"), Call("extract", (B,), "week")]
    )
    assert [row[0] for row in found] == [0.0] * 3 + [1.0] * 7 + [2.0] * 2
    assert {row[1] for row in found} == {date(2024, 12, 23), date(2024, 12, 30), date(2025, 1, 6)}
    assert [row[2] for row in found] == [52.0] * 3 + [1.0] * 7 + [2.0] * 2


def test_what_is_wrong_is_seen():
    """Negative control: a week that begins on Sunday, or another type, is noticed."""
    row = {"a": date(2021, 1, 3), "b": None, "x": None, "y": None}
    ((monday, moment),) = by_duckdb([row], [Call("date_trunc", (A,), "week"), Call("datetime_trunc", (A,), "week")])
    assert same(monday, date(2020, 12, 28))
    assert not same(monday, date(2021, 1, 3))
    assert not same(moment, monday)


@pytest.mark.parametrize(
    ("function", "unit"),
    [
        ("date_trunc", "second"), ("extract", "epoch"), ("date_diff", "decade"), ("trunc", "day"), ("abs", "day"),
        ("extract", None), ("date_diff", None), ("extract month", None), ("extract month", "month"),
        ("date_trunc", "dayofweek"), ("datetime_trunc", "dayofyear"), ("cut", None),
    ],
)  # fmt: skip
def test_only_known_functions_are_lowered(function, unit):
    with pytest.raises(KernelFault):
        lower_expression(Call(function, (A, B) if function == "date_diff" else (A,), unit))


def pinned(data, declared, zone="UTC"):
    """The pinned column t of a source, if the machine has this time zone."""
    table = Table("t", None, sf.ROW, {"t": declared})
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        pin(connection, table, data)
        return [row[0] for row in connection.execute("SELECT t FROM t").fetchall()]


LOW, HIGH = datetime(2020, 1, 1), datetime(2020, 12, 31, 23, 59, 59)
MIDDLE = LOW + (HIGH - LOW) // 2
TEXTS = {
    "2020-05-05T06:07:08": datetime(2020, 5, 5, 6, 7, 8),
    "2020-05-05 06:07:08.123456": datetime(2020, 5, 5, 6, 7, 8, 123_456),
    "2020-05-05": datetime(2020, 5, 5),
    "2020-05-05 06:07": datetime(2020, 5, 5, 6, 7),
    "2020-05-05T06:07:08Z": datetime(2020, 5, 5, 6, 7, 8),
    "2020-05-05T06:07:08+02:00": datetime(2020, 5, 5, 4, 7, 8),
    "2020-05-05 06:07:08.5-0530": datetime(2020, 5, 5, 11, 37, 8, 500_000),
    "2020-05-05 06:07:08.5-05:30": datetime(2020, 5, 5, 11, 37, 8, 500_000),
    "2020-05-05 06:07:08+02": datetime(2020, 5, 5, 4, 7, 8),
    "2020-05-05 06:07:08 UTC": datetime(2020, 5, 5, 6, 7, 8),
    "2020-05-05 06:07:08.1234567890Z": datetime(2020, 5, 5, 6, 7, 8, 123_456),
    "2020-05-05 06:07:08 Europe/Rome": None,
    "2020-05-05 06:07:08+24:00": None,
    "2020-05-05 24:00:00": None,
    "2020-05-05 06:07:08 nowhere": None,
    "1999-12-31 23:59:59": LOW,
    "2021-01-01 00:00:00": HIGH,
    "2020-12-31 23:59:59.5": HIGH,
    "infinity": HIGH,
    "-infinity": LOW,
    "yesterday": None,
    "2020-02-30 00:00:00": None,
    "": None,
    None: None,
}


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_texts_become_moments_wherever_they_are_read(zone, nullable):
    wanted = [MIDDLE if moment is None and not nullable else moment for moment in TEXTS.values()]
    frame = pd.DataFrame({"t": list(TEXTS)}, dtype="string")
    assert pinned(frame, sf.DateTime(LOW, HIGH, nullable=nullable), zone) == wanted


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_moments_with_a_zone_are_told_in_utc(zone):
    given_moments = [
        datetime(2020, 5, 5, 23, tzinfo=UTC),
        datetime(2020, 5, 5, 1, tzinfo=timezone(timedelta(hours=2))),
        None,
    ]
    wanted = [datetime(2020, 5, 5, 23), datetime(2020, 5, 4, 23), None]
    data = pa.table({"t": pa.array(given_moments, pa.timestamp("us", "Europe/Rome"))})
    assert pinned(data, sf.DateTime(LOW, HIGH), zone) == wanted
    assert pinned(data, sf.Date("2020-01-01", "2020-12-31"), zone) == [date(2020, 5, 5), date(2020, 5, 4), None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_any_precision_are_kept(unit):
    data = pa.table({"t": pa.array([datetime(2020, 5, 5, 6, 7, 8), None, datetime(1971, 1, 1)], pa.timestamp(unit))})
    assert pinned(data, sf.DateTime(LOW, HIGH)) == [datetime(2020, 5, 5, 6, 7, 8), None, LOW]
    frame = pd.DataFrame({"t": pd.to_datetime(["2020-05-05 06:07:08", None])})
    assert pinned(frame, sf.DateTime(LOW, HIGH)) == [datetime(2020, 5, 5, 6, 7, 8), None]


def test_days_become_midnights():
    assert pinned(pa.table({"t": pa.array([date(2020, 5, 5), None])}), sf.DateTime(LOW, HIGH)) == [
        datetime(2020, 5, 5),
        None,
    ]


VISITS = Table(
    "visits", None, "who", {"who": sf.Id(), "seen": sf.DateTime("1900-01-01T00:00:00", "2026-12-31T23:59:59.5")},
    max_rows_per_unit=5, max_groups_per_unit=2,
)  # fmt: skip
seen = st.one_of(st.none(), st.sampled_from([datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 500_000),
    datetime(1969, 12, 31, 23, 59, 59, 10), datetime(2020, 1, 1, 10)]))  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), seen), max_size=15))
@example(rows=[(who, datetime(2020, 1, 1, 0, 0, second, 1000 * second)) for who in "pqrs" for second in range(5)])
@pytest.mark.parametrize(
    "key",
    [
        Column("seen", ColumnType.DATETIME),
        Call("datetime_trunc", (Column("seen", ColumnType.DATETIME),), "minute"),
        Call("datetime_trunc", (Column("seen", ColumnType.DATETIME),), "month"),
        Call("extract", (Column("seen", ColumnType.DATETIME),), "hour"),
    ],
)
def test_moments_that_the_data_names_are_the_same_on_both(key, rows):
    """Keys of a person are chosen by a hash of their text: the engines must write moments alike."""
    frame = pd.DataFrame(rows, columns=["who", "seen"]).astype({"seen": "datetime64[us]", "who": object})
    plan = BoundedPlan(
        "people", Scan("visits", "1", 5, most_met=40), PrivacyUnit("visits", "who", Neighbours.ADD_REMOVE), 2, (),
        (Key(key, None),),
        (
            Measurement("keys", Keys(), ApproxDP(1, "1e-6")),
            Measurement("count", Count(None), PureDP(1)),
        ),
    )  # fmt: skip
    duck = DuckDBEngine.of_data(VISITS, frame)
    try:
        duck.check(plan)
        names = [row[0] for row in duck._connection.execute("DESCRIBE visits").fetchall()]
        held = [dict(zip(names, row, strict=True)) for row in duck._connection.execute("FROM visits").fetchall()]
        found, wanted = (by_key(engine.aggregate(plan)) for engine in (duck, ReferenceEngine({"visits": held})))
    finally:
        duck.close()
    assert found == wanted


def by_key(exact):
    """Every nonzero integer, except for keys in which no unit is counted: these are never released."""
    return {
        (name, key): int(integer)
        for name, integers in exact._integers.items()
        for key, integer, people in zip(exact._keys, integers, exact._integers["keys"], strict=True)
        if integer and people
    }
