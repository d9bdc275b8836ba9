"""VARIANCE(DISTINCT x) and its like, and functions of results: plain DuckDB gives the same."""

import math

import duckdb
import pandas as pd
import pytest
from test_corpus import without_noise  # noqa: F401 - a fixture

import sfumato as sf
from sfumato.errors import SfumatoError

COLUMNS = {
    "pid": sf.Id(), "x": sf.Integer(-5, 5), "y": sf.Real(-1, 3), "c": sf.Category(["a", "b"]),
    "big": sf.Integer(0, 10**9),
}  # fmt: skip


def _rows(people):
    x = [-5, -2, 2, 5, 5, None, 0, -5]
    y = [-1.0, -0.0, 0.0, 3.0, 0.5, None, math.nan, -0.5]
    return pd.DataFrame({
        "pid": range(people), "x": pd.array([x[row % 8] for row in range(people)], "Int64"),
        "y": [y[row % 8] for row in range(people)], "c": ["a" if row % 3 else "b" for row in range(people)],
        "big": [0 if row % 2 else 10**9 for row in range(people)],
    })  # fmt: skip


@pytest.fixture(scope="module")
def people():
    budget = sf.Budget(epsilon=10**9, delta="0.1")
    return sf.protect(_rows(48), name="people", unit="pid", columns=COLUMNS, budget=budget)


@pytest.mark.parametrize("function", ["VARIANCE", "STDDEV", "VAR_SAMP", "STDDEV_SAMP", "VAR_POP", "STDDEV_POP"])
@pytest.mark.parametrize("value", ["x", "y", "big", "x + 1", "-x", "ABS(x)"])
def test_the_spread_of_different_values_is_that_of_duckdb(people, function, value, without_noise):  # noqa: F811
    rows = _rows(48)
    rows["y"] = rows["y"].where(rows["y"].notna(), None)  # NaN is NULL
    plain = duckdb.connect()
    plain.register("people", rows)
    sql = f"SELECT {function}(DISTINCT {value}) AS v FROM people"
    (wanted,) = plain.execute(
        sql.replace("people", "(SELECT * REPLACE (NULLIF(y, 'nan'::DOUBLE) AS y) FROM people)")
    ).fetchone()
    assert people.ask(sql, epsilon=1000).rows[0]["v"] == pytest.approx(wanted, rel=1e-3)
    by_key = f"SELECT c, {function}(DISTINCT {value}) AS v FROM people GROUP BY c ORDER BY c"
    wanted = plain.execute(
        by_key.replace("people", "(SELECT * REPLACE (NULLIF(y, 'nan'::DOUBLE) AS y) FROM people)")
    ).fetchall()
    got = [(row["c"], row["v"]) for row in people.ask(by_key, epsilon=1000).rows]
    assert [(key, pytest.approx(spread, rel=1e-3)) for key, spread in wanted] == got


def test_a_spread_of_different_values_is_never_negative(people):
    found = [
        people.ask(f"SELECT VARIANCE(DISTINCT x) AS v FROM people WHERE x IN (2, 3) AND big >= {least}", epsilon=0.01)
        for least in range(30)
    ]
    values = [answer.rows[0]["v"] for answer in found]
    assert all(value is None or (value >= 0 and math.isfinite(value)) for value in values)
    assert None in values


@pytest.mark.parametrize(
    "text",
    [
        "SIN(AVG(x))", "COS(COUNT(*))", "TAN(AVG(x))", "ASIN(AVG(x) / 9)", "ACOS(AVG(x) / 9)", "ATAN(SUM(x))",
        "SINH(AVG(x))", "COSH(AVG(x))", "TANH(AVG(x))", "DEGREES(AVG(x))", "RADIANS(COUNT(*))", "CBRT(SUM(x))",
        "PI() * COUNT(*)", "DEGREES(PI() / 4)",
    ],
)  # fmt: skip
def test_functions_of_results_are_those_of_duckdb(people, text, without_noise):  # noqa: F811
    plain = duckdb.connect()
    plain.register("people", _rows(48))
    sql = f"SELECT {text} AS v, COUNT(*) AS n FROM people"
    assert people.ask(sql, epsilon=1000).rows[0]["v"] == pytest.approx(plain.execute(sql).fetchone()[0], rel=1e-4)


def test_a_position_in_a_key_is_computed_from_results(people):
    sql = "SELECT POSITION('b' IN c) AS place, COUNT(*) AS n FROM people GROUP BY c ORDER BY c"
    assert [row["place"] for row in people.ask(sql, epsilon=1000).rows] == [0, 1]


@pytest.mark.parametrize("text", ["COS(x, 1)", "PI(1)", "SAFE_ADD(x)", "SAFE_NEGATE(x, 1)", "CHOOSE(x)"])
def test_a_wrong_number_of_values_is_refused(people, text):
    with pytest.raises(SfumatoError):
        people.ask(f"SELECT SUM({text}) AS s FROM people", epsilon=1)
