"""What is passed wrongly is refused by name, with what to do; never a raw exception, and nothing is charged."""

import pytest
from protected import protect

import sfumato as sf

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture(scope="module")
def people():
    return protect(unit=sf.ROW)


@pytest.mark.parametrize("both", [{"epsilon": 1}, {"rho": 1}])
def test_a_margin_and_another_price_are_refused_together(people, both):
    """Negative control: each alone is taken."""
    with pytest.raises(sf.errors.InvalidParameter, match="margin must be given alone, without"):
        people.ask(COUNT, margin={"n": 20}, **both)
    assert people.preview(COUNT, **both).margins["n"] > 0
    assert people.budget.spent.epsilon == 0


def test_an_epsilon_that_floats_computed_is_refused_with_the_decimal(people):
    for way in (people.ask, people.preview, people.upgrade, people.rehearse):
        with pytest.raises(
            sf.errors.InvalidParameter, match=r"Pass 0\.3, or '0\.3': the charge would be 0\.30000000000000004"
        ):
            way(COUNT, epsilon=0.1 + 0.2)
    with pytest.raises(sf.errors.SfumatoError, match=r"Pass 0\.3"):
        sf.Budget(epsilon=0.1 + 0.2)
    assert people.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("margin", "told"),
    [
        (5, "margin must map columns of the answer to margins; got an int"), ({}, "an empty mapping"),
        ({"n": "x"}, "margin must be a number above zero"), ({"n": -1}, "a negative number"), ({1: 2}, "by text"),
        ({"m": 5}, "must name a column of n"), ({"n": None}, "nothing"), ([("n", 5)], "a list"),
    ],
)  # fmt: skip
def test_margins_that_are_none_are_refused_by_name(people, margin, told):
    with pytest.raises(sf.errors.InvalidParameter, match=told):
        people.ask(COUNT, margin=margin)


@pytest.mark.parametrize(
    ("assume", "told"),
    [
        ({"n": 10**400}, "that a double can hold"),
        ({"n": "x"}, r"assume\['n'\] must be a number above zero"), ({"m": 5}, "the one key 'n'; got another key"),
        (5, "the one key 'n'; got an int"), ({"n": 0}, "zero"), ({"n": float("nan")}, "NaN"), ({"n": None}, "nothing"),
    ],
)  # fmt: skip
def test_assumptions_that_are_none_are_refused_by_name(people, assume, told):
    with pytest.raises(sf.errors.InvalidParameter, match=told):
        people.preview(COUNT, epsilon=1, assume=assume)


@pytest.mark.parametrize(
    "questions", [None, 5, COUNT, [COUNT], [(COUNT,)], [(5, 20)], [(COUNT, None)], [], [(COUNT, -5)]]
)
def test_workloads_that_are_none_are_refused_by_name(people, questions):
    with pytest.raises(sf.errors.InvalidParameter, match=r"questions|margin"):
        people.plan(questions)
