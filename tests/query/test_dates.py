"""Dates and times: the meaning of questions, bounds and keys that follow from declared bounds alone, and refusals."""

from datetime import date, datetime, timedelta

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.errors import QueryError
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.date_functions import count_boundaries, extract_part, truncate
from sfumato.query.declared_columns import type_column
from sfumato.query.functions import MOST_KEYS
from sfumato.query.parse import parse
from sfumato.query.periods import PARTS, UNITS
from sfumato.row_meanings.date_meanings import apply_to_dates

COLUMNS = {
    "born": sf.Date("1900-01-01", "2025-12-31"),
    "day": sf.Date("2024-02-20", "2024-03-02", nullable=False),
    "seen": sf.DateTime("2020-01-01T00:00:00", "2026-12-31T23:59:59"),
    "shift": sf.DateTime("2024-02-28T22:30:00", "2024-03-01T01:10:00.5"),
    "timestamp": sf.Integer(0, 9),
    "year": sf.Integer(0, 9),
}
ROWS = [
    ("1990-05-01", "2024-02-29", "2020-02-29 23:59:59.999999", "2024-02-29 00:00:00", 1, 1),
    ("1969-12-31", "2024-02-20", "2021-01-01 00:00:00", "2024-02-28 23:15:00", 2, 2),
    (None, "2030-01-01", None, None, 3, 3),
    ("1800-01-01", None, "2026-12-31 23:59:59.5", "2024-03-01 12:00:00", None, 4),
]
TABLE = Table("visits", None, sf.ROW, COLUMNS)
DATASET = Dataset("visits", [TABLE], sf.Budget(epsilon=9, delta=1e-6))


def bound(sql):
    return bind(parse(sql), DATASET)


def key_values(expression):
    return bound(f"SELECT {expression} AS k, COUNT(*) AS n FROM visits GROUP BY k").keys[0].values


def value_of(expression):
    return bound(f"SELECT AVG({expression}) AS a FROM visits").aggregates[0].value


@pytest.fixture(scope="module")
def engines():
    duck = DuckDBEngine.of_data(TABLE, pd.DataFrame(ROWS, columns=list(COLUMNS)))
    names = [row[0] for row in duck._connection.execute("DESCRIBE visits").fetchall()]
    held = duck._connection.execute("FROM visits").fetchall()
    yield duck, ReferenceEngine({"visits": [dict(zip(names, row, strict=True)) for row in held]})
    duck.close()


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("born = DATE '1990-05-01'", 1),
        ("born = '1900-01-01'", 1),  # clamped
        ("seen < '2020-03-01'", 1),
        ("seen < DATE '2020-03-01'", 1),
        ("DATE '2020-03-01' > seen", 1),
        ("seen < TIMESTAMP '2020-02-29 23:59:59.999999'", 0),
        ("seen <= TIMESTAMP '2020-02-29T23:59:59.999999'", 1),
        ("seen = '2021-01-01'", 1),
        ("seen = '2021-01-01 00:00'", 1),
        ("seen BETWEEN '2021-01-01' AND TIMESTAMP '2026-12-31 23:59:59'", 2),
        ("seen IN ('2021-01-01', DATE '2020-01-01', TIMESTAMP '2026-12-31 23:59:59')", 2),
        ("shift > day", 2),  # a day beside a moment is its midnight
        ("shift >= day", 3),
        ("day <> shift", 2),
        ("born < TIMESTAMP '1970-01-01 00:00:00'", 2),
        ("DATE_TRUNC('month', seen) = '2020-02-01'", 1),
        ("date_trunc('MONTH', seen) = DATE '2020-02-01'", 1),
        ("DATE_TRUNC('month', day) = '2024-02-01'", 3),  # the fourth is the public midpoint, 25 February
        ("DATE_TRUNC('week', born) = '1969-12-29'", 1),
        ("DATE_TRUNC('hour', shift) = '2024-02-28 23:00:00'", 1),
        ("EXTRACT(year FROM born) = 1990", 1),
        ("EXTRACT('year' FROM born) = 1990", 1),
        ("YEAR(born) = 1990 AND MONTH(born) = 5 AND DAY(born) = 1 AND QUARTER(born) = 2", 1),
        ("EXTRACT(dow FROM seen) = 6", 1),  # a Saturday
        ("DAYOFWEEK(seen) BETWEEN 4 AND 5", 2),
        ("DAYOFYEAR(day) = 60", 1),
        ("EXTRACT(doy FROM day) = 60", 1),
        ("WEEK(seen) = 53", 2),  # 1 January 2021 and 31 December 2026
        ("HOUR(seen) = 23 AND MINUTE(seen) = 59", 2),
        ("DATE_DIFF('day', born, seen) = 18629", 1),  # 31 December 1969 to 1 January 2021
        ("DATE_DIFF('year', born, seen) = 52", 1),
        ("DATE_DIFF('month', born, '1970-01-01') = 1", 1),
        ("DATE_DIFF('day', '1970-01-01', born) = -1", 1),
        ("DATE_DIFF('quarter', DATE '2024-01-01', day) = 0", 4),
        ("DATE_DIFF('week', DATE '2024-02-25', day) = 1", 2),  # Sunday 25 to Thursday 29, and to 2 March
        ("DATE_DIFF('hour', shift, TIMESTAMP '2024-02-29 00:59:59') = 0", 1),
        ("DATE_DIFF('minute', shift, TIMESTAMP '2024-02-29 00:00:00') = 45", 1),
        ("CASE WHEN seen IS NULL THEN day ELSE born END < '2000-01-01'", 3),
        ("COALESCE(seen, TIMESTAMP '2024-01-01 00:00:00') = '2024-01-01'", 1),
        ("timestamp > 1 AND year > 1", 2),  # these words are names too
    ],
)
def test_conditions_count_the_same_on_both_engines(condition, rows, engines):
    plan = choose_plan(
        bound(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"), sf.PureDP(1), DATASET, {"visits": "1"}
    ).plan
    engines[0].check(plan)
    one, two = (engine.aggregate(plan)._integers["count1"].tolist() for engine in engines)
    assert one == two == [rows]


def test_days_are_keys_where_they_are_few():
    assert key_values("day") == tuple(date(2024, 2, 20) + timedelta(days=days) for days in range(12))
    assert key_values("born") is None  # 126 years of days: the data names them
    assert bound("SELECT MODE(day) AS m FROM visits").aggregates[0].value.values == key_values("day")


@pytest.mark.parametrize(
    ("expression", "count", "first", "last"),
    [
        ("DATE_TRUNC('month', seen)", 84, datetime(2020, 1, 1), datetime(2026, 12, 1)),
        ("DATE_TRUNC('year', seen)", 7, datetime(2020, 1, 1), datetime(2026, 1, 1)),
        ("DATE_TRUNC('quarter', seen)", 28, datetime(2020, 1, 1), datetime(2026, 10, 1)),
        ("DATE_TRUNC('week', seen)", 366, datetime(2019, 12, 30), datetime(2026, 12, 28)),
        ("DATE_TRUNC('day', seen)", 2557, datetime(2020, 1, 1), datetime(2026, 12, 31)),
        ("DATE_TRUNC('hour', shift)", 28, datetime(2024, 2, 28, 22), datetime(2024, 3, 1, 1)),
        ("DATE_TRUNC('minute', shift)", 1601, datetime(2024, 2, 28, 22, 30), datetime(2024, 3, 1, 1, 10)),
        ("DATE_TRUNC('month', born)", 1512, date(1900, 1, 1), date(2025, 12, 1)),
        ("DATE_TRUNC('week', born)", 6575, date(1900, 1, 1), date(2025, 12, 29)),
        ("DATE_TRUNC('month', DATE_TRUNC('week', seen))", 85, datetime(2019, 12, 1), datetime(2026, 12, 1)),
        ("YEAR(born)", 126, 1900, 2025),
        ("MONTH(day)", 2, 2, 3),
        ("MONTH(seen)", 12, 1, 12),
        ("DAY(day)", 12, 1, 29),
        ("DAYOFWEEK(day)", 7, 0, 6),
        ("WEEK(day)", 2, 8, 9),
        ("WEEK(seen)", 53, 1, 53),
        ("DAYOFYEAR(born)", 366, 1, 366),
        ("HOUR(shift)", 24, 0, 23),
        ("MINUTE(shift)", 60, 0, 59),
        ("DATE_DIFF('day', day, DATE '2024-03-02')", 12, 0, 11),
        ("DATE_DIFF('month', born, DATE '2026-01-01')", 1512, 1, 1512),
        ("DATE_DIFF('year', seen, born)", 132, -126, 5),
        ("CASE WHEN day < '2024-03-01' THEN DATE_TRUNC('month', day) ELSE DATE '2024-03-01' END", 2,
         date(2024, 2, 1), date(2024, 3, 1)),
    ],
)  # fmt: skip
def test_keys_follow_from_bounds(expression, count, first, last):
    values = key_values(expression)
    assert (len(values), values[0], values[-1]) == (count, first, last)
    assert list(values) == sorted(values)
    assert all(type(value) is type(first) for value in values)


def test_moments_too_many_to_be_keys_are_named_by_the_data():
    assert key_values("DATE_TRUNC('minute', seen)") is None
    assert key_values("seen") is None


def test_so_many_keys_that_they_are_not_generated():
    few, many = (
        type_column(Table("t", None, sf.ROW, {"d": sf.Date(date.fromordinal(1), date.fromordinal(last))}), "d")
        for last in (MOST_KEYS, MOST_KEYS + 1)
    )
    assert len(few.values) == MOST_KEYS
    assert many.values is None


@pytest.mark.parametrize(
    ("expression", "lower", "upper"),
    [
        ("YEAR(seen)", 2020, 2026),
        ("DATE_DIFF('day', born, seen)", -2191, 46385),
        ("DATE_DIFF('hour', shift, shift)", -27, 27),
        ("DATE_DIFF('minute', DATE '2024-03-01', shift)", -1530, 70),
        ("DATE_DIFF('year', born, DATE '2026-01-01')", 1, 126),
        ("2 * MONTH(day) + DATE_DIFF('day', '2024-02-20', day)", 4, 17),
    ],
)
def test_bounds_follow_from_bounds(expression, lower, upper):
    value = value_of(expression)
    assert (value.type, value.lower, value.upper, value.whole) == ("number", lower, upper, True)


def test_null_comes_from_null():
    assert value_of("YEAR(born)").nullable
    assert not value_of("MONTH(day)").nullable
    assert value_of("DATE_DIFF('day', day, seen)").nullable
    assert not value_of("DATE_DIFF('day', day, DATE '2026-01-01')").nullable


dates = st.dates() | st.sampled_from([date(1, 1, 1), date(1970, 1, 1), date(2000, 2, 29), date(9999, 12, 31)])
spans = st.integers(0, 4000) | st.integers(0, 40)


def declared(first, days, *, of_moments):
    """A column whose bounds are some days apart, and moments that lie between them: all days, or all minutes of few."""
    last = date.fromordinal(min(first.toordinal() + days, date.max.toordinal()))
    if not of_moments:
        every = [date.fromordinal(ordinal) for ordinal in range(first.toordinal(), last.toordinal() + 1)]
        return type_column(Table("t", None, sf.ROW, {"d": sf.Date(first, last)}), "d"), every
    begin = datetime(first.year, first.month, first.day, 22, 58, 30)
    minutes = min(days, 61 if first == date.max else days)
    end = begin + timedelta(minutes=minutes, microseconds=days)
    every = {begin, end, *(begin.replace(second=59) + timedelta(minutes=minute) for minute in range(minutes))}
    column = type_column(Table("t", None, sf.ROW, {"d": sf.DateTime(begin, end)}), "d")
    return column, sorted(moment for moment in every if begin <= moment <= end)


@settings(max_examples=60, deadline=None)
@given(first=dates, days=spans, of_moments=st.booleans())
@example(first=date(1896, 2, 1), days=8 * 366, of_moments=False)
@example(first=date(1897, 1, 1), days=7 * 366, of_moments=False)
@example(first=date(9999, 12, 31), days=4000, of_moments=True)
def test_every_key_can_be_reached_and_none_is_missing(first, days, of_moments):
    """Compared with the reference engine's functions of all days (or minutes). They share no other code."""
    column, every = declared(first, days, of_moments=of_moments)
    kind = "datetime" if of_moments else "date"
    units = UNITS if of_moments else UNITS[:-2]
    for unit in units:
        made = truncate(unit, column)
        assert made.values == tuple(sorted({apply_to_dates(f"{kind}_trunc", unit, [moment]) for moment in every})), unit
    for name in [part for part in PARTS if of_moments or PARTS[part][0] in units]:
        made = extract_part(name, column)
        assert made.values == tuple(sorted({apply_to_dates("extract", name, [moment]) for moment in every})), name
        assert (made.lower, made.upper) == (made.values[0], made.values[-1])
    for unit in units:
        made = count_boundaries(unit, column, column)
        reached = apply_to_dates("date_diff", unit, [every[0], every[-1]])
        assert (made.lower, made.upper) == (-reached, reached)


def test_a_part_that_began_elsewhere_would_be_seen():
    """Negative control: weeks that begin on Sundays have other keys."""
    column, every = declared(date(2024, 1, 1), 30, of_moments=False)
    sundays = {day - timedelta(days=day.isoweekday() % 7) for day in every}
    assert truncate("week", column).values != tuple(sorted(sundays))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('decade', born) > '2020-01-01'", ["'decade'", "quarter, month"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC(born, mont) > '2020-01-01'", ["DATE_TRUNC('month', day)"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', seen, 'UTC') > '2020-01-01'", ["takes 2 values"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', born, seen, day) > 1", ["takes 3 values"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_DIFF('millisecond', seen, seen) > 1", ["'millisecond'", "minute"]),
        ("SELECT COUNT(*) FROM visits WHERE EXTRACT(second FROM born) > 1", ["A date has no second"]),
        ("SELECT COUNT(*) FROM visits WHERE EXTRACT(week(monday) FROM seen) > 1", ["EXTRACT(month FROM day)"]),
        ("SELECT COUNT(*) FROM visits WHERE HOUR(born) > 1", ["A date has no hour", "datetime"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('minute', born) > '2020-01-01'", ["A date has no minute"]),
        ("SELECT COUNT(*) FROM visits WHERE DATE_DIFF('hour', born, day) > 1", ["A date has no hour"]),
        ("SELECT COUNT(*) FROM visits WHERE YEAR(year) > 1", ["needs a date, but this is a number"]),
        ("SELECT COUNT(*) FROM visits WHERE YEAR('2020-01-01') > 1", ["needs a date, but this is a text"]),
        ("SELECT COUNT(*) FROM visits WHERE seen > '2020-13-01'", ["year-month-day hour:minute:second"]),
        ("SELECT COUNT(*) FROM visits WHERE seen > '2020-01-01 24:00:00'", ["TIMESTAMP '2026-01-31 23:59:59'"]),
        ("SELECT COUNT(*) FROM visits WHERE seen > TIMESTAMP '2020-01-01 00:00:00+02:00'", ["without a time zone"]),
        ("SELECT COUNT(*) FROM visits WHERE born > '2020-01-01 00:00:00'", ["year-month-day"]),
        ("SELECT COUNT(*) FROM visits WHERE seen > 2020", ["combines a datetime with a number"]),
        ("SELECT COUNT(*) FROM visits WHERE COALESCE(born, seen) > '2020-01-01'", ["combines a date with a datetime"]),
        ("SELECT COUNT(*) FROM visits WHERE seen + 1 > seen", ["INTERVAL 3 DAY"]),
        ("SELECT COUNT(*) FROM visits WHERE born * 2 > seen", ["INTERVAL 3 DAY"]),
        ("SELECT AVG(seen) FROM visits", ["AVG needs a number", "DATE_DIFF('day'"]),
        ("SELECT SUM(born) FROM visits", ["SUM needs a number", "DATE_DIFF('day'"]),
        ("SELECT MODE(born) FROM visits", ["needs declared values"]),
    ],
)  # fmt: skip
def test_refusals_teach(question, words):
    with pytest.raises(QueryError) as refused:
        bound(question)
    for word in words:
        assert word in str(refused.value), str(refused.value)


@pytest.fixture(scope="module")
def protected():
    moments = [datetime(2025, 1, 1) + timedelta(hours=7 * number) for number in range(1_500)]
    frame = pd.DataFrame(
        {"who": range(1_500), "seen": moments, "born": [date(1990, 1, 1 + n % 28) for n in range(1_500)]}
    )
    return sf.protect(
        frame, name="visits", unit="who", budget=sf.Budget(epsilon=1_000),
        columns={
            "who": sf.Id(), "seen": sf.DateTime("2025-01-01T00:00:00", "2026-06-30T23:59:59"),
            "born": sf.Date("1990-01-01", "1990-01-28"),
        },
    )  # fmt: skip


def test_months_come_out_as_moments_without_a_list(protected):
    sql = "SELECT DATE_TRUNC('month', seen) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month"
    answer = protected.ask(sql, epsilon=50)
    assert [row["month"] for row in answer.rows] == [datetime(2025 + n // 12, n % 12 + 1, 1) for n in range(18)]
    assert answer.rows[0]["n"] == pytest.approx(31 * 24 / 7, abs=3)
    assert answer.to_pandas()["month"].dtype.kind == "M"
    assert protected.ask(sql, epsilon=50).rows == answer.rows  # stored, and read back


def test_keys_that_are_dates_can_be_compared_and_ordered(protected):
    answer = protected.ask(
        "SELECT DATE_TRUNC('quarter', seen) AS q, COUNT(*) AS n FROM visits GROUP BY q "
        "HAVING DATE_TRUNC('quarter', seen) >= '2025-07-01' AND q <> DATE '2026-01-01' ORDER BY q DESC",
        epsilon=50,
    )
    assert [row["q"] for row in answer.rows] == [datetime(2026, 4, 1), datetime(2025, 10, 1), datetime(2025, 7, 1)]
    days = protected.ask("SELECT born, COUNT(*) AS n FROM visits GROUP BY born LIMIT 3", epsilon=50)
    assert [row["born"] for row in days.rows] == [date(1990, 1, 1), date(1990, 1, 2), date(1990, 1, 3)]


def test_the_python_way_takes_them_too(protected):
    question = protected.where("seen >= '2026-01-01'").group_by("EXTRACT(month FROM seen) AS month").agg(n=sf.count())
    assert [row["month"] for row in question.ask(epsilon=50).rows] == list(range(1, 7))  # WHERE excludes the others
    mode = protected.ask("SELECT MODE(DATE_TRUNC('year', seen)) AS y FROM visits", epsilon=50)
    assert mode.rows == [{"y": datetime(2025, 1, 1)}]


def test_moments_that_many_people_share_are_named_and_kept():
    moments = [datetime(2025, 1, 1, 10, 30, 0, 500_000), datetime(2025, 7, 1)] * 200 + [datetime(2025, 3, 3)]
    people = sf.protect(
        pd.DataFrame({"who": range(401), "seen": moments}), name="visits", unit="who",
        columns={"who": sf.Id(), "seen": sf.DateTime("2025-01-01T00:00:00", "2026-06-30T23:59:59")},
        budget=sf.Budget(epsilon=1_000, delta=1e-6),
    )  # fmt: skip
    sql = "SELECT seen, COUNT(*) AS n FROM visits GROUP BY seen ORDER BY seen"
    answer = people.ask(sql, epsilon=20)
    assert [row["seen"] for row in answer.rows] == moments[:2]  # one person's moment is not shown
    again = people.ask(sql, epsilon=20)
    assert again.cached
    assert again.rows == answer.rows


def test_only_columns_of_their_type_are_dates():
    assert TABLE.column("seen") == Column("seen", ColumnType.DATETIME, True)
