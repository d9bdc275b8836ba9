"""Gaussian DP: conversions against an oracle, and a filter that is enumerated."""

import math
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import dp_accounting
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import sum_exactly
from sfumato.kernel.gaussian_dp import bound_delta, bound_epsilon, bound_mu_squared, bound_root

NORMAL = NormalDist()
mus = st.fractions(Fraction(1, 100), 10, max_denominator=10**4).filter(bool)
epsilons = st.fractions(0, 20, max_denominator=10**4)


def exact_delta(mu, epsilon):
    return (
        math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
        - math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    ) / 2


@given(st.fractions(0, 10**6))
def test_roots_are_rounded_up(square):
    assert square <= bound_root(square) ** 2 <= square + Fraction(1, 10**40)


@given(mus, epsilons)
def test_delta_is_that_of_the_oracle(mu, epsilon):
    found, wanted = bound_delta(mu, epsilon), exact_delta(float(mu), float(epsilon))
    assert float(found) >= wanted - 1e-13
    assert float(found) <= wanted + 1e-13 or float(mu) / 2 - float(epsilon / mu) > 7.9


@pytest.mark.parametrize("sigma", ["0.3", "1", "1.54386", "20", "500"])
@pytest.mark.parametrize("delta", ["0.1", "1e-6", "1e-12"])
def test_epsilon_is_that_of_the_oracle(sigma, delta):
    mu_squared = 1 / Fraction(sigma) ** 2
    found = bound_epsilon(mu_squared, Fraction(delta))
    assert bound_delta(bound_root(mu_squared), found) <= Fraction(delta)
    wanted = dp_accounting.get_epsilon_gaussian(float(sigma), float(delta), tol=1e-13)
    assert float(found) == pytest.approx(wanted, rel=1e-9, abs=1e-10)
    assert found == 0 or bound_delta(bound_root(mu_squared), found * Fraction(999_999, 10**6)) > Fraction(delta)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "0.5", "1", "4", "15"])
def test_pure_losses_become_the_least_mu(epsilon):
    """The trade-off of randomised response lies above that of the Gaussian everywhere, and touches it."""
    mu_squared = bound_mu_squared(Fraction(epsilon))
    mu, size = math.sqrt(mu_squared), float(epsilon)
    meet = 1 / (1 + math.exp(size))
    for level in np.concatenate((np.linspace(0, 1, 201)[1:-1], meet * np.logspace(-12, 0, 60))):
        pure = max(0.0, 1 - math.exp(size) * level, math.exp(-size) * (1 - level))
        assert pure >= NORMAL.cdf(-NORMAL.inv_cdf(level) - mu) - 1e-12
    touched = math.erfc(mu / 2 / math.sqrt(2)) / 2
    assert touched == pytest.approx(meet, rel=1e-9)
    assert touched <= meet * (1 + 1e-12)


def test_large_epsilons_are_bounded():
    assert bound_mu_squared(Fraction(401)) == 3_208
    assert bound_mu_squared(Fraction(399)) < 3_208


def test_losses_are_exchanged_and_composed():
    one, two = sf.GDP("0.1"), sf.GDP("0.2", "1e-9")
    assert one.compose(two) == sf.GDP("0.3", "1e-9")
    assert (
        sf.PureDP(1).compose(one)
        == one.compose(sf.PureDP(1))
        == sf.GDP(sum_exactly(sf.PureDP(1).to_gdp().mu_squared, Decimal("0.1")))
    )
    assert sf.ApproxDP(1, "1e-6").to_gdp() == sf.GDP(sf.PureDP(1).to_gdp().mu_squared, "1e-6")
    assert one.compose(sf.ZCDP("0.1")) == sf.ZCDP("0.15")
    assert two.to_zcdp() == sf.ZCDP("0.1", "1e-9")
    assert one.to_gdp() is one
    assert sf.PureDP(0).to_gdp() == sf.GDP(0)
    assert repr(two) == "GDP(mu_squared=0.2, delta=1e-9)"
    assert two.to_approx("1e-6") == sf.ApproxDP(
        sf.GDP("0.2").to_approx(Decimal("1e-6") - Decimal("1e-9")).epsilon, "1e-6"
    )
    with pytest.raises(InvalidParameter):
        two.to_approx("1e-9")


def test_groups_multiply_mu():
    assert sf.GDP("0.01").group(3) == sf.GDP("0.09")
    assert sf.GDP("0.01", "1e-9").group(1) == sf.GDP("0.01", "1e-9")
    with pytest.raises(InvalidParameter, match="people"):
        sf.GDP("0.01", "1e-9").group(2)


STEPS = 8  # of one person, in units of the noise's grid: rounding hides little


def masses(mu_squared, centre):
    """Of a count with rounded Gaussian noise that is mu-GDP, where one person moves it by STEPS."""
    deviation = STEPS / math.sqrt(mu_squared)
    reach = math.ceil(9 * deviation) + STEPS
    ends = [NORMAL.cdf((at - 0.5 - centre) / deviation) for at in range(-reach, reach + 2)]
    return np.diff(np.array(ends))


def adaptive_delta(limit, epsilon, then, otherwise):
    """Spend 0.4 of the limit; then `then` of it where the first answer was likelier here, else `otherwise`."""
    first = 0.4 * limit
    pairs = {share: (masses(share * limit, 0), masses(share * limit, STEPS)) for share in (then, otherwise)}
    total = 0.0
    for p, q in zip(masses(first, 0), masses(first, STEPS), strict=True):
        here, there = pairs[then if p > q else otherwise]
        total += np.maximum(p * here - math.exp(epsilon) * q * there, 0).sum()
    return total


@pytest.mark.parametrize("mu_squared", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_a_filter_holds_for_parameters_chosen_after_answers(mu_squared, epsilon):
    """Rounded Gaussian counts, enumerated, are within the delta of mu-GDP, whatever is spent after the first answer.

    A filter that holds on average only, and lets the analyst spend more where it helps, is not.
    """
    allowed = float(bound_delta(bound_root(Fraction(mu_squared)), Fraction(epsilon)))
    for then, otherwise in ((0.6, 0.6), (0.6, 0.1), (0.1, 0.6), (0.3, 0.6)):
        assert adaptive_delta(mu_squared, epsilon, then, otherwise) <= allowed + 1e-12
    if epsilon >= 1:
        assert adaptive_delta(mu_squared, epsilon, 1.1, 0.1) > allowed
