"""Questions that need several releases (ROLLUP, GROUPING SETS): margins that are wanted, rehearsals; count_distinct."""

import pandas as pd
import pytest

import sfumato as sf

FRAME = pd.DataFrame(
    {
        "person": range(400),
        "sex": ["F", "M"] * 200,
        "city": ["Oslo", "Rome", "Lima", "Bern"] * 100,
        "age": [30, 40] * 200,
    }
)
COLUMNS = {
    "person": sf.Id(), "sex": sf.Category(["F", "M"]), "city": sf.Category(["Oslo", "Rome", "Lima", "Bern"]),
    "age": sf.Integer(0, 100),
}  # fmt: skip
ROLLUP = "SELECT sex, city, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, city)"


@pytest.fixture(params=["basic", "zcdp", "gdp"])
def people(request):
    budget = sf.Budget(epsilon=1000, delta=1e-4, accounting=request.param)
    with sf.protect(FRAME, name="people", unit="person", columns=COLUMNS, budget=budget) as curator:
        yield curator


def test_a_wanted_margin_holds_for_every_release(people):
    answer = people.ask(ROLLUP, margin={"n": 10})
    assert len(answer.rows) == 11
    assert all((high - low) / 2 <= 10.0001 for row in answer.intervals for low, high in row.values())
    widest = max((high - low) / 2 for row in answer.intervals for low, high in row.values())
    assert widest > 9  # no more is spent than the margin needs


def test_a_column_that_is_computed_from_several_releases_has_no_margin_to_want(people):
    with pytest.raises(sf.errors.SfumatoError):
        people.ask(
            "SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY city", margin={"share": 1}
        )


def test_a_rehearsal_has_the_form_of_the_answer(people):
    before = people.budget.spent
    made = people.rehearse(ROLLUP, epsilon=5)
    real = people.ask(ROLLUP, epsilon=5)
    assert [(row["sex"], row["city"]) for row in made.rows] == [(row["sex"], row["city"]) for row in real.rows]
    assert before.as_text() != people.budget.spent.as_text()  # only the question itself was paid


def test_a_rehearsal_costs_nothing(people):
    before = people.budget.spent
    people.rehearse("SELECT sex, AVG(age) AS a FROM people GROUP BY GROUPING SETS ((sex), ())")
    assert people.budget.spent == before


def test_different_values_in_python(people):
    question = people.agg(cities=sf.count_distinct("city"), persons=sf.count_distinct("person"))
    assert (
        question.sql() == 'SELECT COUNT(DISTINCT city) AS "cities", COUNT(DISTINCT person) AS "persons" FROM "people"'
    )
    (row,) = question.ask(epsilon=60).rows
    assert row == {"cities": 4, "persons": 400}
