"""Privacy losses: four kinds, their composition, group privacy, and conversions that only round up."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sfumato.errors import InvalidParameter, KernelFault, describe_kind
from sfumato.kernel.exact import enclose_exp_neg, enclose_log, round_up, sum_exactly, write_plain
from sfumato.kernel.gaussian_dp import bound_epsilon, bound_mu_squared
from sfumato.noise_guesses import guess_order
from sfumato.number_arguments import Number, read_nonnegative_decimal, read_whole_number

_BITS = 192
MOST_PEOPLE = 1 << 62


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP:
    """epsilon-differential privacy: no output is more than e^epsilon times likelier with one person than without."""

    epsilon: Decimal

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _read_amount(epsilon, "epsilon"))

    def __repr__(self) -> str:
        return f"PureDP(epsilon={write_plain(self.epsilon)})"

    def compose(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """The loss of both releases together; the second may be chosen after seeing the first. See `compose`."""
        return compose(self, other)

    def group(self, people: int) -> "PureDP":
        """The loss for a group of people at once.

        Claim: K-15. An epsilon-DP release is (t epsilon)-DP for groups of t.
        Requires: people >= 1 (checked here).
        Checked by: tests/kernel/test_losses.py::test_group_of_randomised_response_is_enumerated
        """
        people = _read_group_size(people)
        return PureDP(sum_exactly(people * Fraction(self.epsilon)))

    def to_approx(self, delta: Number = 0) -> "ApproxDP":
        """The same loss in (epsilon, delta) terms; any delta is allowed and none is needed.

        Claim: K-16. epsilon-DP is (epsilon, delta)-DP for every delta >= 0.
        Requires: 0 <= delta < 1 (checked in ApproxDP).
        Checked by: tests/kernel/test_losses.py::test_pure_to_approx
        """
        return ApproxDP(self.epsilon, delta)

    def to_zcdp(self) -> "ZCDP":
        """The same loss in zCDP terms: rho = epsilon * tanh(epsilon / 2), rounded up, never above epsilon**2 / 2.

        Claim: K-16. epsilon-DP implies rho-zCDP for this rho, and for no smaller one.
        Relies on: K-01 (enclosures).
        Checked by: tests/kernel/test_losses.py::test_pure_to_zcdp_is_the_least_rho
        """
        epsilon = Fraction(self.epsilon)
        low, _ = enclose_exp_neg(epsilon, _BITS)
        tanh = Fraction((1 << _BITS) - low, (1 << _BITS) + low)
        return ZCDP(min(round_up(epsilon * tanh), sum_exactly(epsilon**2 / 2)))

    def to_gdp(self) -> "GDP":
        """The same loss in Gaussian-DP terms: mu = 2 Phi^-1(e^epsilon/(1 + e^epsilon)), rounded up.

        Claim: K-72. epsilon-DP implies mu-GDP for this mu, and for no smaller one.
        Relies on: bound_mu_squared.
        Checked by: tests/kernel/test_gaussian_dp.py::test_pure_losses_become_the_least_mu
        """
        return GDP(round_up(bound_mu_squared(Fraction(self.epsilon)) if self.epsilon else Fraction(0)))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP:
    """(epsilon, delta)-differential privacy."""

    epsilon: Decimal
    delta: Decimal

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _read_amount(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _read_delta(delta))

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={write_plain(self.epsilon)}, delta={write_plain(self.delta)})"

    def compose(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """The loss of both releases together; the second may be chosen after seeing the first. See `compose`."""
        return compose(self, other)

    def group(self, people: int) -> "ApproxDP":
        """The loss for a group of people at once: (t epsilon, delta (e^(t epsilon) - 1)/(e^epsilon - 1)), rounded up.

        Claim: K-15. An (epsilon, delta)-DP release satisfies this for groups of t.
        Requires: people >= 1 (checked here); the group's delta stays below 1 (checked in ApproxDP).
        Relies on: K-01 (enclosures).
        Checked by: tests/kernel/test_losses.py::test_group_of_leaky_response_is_enumerated
        """
        people = _read_group_size(people)
        epsilon, delta = Fraction(self.epsilon), Fraction(self.delta)
        grown = _bound_grown_delta(epsilon, delta, people) if people > 1 and epsilon and delta else people * delta
        if grown >= 1:
            rule = f"must stay below 1 for a group of {people}, or nothing is promised"
            raise InvalidParameter("delta", rule, "a sum of 1 or more", "Ask about a smaller group.")
        return ApproxDP(sum_exactly(people * epsilon), round_up(grown))

    def to_approx(self, delta: Number | None = None) -> "ApproxDP":
        """The same loss at a delta that is at least as large.

        Claim: K-16. (epsilon, delta)-DP is (epsilon, delta')-DP for every delta' >= delta.
        Requires: delta' >= delta (checked here).
        Checked by: tests/kernel/test_losses.py::test_pure_to_approx
        """
        wanted = self.delta if delta is None else _read_delta(delta)
        if wanted < self.delta:
            raise InvalidParameter("delta", "must be at least the delta that was already spent", "a smaller one")
        return ApproxDP(self.epsilon, wanted)

    def to_zcdp(self) -> "ZCDP":
        """The same loss in zCDP terms: the pure part exchanged, delta carried along.

        Claim: K-16. (epsilon, delta)-DP implies delta-approximate rho-zCDP, with rho as for epsilon-DP.
        Relies on: PureDP.to_zcdp.
        Checked by: tests/kernel/test_losses.py::test_approx_to_zcdp_carries_delta
        """
        return ZCDP(PureDP(self.epsilon).to_zcdp().rho, self.delta)

    def to_gdp(self) -> "GDP":
        """The same loss in Gaussian-DP terms: the pure part exchanged, delta carried along.

        Claim: K-72. (epsilon, delta)-DP implies delta-approximate mu-GDP, with mu as for epsilon-DP.
        Relies on: PureDP.to_gdp.
        Checked by: tests/kernel/test_gaussian_dp.py::test_losses_are_exchanged_and_composed
        """
        return GDP(PureDP(self.epsilon).to_gdp().mu_squared, self.delta)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP:
    """delta-approximate rho-zero-concentrated differential privacy; with delta = 0, plain rho-zCDP."""

    rho: Decimal
    delta: Decimal

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "rho", _read_amount(rho, "rho"))
        object.__setattr__(self, "delta", _read_delta(delta))

    def __repr__(self) -> str:
        return f"ZCDP(rho={write_plain(self.rho)}, delta={write_plain(self.delta)})"

    def compose(self, other: "PrivacyLoss") -> "ZCDP":
        """The loss of both releases together; the second may be chosen after seeing the first. See `compose`."""
        return compose(self, other).to_zcdp()

    def group(self, people: int) -> "ZCDP":
        """The loss for a group of people at once.

        Claim: K-15. A rho-zCDP release is (t**2 rho)-zCDP for groups of t; one with delta > 0 is refused.
        Requires: people >= 1 (checked here); delta = 0, or a group of one (checked here).
        Checked by: tests/kernel/test_losses.py::test_group_of_gaussians_is_tight
        """
        people = _read_group_size(people, self.delta)
        return ZCDP(sum_exactly(people**2 * Fraction(self.rho)), self.delta)

    def to_approx(self, delta: Number) -> ApproxDP:
        """The (epsilon, delta) that this loss implies at a chosen total delta: the tight conversion, rounded up.

        Claim: K-16. rho-zCDP, with its own delta, implies (epsilon, delta)-DP for the epsilon returned.
        Requires: own delta < delta < 1 (checked here).
        Relies on: K-01 (enclosures); noise_guesses only chooses alpha.
        Checked by: tests/kernel/test_losses.py::test_zcdp_to_approx_against_the_oracle
        """
        total, spare = _read_spare_delta(delta, self.delta)
        return ApproxDP(round_up(_bound_epsilon(Fraction(self.rho), spare)), total)

    def to_zcdp(self) -> "ZCDP":
        """The loss itself: every kind of loss has this method.

        Claim: K-16. Identity.
        Checked by: tests/kernel/test_losses.py::test_approx_to_zcdp_carries_delta
        """
        return self


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP:
    """delta-approximate mu-Gaussian differential privacy, by the square of mu: squares add up when losses compose."""

    mu_squared: Decimal
    delta: Decimal

    def __init__(self, mu_squared: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "mu_squared", _read_amount(mu_squared, "mu_squared"))
        object.__setattr__(self, "delta", _read_delta(delta))

    def __repr__(self) -> str:
        return f"GDP(mu_squared={write_plain(self.mu_squared)}, delta={write_plain(self.delta)})"

    @property
    def mu(self) -> float:
        """mu itself, as a float, to be shown."""
        return math.sqrt(self.mu_squared)

    def compose(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """The loss of both releases together; the second may be chosen after seeing the first. See `compose`.

        Claim: K-73. Squares of mu add, also if each next mu is chosen after seeing the answers before.
        Relies on: K-71, K-72.
        Checked by: tests/kernel/test_gaussian_dp.py::test_a_filter_holds_for_parameters_chosen_after_answers
        """
        return compose(self, other)

    def group(self, people: int) -> "GDP":
        """The loss for a group of people at once.

        Claim: K-72. A mu-GDP release is (t mu)-GDP for groups of t; one with delta > 0 is refused.
        Requires: people >= 1 (checked here); delta = 0, or a group of one (checked here).
        Checked by: tests/kernel/test_gaussian_dp.py::test_groups_multiply_mu
        """
        people = _read_group_size(people, self.delta)
        return GDP(sum_exactly(people**2 * Fraction(self.mu_squared)), self.delta)

    def to_approx(self, delta: Number) -> ApproxDP:
        """The (epsilon, delta) that this loss implies at a chosen total delta, rounded up.

        Claim: K-72. mu-GDP, with its own delta, implies (epsilon, delta)-DP for the epsilon returned.
        Requires: own delta < delta < 1 (checked here).
        Relies on: bound_epsilon.
        Checked by: tests/kernel/test_gaussian_dp.py::test_epsilon_is_that_of_the_oracle
        """
        total, spare = _read_spare_delta(delta, self.delta)
        return ApproxDP(round_up(bound_epsilon(Fraction(self.mu_squared), spare)), total)

    def to_zcdp(self) -> ZCDP:
        """The same loss in zCDP terms: rho = mu**2 / 2.

        Claim: K-72. mu-GDP implies (mu**2 / 2)-zCDP; delta is carried along.
        Checked by: tests/kernel/test_gaussian_dp.py::test_losses_are_exchanged_and_composed
        """
        return ZCDP(sum_exactly(Fraction(self.mu_squared) / 2), self.delta)

    def to_gdp(self) -> "GDP":
        """The loss itself.

        Claim: K-72. Identity.
        Checked by: tests/kernel/test_gaussian_dp.py::test_losses_are_exchanged_and_composed
        """
        return self


PrivacyLoss = PureDP | ApproxDP | ZCDP | GDP


def compose(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    """The loss of two releases together: sums, in the weaker of the two currencies.

    Claim: K-17. Adaptive composition: epsilons, deltas, rhos and squares of mu add (K-73); beside a zCDP loss, others
        are exchanged first, and beside a Gaussian-DP loss, pure and approximate ones.
    Requires: the second release may depend on the first only through its output (curator).
    Relies on: K-16 and K-72 for mixed currencies.
    Checked by: tests/kernel/test_losses.py::test_adaptive_composition_is_enumerated
    """
    if not isinstance(second, PrivacyLoss):
        raise InvalidParameter("other", "must be a privacy loss: PureDP, ApproxDP, ZCDP or GDP", describe_kind(second))
    match first, second:
        case PureDP(one), PureDP(two):
            return PureDP(sum_exactly(one, two))
        case PureDP() | ApproxDP(), PureDP() | ApproxDP():
            spent, more = first.to_approx(), second.to_approx()
            return ApproxDP(sum_exactly(spent.epsilon, more.epsilon), sum_exactly(spent.delta, more.delta))
        case PureDP() | ApproxDP() | GDP(), PureDP() | ApproxDP() | GDP():
            one_of, other = first.to_gdp(), second.to_gdp()
            squares = sum_exactly(one_of.mu_squared, other.mu_squared)
            return GDP(squares, sum_exactly(one_of.delta, other.delta))
        case _:
            before, after = first.to_zcdp(), second.to_zcdp()
            return ZCDP(sum_exactly(before.rho, after.rho), sum_exactly(before.delta, after.delta))


def _read_amount(value: object, name: str) -> Decimal:
    """Whatever was read, it is a finite Decimal from zero on: noise and charge are computed from it."""
    amount = read_nonnegative_decimal(value, name)
    if not isinstance(amount, Decimal) or not amount.is_finite() or amount < 0:
        raise KernelFault("An amount of loss is a finite Decimal, zero or above.")
    return amount


def _read_delta(value: object) -> Decimal:
    delta = _read_amount(value, "delta")
    if delta >= 1:
        hint = "With a delta of 1, nothing is promised. Spend less delta."
        raise InvalidParameter("delta", "must lie in [0, 1)", "a number of 1 or more", hint)
    return delta


def _read_spare_delta(total: object, spent: Decimal) -> tuple[Decimal, Fraction]:
    """A chosen total delta, and what a conversion may take of it: a delta that was spent stays spent."""
    chosen = _read_delta(total)
    if chosen <= spent:
        raise InvalidParameter("delta", "must exceed the delta that was already spent", "no more than that")
    return chosen, Fraction(chosen) - Fraction(spent)


def _read_group_size(people: int, delta: Decimal = Decimal(0)) -> int:
    """`delta`: that of a loss for which groups of several have a rule only without one."""
    size = read_whole_number(people, "people", 1)
    if not 1 <= size <= MOST_PEOPLE:
        raise InvalidParameter("people", f"must be a whole number from 1 to {MOST_PEOPLE}", "something else")
    if size > 1 and delta:
        hint = "Convert first: loss.to_approx(delta).group(people)."
        raise InvalidParameter("people", "must be 1 for a zCDP or Gaussian-DP loss with a delta", "a group", hint)
    return size


def _bound_grown_delta(epsilon: Fraction, delta: Fraction, people: int) -> Fraction:
    """An upper bound of delta (e^(t epsilon) - 1)/(e^epsilon - 1), by enclosures of e^-x alone."""
    rise = (people - 1) * epsilon
    if rise > 3000:
        return Fraction(1)  # e^3000 exceeds 1/delta for every delta that can be written here
    smallness = max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length() + 1)
    bits = _BITS + 2 * math.ceil(rise) + 2 * smallness
    one = 1 << bits
    growth = Fraction(one, enclose_exp_neg(rise, bits)[0])
    share = Fraction(one - enclose_exp_neg(people * epsilon, bits)[0], one - enclose_exp_neg(epsilon, bits)[1])
    return delta * growth * share


def _bound_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """An upper bound of inf over alpha > 1 of alpha rho + (ln(1/delta) - ln alpha)/(alpha - 1) + ln(1 - 1/alpha)."""
    if rho == 0:
        return Fraction(0)
    beyond = guess_order(rho, delta)  # alpha - 1; every one above zero gives a bound, and enclose_log refuses others
    alpha = 1 + beyond
    one = 1 << _BITS
    log_inverse = Fraction(enclose_log(1 / delta, _BITS)[1], one)
    log_alpha = Fraction(enclose_log(alpha, _BITS)[0], one)
    log_share = Fraction(enclose_log(beyond / alpha, _BITS)[1], one)
    return max(Fraction(0), alpha * rho + (log_inverse - log_alpha) / beyond + log_share)
