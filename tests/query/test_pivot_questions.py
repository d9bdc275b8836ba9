"""Aggregates over disjoint rows are one measurement; what is read from it is what was asked."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel.plan import Halves, Pivot
from sfumato.planning.disjoint_conditions import are_disjoint
from sfumato.planning.planner import choose_plan
from sfumato.query.bind import bind
from sfumato.query.parse import parse

ROWS = 3_000
COLUMNS = {
    "id": sf.Id(), "x": sf.Integer(0, 100), "y": sf.Real(-3, 5, nullable=False), "d": sf.Category(["a", "b", "c"]),
    "t": sf.Boolean(), "born": sf.Date("1950-01-01", "2010-12-31"),
}  # fmt: skip


def frame():
    draw = np.random.default_rng(3)
    x = draw.integers(0, 101, ROWS).astype(float)
    x[::7] = np.nan
    people = [f"p{row // 2}" for row in range(ROWS)]
    kind = draw.choice(["a", "b", "c", None], ROWS)
    truth = pd.Series(draw.choice([True, False, None], ROWS), dtype=object)
    y = draw.uniform(-3, 5, ROWS)
    return pd.DataFrame({"id": people, "x": x, "y": y, "d": kind, "t": truth, "born": "1980-05-05"})


def protect(unit=sf.ROW, **options):
    columns = COLUMNS if unit == "id" else {name: column for name, column in COLUMNS.items() if name != "id"}
    bounds = {"max_rows_per_unit": 2} if unit == "id" else {}
    budget = sf.Budget(epsilon=10**9)
    return sf.protect(frame(), name="t", unit=unit, columns=columns, budget=budget, **bounds, **options)


def test_three_conditions_cost_what_one_costs():
    people = protect()
    one = people.preview("SELECT SUM(CASE WHEN d = 'a' THEN x END) AS a FROM t", epsilon=1).margins["a"]
    columns = ", ".join(f"SUM(CASE WHEN d = '{kind}' THEN x END) AS {kind}" for kind in "abc")
    assert people.preview(f"SELECT {columns} FROM t", epsilon=1).margins == dict.fromkeys("abc", one)


def test_counts_beside_their_total():
    """Two parts and the rest, each with all of epsilon. Apart, the three would have a third of it each."""
    sql = "SELECT COUNT(*) AS n, COUNT(CASE WHEN d = 'a' THEN 1 END) AS a, SUM(d = 'b') AS b FROM t"
    margins = protect().preview(sql, epsilon=1).margins
    assert margins["a"] == margins["b"] == 3.0
    assert margins["n"] <= 6.0 < 9.0


@pytest.mark.parametrize("unit", [sf.ROW, "id"])
@pytest.mark.parametrize("keys", ["", "t"])
def test_the_answer_is_what_was_asked(unit, keys):
    """At a very large epsilon, the answer is that of pandas: NULLs, ELSE 0, several functions and totals included."""
    asked = {
        "n": ("COUNT(*)", lambda f: len(f)),
        "na": ("COUNT(CASE WHEN d = 'a' THEN 1 END)", lambda f: (f.d == "a").sum()),
        "nb": ("SUM(d = 'b')", lambda f: (f.d == "b").sum()),
        "five": ("SUM(CASE WHEN d = 'c' THEN 5 ELSE 0 END)", lambda f: 5 * (f.d == "c").sum()),
        "sa": ("SUM(CASE WHEN d = 'a' THEN x ELSE 0 END)", lambda f: f[f.d == "a"].x.sum()),
        "sb": ("SUM(CASE WHEN d IN ('b', 'c') THEN x END)", lambda f: f[f.d.isin(["b", "c"])].x.sum()),
        "ma": ("AVG(CASE WHEN d = 'a' THEN x END)", lambda f: f[f.d == "a"].x.mean()),
        "s": ("SUM(x)", lambda f: f.x.sum()),
        "low": ("STDDEV(CASE WHEN y < 1 THEN y END)", lambda f: f[f.y < 1].y.std()),
        "high": ("STDDEV(CASE WHEN y >= 1 AND x > 3 THEN y END)", lambda f: f[(f.y >= 1) & (f.x > 3)].y.std()),
        "cx": ("COUNT(CASE WHEN y < 1 THEN x END)", lambda f: f[f.y < 1].x.count()),
        "cy": ("COUNT(CASE WHEN y > 1.5 THEN x END)", lambda f: f[f.y > 1.5].x.count()),
    }
    columns = ", ".join([*([keys] if keys else []), *(f"{sql} AS {name}" for name, (sql, _) in asked.items())])
    answer = protect(unit).ask(f"SELECT {columns} FROM t{f' GROUP BY {keys}' if keys else ''}", epsilon=5_000)
    data = frame()
    for row in answer.rows:
        mine = data[data.t == row["t"]] if keys else data
        for name, (_, compute) in asked.items():
            assert row[name] == pytest.approx(compute(mine), rel=2e-3, abs=0.5), name


DISJOINT = [
    ("d = 'a'", "d = 'b'"), ("d = 'a'", "'c' = d"), ("d IN ('a', 'b')", "d = 'c'"), ("x < 3", "x >= 3"),
    ("x <= 3", "x > 3"), ("x BETWEEN 1 AND 2", "x BETWEEN 3 AND 4"), ("t", "NOT t"), ("x IS NULL", "x = 3"),
    ("x IS NULL", "NOT x IS NULL"), ("d = 'a' AND x > 5", "y > 0 AND d = 'b'"), ("x = 4", "x > 4"), ("x <> 4", "x = 4"),
    ("x > 7", "x < 8 AND x < 7"), ("born < DATE '1990-01-01'", "born >= DATE '1990-01-01'"),
    ("d LIKE 'a%'", "NOT d LIKE 'a%'"), ("d = 'a' OR d = 'b'", "d = 'c' AND t"),
]  # fmt: skip
OVERLAPPING = [
    ("d = 'a'", "x = 3"), ("x <= 3", "x >= 3"), ("x < 4", "x > 3"), ("d IN ('a', 'b')", "d IN ('b', 'c')"),
    ("d = 'a' OR t", "d = 'b'"), ("x <> 4", "x <> 5"), ("NOT t", "NOT d = 'a'"), ("x IS NULL", "d IS NULL"),
    ("d <> 'a'", "d <> 'b'"), ("d < 'b'", "d > 'a'"), ("x + 1 = 3", "x = 3"), ("born < DATE '1990-01-01'", "t"),
]  # fmt: skip


def bound_condition(text):
    columns = {name: column for name, column in COLUMNS.items() if name != "id"}
    dataset = Dataset("t", [Table("t", None, sf.ROW, columns)], sf.Budget(epsilon=1))
    (aggregate,) = bind(parse(f"SELECT COUNT(CASE WHEN {text} THEN 1 END) AS n FROM t"), dataset).aggregates
    return aggregate.value.restricted[0].expression, dataset


@pytest.mark.parametrize(("one", "two"), DISJOINT)
def test_disjoint_conditions_are_seen(one, two):
    first, second = bound_condition(one)[0], bound_condition(two)[0]
    assert are_disjoint(first, second)
    assert are_disjoint(second, first)


@pytest.mark.parametrize(("one", "two"), OVERLAPPING)
def test_conditions_that_may_overlap_are_measured_apart(one, two):
    """Negative control: a row may meet both, so one measurement of both would be a wrong answer."""
    first, second = bound_condition(one)[0], bound_condition(two)[0]
    assert not are_disjoint(first, second)
    sql = f"SELECT COUNT(CASE WHEN {one} THEN 1 END) AS a, COUNT(CASE WHEN {two} THEN 1 END) AS b FROM t"
    dataset = bound_condition(one)[1]
    plan = choose_plan(bind(parse(sql), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan
    assert not any(isinstance(measurement.quantity, Pivot) for measurement in plan.measurements)


def test_what_is_measured_together_is_said():
    sql = "SELECT SUM(CASE WHEN t THEN x END) AS a, SUM(CASE WHEN NOT t THEN x END) AS b FROM t"
    answer = protect().ask(sql, epsilon=1)
    assert "for 2 disjoint conditions" in answer.explain()
    (stated,) = answer.disclosure["statement"]["measurements"]
    assert (stated["kind"], stated["lower"], stated["upper"]) == ("pivot", 0, 100)
    assert len(answer.intervals) == 1


def test_counts_join_the_conditions_of_a_sum():
    """The count, the sum and the mean under disjoint conditions are one measurement."""
    parts = [f"COUNT(CASE WHEN d = '{kind}' THEN 1 END) AS n{kind}" for kind in "abc"]
    parts += [f"SUM(CASE WHEN d = '{kind}' THEN y END) AS s{kind}" for kind in "ab"]
    parts += ["AVG(CASE WHEN d = 'b' THEN y END) AS m"]
    dataset = bound_condition("t")[1]
    sql = f"SELECT {', '.join(parts)} FROM t"
    plan = choose_plan(bind(parse(sql), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan
    (measurement,) = plan.measurements
    assert isinstance(measurement.quantity.part, Halves)
    assert len(measurement.quantity.conditions) == 3


def test_a_value_under_one_condition_only_is_measured_itself():
    sql = "SELECT SUM(CASE WHEN d = 'a' THEN x END) AS a, SUM(CASE WHEN d = 'b' THEN y END) AS b FROM t"
    dataset = bound_condition("t")[1]
    plan = choose_plan(bind(parse(sql), dataset), sf.PureDP(1), dataset, {"t": "1"}).plan
    assert not any(isinstance(measurement.quantity, Pivot) for measurement in plan.measurements)
