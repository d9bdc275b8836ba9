import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from local_laws import HEADS, TAILS, join_words, key, units_of
from scripted import Scripted

import sfumato as sf
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.randomisers.questions import Questions

SPLIT, SAMPLE = Questions("split", 3, 3 << 30), Questions("sample", 3, 3 << 30)


def report(asked, answers, script):
    return key(asked.draw(np.array([answers], bool), Scripted(script))[0])


def law(asked, answers):
    total = {}
    if asked.method == "split":
        units = []
        for place in range(3):
            rows = [[TAILS] * place + [word] + [TAILS] * (2 - place) for word in (HEADS, TAILS)]
            kept = report(asked, answers, join_words(*rows[0]))
            units.append(
                units_of(
                    lambda word, place=place, kept=kept: (
                        report(asked, answers, join_words(*[TAILS] * place, word, *[TAILS] * (2 - place))) == kept
                    )
                )
            )
        for heads in product((True, False), repeat=3):
            weight = math.prod(Fraction(u if h else UNITS - u, UNITS) for h, u in zip(heads, units, strict=True))
            drawn = report(asked, answers, join_words(*(HEADS if is_head else TAILS for is_head in heads)))
            total[drawn] = total.get(drawn, 0) + weight
        return total
    for question in range(3):
        kept = report(asked, answers, bytes([question]) + join_words(HEADS))
        units = units_of(
            lambda word, q=question, kept=kept: report(asked, answers, bytes([q]) + join_words(word)) == kept
        )
        for word, share in ((HEADS, units), (TAILS, UNITS - units)):
            drawn = report(asked, answers, bytes([question]) + join_words(word))
            total[drawn] = total.get(drawn, 0) + Fraction(share, 3 * UNITS)
    return total


ANSWERS = list(product((False, True), repeat=3))


@pytest.mark.parametrize("asked", [SPLIT, SAMPLE], ids=["split", "sample"])
def test_the_loss_over_all_pairs_of_answers(asked):
    laws = [law(asked, answers) for answers in ANSWERS]
    assert all(sum(chances.values()) == 1 for chances in laws)
    ratio = max(max(chances[r] for chances in laws) / min(chances[r] for chances in laws) for r in laws[0])
    assert ratio == (27 if asked is SPLIT else 3)
    assert asked.epsilon == bound_ratio_loss(Fraction(ratio))


@pytest.mark.parametrize("asked", [SPLIT, SAMPLE], ids=["split", "sample"])
def test_each_answer_is_reported_with_the_keep_coin(asked):
    for answers in ANSWERS:
        for question in range(3):
            yes = about = Fraction(0)
            for drawn, weight in law(asked, answers).items():
                if asked is SPLIT:
                    yes, about = yes + weight * (drawn[0] >> question & 1), about + weight
                elif drawn // 2 == question:
                    yes, about = yes + weight * (drawn % 2), about + weight
            assert about == (1 if asked is SPLIT else Fraction(1, 3))
            rate = yes / about
            assert (rate - (1 - asked.truth)) / (2 * asked.truth - 1) == int(answers[question])


@pytest.mark.parametrize("method", ["split", "sample"])
def test_made_for_an_epsilon(method):
    for count in (1, 2, 10):
        asked = sf.local.questions(count, "0.8", method)
        assert 0.7999 < float(asked.epsilon) <= 0.8
        assert sf.local.rebuild(asked.describe()) == asked
        bolder = Questions(method, count, asked.keep + 1)
        assert bolder.epsilon > asked.epsilon


def test_the_comparison_shows_both_and_takes_the_better():
    many = sf.local.compare_questions(10, 1, people=5000)
    assert many.better.method == "sample"
    few = sf.local.compare_questions(5, 8)
    assert few.better.method == "split"
    for words_ in ("split", "sample", "margin", "10 yes-or-no"):
        assert words_ in repr(many)
    growth = math.exp(0.1)
    assert many.split.variance_asked(0.5) == pytest.approx(growth / (growth - 1) ** 2, rel=1e-6)
    assert many.sample.variance_population(0.5) == pytest.approx(10 * (math.e / (math.e - 1) ** 2 + 0.25), rel=1e-6)


@pytest.mark.parametrize("method", ["split", "sample"])
def test_reports_tallies_and_estimates(method):
    asked = sf.local.questions(4, 3, method)
    answers = np.zeros((6000, 4), bool)
    answers[:3000, 1] = answers[:, 2] = True
    reports = asked.randomise(answers)
    decoded, malformed = asked.form.decode(asked.form.encode(reports))
    assert malformed == 0
    assert np.array_equal(decoded, reports)
    tally = asked.tally(reports[:2500]) + asked.tally(reports[2500:])
    assert tally == asked.tally(reports)
    estimate = asked.estimate(tally)
    assert (estimate.low < estimate.share).all()
    assert estimate.share == pytest.approx([0, 0.5, 1, 0], abs=6 * math.sqrt(asked.variance_population(0.5) / 6000))
    assert int(estimate.answered.sum()) == 6000 * (4 if method == "split" else 1)
    wider = asked.estimate(tally, simultaneous=True)
    assert (wider.high - wider.low > estimate.high - estimate.low).all()
    single = asked.randomise(np.array([1, 0, 0, 1]))
    assert asked.form.decode(asked.form.encode(np.asarray(single)))[1] == 0


def test_refusals():
    asked = sf.local.questions(4, 1, "sample")
    for bad in (np.zeros((3, 5), bool), [0, 1, 2, 0], "yes", 1, [0.5, 0, 0, 0]):
        with pytest.raises(sf.errors.InvalidParameter):
            asked.randomise(bad)
    for count, epsilon, method in (
        (0, 1, "split"),
        (5000, 1, "split"),
        (3, 0, "split"),
        (3, 1, "both"),
        (3, 40, "sample"),
    ):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.questions(count, epsilon, method)
    with pytest.raises(sf.errors.InvalidParameter, match="every question"):
        asked.estimate([0, 1])
    with pytest.raises(sf.errors.InvalidParameter):
        asked.estimate(sf.local.Tally.empty(4))
    good = asked.describe()
    for bad in (
        None,
        {},
        {**good, "method": "both"},
        {**good, "count": 0},
        {**good, "coins": {"keep": 5}},
        {**good, "x": 1},
    ):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.rebuild(bad)
