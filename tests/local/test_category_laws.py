"""Every randomiser's whole law, measured from the code with scripted words, against the formulas, as Fractions."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from local_laws import array_of, measure_law

import sfumato as sf
from sfumato.local.mechanisms.coin_tables import UNITS, bound_ratio_loss
from sfumato.local.randomisers.category_tables import blanket_support_of, support_of
from sfumato.local.randomisers.support_counts import count_supports

CASES = [
    (name, k, epsilon)
    for name in ("krr", "oue", "sue", "subset", "olh", "hadamard")
    for k in (2, 3, 5)
    for epsilon in ("0.1", "1", "3")
] + [("rr", 2, "0.5"), ("rr", 2, "2"), ("krr", 7, "8"), ("subset", 6, "0.5"), ("olh", 9, "1.5"), ("hadamard", 8, "1")]


def made(name, k, epsilon):
    return sf.local.randomiser(name, k=k, epsilon=epsilon)


def laws_of(mechanism):
    return [measure_law(mechanism, value) for value in range(mechanism.k)]


def supported(mechanism, report):
    """Which categories a single report supports, as 0s and 1s."""
    counts = count_supports(mechanism, array_of(mechanism, [report]))
    assert set(counts.tolist()) <= {0, 1}
    return counts.tolist()


def greatest_ratio(laws):
    reports = set().union(*laws)
    assert all(set(chances) == reports for chances in laws), "a report that one answer cannot give has an infinite loss"
    return max(
        max(chances[report] for chances in laws) / min(chances[report] for chances in laws) for report in reports
    )


@pytest.mark.parametrize(("name", "k", "epsilon"), CASES)
def test_the_loss_is_what_the_table_says_and_no_more_than_asked(name, k, epsilon):
    randomiser = made(name, k, epsilon)
    laws = laws_of(randomiser.mechanism)
    assert all(sum(chances.values()) == 1 for chances in laws)
    ratio = greatest_ratio(laws)
    assert ratio == randomiser.mechanism.ratio  # tight: some report attains it
    assert randomiser.epsilon == bound_ratio_loss(ratio)
    assert randomiser.epsilon <= Decimal(epsilon)
    with mpmath.workprec(200):
        loss = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert loss <= mpmath.mpf(str(randomiser.epsilon)) <= mpmath.mpf(epsilon)
        assert loss > mpmath.mpf(epsilon) * (1 - mpmath.mpf(10) ** -6)  # the table over 2**32 gives nearly nothing away


@pytest.mark.parametrize(("name", "k", "epsilon"), CASES)
def test_supports_and_estimates_are_unbiased(name, k, epsilon):
    """E[(support - q)/(p - q)] is 1 for the own category and 0 for every other, with the table's own p and q."""
    mechanism = made(name, k, epsilon).mechanism
    true, other = support_of(mechanism)
    for value, chances in enumerate(laws_of(mechanism)):
        expected = [Fraction(0)] * k
        for report, probability in chances.items():
            for category, support in enumerate(supported(mechanism, report)):
                expected[category] += support * probability
        assert expected == [true if category == value else other for category in range(k)]
        assert [(share - other) / (true - other) for share in expected] == [int(c == value) for c in range(k)]


@pytest.mark.parametrize(
    ("name", "k", "epsilon"), [("krr", 3, "1"), ("oue", 2, "1"), ("olh", 3, "1"), ("subset", 3, "1")]
)
def test_both_variances_are_exact(name, k, epsilon):
    """All reports of three people: the variance for the people asked. All reports of a population: the other one."""
    randomiser = made(name, k, epsilon)
    mechanism, people = randomiser.mechanism, [0, 1, 1]
    true, other = support_of(mechanism)
    laws = laws_of(mechanism)
    rates = [sum(p for r, p in chances.items() if supported(mechanism, r)[1]) for chances in laws]
    asked, share = Fraction(0), Fraction(2, 3)
    for supports in product((0, 1), repeat=3):
        weight = Fraction(1)
        for bit, value in zip(supports, people, strict=True):
            weight *= rates[value] if bit else 1 - rates[value]
        estimate = (Fraction(sum(supports), 3) - other) / (true - other)
        asked += weight * (estimate - share) ** 2
    formula = other * (1 - other) / (true - other) ** 2 + share * (1 - true - other) / (true - other)
    assert 3 * asked == formula
    assert randomiser.variance_asked(float(share)) == pytest.approx(float(formula), rel=1e-12)
    supporting = share * rates[1] + (1 - share) * rates[0]
    spread = supporting * (1 - supporting) / (true - other) ** 2
    assert randomiser.variance_population(float(share)) == pytest.approx(float(spread), rel=1e-12)
    assert spread == formula + share * (1 - share)  # the draw of the people is what the second one adds


@pytest.mark.parametrize(("name", "k", "epsilon"), CASES)
def test_a_report_is_one_of_two_levels_above_a_common_law(name, k, epsilon):
    """P(report | v) = common(report) * (high if it supports v else low): what shuffling rests on."""
    mechanism = made(name, k, epsilon).mechanism
    true, _ = support_of(mechanism)
    alone, both = blanket_support_of(mechanism)
    high, low = true / alone, (1 - true) / (1 - alone)
    laws = laws_of(mechanism)
    common = {}
    for value, chances in enumerate(laws):
        for report, probability in chances.items():
            level = high if supported(mechanism, report)[value] else low
            assert common.setdefault(report, probability / level) == probability / level
    assert sum(common.values()) == 1
    for left, right in ((0, 1), (1, k - 1)):
        assert sum(p for r, p in common.items() if supported(mechanism, r)[left]) == alone
        if left != right:
            pair = [p for r, p in common.items() if supported(mechanism, r)[left] and supported(mechanism, r)[right]]
            assert sum(pair) == both


def ideal(name, k, epsilon, mechanism):
    growth, root = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(epsilon) / 2)
    match name:
        case "rr" | "krr":
            return growth / (growth + k - 1), 1 / (growth + k - 1)
        case "sue":
            return root / (root + 1), 1 / (root + 1)
        case "oue":
            return mpmath.mpf(1) / 2, 1 / (growth + 1)
        case "olh":
            g = mechanism.buckets
            return growth / (growth + g - 1), mpmath.mpf(1) / g
        case "subset":
            w = mechanism.size
            p = w * growth / (w * growth + k - w)
            return p, p * (w - 1) / (k - 1) + (1 - p) * w / (k - 1)
        case "hadamard":
            return growth / (growth + 1), mpmath.mpf(1) / 2


@pytest.mark.parametrize(("name", "k", "epsilon"), [*CASES, ("krr", 100, "1"), ("subset", 100, "1"), ("olh", 100, "2")])
def test_tables_are_within_a_unit_of_the_formulas(name, k, epsilon):
    mechanism = made(name, k, epsilon).mechanism
    with mpmath.workprec(200):
        for units, formula in zip(support_of(mechanism), ideal(name, k, epsilon, mechanism), strict=True):
            assert abs(mpmath.mpf(units.numerator) / units.denominator - formula) * UNITS <= 1


def test_two_coins_are_ln_three():
    two_coins = sf.local.randomiser("rr", truth=Fraction(3, 4))
    assert two_coins.describe() == {"mechanism": "rr", "k": 2, "coins": {"keep": 3 << 30}}
    assert laws_of(two_coins.mechanism) == [
        {0: Fraction(3, 4), 1: Fraction(1, 4)},
        {1: Fraction(3, 4), 0: Fraction(1, 4)},
    ]
    assert two_coins.epsilon == bound_ratio_loss(Fraction(3))
    assert two_coins.estimate([1, 1, 1, 0]).frequency[1] == pytest.approx(2 * (0.75 - 0.25))


def test_a_randomiser_that_never_flips_the_true_bit_would_be_noticed():
    """The negative control: a client whose true bit is always set has no finite loss, and the enumeration says so."""
    mechanism = made("oue", 3, "1").mechanism

    class Broken:
        name, k, one, zero = "oue", 3, UNITS, mechanism.zero

        def draw(self, values, entropy):
            reports = mechanism.draw(values, entropy)
            reports[np.arange(values.size), values // 8] |= (1 << values % 8).astype(np.uint8)
            return reports

    laws = [{r: p for r, p in measure_law(Broken(), value).items() if p} for value in range(3)]
    with pytest.raises(AssertionError, match="infinite loss"):
        greatest_ratio(laws)
