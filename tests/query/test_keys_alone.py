"""SELECT DISTINCT and GROUP BY without an aggregate: the keys that occur; MIN, MAX and quantiles of dates."""

from datetime import date, datetime

import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.plan import Keys, People
from sfumato.planning.shares import find_epsilon
from sfumato.query.bind import bind
from sfumato.query.parse import parse


def protect(**changes):
    rows = [(person, city, job) for person in range(300) for city, job in ((("Rome", "Oslo")[person % 2], "cook"),)]
    rows += [(person, "Rome", f"rare {person}") for person in range(300, 303)]
    data = pd.DataFrame(rows, columns=["id", "city", "job"])
    data["born"] = [date(1990, 1, 1 + place % 28) for place in range(len(data))]
    data["seen"] = [datetime(2024, 5, 1 + place % 9, 12, 30, 15) for place in range(len(data))]
    columns = {
        "id": sf.Id(), "city": sf.Category(["Rome", "Oslo", "Bonn"]), "job": sf.Text(),
        "born": sf.Date("1980-01-01", "1999-12-31"), "seen": sf.DateTime("2024-01-01T00:00:00", "2024-12-31T23:59:59"),
    }  # fmt: skip
    budget = sf.Budget(epsilon=1000, delta="1e-5", **changes)
    return sf.protect(data, name="t", unit="id", columns=columns, budget=budget)


@pytest.mark.parametrize(
    "question", ["SELECT DISTINCT city FROM t", "SELECT city FROM t GROUP BY city", "SELECT city FROM t GROUP BY 1"]
)
def test_declared_keys_are_shown_if_they_occur(question):
    curator = protect()
    answer = curator.ask(question, epsilon=2)
    assert [row["city"] for row in answer.rows] == ["Rome", "Oslo"]
    assert "every shown key occurs" in answer.warnings[0]
    assert "every shown key occurs" in curator.preview(question, epsilon=2).explain()
    (measurement,) = curator.desk.plan(bound(curator, question), sf.PureDP(1)).plan.measurements
    assert isinstance(measurement.quantity, People)


def bound(curator, question):
    return bind(parse(question), curator.dataset)


def test_a_key_that_nobody_has_is_rarely_shown():
    """In each of 200 releases, Bonn is shown with at most 5 % probability; 30 of 200 would be far too many."""
    curator = protect()
    shown = [
        "Bonn" in [row["city"] for row in curator.ask("SELECT DISTINCT city FROM t", epsilon=eps).rows]
        for eps in (f"0.{500 + place}" for place in range(200))
    ]
    assert sum(shown) < 30


def test_undeclared_keys_are_released_by_their_threshold():
    curator = protect()
    answer = curator.ask("SELECT DISTINCT job FROM t", epsilon=2)
    assert [row["job"] for row in answer.rows] == ["cook"]
    (measurement,) = curator.desk.plan(bound(curator, "SELECT DISTINCT job FROM t"), sf.PureDP(1)).plan.measurements
    assert isinstance(measurement.quantity, Keys)


def test_keys_alone_cost_what_the_people_cost():
    """The same release answers both: the second is free."""
    curator = protect()
    first = curator.ask("SELECT city, COUNT(DISTINCT id) AS n FROM t GROUP BY city", epsilon=1)
    second = curator.ask("SELECT DISTINCT city FROM t", epsilon=1)
    assert (first.cached, second.cached) == (False, True)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT DISTINCT id FROM t", "is an id"),
        ("SELECT DISTINCT ON (city) city FROM t", "ON is not supported"),
        ("SELECT MAX(job) FROM t", "needs a number or a date"),
    ],
)
def test_what_is_refused(question, said):
    with pytest.raises(sf.errors.QueryError, match=said):
        protect().ask(question, epsilon=1)


def test_distinct_beside_all_keys_changes_nothing():
    curator = protect()
    answer = curator.ask("SELECT DISTINCT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=9)
    assert len(answer.rows) == 3


def test_extremes_and_quantiles_of_dates():
    curator = protect()
    question = "SELECT MIN(born) AS a, MAX(born) AS b, MEDIAN(born) AS m, QUANTILE_CONT(born, 0.9) AS q FROM t"
    (row,) = curator.ask(question, epsilon=60).rows
    assert row["a"] <= date(1990, 1, 4)  # a minimum lies beyond all rows with a probability of at most 1 %
    assert date(1990, 1, 25) <= row["b"]
    assert date(1990, 1, 12) <= row["m"] <= date(1990, 1, 17)
    assert row["q"] > row["m"]
    assert curator.ask(question, epsilon=60).to_pandas()["a"][0] == row["a"]
    assert "whole range" in curator.preview(question, epsilon=1).explain()


def test_extremes_of_datetimes_by_group():
    answer = protect().ask(
        "SELECT city, MAX(seen) AS last FROM t GROUP BY city HAVING MAX(seen) > TIMESTAMP '2024-03-01 00:00:00'",
        epsilon=60,
    )
    found = {row["city"]: row["last"] for row in answer.rows}
    assert all(datetime(2024, 5, 7) <= found[city] <= datetime(2024, 5, 10) for city in ("Rome", "Oslo"))


def test_choices_are_paid_by_a_rho():
    curator = protect(accounting="zcdp")
    answer = curator.ask("SELECT MEDIAN(born) AS m, COUNT(*) AS n FROM t", rho="0.5")
    assert answer.cost.rho <= sf.ZCDP("0.5").rho
    assert answer.cost.rho > 0.499


@pytest.mark.parametrize("rho", ["1e-9", "0.01", "0.5", "3", "80"])
def test_the_epsilon_of_a_rho_costs_at_most_the_rho(rho):
    found = find_epsilon(sf.ZCDP(rho))
    assert found.to_zcdp().rho <= sf.ZCDP(rho).rho
    assert sf.PureDP(found.epsilon * 1000000001 / 1000000000).to_zcdp().rho > sf.ZCDP(rho).rho
