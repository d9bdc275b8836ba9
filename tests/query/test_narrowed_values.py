"""What WHERE and CASE say of values: rows that pass are within the narrowed bounds; only keys that pass are left."""

from datetime import date, datetime, timedelta
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.query import narrowed_values
from sfumato.query.bind import bind
from sfumato.query.from_clause import FromBinder
from sfumato.query.parse import parse, parse_expression
from sfumato.query.periods import convert_to_number
from sfumato.query.row_expressions import RowBinder
from sfumato.row_meanings.evaluate import evaluate

COLUMNS = {
    "age": sf.Integer(0, 120), "cost": sf.Real(-50, 500), "far": sf.Integer(-(10**6), 10**6),
    "city": sf.Category(["Rome", "Oslo", "Bern"]),
    "job": sf.Text(), "born": sf.Date("1900-01-01", "2025-12-31"), "old": sf.Boolean(),
    "seen": sf.DateTime("2026-01-01T00:00:00", "2026-01-31T23:59:59"),
}  # fmt: skip
DATASET = Dataset("d", [Table("t", None, sf.ROW, COLUMNS)], sf.Budget(epsilon=9, delta=1e-6))
SIGNS = ("=", "<>", "<", "<=", ">", ">=")
LITERALS = {
    "age": ("0", "29.5", "30", "120"), "cost": ("-50", "0", "99.9", "100"), "far": ("-7", "12"),
    "born": ("DATE '1999-12-31'", "'2000-02-29'"), "seen": ("'2026-01-03'", "'2026-01-04 12:00:00.5'"),
    "city": ("'Rome'", "'Oslo'"), "job": ("'a'", "'b'"),
}  # fmt: skip
READ = ("age", "cost", "far", "born", "seen", "city", "job", "old", "cost * 2", "YEAR(born)", "age + cost")


@st.composite
def conditions(draw, depth=2):
    if depth and draw(st.integers(0, 9)) < 5:
        one, two = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(st.sampled_from([f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})"]))
    column = draw(st.sampled_from(list(LITERALS)))
    one, two = (draw(st.sampled_from(LITERALS[column])) for _ in range(2))
    return draw(
        st.sampled_from(
            [
                *(f"{column} {sign} {one}" for sign in SIGNS), f"{one} < {column}", f"{column} BETWEEN {one} AND {two}",
                f"{column} IN ({one}, {two})", f"{column} IS NULL", f"{column} IS NOT NULL", "old", "NOT old",
                "cost * 2 <= 50", "YEAR(born) >= 2000", "age + cost < 130", "YEAR(born) < 2000",
                "CAST(seen AS DATE) < '2026-01-04'",
                "CAST(seen AS DATE) = '2026-01-03'", "DATE_TRUNC('hour', seen) <= '2026-01-03 12:00:00'",
                "DATE_TRUNC('month', born) > '1999-12-01'", "YEAR(seen) = 2026",
            ]
        )
    )  # fmt: skip


rows = st.fixed_dictionaries(
    {
        "age": st.none() | st.sampled_from([0, 29, 30, 31, 120]) | st.integers(0, 120),
        "cost": st.none() | st.sampled_from([-50.0, 0.0, 99.9, 100.0, 500.0]) | st.floats(-50, 500),
        "far": st.none() | st.integers(-15, 15),
        "city": st.none() | st.sampled_from(["Rome", "Oslo", "Bern"]),
        "job": st.none() | st.sampled_from(["a", "b", "c"]),
        "born": st.none() | st.dates(date(1999, 12, 30), date(2000, 3, 1)),
        "old": st.none() | st.booleans(),
        "seen": st.none()
        | st.datetimes(datetime(2026, 1, 2, 23), datetime(2026, 1, 5))
        | st.sampled_from([datetime(2026, 1, 3), datetime(2026, 1, 3) - timedelta(microseconds=1)]),
    }
)


def is_within(value, typed):
    """Is a value of a row one of those that a bound expression may have?"""
    if value is None:
        return typed.nullable
    if typed.values is not None and value not in typed.values:
        return False
    number = value if isinstance(value, (int, float)) else None
    if typed.type in ("date", "datetime"):
        number = convert_to_number(value)
    return number is None or not typed.bounded or typed.lower <= number <= typed.upper


def violations(condition, found_rows):
    """What passes WHERE, or reaches an outcome of CASE, and is outside what was derived."""
    relation = FromBinder(DATASET).bind_rows(parse(f"SELECT COUNT(*) FROM t WHERE {condition}"), {})
    binder = RowBinder(relation.scope)
    typed = {text: binder.bind(parse_expression(text)) for text in READ}
    cases = {
        text: RowBinder(FromBinder(DATASET).bind_rows(parse("SELECT COUNT(*) FROM t"), {}).scope).bind(
            parse_expression(f"CASE WHEN {condition} THEN {text} ELSE {text} END")
        )
        for text in ("age", "cost", "city")
    }
    wrong = []
    for row in found_rows:
        if all(evaluate(one, row) is True for one in relation.filters):
            wrong += [text for text, one in typed.items() if not is_within(evaluate(one.expression, row), one)]
        wrong += [f"case {text}" for text, one in cases.items() if not is_within(evaluate(one.expression, row), one)]
    return wrong


@settings(max_examples=150, deadline=None)
@given(condition=conditions(), found=st.lists(rows, min_size=20, max_size=40))
def test_rows_that_pass_are_within_what_is_derived(condition, found):
    assert violations(condition, found) == []


@pytest.mark.parametrize(
    ("broken", "wrong"),
    [
        ("NEGATED", {sign: sign for sign in SIGNS}),
        ("MIRRORED", {sign: sign for sign in SIGNS}),
        ("_find_lower", lambda typed, end: typed.lower if end is None else float(end[0]) + 1),
    ],
)
def test_wrong_rules_are_noticed(broken, wrong, monkeypatch):
    """Negative controls: a failed condition that is read as true, sides that are exchanged, an end that is too high."""
    monkeypatch.setattr(narrowed_values, broken, wrong)
    found = [
        {"age": age, "cost": float(age), "far": 1, "city": "Rome", "job": "a", "born": date(2000, 1, 1), "old": True,
         "seen": datetime(2026, 1, 3)}
        for age in range(60)
    ]  # fmt: skip
    assert violations("NOT (30 < age)", found) or violations("age >= 30", found) or violations("30 < age", found)


def bounds(sql):
    value = bind(parse(sql), DATASET).aggregates[0].value
    return value.lower, value.upper


@pytest.mark.parametrize(
    ("value", "where", "wanted"),
    [
        ("cost", "cost BETWEEN 0 AND 100", (0, 100)),
        ("cost", "cost >= 0 AND 100 > cost", (0, 100)),
        ("cost", "cost > 0 OR cost IN (-2, -3)", (-3, 500)),
        ("age", "age > 17 AND age < 30", (18, 29)),
        ("age", "age > 17.5", (18, 120)),
        ("cost", "NOT (cost > 100)", (-50, 100)),
        ("cost + age", "cost < 0 AND age < 10", (-50, 9)),
        ("cost + age", "cost + age BETWEEN 0 AND 10", (0, 10)),
        ("CASE WHEN cost > 100 THEN 100 ELSE cost END", "cost > 0", (0, 100)),
        ("CASE WHEN cost < 0 THEN 0 WHEN cost > 9 THEN 9 ELSE cost END", "TRUE", (0, 9)),
        ("CASE WHEN cost BETWEEN 0 AND 9 THEN cost END", "TRUE", (0, 9)),
        ("cost", "cost > 900", (-50, 500)),  # no row passes: nothing to narrow, and a caution says so
        ("cost", "cost = 7", (-50, 500)),  # one value is left: bounds must enclose more than a point
        ("cost", "age < 10 OR cost < 10", (-50, 500)),
    ],
)
def test_what_a_row_can_add_follows_from_the_question(value, where, wanted):
    assert bounds(f"SELECT SUM({value}) FROM t WHERE {where}") == wanted


def test_quotients_get_bounds_from_a_condition():
    assert bounds("SELECT SUM(cost / age) FROM t WHERE cost / age BETWEEN 0 AND 2") == (0, 2)


def keys(sql):
    return bind(parse(sql), DATASET).keys[0].values


def test_keys_that_where_excludes_are_not_listed():
    minutes = keys(
        "SELECT DATE_TRUNC('minute', seen) AS m, COUNT(*) FROM t "
        "WHERE seen >= '2026-01-03' AND seen < '2026-01-05' GROUP BY m"
    )
    assert len(minutes) == 2_880
    assert minutes[-1] == datetime(2026, 1, 4, 23, 59)
    assert keys("SELECT city, COUNT(*) FROM t WHERE city IN ('Oslo', 'Bern') GROUP BY city") == ("Oslo", "Bern")
    assert keys("SELECT age, COUNT(*) FROM t WHERE age BETWEEN 20 AND 29 GROUP BY age") == tuple(range(20, 30))
    assert keys("SELECT age, COUNT(*) FROM t WHERE age = 20 GROUP BY age") == (20,)
    assert keys("SELECT far, COUNT(*) FROM t WHERE far BETWEEN 1 AND 5 GROUP BY far") == (1, 2, 3, 4, 5)
    assert keys("SELECT YEAR(born) AS y, COUNT(*) FROM t WHERE YEAR(born) > 2023 GROUP BY y") == (2024, 2025)
    born = keys("SELECT born, COUNT(*) FROM t WHERE born > '2025-12-29' GROUP BY born")
    assert born == (date(2025, 12, 30), date(2025, 12, 31))
    assert len(keys("SELECT born, COUNT(*) FROM t WHERE YEAR(born) = 2024 GROUP BY born")) == 366
    hours = "SELECT DATE_TRUNC('hour', seen) AS h, COUNT(*) FROM t WHERE {} GROUP BY h"
    assert len(keys(hours.format("CAST(seen AS DATE) BETWEEN '2026-01-03' AND '2026-01-04'"))) == 48
    assert len(keys(hours.format("DATE_TRUNC('day', seen) = '2026-01-03'"))) == 24
    assert keys("SELECT FLOOR(cost / 100) AS b, COUNT(*) FROM t WHERE cost >= 0 GROUP BY b") == tuple(range(6))


def test_texts_that_a_condition_lists_are_public_keys():
    assert keys("SELECT job, COUNT(*) FROM t WHERE job IN ('a', 'b') GROUP BY job") == ("a", "b")
    assert keys("SELECT job, COUNT(*) FROM t WHERE job = 'a' OR job = 'c' GROUP BY job") == ("a", "c")
    assert keys("SELECT job, COUNT(*) FROM t WHERE job = 'a' OR age > 3 GROUP BY job") is None


def test_the_frame_and_subqueries_narrow_too():
    table = sf.protect(
        pd.DataFrame({"cost": [5.0, 80.0, 300.0, None]}), name="v", unit=sf.ROW, columns={"cost": sf.Real(0, 500)},
        budget=sf.Budget(epsilon=10_000),
    )  # fmt: skip
    whole = table.preview("SELECT SUM(cost) AS s FROM v", epsilon=1).margins["s"]
    narrow = table.where("cost BETWEEN 0 AND 100").agg(s=sf.total("cost"))
    assert Fraction(narrow.preview(epsilon=1).margins["s"]) * 5 == pytest.approx(float(whole), rel=1e-3)
    inner = "SELECT SUM(c) AS s FROM (SELECT cost AS c FROM v WHERE cost <= 100)"
    assert table.preview(inner, epsilon=1).margins["s"] == narrow.preview(epsilon=1).margins["s"]
    assert narrow.ask(epsilon=5_000).rows[0]["s"] == pytest.approx(85, abs=1)
