from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, exp, factorial, inf

import numpy as np
import pytest
from local_laws import measure_law

import sfumato as sf
from sfumato.local.collect.binomials import Law, bound_binomial
from sfumato.local.collect.shuffle import Blanket, _Bound, find_blanket, find_common_blanket
from sfumato.local.mechanisms.mean_tables import Ends, Window
from sfumato.local.randomisers.mean_values import list_report_probabilities, make_laplace_table

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)


def exact_mass(trials, rate, value):
    return comb(trials, value) * rate**value * (1 - rate) ** (trials - value)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 100), Fraction(97, 100), Fraction(3, 7)], ids=str)
@pytest.mark.parametrize("trials", [0, 1, 2, 17, 400, 5000])
def test_binomial_laws_are_never_below_the_truth(trials, rate):
    drawn = bound_binomial(trials, float(rate))
    inside = Fraction(0)
    step = max(1, drawn.mass.size // 200)
    for value, mass in list(zip(drawn.values.tolist(), drawn.mass.tolist(), strict=True))[::step]:
        exact = exact_mass(trials, rate, value)
        assert exact <= Fraction(mass) <= exact * (1 + Fraction(1, 10**8))
    if step == 1:
        inside = sum(exact_mass(trials, rate, value) for value in drawn.values.tolist())
        assert 1 - inside <= drawn.outside + Fraction(1, 10**40)
    assert drawn.first >= 0
    assert drawn.first + drawn.mass.size <= trials + 1


def test_sure_binomials_are_single_points():
    assert (bound_binomial(5, 0.0).first, bound_binomial(5, 1.0).first, bound_binomial(0, 0.3).first) == (0, 5, 0)


def test_the_expected_excess_is_never_below_the_truth():
    drawn, rate = bound_binomial(60, 0.3), Fraction(3, 10)
    levels = np.array([-3.5, -1.0, 0.0, 0.25, 10.0, 17.9, 18.0, 30.2, 59.5, 60.0, 75.0])
    for level, bound in zip(levels.tolist(), drawn.find_excess().expect_above(levels).tolist(), strict=True):
        exact = sum(exact_mass(60, rate, v) * max(v - Fraction(level), 0) for v in range(61))
        assert exact - Fraction(1, 10**18) <= Fraction(bound) <= exact * (1 + Fraction(1, 10**6)) + Fraction(1, 10**18)
    shifted = (
        Law(100, np.array([0.25, 0.75]), 0.0).find_excess().expect_above(np.array([90.5, 98.5, 99.5, 100.0, 100.5]))
    )
    assert shifted == pytest.approx([10.25, 2.25, 1.25, 0.75, 0.375])


def test_the_binomial_exceeds_every_sum_of_the_same_mean():
    """Hoeffding's, for the sums that are replaced by it: all levels, exactly."""
    for first, second in ((3, 5), (6, 2)):
        for low, high in ((Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 10), Fraction(9, 10))):
            people, mean = first + second, first * low + second * high
            for level in range(people):
                own = sum(
                    exact_mass(first, low, a) * exact_mass(second, high, b) * max(a + b - level, 0)
                    for a, b in product(range(first + 1), range(second + 1))
                )
                whole = sum(exact_mass(people, mean / people, v) * max(v - level, 0) for v in range(people + 1))
                assert own <= whole


def exact_delta(blanket, people, growth):
    """The blanket's bound with nothing grouped or rounded: all numbers of reports of all four kinds."""
    high, low, alone, both, share = (
        float(figure) for figure in (blanket.high, blanket.low, blanket.alone, blanket.both, blanket.share)
    )
    kinds = (alone - both, alone - both, both, 1 - 2 * alone + both)
    total = 0.0
    for others in range(people):
        chance, reports = exact_mass(people - 1, share, others), others + 1
        for first, second, third in product(range(reports + 1), repeat=3):
            fourth = reports - first - second - third
            if fourth >= 0:
                counts = (first, second, third, fourth)
                ways = factorial(reports)
                for count in counts:
                    ways //= factorial(count)
                weight = chance * ways
                for rate, count in zip(kinds, counts, strict=True):
                    weight *= rate**count if count else 1
                own, other = first + third, second + third
                told = (high - low) * (own - growth * other) + low * reports * (1 - growth)
                total += weight * max(told, 0) / reports
    return total


@pytest.mark.parametrize(
    ("name", "k"), [("rr", 2), ("krr", 3), ("krr", 8), ("subset", 5), ("oue", 4), ("olh", 4), ("hadamard", 3)]
)
def test_the_bound_is_the_blankets_and_not_below_it(name, k):
    blanket, specific = find_blanket(sf.local.randomiser(name, k=k, epsilon=1))
    assert specific
    for people in (1, 2, 7):
        bound = _Bound.prepare(blanket, people, 1e-6)
        for epsilon in EPSILONS:
            exact = exact_delta(blanket, people, exp(epsilon))
            assert bound.delta(epsilon) >= exact * (1 - 1e-12)
            assert bound.delta(epsilon) <= 1.5 * exact + 1e-9  # groups are coarse where people are so few


@pytest.mark.parametrize(
    ("name", "k"), [("rr", 2), ("krr", 3), ("krr", 8), ("subset", 12), ("oue", 4), ("hadamard", 3)]
)
def test_one_view_is_worked_out_to_a_few_percent(name, k):
    """All reports from the blanket: no grouping by their number, so that the bound is close from above."""
    own, _ = find_blanket(sf.local.randomiser(name, k=k, epsilon=1))
    sure = Blanket(own.high, own.low, own.alone, own.both, Fraction(1))
    for people in (5, 16):
        for epsilon in (0.0, 0.1, 0.3):
            exact = exact_delta(sure, people, exp(epsilon))
            assert exact * (1 - 1e-12) <= _Bound.prepare(sure, people, 1e-6).delta(epsilon) <= 1.03 * exact + 1e-12


def histograms(laws):
    """The law of the shuffled reports of people with these laws: counts of each report -> probability."""
    total = {(0,) * len(laws[0]): Fraction(1)}
    for chances in laws:
        after = {}
        for counts, weight in total.items():
            for place, probability in enumerate(chances):
                key = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                after[key] = after.get(key, 0) + weight * probability
        total = after
    return total


def true_delta(laws, people, growth):
    """The true delta of shuffling: the largest over all answers of all people, by enumeration."""
    worst = Fraction(0)
    for others in combinations_with_replacement(range(len(laws)), people - 1):
        rest = [laws[answer] for answer in others]
        views = [histograms([own, *rest]) for own in laws]
        for first, second in product(views, repeat=2):
            told = sum(max(p - growth * second.get(view, 0), 0) for view, p in first.items())
            worst = max(worst, told)
    return worst


def table_of(randomiser):
    """The rows of a randomiser's whole law, as measured from the code."""
    if isinstance(randomiser, sf.local.MeanRandomiser):
        return [list(list_report_probabilities(randomiser.table, step)) for step in range(randomiser.table.steps + 1)]
    laws = [measure_law(randomiser.mechanism, value) for value in range(randomiser.k)]
    return [[chances[report] for report in sorted(laws[0])] for chances in laws]


def mean_of(table):
    return sf.local.MeanRandomiser("test", Decimal(0), Decimal(1), table)


REAL = {
    "rr": (sf.local.randomiser("rr", truth=Fraction(3, 4)), 6),
    "krr": (sf.local.randomiser("krr", k=3, epsilon=1), 4),
    "subset": (sf.local.randomiser("subset", k=4, epsilon="0.5"), 3),
    "oue": (sf.local.randomiser("oue", k=2, epsilon=1), 4),
    "sue": (sf.local.randomiser("sue", k=2, epsilon=1), 4),
    "hadamard": (sf.local.randomiser("hadamard", k=3, epsilon=1), 4),
    "duchi": (mean_of(Ends(3 << 30)), 6),
    "window": (mean_of(Window(2, 1, 3 << 30)), 4),
    "laplace": (mean_of(make_laplace_table(Decimal(1), 2)), 4),
}


@pytest.mark.parametrize("name", REAL)
def test_no_answers_of_any_people_are_told_better_than_the_bound(name):
    randomiser, people = REAL[name]
    laws = table_of(randomiser)
    blanket, specific = find_blanket(randomiser)
    assert specific == (name not in ("window", "laplace"))
    bound = _Bound.prepare(blanket, people, 1e-6)
    for epsilon in (0.0, 0.1, 0.4, 0.8):
        growth = Fraction(exp(epsilon))
        assert true_delta(laws, people, growth) <= Fraction(bound.delta(epsilon)) * (1 + Fraction(1, 10**9))


def test_a_blanket_that_claims_too_much_would_be_noticed():
    randomiser, people = REAL["rr"]
    honest, _ = find_blanket(randomiser)
    boast = Blanket(honest.high, honest.low, honest.alone, honest.both, Fraction(95, 100))
    bound, laws = _Bound.prepare(boast, people, 1e-6), table_of(randomiser)
    assert any(true_delta(laws, people, Fraction(exp(epsilon))) > bound.delta(epsilon) for epsilon in (0.1, 0.4, 0.8))


def test_more_reports_hide_better():
    """Why reports may be grouped: a view with more reports from the blanket is never more informative."""
    for name, k in (("rr", 2), ("krr", 5), ("subset", 5), ("olh", 4)):
        blanket, _ = find_blanket(sf.local.randomiser(name, k=k, epsilon=1))
        sure = Blanket(blanket.high, blanket.low, blanket.alone, blanket.both, Fraction(1))
        for growth in (1.0, 1.3, 2.0):
            told = [exact_delta(sure, people, growth) for people in (1, 2, 3, 5, 8)]
            assert all(after <= before + 1e-12 for before, after in pairwise(told))


def test_the_known_shape():
    randomiser = sf.local.randomiser("rr", epsilon=1)
    few, many = sf.local.bound_shuffling(randomiser, 10_000), sf.local.bound_shuffling(randomiser, 1_000_000)
    assert 0.036 < few.epsilon < 0.037
    assert few.epsilon / many.epsilon == pytest.approx(Decimal("12.5"), rel=Decimal("0.1"))  # about the root of people
    assert few.local_epsilon == randomiser.epsilon
    stricter = sf.local.bound_shuffling(randomiser, 10_000, "1e-9")
    assert stricter.epsilon > few.epsilon
    assert sf.local.bound_shuffling(randomiser, 1).epsilon == randomiser.epsilon  # alone, nothing is gained
    assert sf.local.bound_shuffling(randomiser, 10**9).epsilon == sf.local.bound_shuffling(randomiser, 10**7).epsilon
    assert sf.local.bound_shuffling(randomiser, 1000, "1e-300").epsilon == randomiser.epsilon
    general = _Bound.prepare(find_common_blanket(randomiser.epsilon), 10_000, 1e-6)
    own = _Bound.prepare(find_blanket(randomiser)[0], 10_000, 1e-6)
    assert own.delta(0.05) <= general.delta(0.05)


def test_every_kind_of_survey_has_a_bound():
    for randomiser in (
        sf.local.mean_randomiser("hybrid", lower=0, upper=1, epsilon=1),
        sf.local.questions(3, 1, "split"),
        sf.local.heavy_hitters(4, 1),
        sf.local.randomiser("subset", k=100, epsilon=1),
    ):
        told = sf.local.bound_shuffling(randomiser, 20_000)
        assert 0 < told.epsilon < Decimal("0.1")
        text = str(told)
        assert text.startswith("Local epsilon 0.99999")
        for assumption in told.assumptions:
            assert assumption in text


def test_refusals():
    randomiser = sf.local.randomiser("rr", epsilon=1)
    for people, delta in ((0, 0.1), (1.5, 0.1), (10, 0), (10, 1), (10, "x"), (10, inf)):
        with pytest.raises(sf.errors.InvalidParameter):
            sf.local.bound_shuffling(randomiser, people, delta)
