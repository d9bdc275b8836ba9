"""Columns of every form get intervals, or none, without an error or an arithmetic warning."""

import math

import pandas as pd
import pytest
from protected import protect

import sfumato as sf

EXPRESSIONS = (
    "COUNT(*) * COUNT(*)", "ABS(SUM(income) - 1000)", "COUNT(*) / 0", "ROUND(COUNT(*), -2)", "0 * COUNT(*)",
    "COUNT(*) * 1e90 * 1e90 * 1e90 * 1e90", "SUM(income) * 1e-320", "STDDEV(age) / AVG(age)",
    "AVG(income) * AVG(age) / COUNT(*)",
    "1 / (COUNT(*) - 300)", "MEDIAN(age) + COUNT(*)", "VARIANCE(age) - STDDEV(age) * STDDEV(age)",
)  # fmt: skip
AFTER = (
    "", " HAVING COUNT(*) > 280", " HAVING ABS(COUNT(*) - 300) < 2", " HAVING NOT e > 10", " HAVING MEDIAN(age) > 20",
    " HAVING COUNT(*) > 280 AND AVG(age) < 50 OR SUM(income) > 1e9 ORDER BY e DESC LIMIT 2", " ORDER BY e LIMIT 0",
)  # fmt: skip


@pytest.fixture(scope="module")
def people():
    return protect()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_column_has_ends_in_order_or_no_interval(people, expression):
    for after in AFTER:
        sql = f"SELECT city, {expression} AS e FROM people GROUP BY city{after}"
        margin = people.preview(sql, epsilon=1, assume={"n": 4}).margins["e"]
        assert margin is None or margin >= 0
        answer = people.rehearse(sql, epsilon=1)
        for row, ends in zip(answer.rows, answer.intervals, strict=True):
            assert ("e" in ends) <= (row["e"] is not None)
            low, high = ends.get("e", (-math.inf, math.inf))
            assert low <= high


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("factor", ["1e90 * 1e90", "1e70", "1e-70", "1e-90 * 1e-90"])
def test_the_variance_of_a_huge_multiple_does_not_overflow(factor):
    data = pd.DataFrame({"g": ["a", "b"] * 50})
    curator = sf.protect(
        data, name="t", columns={"g": sf.Category(["a", "b"])}, unit=sf.ROW, budget=sf.Budget(epsilon=9)
    )
    answer = curator.ask(f"SELECT g, COUNT(*) * {factor} AS e FROM t GROUP BY g HAVING COUNT(*) > 1", epsilon=5)
    assert all(
        ends["e"][0] <= row["e"] <= ends["e"][1] for row, ends in zip(answer.rows, answer.intervals, strict=True)
    )
    assert len(answer.rows) == 2


RATIOS = [
    ("SUM(b) / COUNT(*)", (0, 1)), ("SUM(x) / COUNT(*)", (0, 9)),
    ("SUM(x) / COUNT(x)", (5, 9)), ("SUM(y) / COUNT(*)", (-9, -5)), ("SUM(x) / COUNT(b)", (-math.inf, math.inf)),
]  # fmt: skip


@pytest.mark.parametrize("after", ["", " HAVING COUNT(*) > 1"])
@pytest.mark.parametrize(("ratio", "bounds"), RATIOS)
def test_a_sum_over_its_count_stays_within_the_declared_bounds(ratio, bounds, after):
    """Negative control: a count of other rows gives no bounds."""
    data = pd.DataFrame({"g": ["a", "b"] * 2, "x": [6.0, 7, 8, None], "y": [-6.0] * 4, "b": [True, False, None, True]})
    columns = {
        "g": sf.Category(["a", "b"]),
        "x": sf.Real(5, 9),
        "y": sf.Real(-9, -5, nullable=False),
        "b": sf.Boolean(),
    }
    curator = sf.protect(data, name="t", columns=columns, unit=sf.ROW, budget=sf.Budget(epsilon=100))
    ends = []
    for shift in range(20):
        answer = curator.ask(f"SELECT g, {ratio} AS r FROM t WHERE y > {-100 - shift} GROUP BY g{after}", epsilon=1)
        ends += [end for row in answer.intervals for end in row.get("r", ())]
    assert bounds[0] <= min(ends)
    assert max(ends) <= bounds[1]
    if math.isinf(bounds[1]):
        assert max(ends) == math.inf
