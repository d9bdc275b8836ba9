"""Budgets in mu: asking, refusing, stored answers, upgrades, and the planner's choice of noise."""

import math
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pytest

import sfumato as sf
from sfumato.kernel.gaussian_dp import bound_delta, bound_root
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise

PEOPLE = pd.DataFrame({"age": [20 + place % 50 for place in range(600)], "job": ["nurse", "smith", "cook"] * 200})
COLUMNS = {"age": sf.Integer(0, 100), "job": sf.Text()}
GDP = sf.Budget(epsilon=3, delta="1e-6", accounting="gdp")
COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
BY_JOB = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"


def protect(budget=GDP, **options):
    return sf.protect(PEOPLE, name="people", unit=sf.ROW, columns=COLUMNS, budget=budget, **options)


def test_the_limit_is_the_largest_mu_that_implies_epsilon_and_delta():
    limit = GDP.loss
    assert limit == sf.GDP("0.419549")
    assert bound_delta(bound_root(Fraction(limit.mu_squared)), Fraction(3)) <= Fraction("1e-6")
    assert limit.to_approx("1e-6").epsilon <= 3
    assert sf.GDP("0.41955").to_approx("1e-6").epsilon > 3


def test_questions_of_a_standard_deviation_of_47():
    """The figures of the benchmark: 100 by basic composition, 411 and 822 under zCDP, 932 under Gaussian DP."""
    epsilon, variance = Fraction("0.03"), 2 / Fraction("0.03") ** 2
    rho = sf.Budget(epsilon=3, delta="1e-6", accounting="zcdp").loss.rho
    assert 3 // epsilon == 100
    assert Fraction(rho) // Fraction(sf.PureDP("0.03").to_zcdp().rho) == 411
    assert Fraction(rho) // (1 / (2 * variance)) == 822
    assert Fraction(GDP.loss.mu_squared) // (1 / variance) == 932


def test_an_epsilon_pays_for_rounded_gaussian_noise():
    with protect() as people:
        answer = people.ask(COUNT.format(30), epsilon="0.1")
        price = sf.PureDP("0.1").to_gdp().mu_squared
        assert (answer.cost.epsilon, answer.cost.mu_squared) == (None, price)
        assert str(answer.cost) == "μ² = 0.0157024 (rounded up)"
        said = answer.explain()
        assert "rounded Gaussian" in said
        assert "K-71" in said
        assert "μ²" in said
        assert people.budget.spent.mu_squared == price
        assert people.ask(COUNT.format(30), epsilon="0.1").cached
        assert abs(answer.rows[0]["n"] - 468) < 6 * 0.1**-1 * 1.0
        wide = answer.intervals[0]["n"]
        laplace = math.log(20) / 0.1
        assert (wide[1] - wide[0]) / 2 < 0.75 * laplace  # at the price of Laplace noise


def test_a_rho_asks_for_the_same_gaussian():
    with protect() as people:
        assert people.ask(COUNT.format(30), rho="0.01").cost.mu_squared == Decimal("0.02")


def test_means_and_medians_under_mu():
    with protect() as people:
        mean = people.preview("SELECT AVG(age) AS a FROM people", epsilon="0.3")
        assert all(isinstance(one.noise, GaussianNoise) for one in mean._details.certificate.measurements)
        median = people.ask("SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM people", epsilon="0.2")
        assert median.cost.epsilon is None
        parts = 2 * float(sf.PureDP("0.1").to_gdp().mu_squared)
        assert float(people.budget.spent.mu_squared) == pytest.approx(parts)


def test_laplace_noise_stays_where_it_is_smaller():
    with sf.protect(
        PEOPLE, name="people", unit=sf.ROW, columns=COLUMNS, budget=sf.Budget(mu=40, accounting="gdp")
    ) as p:
        (measured,) = p.preview(COUNT.format(30), epsilon=12)._details.certificate.measurements
        assert isinstance(measured.noise, LaplaceNoise)
        assert p.ask(COUNT.format(30), epsilon=12).cost.mu_squared == sf.PureDP(12).to_gdp().mu_squared


def test_charges_stop_at_the_limit():
    with protect(sf.Budget(mu="0.3", accounting="gdp")) as people:
        for age in range(4):
            people.ask(COUNT.format(age), rho="0.01")
        with pytest.raises(sf.errors.BudgetExceeded, match=r"mu_squared = 0\.02"):
            people.ask(COUNT.format(5), rho="0.01")
        assert people.budget.remaining.mu_squared == Decimal("0.01")


def test_undeclared_keys_take_the_delta_beside_mu():
    with protect(sf.Budget(mu=3, delta="1e-4", accounting="gdp")) as people:
        answer = people.ask(BY_JOB, epsilon=2)
        assert {row["job"] for row in answer.rows} == {"nurse", "smith", "cook"}
        assert people.budget.spent.delta == Decimal("1e-6")
        assert people.preview(BY_JOB.replace("GROUP", "WHERE age > 1 GROUP"), epsilon=1).questions_left_by_delta == 99


def test_upgrades_add_up_the_squares():
    with protect() as people:
        people.upgrade(COUNT.format(30), epsilon="0.1")
        better = people.upgrade(COUNT.format(30), epsilon="0.2")
        price = sf.PureDP("0.2").to_gdp().mu_squared
        assert people.budget.spent.mu_squared == price
        assert better.loss == sf.GDP(price)
        assert people.upgrade(COUNT.format(30), epsilon="0.2").cached


def test_a_rehearsal_has_gaussian_noise_too():
    with protect() as people:
        assert "rounded Gaussian" in people.rehearse(COUNT.format(30), epsilon="0.5").explain()


def test_a_margin_costs_least_in_mu():
    with protect() as people:
        answer = people.ask(COUNT.format(30), margin={"n": 92})
        assert float(answer.cost.mu_squared) == pytest.approx((1.96 / 92.5) ** 2, rel=0.02)


def test_a_ledger_of_mu_is_read_again(tmp_path):
    path = tmp_path / "ledger.db"
    with protect(ledger=path) as people:
        people.ask(COUNT.format(30), epsilon="0.1")
        spent = people.budget.spent
    with protect(ledger=path) as people:
        assert people.budget.spent == spent
        assert people.desk.ledger.verify(full=True).entries


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 1, "accounting": "gdp"}, "needs a delta"),
        ({"epsilon": 1, "mu": 1, "accounting": "gdp"}, "either mu, or epsilon"),
        ({"rho": 1, "accounting": "gdp"}, "not rho"),
        ({"epsilon": 1, "mu": 1}, "not mu"),
        ({"mu": 1, "accounting": "zcdp"}, "not mu"),
        ({"delta": "1e-6", "accounting": "gdp"}, "either mu, or epsilon"),
        ({}, "takes epsilon"),
        ({"epsilon": 1, "accounting": "pld"}, "'basic', 'zcdp' or 'gdp'"),
    ],
)
def test_budgets_that_cannot_be(options, said):
    with pytest.raises(sf.errors.CatalogError, match=said):
        sf.Budget(**options)
