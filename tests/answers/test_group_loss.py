"""Every answer states its loss, for one person and for a group, and by how much one person can change each column."""

import math

import pandas as pd
import pytest

import sfumato as sf
from sfumato.answers.group_loss import describe_loss
from sfumato.kernel.losses import GDP, ZCDP
from sfumato.kernel.neighbours import Neighbours

DATA = pd.DataFrame({"mark": [1, 3, 7, 7, 9, 10] * 40, "job": ["nurse"] * 240})
COUNT = "SELECT COUNT(*) AS n FROM marks"


def marks(**options):
    given = {"budget": sf.Budget(epsilon=40, delta="1e-5"), **options}
    columns = {"mark": sf.Integer(1, 10, nullable=False), "job": sf.Text()}
    return sf.protect(DATA, name="marks", unit=sf.ROW, columns=columns, **given)


def test_the_loss_of_an_answer_grows_with_the_group():
    with marks() as curator:
        answer = curator.ask(COUNT, epsilon="0.5")
        assert answer.loss == sf.PureDP("0.5")
        assert answer.loss.group(3) == sf.PureDP("1.5")
        assert "a group of 3 people: ε = 1.5. Adding or removing them makes any outcome" in answer.explain(people=3)
        assert f"e^1.5 = {math.exp(1.5):.4g} times as likely" in answer.explain(people=3)
        assert "Privacy loss for one person: ε = 0.5" in answer.explain()
        assert answer.to_dict(people=3)["loss"] == {"people": 3, "epsilon": "1.5", "delta": "0"}


def test_the_words_say_what_is_compared():
    with marks(neighbours="replace-one") as curator:
        assert "Replacing them by others makes any outcome at most" in curator.preview(COUNT, epsilon=1).explain(
            people=2
        )
        assert "Replacing that person by another makes" in curator.preview(COUNT, epsilon=1).explain()


def test_a_cached_answer_has_the_loss_of_its_release_and_no_cost():
    with marks() as curator:
        curator.ask(COUNT, epsilon=2)
        again = curator.ask(COUNT, epsilon=2)
        assert again.cached
        assert again.cost.epsilon == 0
        assert again.loss == sf.PureDP(2)


def test_an_upgraded_answer_has_the_loss_of_all_its_releases():
    with marks() as curator:
        curator.ask(COUNT, epsilon="0.5")
        better = curator.upgrade(COUNT, epsilon=2)
        assert better.cost.epsilon == sf.PureDP("1.5").epsilon
        assert better.loss == sf.PureDP(2)


def test_a_delta_grows_faster_than_the_group():
    keys = "SELECT job, COUNT(*) AS n FROM marks GROUP BY job"
    with marks() as curator:
        answer = curator.ask(keys, epsilon=1, delta="1e-6")
        assert answer.loss == sf.ApproxDP(1, "1e-6")
        delta = 1e-6 * (math.exp(3) - 1) / (math.exp(1) - 1)
        assert float(answer.loss.group(3).delta) == pytest.approx(delta)
        assert "ε = 3, δ = 0.00001111. Adding" in answer.explain(people=3)
        assert "no guarantee" in answer.explain(people=40)
        assert answer.to_dict(people=40)["loss"] == {"people": 40}


def test_zcdp_grows_with_the_square():
    with marks(budget=sf.Budget(rho=5, accounting="zcdp")) as curator:
        answer = curator.ask(COUNT, rho="0.1")
        assert answer.loss.group(3) == sf.ZCDP("0.9")
        implied = float(sf.ZCDP("0.9").to_approx("1e-6").epsilon)
        assert f"rho = 0.9. Adding or removing them makes any outcome at most e^{implied:.4g}" in answer.explain(
            people=3
        )


@pytest.mark.parametrize("people", [0, -1, 2.5, "3", True])
def test_a_group_is_a_whole_number_of_people(people):
    with marks() as curator, pytest.raises(sf.errors.InvalidParameter, match="people must be a whole number"):
        curator.preview(COUNT, epsilon=1).explain(people=people)


def test_what_one_person_changes_is_said_for_what_was_asked_and_for_what_is_measured():
    with marks() as curator:
        sql = "SELECT MAX(mark) AS top, AVG(mark) AS mean, SUM(mark) AS total FROM marks"
        answer = curator.ask(sql, epsilon=30)
        top, mean, total = answer.sensitivities
        assert (top.one_person_changes, total.one_person_changes) == (9, 10)
        assert mean.one_person_changes == pytest.approx(9 / 240, rel=0.05)  # for the released number of rows
        asked, measured = answer.explain().split("Measurements:")
        assert "top (maximum, values from 1 to 10): one person can change it by at most 9, the whole range." in asked
        assert "9/n" in asked
        assert "private choice" in asked
        assert measured.count(": sensitivity ") == 2
        said = answer.disclosure["statement"]["asked"]
        assert said[0] == {"column": "top", "one_person_changes": 9}
        assert answer.to_dict()["one_person_changes"]["total"] == 10


def test_a_preview_says_it_for_an_assumed_count():
    with marks() as curator:
        preview = curator.preview("SELECT AVG(mark) AS mean FROM marks", epsilon=1, assume={"n": 500})
        assert preview.sensitivities[0].one_person_changes == 9 / 500
        assert preview.loss == sf.PureDP(1)
        assert (
            curator.preview("SELECT AVG(mark) AS mean FROM marks", epsilon=1).sensitivities[0].one_person_changes
            is None
        )


def test_a_delta_of_undeclared_keys_leaves_a_telling_statement():
    """A loss in rho or mu that has the delta of keys is stated at twice that delta, not at one half."""
    for loss in (ZCDP("0.1", "1e-6"), GDP("0.2", "1e-6")):
        said = describe_loss(loss, Neighbours.ADD_REMOVE)
        assert "plus a probability of at most δ = 0.000002." in said
        assert "e^0 " not in said
    assert "δ = 0.000001." in describe_loss(ZCDP("0.1", "2e-7"), Neighbours.ADD_REMOVE)
    assert "δ = 0.75." in describe_loss(ZCDP("0.1", "0.5"), Neighbours.ADD_REMOVE)
