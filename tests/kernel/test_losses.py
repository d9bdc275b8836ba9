import math
import random
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, KernelFault

decimals = st.decimals("0", "20", places=6)
deltas = st.decimals("0", "0.01", places=9)
pure = st.builds(sf.PureDP, decimals)
approx = st.builds(sf.ApproxDP, decimals, deltas)
zcdp = st.builds(sf.ZCDP, decimals, deltas)


def mpf(number):
    fraction = Fraction(number)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@given(st.one_of(*(st.tuples(kind, kind, kind) for kind in (pure, approx, zcdp, st.one_of(pure, approx)))))
def test_composition_is_associative_and_commutative(losses):
    one, two, three = losses
    assert one.compose(two).compose(three) == one.compose(two.compose(three))
    assert one.compose(two) == two.compose(one)


def test_money_facts():
    total = sf.PureDP(0)
    for _ in range(10):
        total = total.compose(sf.PureDP(0.1))
    assert total == sf.PureDP(1)
    assert total.epsilon == 1
    assert sf.PureDP(0.1).compose(sf.PureDP(0.1)).compose(sf.PureDP(0.1)).epsilon == Decimal("0.3")
    assert sf.PureDP(1).compose(sf.PureDP(1e-17)).epsilon > 1
    assert sf.PureDP("1e200").compose(sf.PureDP("1e-200")).epsilon > Decimal("1e200")
    assert float(sf.PureDP(0.5).epsilon) == 0.5


@given(pure, approx, zcdp)
def test_mixed_currencies_compose_soundly(one, two, three):
    assert one.compose(two) == sf.ApproxDP(Fraction(one.epsilon) + Fraction(two.epsilon), two.delta)
    mixed = one.compose(three)
    assert mixed.rho == sf.ZCDP(one.to_zcdp().rho).compose(sf.ZCDP(three.rho)).rho
    assert two.compose(three).delta == sf.ApproxDP(0, two.delta).compose(sf.ApproxDP(0, three.delta)).delta


@given(st.one_of(pure, approx, zcdp))
def test_group_of_one_is_identity(loss):
    assert loss.group(1) == loss


@given(decimals.filter(bool), st.decimals("1e-12", "1e-9", places=14).filter(bool), st.integers(2, 6))
def test_group_delta_is_rounded_up_and_close(epsilon, delta, people):
    try:
        found = sf.ApproxDP(epsilon, delta).group(people)
    except InvalidParameter as refused:
        assert "group" in refused.message
        with mpmath.workprec(300):
            assert mpf(delta) * mpmath.expm1(people * mpf(epsilon)) / mpmath.expm1(mpf(epsilon)) > mpmath.mpf("0.999")
        return
    with mpmath.workprec(500):
        exact = mpf(delta) * mpmath.expm1(people * mpf(epsilon)) / mpmath.expm1(mpf(epsilon))
        assert mpf(found.delta) >= exact
        assert mpf(found.delta) <= exact * (1 + mpmath.mpf(10) ** -25)
    assert found.epsilon == people * Fraction(epsilon)


def test_group_limits():
    assert sf.ApproxDP(0, 1e-6).group(5) == sf.ApproxDP(0, 5e-6)
    assert sf.ApproxDP(2, 0).group(5) == sf.ApproxDP(10, 0)
    assert sf.ApproxDP("1e-300", 1e-6).group(2).delta >= Decimal("2e-6")
    assert sf.ZCDP(0.1).group(3) == sf.ZCDP(0.9)
    with pytest.raises(InvalidParameter, match="group of 40"):
        sf.ApproxDP(1, 1e-6).group(40)
    with pytest.raises(InvalidParameter, match="group of 100000"):
        sf.ApproxDP(300, 1e-300).group(100000)
    with pytest.raises(InvalidParameter, match="to_approx"):
        sf.ZCDP(0.1, 1e-6).group(2)
    for people in (0, -1, 1.5, None, 10**30):
        with pytest.raises(InvalidParameter, match="people"):
            sf.PureDP(1).group(people)


def response_law(bits, stay):
    """Randomised response of each bit: a joint law over reports."""
    return {
        reports: math.prod(stay if report == bit else 1 - stay for report, bit in zip(reports, bits, strict=True))
        for reports in product((0, 1), repeat=len(bits))
    }


def test_group_of_randomised_response_is_enumerated():
    """t people answer with truth 3/4 (epsilon = ln 3): the worst ratio for the group is 3**t exactly."""
    for people in (1, 2, 3, 5):
        one, two = response_law([0] * people, Fraction(3, 4)), response_law([1] * people, Fraction(3, 4))
        worst = max(one[report] / two[report] for report in one)
        assert worst == 3**people
        promised = sf.RandomizedResponse(truth=Fraction(3, 4)).loss.group(people).epsilon
        with mpmath.workprec(200):
            assert people * mpmath.log(3) <= mpf(promised) <= people * mpmath.log(3) * (1 + mpmath.mpf(10) ** -28)


def test_group_of_leaky_response_is_enumerated():
    """A chain of (epsilon, delta) mechanisms that meets the group bound with equality: no smaller delta is true."""
    ratio, delta, people = Fraction(3), Fraction(1, 1000), 4  # e^epsilon = 3
    # P_0 .. P_4 on one event: P_{i+1} = 3 P_i + delta, from P_0 = 0: neighbours are (ln 3, delta)-close there
    mass = Fraction(0)
    for _ in range(people):
        mass = ratio * mass + delta
    bound = sf.ApproxDP(sf.RandomizedResponse(truth=Fraction(3, 4)).loss.epsilon, "0.001").group(people)
    assert mass == delta * (ratio**people - 1) / (ratio - 1)
    assert mass <= Fraction(bound.delta) <= mass * (1 + Fraction(1, 10**25))


def test_group_of_gaussians_is_tight():
    """Shifting a Gaussian t times as far multiplies its divergence by t squared: rho = shift^2 / (2 variance)."""
    for people in (1, 2, 7):
        assert Fraction(sf.ZCDP("0.02").group(people).rho) == Fraction(people**2, 2 * 25)


def test_adaptive_composition_is_enumerated():
    """Query 2 is chosen after answer 1: the worst ratio over all transcripts is the product, 3 * 9."""
    first, smokers, young = Fraction(3, 4), Fraction(9, 10), Fraction(1, 2)
    transcripts = {}
    for answer, reply in product((0, 1), repeat=2):
        stay = smokers if answer else young  # only after a "yes" is the sharper question asked
        transcripts[answer, reply] = [
            (first if answer == bit else 1 - first) * (stay if reply == bit else 1 - stay) for bit in (0, 1)
        ]
    worst = max(max(p / q, q / p) for p, q in transcripts.values())
    assert worst == 27
    spent = sf.RandomizedResponse(truth=first).loss.compose(sf.RandomizedResponse(truth=smokers).loss)
    with mpmath.workprec(200):
        assert mpmath.log(27) <= mpf(spent.epsilon) <= mpmath.log(27) * (1 + mpmath.mpf(10) ** -28)


@given(st.decimals("0.000001", "50", places=6))
def test_pure_to_zcdp_is_the_least_rho(epsilon):
    rho = sf.PureDP(epsilon).to_zcdp().rho
    with mpmath.workprec(300):
        exact = mpf(epsilon) * mpmath.tanh(mpf(epsilon) / 2)
        assert exact <= mpf(rho) <= exact * (1 + mpmath.mpf(10) ** -28)
    assert Fraction(rho) <= Fraction(epsilon) ** 2 / 2


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-40", "1e-20", "1e300"])
def test_pure_to_zcdp_at_the_ends(epsilon):
    assert sf.PureDP(epsilon).to_zcdp().rho > 0
    assert Fraction(sf.PureDP(epsilon).to_zcdp().rho) <= min(Fraction(epsilon) ** 2 / 2, Fraction(epsilon))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3, 10])
def test_pure_to_zcdp_covers_the_worst_mechanism(epsilon):
    """Randomised response has the largest divergences of all epsilon-DP mechanisms: D_alpha <= alpha * rho."""
    rho = float(sf.PureDP(epsilon).to_zcdp().rho)
    stay = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    orders = [1.0001, 1.5, 2, 3, 10, 100]
    for alpha in orders:
        moment = stay**alpha * (1 - stay) ** (1 - alpha) + (1 - stay) ** alpha * stay ** (1 - alpha)
        assert mpmath.log(moment) / (alpha - 1) <= alpha * rho * (1 + 1e-9)
    event = dp_accounting.RandomizedResponseDpEvent(2 * (1 - float(stay)), 2)
    accountant = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE).compose(event)
    assert (np.asarray(accountant._rdp) <= np.array(orders) * rho * (1 + 1e-6)).all()  # the oracle's floats


ORDERS = 1 + np.exp(np.linspace(-6, 12, 20_000))


@pytest.mark.parametrize("rho", ["0.0001", "0.01", "0.1", "1", "5", "40"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "1e-3", "0.1"])
def test_zcdp_to_approx_against_the_oracle(rho, delta):
    found = sf.ZCDP(rho).to_approx(delta)
    epsilon = float(found.epsilon)
    assert found.delta == Decimal(delta)
    exact_for_gaussians = dp_accounting.get_epsilon_gaussian(1 / math.sqrt(2 * float(rho)), float(delta))
    assert epsilon >= exact_for_gaussians * (1 - 1e-9)
    oracle, _ = rdp.compute_epsilon(ORDERS, ORDERS * float(rho), float(delta))
    assert oracle * 0.9999 <= epsilon <= oracle * 1.01 + 1e-12


def test_an_untight_conversion_would_be_seen():
    """Negative control: the older conversion rho + 2 sqrt(rho ln(1/delta)) is more than 1 % above."""
    older = 0.1 + 2 * math.sqrt(0.1 * math.log(1e6))
    assert older > float(sf.ZCDP("0.1").to_approx("1e-6").epsilon) * 1.01


def test_zcdp_to_approx_at_the_ends():
    assert sf.ZCDP(0).to_approx(1e-6) == sf.ApproxDP(0, 1e-6)
    assert sf.ZCDP("1e-300").to_approx(1e-6).epsilon < Decimal("1e-6")
    assert sf.ZCDP("1e300").to_approx(1e-6).epsilon > Decimal("1e300")
    assert sf.ZCDP("0.1", 1e-6).to_approx(2e-6).epsilon == sf.ZCDP("0.1").to_approx(1e-6).epsilon
    for delta in (0, 1, -1, "x", float("nan"), 1e-7):
        with pytest.raises(InvalidParameter, match="delta"):
            sf.ZCDP("0.1", 1e-6).to_approx(delta)


@given(zcdp.filter(lambda loss: loss.rho), st.decimals("0.011", "0.5", places=6), st.decimals("0.011", "0.5", places=6))
def test_conversion_is_monotone(loss, one, two):
    small, large = sorted((one, two))
    slack = Decimal("1.00000001")  # the order alpha is found by floats
    assert loss.to_approx(large).epsilon <= loss.to_approx(small).epsilon * slack
    assert loss.compose(sf.ZCDP("0.1")).to_approx(large).epsilon * slack >= loss.to_approx(large).epsilon


def test_basic_composition_is_never_below_the_oracle():
    """dp-accounting's privacy-loss distributions give the least epsilon of composed Laplaces: ours is at least that."""
    from dp_accounting import pld

    epsilons = [0.1, 0.5, 1.0]
    total = sf.PureDP(0)
    accountant = pld.PLDAccountant()
    for epsilon in epsilons:
        total = total.compose(sf.Laplace(1, epsilon).loss)
        accountant.compose(dp_accounting.LaplaceDpEvent(1 / epsilon))
    assert accountant.get_epsilon(1e-9) <= float(total.epsilon) * (1 + 1e-3)
    assert float(total.to_zcdp().to_approx(1e-9).epsilon) >= accountant.get_epsilon(1e-9)


def test_pure_to_approx():
    assert sf.PureDP(1).to_approx() == sf.ApproxDP(1, 0)
    assert sf.PureDP(1).to_approx(1e-6) == sf.ApproxDP(1, 1e-6)
    assert sf.ApproxDP(1, 1e-6).to_approx() == sf.ApproxDP(1, 1e-6)
    assert sf.ApproxDP(1, 1e-6).to_approx(1e-5) == sf.ApproxDP(1, 1e-5)
    with pytest.raises(InvalidParameter, match="already spent"):
        sf.ApproxDP(1, 1e-6).to_approx(1e-7)


def test_approx_to_zcdp_carries_delta():
    assert sf.ApproxDP(1, 1e-6).to_zcdp() == sf.ZCDP(sf.PureDP(1).to_zcdp().rho, 1e-6)
    assert sf.ZCDP(1).to_zcdp() == sf.ZCDP(1)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "x", None, True, [1]], ids=str)
def test_bad_losses(bad):
    for make in (
        lambda: sf.PureDP(bad),
        lambda: sf.ApproxDP(bad, 0),
        lambda: sf.ApproxDP(1, bad),
        lambda: sf.ZCDP(bad),
        lambda: sf.ZCDP(1, bad),
    ):
        with pytest.raises(InvalidParameter):
            make()


def test_delta_must_promise_something():
    for make in (
        lambda: sf.ApproxDP(1, 1),
        lambda: sf.ZCDP(1, "1.5"),
        lambda: sf.ApproxDP(1, "0.6").compose(sf.ApproxDP(1, "0.4")),
    ):
        with pytest.raises(InvalidParameter, match="delta"):
            make()


def test_losses_read_well():
    assert repr(sf.PureDP(0.5)) == "PureDP(epsilon=0.5)"
    assert repr(sf.ApproxDP(1, 1e-9)) == "ApproxDP(epsilon=1, delta=1e-9)"
    assert repr(sf.ZCDP(0.1)) == "ZCDP(rho=0.1, delta=0)"


def test_only_losses_compose():
    for loss in (sf.PureDP(1), sf.ApproxDP(1, 0), sf.ZCDP(1)):
        for other in (5, None, "PureDP(1)", Decimal(1)):
            with pytest.raises(InvalidParameter, match="privacy loss"):
                loss.compose(other)


BASE, LEAK = Fraction(1, 2), Fraction(1, 20)  # one unit of epsilon is ln 2, one of delta a chance of 1/20


@cache
def step_law(costs, side):
    """Randomised response with these units of epsilon; with a probability of the delta units, it releases the data."""
    epsilon, delta = costs
    true = 1 / (1 + BASE**epsilon)
    sane = 1 - delta * LEAK
    return {side: sane * true, 1 - side: sane * (1 - true), f"leak {side}": delta * LEAK}


def random_filter(limits, steps, seed, *, on_every_history=True):
    """An analyst who chooses what each question costs after all earlier answers, and two laws of the transcript."""
    chance = random.Random(seed)
    laws = [{(): (Fraction(1), Fraction(1), (0, 0))}]
    for _ in range(steps):
        after = {}
        for history, (p, q, spent) in laws[-1].items():
            left = [limit - used for limit, used in zip(limits, spent, strict=True)]
            costs = tuple(chance.randint(0, max(most, 0)) for most in left)
            if not on_every_history and history[-1:] == (1,):
                costs = (costs[0] + 2, costs[1])  # dear where it seldom comes to that, so cheap on average
            one, two = step_law(costs, 0), step_law(costs, 1)
            for answer in one.keys() | two.keys():
                paid = tuple(used + cost for used, cost in zip(spent, costs, strict=True))
                after[*history, answer] = (p * one.get(answer, 0), q * two.get(answer, 0), paid)
        laws.append(after)
    return [(p, q) for p, q, _ in laws[-1].values()]


def hockey_stick(laws, epsilon):
    growth = BASE**-epsilon
    return max(sum(max(a - growth * b, 0) for a, b in way) for way in (laws, [pair[::-1] for pair in laws]))


def test_a_filter_holds_for_parameters_chosen_after_answers():
    """However an analyst chooses costs after answers: if each history is within the limits, the composition is too."""
    tight = Fraction(0)
    for seed in range(150):
        limits = (3, 2)
        laws = random_filter(limits, 3, seed)
        assert sum(p for p, _ in laws) == sum(q for _, q in laws) == 1
        excess = hockey_stick(laws, limits[0])
        assert excess <= limits[1] * LEAK
        tight = max(tight, excess)
    assert tight > limits[1] * LEAK * Fraction(9, 10)


@cache
def rho_of(units):
    return float(sf.PureDP(Decimal(str(units * math.log(2)))).to_zcdp().rho)


@pytest.mark.parametrize(("limit", "holds"), [(3.0, True), (2.0, False)])
def test_a_filter_of_rho_holds_for_parameters_chosen_after_answers(limit, holds):
    """The analyst stays within rho = 3 rho(1) on every history. Negative control: the whole is not within 2 rho(1)."""
    worst = 0.0
    for seed in range(200):
        chance = random.Random(seed)
        laws = {(): (1.0, 1.0, 3 * rho_of(1) + 1e-12)}
        for _ in range(4):
            after = {}
            for history, (p, q, left) in laws.items():
                units = chance.choice([units for units in range(4) if rho_of(units) <= left])
                for answer, (mine, yours) in {
                    side: (float(step_law((units, 0), 0)[side]), float(step_law((units, 0), 1)[side]))
                    for side in (0, 1)
                }.items():
                    after[*history, answer] = (p * mine, q * yours, left - rho_of(units))
            laws = after
        for alpha in (1.05, 1.25, 2, 6, 30):
            moment = math.fsum(p**alpha * q ** (1 - alpha) for p, q, _ in laws.values())
            worst = max(worst, math.log(moment) / (alpha - 1) / (alpha * rho_of(1)))
    assert (worst <= limit * (1 + 1e-9)) is holds


def test_limits_on_average_would_not_do():
    """Negative control: an analyst who exceeds the limit only after a rare answer is noticed."""
    over = [hockey_stick(random_filter((1, 0), 3, seed, on_every_history=False), 1) for seed in range(20)]
    assert max(over) > 0


@pytest.mark.parametrize("misread", [Decimal(-1), Decimal("nan"), Decimal("inf"), 0.5, None], ids=str)
def test_the_kernel_does_not_trust_what_was_read(misread, monkeypatch):
    monkeypatch.setattr("sfumato.kernel.losses.read_nonnegative_decimal", lambda value, name: misread)
    for make in (lambda: sf.PureDP(1), lambda: sf.ApproxDP(1, 0), lambda: sf.ZCDP(1)):
        with pytest.raises(KernelFault, match="finite Decimal"):
            make()
