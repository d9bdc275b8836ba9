import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scripted import Exhausted, Scripted, enumerate_mass

import sfumato as sf
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import Rational
from sfumato.local.mechanisms.biased_coins import bernoulli
from sfumato.local.randomisers.randomized_response import flip_answers, move_answers


def as_mpf(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@pytest.mark.parametrize("epsilon", ["0.01", "1", "3.5", "40"])
def test_binary_reports_are_exact(epsilon):
    """P(report | answer), enumerated byte by byte: their ratio is e^epsilon, both ways."""
    response = sf.RandomizedResponse(epsilon)
    with mpmath.workprec(300):
        exact = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        for answer in (True, False):
            true, undecided = enumerate_mass(lambda entropy, a=answer: flip_answers(response, a, entropy) == a)
            assert as_mpf(true) <= exact <= as_mpf(true + undecided)
        assert abs(exact / (1 - exact) / mpmath.exp(mpmath.mpf(epsilon)) - 1) < mpmath.mpf(10) ** -60
    assert response.loss == sf.PureDP(epsilon)


def test_two_coins_are_ln_three_exactly():
    response = sf.RandomizedResponse(truth=Fraction(3, 4))
    truths = 0
    for byte in range(256):
        try:
            truths += flip_answers(response, True, Scripted([byte]))
        except Exhausted:
            truths += flip_answers(response, True, Scripted([byte, 255]))  # 3/4 has no further digits
    assert truths == 192
    with mpmath.workprec(200):
        ln3 = mpmath.log(3)
        assert ln3 <= as_mpf(Fraction(response.loss.epsilon)) <= ln3 * (1 + mpmath.mpf(10) ** -28)
    assert float(response.loss.epsilon) <= math.log(3)
    assert response.loss.epsilon <= sf.PureDP(math.log(3)).epsilon  # the float is slightly above
    assert response.truth == Rational(Fraction(3, 4))


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_kary_reports_are_exact(categories):
    """Both coins are enumerated: the keep coin, and the even move to any other category."""
    response = sf.KaryResponse(categories, 1)
    with mpmath.workprec(300):
        keep = mpmath.e / (mpmath.e + categories - 1)
        sure, undecided = enumerate_mass(lambda entropy: bernoulli(response.keep, 1, entropy)[0])
        assert as_mpf(sure) <= keep <= as_mpf(sure + undecided)
        other = (1 - keep) / (categories - 1)
        assert abs(keep / other - mpmath.e) < mpmath.mpf(10) ** -60
    for answer in range(categories):
        assert move_answers(response, answer, Scripted([0, 7])) == answer
        reports = [
            move_answers(response, answer, Scripted([255, byte]))
            for byte in range(256 // max(1, categories - 1) * (categories - 1))
        ]
        counts = np.bincount(reports, minlength=categories)
        assert counts[answer] == 0
        assert len(set(np.delete(counts, answer))) == 1


def all_reports(truth, answers):
    """Every outcome of the coins of a few people, with its exact probability."""
    for kept in product((True, False), repeat=len(answers)):
        weight = math.prod(truth if keep else 1 - truth for keep in kept)
        yield [answer if keep else not answer for answer, keep in zip(answers, kept, strict=True)], weight


def test_binary_estimate_is_unbiased():
    response = sf.RandomizedResponse(truth=Fraction(3, 4))
    for answers in ([True, False, False, True, True], [False] * 4, [True]):
        mean = sum(
            response.estimate(reports).value * weight for reports, weight in all_reports(Fraction(3, 4), answers)
        )
        assert mean == pytest.approx(sum(answers) / len(answers), abs=1e-12)
        spread = sum(
            (response.estimate(reports).value - sum(answers) / len(answers)) ** 2 * weight
            for reports, weight in all_reports(Fraction(3, 4), answers)
        )
        error = response.estimate([True] * len(answers)).standard_error
        assert error**2 == pytest.approx(float(spread), rel=1e-12)
    assert response.estimate([True, False, True, True]).value == pytest.approx(2 * (0.75 - 0.25))


def test_kary_estimate_is_unbiased():
    response = sf.KaryResponse(3, "1.0986122886681098")  # e^epsilon = 3, nearly
    keep, other = 3 / 5, 1 / 5
    answers = [0, 2, 2]
    mean, spread = np.zeros(3), np.zeros(3)
    for reports in product(range(3), repeat=3):
        weight = math.prod(keep if report == answer else other for report, answer in zip(reports, answers, strict=True))
        values = np.array([estimate.value for estimate in response.estimate(reports)])
        mean += weight * values
        spread += weight * (values - np.array([1 / 3, 0, 2 / 3])) ** 2
    assert mean == pytest.approx([1 / 3, 0, 2 / 3], abs=1e-9)
    # the standard error at the true shares, by the formula
    for share, variance in zip((1 / 3, 0, 2 / 3), spread, strict=True):
        formula = (share * keep * (1 - keep) + (1 - share) * other * (1 - other)) / 3 / (keep - other) ** 2
        assert variance == pytest.approx(formula, rel=1e-9)


def test_intervals_hold_about_as_often_as_they_say():
    """Coverage of the 95 % interval over people and coins, computed exactly from the binomial law of the reports."""
    response, people = sf.RandomizedResponse(1), 400
    truth = 1 / (1 + math.exp(-1))
    for share in (0.05, 0.3, 0.5, 0.9):
        rate = share * truth + (1 - share) * (1 - truth)
        covered = 0.0
        for yes in range(people + 1):
            log_mass = (
                math.lgamma(people + 1)
                - math.lgamma(yes + 1)
                - math.lgamma(people - yes + 1)
                + yes * math.log(rate)
                + (people - yes) * math.log1p(-rate)
            )
            if log_mass > -40:
                estimate = response.estimate(np.arange(people) < yes)
                covered += math.exp(log_mass) * (estimate.low <= share <= estimate.high)
        assert 0.94 <= covered <= 0.965


def test_kinds_in_and_out():
    response = sf.RandomizedResponse(1)
    assert type(response.randomise(True)) is bool
    assert type(response.randomise(0)) is bool
    assert response.randomise([True, False]).dtype == bool
    assert response.randomise(np.ones((2, 3), bool)).shape == (2, 3)
    assert response.randomise([]).shape == (0,)
    kary = sf.KaryResponse(4, 1)
    assert type(kary.randomise(3)) is int
    assert kary.randomise(np.zeros((2, 2), np.uint8)).shape == (2, 2)
    estimate = kary.estimate(kary.randomise(np.arange(4000) % 4))
    assert len(estimate) == 4
    assert all(share.low < share.value < share.high for share in estimate)
    assert sum(share.value for share in estimate) == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "x", None, 65, 10**400, 1e-17], ids=lambda e: str(e)[:6])
def test_bad_epsilons(epsilon):
    with pytest.raises(sf.errors.InvalidParameter):
        sf.RandomizedResponse(epsilon)
    with pytest.raises(sf.errors.InvalidParameter):
        sf.KaryResponse(3, epsilon)


@pytest.mark.parametrize("truth", [0, "0.5", 0.2, 1, 2, float("nan"), "x"], ids=str)
def test_bad_truths(truth):
    with pytest.raises(sf.errors.InvalidParameter, match="truth"):
        sf.RandomizedResponse(truth=truth)
    with pytest.raises(sf.errors.InvalidParameter, match="one of them"):
        sf.RandomizedResponse(1, truth=truth)


def test_bad_answers():
    for bad in (2, 0.5, "yes", None, [1, 2], [[1], [1, 0]]):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.RandomizedResponse(1).randomise(bad)
    for bad in (-1, 3, 0.5, "a", None, True, [0, 3], 10**30):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.KaryResponse(3, 1).randomise(bad)
    for categories in (1, 0, 2.5, 1 << 40):
        with pytest.raises(sf.errors.InvalidParameter, match="categories"):
            sf.KaryResponse(categories, 1)
    with pytest.raises(sf.errors.InvalidParameter, match="reports"):
        sf.RandomizedResponse(1).estimate([])
    with pytest.raises(sf.errors.InvalidParameter, match="reports"):
        sf.KaryResponse(3, 1).estimate([])


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-9", "0.001", "40", "64"])
def test_estimates_at_the_ends(epsilon):
    """Against 60 digits: the slope p - q is not the difference of two rounded floats."""
    with mpmath.workprec(300):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        for categories, estimate in (
            (2, sf.RandomizedResponse(epsilon).estimate([True, True, False])),
            (3, sf.KaryResponse(3, epsilon).estimate([0, 0, 1])[0]),
        ):
            keep = growth / (growth + categories - 1)
            other = 1 / (growth + categories - 1)
            exact = (mpmath.mpf(2) / 3 - other) / (keep - other)
            assert abs(estimate.value / exact - 1) < 1e-12
            assert estimate.low < estimate.value < estimate.high
            assert estimate.standard_error > 0


def test_many_categories_are_quick_and_too_many_refused():
    response = sf.KaryResponse(1 << 20, 8)
    assert len(response.estimate(response.randomise(np.arange(1000)))) == 1 << 20
    with pytest.raises(sf.errors.InvalidParameter, match="categories"):
        sf.KaryResponse((1 << 20) + 1, 8)


def test_confidence_near_one():
    wide = sf.RandomizedResponse(1).estimate([True, False] * 50, "0.99999999999999999")
    assert wide.high - wide.low > 0.5


def test_responses_read_well_and_masks_are_refused():
    assert repr(sf.RandomizedResponse(truth=Fraction(3, 4))) == "RandomizedResponse(truth=Fraction('3/4'))"
    assert repr(sf.RandomizedResponse(0.5)) == "RandomizedResponse(epsilon=0.5)"
    assert repr(sf.KaryResponse(4, 1)) == "KaryResponse(categories=4, epsilon=1)"
    with pytest.raises(sf.errors.InvalidParameter, match="masked"):
        sf.RandomizedResponse(1).randomise(np.ma.array([True, False], mask=[0, 1]))
    with pytest.raises(sf.errors.InvalidParameter):
        sf.RandomizedResponse(truth="0." + "9" * 300)


def test_the_type_of_an_answer_never_matters():
    script = bytes(SYSTEM.take(4000))

    def reports(make, answers):
        return np.asarray(make(answers, Scripted(script))).tolist()

    binary, kary = sf.RandomizedResponse(1), sf.KaryResponse(5, 1)
    for answers in ([1, 0, 1], [1.0, 0.0, 1.0], [True, 0, 1.0], np.array([1, 0, 1], "f4"), np.array([1, 0, 1], "u8")):
        assert reports(lambda *arguments: flip_answers(binary, *arguments), answers) == reports(
            lambda *arguments: flip_answers(binary, *arguments), [True, False, True]
        )
    for answers in ([4, 0, 2], [4.0, 0, 2.0], np.array([4, 0, 2], "f2"), np.array([4, 0, 2], "u1")):
        assert reports(lambda *arguments: move_answers(kary, *arguments), answers) == reports(
            lambda *arguments: move_answers(kary, *arguments), [4, 0, 2]
        )
    for wrong in (0.5, math.nan, [1.0, 2.0], math.inf):
        with pytest.raises(sf.errors.InvalidParameter):
            binary.randomise(wrong)
    for wrong in (0.5, math.nan, 5.0, [1.0, 1e300], -1.0):
        with pytest.raises(sf.errors.InvalidParameter):
            kary.randomise(wrong)
