"""The choice among randomisers of a mean: the smallest worst-case variance, with a report that fits the size limit."""

import pytest

import sfumato as sf


@pytest.mark.parametrize(("epsilon", "name"), [("0.1", "duchi"), ("0.5", "duchi"), (1, "hybrid"), (2, "hybrid")])
def test_the_least_of_the_greatest_variances(epsilon, name):
    found = sf.local.choose_mean(0, 10, epsilon)
    assert found.randomiser.name == name
    worst = {
        alternative.randomiser.name: max(alternative.randomiser.variance_asked(value / 10) for value in range(101))
        for alternative in found.alternatives
    }
    assert set(worst) == {"duchi", "piecewise", "hybrid", "laplace"}
    assert worst[name] <= 1.0001 * min(worst.values())
    for alternative in found.alternatives:
        assert alternative.variance == pytest.approx(worst[alternative.randomiser.name], rel=0.01)
        assert alternative.margin == alternative.randomiser.margin(10_000)


def test_a_short_line_takes_one_bit():
    found = sf.local.choose_mean(-5, 5, 2, most_bits=1)
    assert (found.randomiser.name, found.randomiser.form.bits) == ("duchi", 1)
    assert [alternative.fits for alternative in found.alternatives] == [True, False, False, False]
    assert "too long" in str(found)
    assert str(found).count(">") == 1


def test_a_survey_takes_the_choice():
    made = sf.local.new_survey("How much?", key=sf.local.SurveyKey(), epsilon="0.5", bounds=(0, 10))
    assert made.manifest.statement["mechanism"]["mechanism"] == "duchi"
    named = sf.local.new_survey("How much?", key=sf.local.SurveyKey(), epsilon=1, bounds=(0, 10), mechanism="piecewise")
    assert named.manifest.statement["mechanism"]["mechanism"] == "piecewise"


def test_what_no_table_carries_is_refused():
    with pytest.raises(sf.errors.InvalidParameter, match="epsilon"):
        sf.local.choose_mean(0, 1, "1e-12")
    with pytest.raises(sf.errors.InvalidParameter, match="people"):
        sf.local.choose_mean(0, 1, 1, people=0)
