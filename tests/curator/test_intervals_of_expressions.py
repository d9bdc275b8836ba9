"""Columns of all shapes have intervals or none, without a failure or a warning of arithmetic."""

import math

import pytest
from protected import protect

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
