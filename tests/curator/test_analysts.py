# ruff: noqa: RUF001 - look-alike letters are what is tested
"""Analysts: their limits, who may ask, and which names count as the same."""

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protected import protect

import sfumato as sf
from sfumato.catalog.analysts import list_readings
from sfumato.errors import BudgetExceeded, CatalogError, InvalidParameter, PermissionDenied

COUNT = "SELECT COUNT(*) AS n FROM people"
OLD = "SELECT COUNT(*) AS n FROM people WHERE age > 60"
TWO = {"ann": sf.Budget(epsilon=2), "bob": sf.Budget(epsilon=20)}


def own(people, analyst):
    return Fraction(people.ledger().totals(analyst).spent.epsilon)


def test_another_analysts_dearer_answer_is_not_charged_to_a_sub_limit():
    with protect(sf.Budget(epsilon=30), analysts=TWO) as people:
        dear = people.ask(COUNT, epsilon=1, analyst="bob")
        cheap = people.ask(COUNT, epsilon="0.1", analyst="ann")
        assert not cheap.cached
        assert cheap.entry != dear.entry
        assert (float(cheap.cost.epsilon), float(cheap.population_cost.epsilon)) == (0.1, 0.1)
        assert own(people, "ann") == Fraction("0.1")


def test_a_small_question_is_not_refused_for_the_price_of_anothers():
    with protect(sf.Budget(epsilon=30), analysts=TWO) as people:
        people.ask(COUNT, epsilon=5, analyst="bob")
        assert people.preview(COUNT, epsilon="0.1", analyst="ann").fits
        assert float(people.ask(COUNT, epsilon="0.1", analyst="ann").cost.epsilon) == 0.1


def test_a_first_view_costs_the_viewer_and_not_the_population():
    with protect(sf.Budget(epsilon=30), analysts=TWO) as people:
        first = people.ask(COUNT, epsilon="0.3", analyst="bob")
        spent = people.budget.spent
        preview = people.preview(COUNT, epsilon="0.3", analyst="ann")
        seen = people.ask(COUNT, epsilon="0.3", analyst="ann")
        assert (seen.rows, seen.cached) == (first.rows, True)
        assert float(seen.cost.epsilon) == float(preview.cost.epsilon) == 0.3
        assert seen.population_cost.epsilon == preview.population_cost.epsilon == 0
        assert people.budget.spent == spent
        assert own(people, "ann") == Fraction("0.3")
        assert "0.3 of your limit, 0 of the population's budget" in seen.price()
        assert seen.to_dict()["population_cost"]["epsilon"] == "0"
        assert seen.to_dict()["own_remaining"]["epsilon"] == "1.7"
        again = people.ask(COUNT, epsilon="0.3", analyst="ann")
        assert again.cost.epsilon == people.preview(COUNT, epsilon="0.3", analyst="ann").cost.epsilon == 0
        assert own(people, "ann") == Fraction("0.3")


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "cyd"]),
            st.sampled_from([COUNT, OLD]),
            st.sampled_from(["0.1", "0.2", "0.5"]),
            st.sampled_from(["ask", "ask", "ask", "upgrade", "ask_all", "watch", "diagnose"]),
        ),
        min_size=4, max_size=10,
    )
)  # fmt: skip
def test_preview_cost_and_sub_limit_always_agree(accounting, steps):
    if accounting == "basic":
        limit, kind = (lambda epsilon: sf.Budget(epsilon=epsilon)), "epsilon"
    else:
        limit, kind = (lambda epsilon: sf.Budget(rho=epsilon, accounting="zcdp")), "rho"
    analysts = {"ann": limit(1), "bob": limit(2), "default": limit(1)}
    with protect(limit(3), analysts=analysts) as people:

        def amounts(analyst):
            totals = people.ledger().totals(analyst), people.ledger().totals()
            return tuple(Fraction(getattr(total.spent, kind)) for total in totals)

        for analyst, sql, epsilon, how in steps:
            before = amounts(analyst)
            preview = people.preview(sql, epsilon=epsilon, analyst=analyst)
            assert amounts(analyst) == before, "a preview takes nothing"
            try:
                if how == "ask":
                    answers = [people.ask(sql, epsilon=epsilon, analyst=analyst)]
                    assert preview.fits
                    assert preview.cost == answers[0].cost
                    assert preview.population_cost == answers[0].population_cost
                    assert preview.cached == answers[0].cached
                    assert preview.margins["n"] == pytest.approx(
                        (answers[0].intervals[0]["n"][1] - answers[0].intervals[0]["n"][0]) / 2
                    )
                elif how == "upgrade":
                    answers = [people.upgrade(sql, epsilon=epsilon, analyst=analyst)]
                elif how == "ask_all":
                    answers = people.ask_all([(sql, 200 / float(epsilon)), (COUNT, 300)], analyst=analyst)
                elif how == "watch":
                    answers = [people.watch(sql, above=10, epsilon=epsilon, analyst=analyst)]
                else:
                    answers = [people.diagnose(sql, epsilon, analyst=analyst)]
            except BudgetExceeded:
                assert how != "ask" or not preview.fits
                assert amounts(analyst) == before
                continue
            mine, everybody = (after - earlier for after, earlier in zip(amounts(analyst), before, strict=True))
            assert sum(Fraction(getattr(answer.cost, kind)) for answer in answers) == mine
            if how == "ask":
                assert Fraction(getattr(answers[0].population_cost, kind)) == everybody
        assert people.ledger().verify().ok


def test_an_unlisted_analyst_is_refused():
    with protect(analysts=TWO) as people:
        for ask in (people.ask, people.preview, people.upgrade, people.diagnose):
            with pytest.raises(PermissionDenied, match="not listed") as refused:
                ask(COUNT, epsilon="0.1", analyst="eve")
            assert "ann" not in str(refused.value), "other names are not told"
        with pytest.raises(PermissionDenied):
            people.ask(COUNT, epsilon="0.1")
        with pytest.raises(PermissionDenied):
            people.ask_all([(COUNT, 100)], analyst="eve")
        with pytest.raises(PermissionDenied):
            people.watch(COUNT, above=10, epsilon="0.1", analyst="eve")
        assert people.budget.spent.epsilon == 0
        assert people.rehearse(COUNT).rows, "made-up rows are nobody's"


def test_an_unlisted_analyst_gets_the_default():
    with protect(analysts={**TWO, "default": sf.Budget(epsilon="0.5")}) as people:
        people.ask(COUNT, epsilon="0.4", analyst="eve")
        for name in ("eve", "Eve.", "еvе", "e\u200bve", "ＥＶＥ", " eve ", "EVE!"):
            with pytest.raises(BudgetExceeded, match=r"0\.1 is left of this analyst's own limit"):
                people.ask(OLD, epsilon="0.2", analyst=name)
        people.ask(OLD, epsilon="0.2", analyst="mallory")  # each name has a limit of its own, within the total
        assert {entry.analyst for entry in people.ledger().entries()} == {"", "eve", "mallory"}


@pytest.mark.parametrize("name", ["ann.", "ANN", "аnn", "a\u00adnn", "Ann\u3164", "ａｎｎ", " ann", "a n n", "-ann-"])
def test_a_look_alike_has_the_limit_of_the_name_that_it_looks_like(name):
    with protect(analysts={"ann": sf.Budget(epsilon="0.5")}) as people:
        people.ask(COUNT, epsilon="0.4", analyst="ann")
        with pytest.raises(BudgetExceeded, match="own limit"):
            people.ask(OLD, epsilon="0.2", analyst=name)


def test_a_renamed_analyst_keeps_what_they_have_learned(tmp_path):
    place = tmp_path / "ledger.db"
    with protect(ledger=place, analysts={"Ann Lee": sf.Budget(epsilon=1)}) as people:
        people.ask(COUNT, epsilon="0.75", analyst="ann lee")
    with protect(ledger=place, analysts={"ann.lee": sf.Budget(epsilon=1)}) as people:
        assert own(people, "ann.lee") == Fraction("0.75")


@pytest.mark.parametrize(
    ("one", "two"),
    [("eve", "еvе"), ("eve", "Eve."), ("mallory", "maIIory"), ("ann", "a\u200dnn"), ("bob", "b0b"), ("jo", "J.O.")],
)
def test_a_catalog_whose_names_collide_is_refused(one, two):
    assert list_readings(one) & list_readings(two)
    with pytest.raises(CatalogError, match="the same name, or look alike"):
        protect(analysts={one: sf.Budget(epsilon=1), two: sf.Budget(epsilon=1)})


@pytest.mark.parametrize(
    ("one", "two"), [("ian", "lan"), ("van", "han"), ("user1", "user2"), ("Müller", "Möller"), ("李", "王"), ("_", "-")]
)
def test_other_names_stay_apart(one, two):
    assert not list_readings(one) & list_readings(two)


def test_a_name_has_at_most_200_characters():
    with protect() as people:
        people.ask(COUNT, epsilon="0.1", analyst="a" * 200)
        with pytest.raises(InvalidParameter, match="at most 200 characters"):
            people.ask(COUNT, epsilon="0.1", analyst="a" * 201)
        for name in ("", "\u200b", "a\nb\x00", None, 5):
            with pytest.raises(InvalidParameter, match="analyst must"):
                people.ask(COUNT, epsilon="0.1", analyst=name)
    protect(analysts={"a" * 200: sf.Budget(epsilon=1)}).close()
    with pytest.raises(CatalogError, match="200 characters"):
        protect(analysts={"a" * 201: sf.Budget(epsilon=1)})


def test_a_workload_that_another_analyst_paid_for_counts_on_the_own_limit_once():
    """Every answer shows its own cost, and the costs add up to what the limit is charged."""
    questions = [("SELECT COUNT(*) AS n FROM people", 20), ("SELECT SUM(age) AS s FROM people", 2000)]
    limits = {name: sf.Budget(epsilon=2) for name in ("ann", "eve")}
    with protect(sf.Budget(epsilon=3), analysts=limits) as people:
        paid = people.ask_all(questions, analyst="ann")
        total = sum(answer.cost.epsilon for answer in paid)
        assert people.budget.spent.epsilon == total > 0
        seen = people.ask_all(questions, analyst="eve")
        assert [answer.rows for answer in seen] == [answer.rows for answer in paid]
        assert [answer.cost.epsilon for answer in seen] == [answer.cost.epsilon for answer in paid]
        assert all(answer.cached and answer.population_cost.epsilon == 0 for answer in seen)
        assert people.budget.spent.epsilon == total
        assert people.ledger().totals("eve").spent.epsilon == total
        assert [answer.cost.epsilon for answer in people.ask_all(questions, analyst="eve")] == [0, 0]
