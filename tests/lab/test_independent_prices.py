"""Prices, charges and thresholds that a replay computes by formulas of its own: each wrong one is noticed."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.kernel import losses
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.sensitivity import Sensitivity
from sfumato.lab.auditing.independent_prices import AskedPrice, check_prices, convert_to_epsilon, convert_to_rho

RULE = KeyRule(Decimal("0.5"), Decimal("1e-7"), 2, Neighbours.ADD_REMOVE)
KEYS = Certified("keys1", 0, Sensitivity(Fraction(2), Fraction(2)), LaplaceNoise(RULE.scale),
    ApproxDP("0.5", "1e-7"), RULE.threshold)  # fmt: skip
COUNT = Certified("count1", 0, Sensitivity(Fraction(2), Fraction(4)), LaplaceNoise(Fraction(4)), PureDP("0.5"))
WHOLE = Certificate((), "people", None, (KEYS, COUNT), ApproxDP(1, "1e-7"))
ASKED = AskedPrice(PureDP(1), Decimal("1e-7"), 2)


def find(certificate=WHOLE, asked=ASKED, spent=WHOLE.loss):
    return " ".join(check_prices(certificate, asked, spent))


def test_a_right_certificate_shows_nothing():
    assert find() == ""
    assert find(spent=ZCDP(PureDP(1).to_zcdp().rho, "1e-7")) == ""
    assert find(spent=ZCDP(2 * PureDP("0.5").to_zcdp().rho, "1e-7")) == ""


def test_a_price_that_was_not_asked_is_noticed():
    assert "above the price" in find(asked=replace(ASKED, loss=PureDP("0.999")))
    assert "above the price" in find(asked=replace(ASKED, delta=Decimal("1e-8")))
    assert "above the price" in find(asked=replace(ASKED, loss=ZCDP(1)))


def test_a_charge_that_is_too_small_is_noticed():
    for spent in (ApproxDP("0.999", "1e-7"), ApproxDP(1, "1e-8"), ZCDP("0.2", "1e-7"), ZCDP(1, 0)):
        assert "charged less" in find(spent=spent)


def test_a_threshold_below_its_delta_is_noticed():
    for threshold in (RULE.threshold - 1, RULE.threshold // 2):
        wrong = replace(WHOLE, measurements=(replace(KEYS, threshold=threshold), COUNT))
        assert "passes its threshold" in find(wrong)


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "7.25", "30"])
def test_the_conversion_is_the_kernels(epsilon):
    """The kernel rounds up, and not by much."""
    rho, exact = Fraction(PureDP(epsilon).to_zcdp().rho), convert_to_rho(Decimal(epsilon))
    assert exact * (1 - Fraction(1, 10**40)) <= rho <= exact * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("rho", ["0.0001", "0.1", "0.5", "3", "40"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.01"])
def test_the_conversion_of_rho_is_the_kernels(rho, delta):
    """The kernel rounds up, and not by much."""
    epsilon = Fraction(ZCDP(rho).to_approx(delta).epsilon)
    exact = convert_to_epsilon(Decimal(rho), Decimal(delta))
    assert exact * (1 - Fraction(1, 10**9)) <= epsilon <= exact * (1 + Fraction(1, 10**4))


def test_the_conversion_of_rho_covers_a_gaussian():
    """An oracle of its own: the exact delta of a Gaussian with this rho, at the epsilon, is below the delta."""
    from mpmath import mp, mpf

    for rho, delta in ((0.1, 1e-6), (0.5, 1e-6), (2.0, 1e-9)):
        epsilon = mpf(float(convert_to_epsilon(Decimal(repr(rho)), Decimal(repr(delta)))))
        shift = mp.sqrt(2 * mpf(rho))  # of a Gaussian with variance 1
        exact = mp.ncdf(shift / 2 - epsilon / shift) - mp.exp(epsilon) * mp.ncdf(-shift / 2 - epsilon / shift)
        assert delta / 50 < exact <= delta


def test_a_rho_with_the_wrong_sign_is_noticed(monkeypatch):
    """rho is shown as an epsilon that is too small: ln(1/delta) enters with the wrong sign."""
    spent = ZCDP(PureDP(1).to_zcdp().rho, "1e-7")
    assert find(spent=spent) == ""
    monkeypatch.setattr(losses, "_bound_epsilon", lambda rho, _: rho)
    assert "does not imply" in find(spent=spent)


def test_a_budget_that_allows_too_much_is_noticed():
    budget = sf.Budget(epsilon=1, delta="1e-6", accounting="zcdp")
    assert find(asked=replace(ASKED, budget=budget)) == ""

    class TooLarge:
        accounting, epsilon, delta = "zcdp", budget.epsilon, budget.delta
        loss = ZCDP(budget.loss.rho * 2)

    assert "The rho of the budget" in find(asked=replace(ASKED, budget=TooLarge()))
