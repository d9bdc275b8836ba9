"""Running totals over a declared key are measured by a strategy where it lowers the error."""

import math

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.plan import Strategy
from sfumato.planning.optimal_strategies import (
    find_gaussian_strategy,
    find_running_strategy,
    make_running_wanted,
    measure_share,
)

MONTHS = "SELECT month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY month"
COUNTS = [30 + 5 * month for month in range(12)]
DATA = pd.DataFrame(
    {
        "month": [month + 1 for month, count in enumerate(COUNTS) for _ in range(count)],
        "site": ["ab"[row % 2] for row in range(sum(COUNTS))],
        "cost": [float(row % 100) for row in range(sum(COUNTS))],
    }
)
COLUMNS = {"month": sf.Integer(1, 12), "site": sf.Category(["b", "a"]), "cost": sf.Real(0, 100)}
BUDGETS = {
    "zcdp": lambda: sf.Budget(epsilon=900, delta=1e-6, accounting="zcdp"),
    "gdp": lambda: sf.Budget(epsilon=900, delta=1e-6, accounting="gdp"),
    "basic": lambda: sf.Budget(epsilon=100_000),
}


def protect(accounting="zcdp", data=DATA, columns=COLUMNS, **others):
    return sf.protect(data, name="t", unit=sf.ROW, columns=columns, budget=BUDGETS[accounting](), **others)


def uses_strategy(table, sql):
    return ["weighted sums" in one.measures for one in table.preview(sql, epsilon=1).measurements]


@pytest.mark.parametrize("accounting", ["zcdp", "gdp"])
def test_months_with_running_totals_use_a_strategy(accounting):
    with protect(accounting) as table:
        assert uses_strategy(table, MONTHS) == [True]
        answer = table.ask(MONTHS, epsilon=2)
        assert [row["n"] for row in answer.rows] == pytest.approx(COUNTS, abs=12)
        assert [row["r"] for row in answer.rows] == pytest.approx(np.cumsum(COUNTS), abs=12)
        assert [row["r"] for row in answer.rows] == np.cumsum([row["n"] for row in answer.rows]).tolist()
        assert "strategy" in answer.explain()
        assert "K-80 (strategies)" in answer.explain()
        again = table.ask(MONTHS, epsilon=2)
        assert again.cached
        assert again.rows == answer.rows
        assert again.intervals == answer.intervals
        better = table.upgrade(MONTHS, epsilon=3)
        widths = [one.intervals[-1]["r"][1] - one.intervals[-1]["r"][0] for one in (answer, better)]
        assert widths[1] < widths[0]
        assert table.ledger().verify().ok


@pytest.mark.parametrize("accounting", ["zcdp", "gdp"])
def test_totals_from_the_last_month_and_running_averages(accounting):
    """Both are as precise as the strategy says: far less noise than plain counts would add up to."""
    runs = "SELECT month, SUM(COUNT(*)) OVER (ORDER BY month DESC) AS r FROM t GROUP BY month ORDER BY month"
    means = "SELECT month, AVG(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY month ORDER BY month"
    with protect(accounting) as table:
        for sql, true in ((runs, np.cumsum(COUNTS[::-1])[::-1]), (means, np.cumsum(COUNTS) / np.arange(1, 13))):
            plain = [row["r"] for row in table.ask(sql, epsilon=2).rows]
            assert plain == pytest.approx(true, abs=12)


@pytest.mark.parametrize(("totals", "averages"), [(1, 0), (0, 1), (1, 1)])
def test_running_averages_are_near_the_least_error(totals, averages):
    wanted = make_running_wanted(24, 0, totals, averages)
    least = find_gaussian_strategy(wanted)[2] / np.trace(wanted)
    found = find_running_strategy(24, 0, totals, averages, gaussian=True)
    assert least <= found.share <= 1.01 * least
    assert found.share < 0.75


@pytest.mark.parametrize(
    ("sql", "used"),
    [
        (MONTHS, [True]),
        ("SELECT month, SUM(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY month", [True]),
        ("SELECT month, SUM(n) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) AS r FROM "
         "(SELECT month, COUNT(*) AS n FROM t GROUP BY month)", [True]),
        ("SELECT site, month, SUM(SUM(cost)) OVER (PARTITION BY site ORDER BY month) r FROM t GROUP BY 1, 2", [True]),
        ("SELECT month, COUNT(*) AS n FROM t GROUP BY month", [False]),
        ("SELECT month, SUM(COUNT(*)) OVER () AS r FROM t GROUP BY month", [False]),
        ("SELECT month, SUM(COUNT(*)) OVER (ORDER BY month DESC) AS r FROM t GROUP BY month", [True]),
        ("SELECT month, AVG(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY month", [True]),
        ("SELECT month, AVG(COUNT(*)) OVER (ORDER BY month ROWS 2 PRECEDING) AS r FROM t GROUP BY month", [False]),
        ("SELECT site, month, SUM(COUNT(*)) OVER (ORDER BY month) AS r FROM t GROUP BY site, month", [False]),
    ],
)  # fmt: skip
def test_which_questions_use_a_strategy(sql, used):
    with protect() as table:
        assert uses_strategy(table, sql) == used


def test_laplace_noise_keeps_plain_cells_for_few_values_and_uses_a_tree_for_many():
    days = pd.DataFrame({"day": [1 + row % 400 for row in range(4_000)]})
    sql = "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) AS r FROM t GROUP BY day"
    with protect("basic") as table:
        assert uses_strategy(table, MONTHS) == [False]
    with protect("basic", days, {"day": sf.Integer(1, 400)}) as table:
        assert uses_strategy(table, sql) == [True]
        answer = table.ask(sql, epsilon=200)
        assert [row["r"] for row in answer.rows] == pytest.approx([10 * day for day in range(1, 401)], abs=3)


@pytest.mark.parametrize("accounting", ["zcdp", "basic"])
def test_the_preview_states_the_margin_of_a_running_total(accounting):
    with protect(accounting) as table:
        stated = table.preview(MONTHS, epsilon=1).margins
        answer = table.ask(MONTHS, epsilon=1)
        shown = max((high - low) / 2 for low, high in (ends["r"] for ends in answer.intervals))
        assert stated["r"] == pytest.approx(shown, rel=0.02)
        assert stated["r"] > stated["n"]


def test_a_text_key_is_added_up_in_the_order_of_its_texts():
    data = pd.DataFrame({"site": list("aaabbbbbbbc")})
    columns = {"site": sf.Category(["c", "a", "b"])}
    sql = "SELECT site, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY site) AS r FROM t GROUP BY site ORDER BY site"
    with protect(data=data, columns=columns) as table:
        assert uses_strategy(table, sql) == [True]
        assert [(row["site"], row["n"], row["r"]) for row in table.ask(sql, epsilon=400).rows] == [
            ("a", 3, 3), ("b", 7, 10), ("c", 1, 11),
        ]  # fmt: skip


@pytest.mark.parametrize("shown", [0, 1])
@pytest.mark.parametrize("size", [2, 7, 12, 53, 120])
def test_strategies_are_within_a_percent_of_the_best(size, shown):
    wanted = make_running_wanted(size, shown, 1)
    found = find_running_strategy(size, shown, 1, gaussian=True)
    least = find_gaussian_strategy(wanted)[2] / np.trace(wanted)
    assert least <= found.share <= 1.01 * least
    spectrum = np.sqrt(np.linalg.eigvalsh(wanted)).sum() ** 2 / size / np.trace(wanted)
    assert spectrum <= least * 1.0001  # the bound by singular values is a bound too
    assert found.share < 1


def test_a_worse_strategy_is_seen():
    """Negative control: the square root of the running totals, a good strategy in the literature, is 12 % off."""
    wanted, weights = make_running_wanted(12, 0, 1), [math.comb(2 * lag, lag) / 4**lag for lag in range(12)]
    root = np.array([[weights[row - column] if row >= column else 0.0 for column in range(12)] for row in range(12)])
    least = find_gaussian_strategy(wanted)[2] / np.trace(wanted)
    assert 1.1 * least < measure_share(root, wanted, gaussian=True) < 1.2 * least


def test_intervals_hold_as_often_as_they_say():
    """120 answers with 12 running totals and 12 cells each. A false alarm has a probability below 1e-6.

    The noises of one answer depend on one another, so misses are counted by answer: the mean share of missed columns of
    120 independent answers, each between 0 and 1 with mean at most 0.05 and deviation at most 0.12, is above 0.11
    with a probability below 1e-6. Below 0.01, intervals would be far too wide.
    """
    missed = {"n": [], "r": []}
    truth = {"n": COUNTS, "r": np.cumsum(COUNTS).tolist()}
    with protect() as table:
        for number in range(120):
            answer = table.ask(MONTHS, epsilon=f"{1 + number / 10_000:.4f}")  # a larger one each time: a new release
            assert not answer.cached
            for name, shares in missed.items():
                ends = [one[name] for one in answer.intervals]
                shares.append(
                    np.mean([not low <= true <= high for (low, high), true in zip(ends, truth[name], strict=True)])
                )
    assert 0.01 < np.mean(missed["n"]) < 0.11
    assert 0.01 < np.mean(missed["r"]) < 0.11


def test_the_plan_has_a_strategy_of_the_part():
    with protect() as table, table.at_desk() as desk:
        query = sf.query.bind.bind(sf.query.parse.parse(MONTHS), desk.dataset)
        (measurement,) = desk.plan(query, sf.ZCDP(1)).plan.measurements
        assert isinstance(measurement.quantity, Strategy)
