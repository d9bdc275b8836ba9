"""interval_share: what a question with intervals of its quantiles spends, shows, previews and refuses."""

from datetime import date, timedelta

import pandas as pd
import pytest

import sfumato as sf

FRAME = pd.DataFrame(
    {
        "person": range(3000), "age": [18 + place % 60 for place in range(3000)],
        "pay": [float(place % 500) for place in range(3000)], "city": ["Oslo", "Rome"] * 1500,
        "born": [date(1990, 1, 1) + timedelta(days=place % 900) for place in range(3000)],
    }
)  # fmt: skip
COLUMNS = {
    "person": sf.Id(), "age": sf.Integer(0, 120), "pay": sf.Real(0, 500), "city": sf.Category(["Oslo", "Rome"]),
    "born": sf.Date("1990-01-01", "1999-12-31"),
}  # fmt: skip


@pytest.fixture(params=["basic", "zcdp", "gdp"])
def people(request):
    budget = sf.Budget(epsilon=1000, delta=1e-4, accounting=request.param)
    with sf.protect(FRAME, name="people", unit="person", columns=COLUMNS, budget=budget) as curator:
        yield curator


def test_intervals_are_shown(people):
    sql = "SELECT city, MEDIAN(pay) AS pay, QUANTILE_CONT(age, 0.9) AS old, COUNT(*) AS n FROM people GROUP BY city"
    answer = people.ask(sql, epsilon=30, interval_share="0.5")
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert ends["pay"][0] <= row["pay"] <= ends["pay"][1]
        assert ends["old"][0] <= row["old"] <= ends["old"][1]
        assert 0 < ends["pay"][1] - ends["pay"][0] < 100
    frame = answer.to_pandas(intervals=True)
    assert {"pay_low", "pay_high", "old_low", "old_high"} <= set(frame.columns)
    assert answer.to_dict()["intervals"][0]["pay"] == list(answer.intervals[0]["pay"])
    assert "[" in answer._repr_html_()
    assert answer.plot("pay").to_dict()
    assert "intervals of the quantile 0.5" in answer.explain()
    assert "50 % of the cost of quantiles pays for their intervals" in answer.explain()
    if people.dataset.budget.accounting == "basic":
        assert answer.cost.epsilon == 30


def test_without_a_share_nothing_changes(people):
    answer = people.ask("SELECT MEDIAN(pay) AS pay FROM people", epsilon=5)
    assert answer.intervals == [{}]
    assert len(answer.measurements) == 1
    assert "interval_share" in answer.explain()
    preview = people.preview("SELECT MEDIAN(pay) AS pay FROM people", epsilon=5)
    assert preview.margins["pay"] is None
    assert "interval_share" in preview.reasons["pay"]


def test_the_quantile_keeps_its_share(people):
    """The share of the quantile is what is left: its scale grows by 1/(1 - share)."""
    plain = people.preview("SELECT MEDIAN(pay) AS pay FROM people", epsilon=5)
    paid = people.preview("SELECT MEDIAN(pay) AS pay FROM people", epsilon=5, interval_share="0.2")
    assert float(paid.measurements[0].scale) == pytest.approx(float(plain.measurements[0].scale) / 0.8)


def test_a_rounded_quantile_has_an_interval_and_a_difference_has_none(people):
    sql = "SELECT ROUND(MEDIAN(pay), 0) AS r, MEDIAN(pay) - AVG(pay) AS d FROM people"
    answer = people.ask(sql, epsilon=20, interval_share=0.3)
    assert set(answer.intervals[0]) == {"r"}


def test_dates_have_no_interval_in_value(people):
    with pytest.raises(sf.errors.InvalidParameter, match="quantile of a number"):
        people.ask("SELECT MEDIAN(born) AS b FROM people", epsilon=5, interval_share=0.5)


@pytest.mark.parametrize("share", [0, 1, -0.5, "x"])
def test_shares_are_between_zero_and_one(people, share):
    with pytest.raises(sf.errors.InvalidParameter, match="interval_share"):
        people.ask("SELECT MEDIAN(pay) AS pay FROM people", epsilon=5, interval_share=share)


def test_rows_that_are_selected_keep_their_coverage(people):
    """ORDER BY reads the quantile. Its interval has coins of its own, so it holds as it is for the first row too."""
    sql = "SELECT city, MEDIAN(pay) AS pay FROM people GROUP BY city ORDER BY pay DESC LIMIT 1"
    answer = people.ask(sql, epsilon=30, interval_share=0.5)
    assert "for all rows together" not in answer.interval_note
    assert answer.intervals[0]["pay"][0] <= answer.rows[0]["pay"]
