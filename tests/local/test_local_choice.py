import math

import pytest

import sfumato as sf


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1), (3, 1), (100, 1), (5, 4), (1000, 2), (50, "0.1")])
def test_the_choice_has_the_least_variance_of_all(k, epsilon):
    choice = sf.local.choose(k, epsilon)
    variances = {alternative.randomiser.name: alternative.variance for alternative in choice.alternatives}
    assert len(variances) == 6
    assert variances[choice.name] == min(variances.values())
    for alternative in choice.alternatives:
        true, other = (float(share) for share in alternative.randomiser.support)
        by_hand = other * (1 - other) / (true - other) ** 2 + (1 - true - other) / (true - other) / k
        assert alternative.variance == pytest.approx(by_hand)
        assert alternative.bits == alternative.randomiser.form.bits


def test_a_short_line_changes_the_choice():
    assert sf.local.choose(1000, 2).name == "subset"
    short = sf.local.choose(1000, 2, most_bits=20)
    assert short.name == "olh"
    assert sf.local.choose(1000, 2, most_bits=10).name == "hadamard"
    assert "too long" in str(short)
    with pytest.raises(sf.errors.InvalidParameter, match="at least 10"):
        sf.local.choose(1000, 2, most_bits=9)


def test_equals_are_settled_by_the_shorter_report():
    assert sf.local.choose(2, 1).name == "rr"  # a subset of one of two is the same thing in two bits
    assert sf.local.choose(5, 4).name == "krr"


def test_margins_are_stated_before_collecting():
    choice = sf.local.choose(100, 1, people=40_000)
    best = choice.alternatives[0]
    assert best.margin == choice.margin(40_000)
    assert choice.margin(10_000) == pytest.approx(2 * best.margin)
    by_hand = 1.959964 * math.sqrt(choice.randomiser.variance_population(0.01) / 40_000)
    assert best.margin == pytest.approx(by_hand, rel=1e-6)
    shares = [i / 200 for i in range(201)]
    for alternative in choice.alternatives:
        worst = max(alternative.randomiser.margin(40_000, share=share) for share in shares)
        assert alternative.worst_margin == pytest.approx(worst, rel=1e-3)
        assert alternative.worst_margin >= worst * (1 - 1e-12)


def test_a_choice_stands_for_its_randomiser():
    choice = sf.local.choose(4, 1)
    assert choice.epsilon == choice.randomiser.epsilon
    estimate = choice.estimate(choice.randomise([0, 1, 2, 3] * 50))
    assert estimate.frequency.size == 4
    text = str(choice)
    assert text == repr(choice)
    for name in ("krr", "subset", "oue", "sue", "olh", "hadamard", "margin", "population"):
        assert name in text


def test_bad_choices():
    for k, epsilon in ((1, 1), ("a", 1), (5, 0), (5, 60), (5, 1e-12), (5, None)):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.choose(k, epsilon)
    for options in ({"people": 0}, {"people": 1.5}, {"most_bits": 0}, {"most_bits": "9"}):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.choose(5, 1, **options)
    for people in (0, -5, 2.5):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.choose(5, 1).margin(people)
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.mean_randomiser("duchi", lower=0, upper=1, epsilon=1).margin(people)
    assert sf.local.choose(10, 22.5).name == "krr"  # the others need zero entries there
