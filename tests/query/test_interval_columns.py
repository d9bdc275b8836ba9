"""DP_INTERVAL_LOW and DP_INTERVAL_HIGH show the interval that the answer has anyway, and cost nothing."""

import pytest
from test_corpus import clinic, tables  # noqa: F401 - fixtures

from sfumato.errors import UnsupportedSyntax


@pytest.mark.parametrize(
    ("sql", "of"),
    [
        ("SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM patients "
         "GROUP BY city", "n"),
        ("SELECT DP_INTERVAL_LOW(n) AS low, dp_interval_high(N) AS high, AVG(age) AS n FROM patients", "n"),
        ("SELECT city, n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM "
         "(SELECT city, COUNT(*) AS n FROM patients GROUP BY city) ORDER BY n DESC LIMIT 2", "n"),
        ("SELECT city, sex, SUM(age) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(SUM(age)) AS high FROM patients "
         "GROUP BY ROLLUP (city, sex)", "n"),
    ],
)  # fmt: skip
def test_the_ends_are_those_of_the_answer(sql, of, clinic):  # noqa: F811
    answer = clinic.ask(sql, epsilon=2)
    assert {"low", "high"} < set(answer.columns) == set(answer.rows[0])
    for row, intervals in zip(answer.rows, answer.intervals, strict=True):
        assert (row["low"], row["high"]) == intervals[of]
        assert row["low"] <= row[of] <= row["high"]


def test_they_change_neither_the_cost_nor_the_order_of_columns(clinic):  # noqa: F811
    answer = clinic.ask("SELECT DP_INTERVAL_LOW(COUNT(*)), city, COUNT(*) AS n FROM patients GROUP BY city", epsilon=3)
    assert answer.columns == ("dp_interval_low(count(*))", "city", "n")
    assert [list(row) for row in answer.rows] == [list(answer.columns)] * 3
    assert float(answer.cost.epsilon) == 3
    assert clinic.preview("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) FROM patients", epsilon=3).cost == answer.cost


def test_a_column_that_is_not_selected_is_not_shown(clinic):  # noqa: F811
    answer = clinic.ask("SELECT city, DP_INTERVAL_HIGH(COUNT(*)) AS high FROM patients GROUP BY city", epsilon=3)
    assert answer.columns == ("city", "high")
    assert all(row.keys() == {"city", "high"} and row["high"] > 0 for row in answer.rows)


def test_a_key_has_no_interval(clinic):  # noqa: F811
    rows = clinic.ask("SELECT city, DP_INTERVAL_LOW(city) AS low, COUNT(*) FROM patients GROUP BY city", epsilon=3).rows
    assert {row["low"] for row in rows} == {None}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) + 1 FROM patients",
        "SELECT COUNT(*) AS n FROM patients HAVING DP_INTERVAL_LOW(n) > 3",
        "SELECT low FROM (SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients)",
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, n) FROM patients",
        "SELECT DP_INTERVAL_LOW(n), city, COUNT(*) AS n FROM patients GROUP BY 2",
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS n FROM patients",
    ],
)
def test_elsewhere_they_are_refused(sql, clinic):  # noqa: F811
    with pytest.raises(UnsupportedSyntax) as refused:
        clinic.preview(sql, epsilon=1)
    assert refused.value.hint
