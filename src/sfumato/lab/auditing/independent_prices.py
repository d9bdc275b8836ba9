"""Prices and thresholds of a certificate, computed again without the kernel's own functions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist
from typing import assert_never

from sfumato.catalog.budget import Budget
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.lab.auditing.noise_sizes import compute_upper_tail

_DIGITS = 60
_SEARCH = Fraction(1, 10**9)  # relative: far above the error of the order that floats find
CHECKED_DELTA = Decimal("1e-6")
_ROUNDING = Fraction(1, 10**40)  # relative: far above the error of 60 digits
_CONVERTED = Fraction(1, 10**25)  # relative: the ledger rounds a converted amount up, to 30 digits
_SHARES = 64  # of a person's keys that nobody else holds
_MOST_HELD = 4_096
_FLOATS = 1e-9  # relative: far above the error of a float's inverse of the normal distribution


@dataclass(frozen=True, slots=True)
class AskedPrice:
    """What a question was allowed to cost, and the contribution bound that its threshold depends on."""

    loss: PureDP | ZCDP
    delta: Decimal
    max_groups_per_unit: int
    budget: Budget | None = None


def check_prices(certificate: Certificate, asked: AskedPrice, spent: PrivacyLoss) -> Iterator[str]:
    """The certificate costs at most what was asked, the ledger charged at least its parts, thresholds keep delta."""
    if not _fits(certificate.loss, asked):
        yield "The certified loss is above the price that was asked."
    if not covers(spent, certificate):
        yield "The ledger charged less than the losses of the measurements."
    yield from _check_conversions(spent, asked.budget)
    for measured in certificate.measurements:
        if measured.threshold is None:
            continue
        loss, noise = measured.loss, measured.noise
        allowed = Fraction(loss.delta) / asked.max_groups_per_unit if isinstance(loss, ApproxDP) else Fraction(0)
        chance = Fraction(1)
        if isinstance(noise, LaplaceNoise):
            chance = Fraction(compute_upper_tail(noise.scale, measured.threshold - 1))
        elif measured.key_rounds is not None:
            chance = allowed * _compute_rounds_share(measured, measured.key_rounds)
        elif isinstance(noise, GaussianNoise):  # a person who alone holds some of their keys
            chance = allowed * _compute_weighted_share(measured, noise, asked.max_groups_per_unit)
        if chance > allowed * (1 + _ROUNDING):
            yield f"{measured.name}: a key of one person passes its threshold with a probability above its delta."


def _compute_weighted_share(measured: Certified, noise: GaussianNoise, groups: int) -> Fraction:
    """How much of delta keys by weight take (docs/claims/K-74.md), by floats.

    Somebody who holds t keys, each of the weight 1/sqrt(t), shows one of them that nobody else holds with probability
    at most t P(weight + noise >= threshold). If a share f of the keys is of this kind, the others are a Gaussian
    release that moves by sqrt(moved - f). Delta must pay for the worst f.
    """
    loss, threshold, deviation = measured.loss, measured.threshold or 0, math.sqrt(noise.variance)
    if not isinstance(loss, ApproxDP) or not loss.delta:
        return Fraction(2)
    lonely = max(
        held * math.erfc((threshold - 0.5 - math.isqrt(2**32 // held)) / deviation / math.sqrt(2)) / 2
        for held in range(1, min(groups, _MOST_HELD) + 1)
    )
    moved = float(measured.sensitivity.l2_squared) / 2**32
    worst = max(
        share / _SHARES * lonely
        + compute_gaussian_delta(
            math.sqrt(moved - share / _SHARES) * 2**16 / deviation, float(loss.epsilon) - 2 * lonely
        )
        for share in range(_SHARES + (moved > 1))
    )
    return Fraction(max(worst, lonely) / float(loss.delta))


def _compute_rounds_share(measured: Certified, rule: KeyRounds) -> Fraction:
    """How much of delta keys in two rounds take (docs/claims/K-87.md), by floats.

    A key that one person alone holds is found early if weight + Z1 reaches the first threshold, and late if
    2 (whole + Z2) + weight + Z1 reaches the second. All other keys are two Gaussian releases, one after the other.
    """
    loss, whole = measured.loss, 2**16
    if not isinstance(loss, ApproxDP) or not loss.delta:
        return Fraction(2)
    first, second = (float(noise.variance) for noise in rule.rounds)
    early, late = rule.early_threshold - 0.5, (measured.threshold or 0) - 1.5 - 2 * whole
    lonely = sum(
        max(
            held * math.erfc((threshold - math.isqrt(2**32 // held)) / math.sqrt(2 * variance)) / 2
            for held in range(1, min(rule.max_groups_per_unit, _MOST_HELD) + 1)
        )
        for threshold, variance in ((early, first), (late, 4 * second + first))
    )
    moved = float(measured.sensitivity.l2_squared) * (1 / first + 1 / second)
    delta = lonely + compute_gaussian_delta(math.sqrt(moved), float(loss.epsilon) - 2 * lonely)
    return Fraction(delta / float(loss.delta) * (1 - _FLOATS))


def convert_to_rho(epsilon: Decimal) -> Fraction:
    """The least rho that epsilon implies: epsilon tanh(epsilon / 2), with 50 correct digits."""
    with localcontext() as context:
        context.prec = _DIGITS
        shrunk = (-epsilon).exp()
        return Fraction(epsilon * (1 - shrunk) / (1 + shrunk))


def convert_to_epsilon(rho: Decimal, delta: Decimal) -> Fraction:
    """The least epsilon that rho-zCDP is known to imply at a delta above 0.

    Canonne, Kamath and Steinke (2020): for every order a > 1, epsilon = a rho + (ln(1/delta) + (a - 1) ln(1 - 1/a) -
    ln a) / (a - 1). Floats look for the best order; the result is that of a valid order, with 50 correct digits.
    """

    def estimate(exponent: float) -> float:
        beyond = math.exp(exponent)  # the order is 1 + beyond
        shrunk = beyond * math.log(beyond / (1 + beyond)) - math.log1p(beyond)
        return (1 + beyond) * float(rho) + (shrunk - float(delta.ln())) / beyond

    low, high = -20.0, 40.0
    for _ in range(200):  # the search of a minimum by thirds
        third = (high - low) / 3
        low, high = (low, high - third) if estimate(low + third) < estimate(high - third) else (low + third, high)
    with localcontext() as context:
        context.prec = _DIGITS
        order = 1 + Decimal((low + high) / 2).exp()
        shrunk = (order - 1) * ((order - 1) / order).ln() - order.ln()
        return max(Fraction(order * rho + (shrunk - delta.ln()) / (order - 1)), Fraction(0))


def _check_conversions(spent: PrivacyLoss, budget: Budget | None) -> Iterator[str]:
    """The rho of a budget keeps its epsilon and delta, and a spent rho is shown as an epsilon that it implies."""
    if isinstance(spent, ZCDP) and spent.rho:
        least = convert_to_epsilon(spent.rho, CHECKED_DELTA)
        if Fraction(ZCDP(spent.rho).to_approx(CHECKED_DELTA).epsilon) < least * (1 - _SEARCH):
            yield "A rho is converted to an epsilon that it does not imply."
    if isinstance(spent, GDP) and spent.mu_squared:
        implied = GDP(spent.mu_squared).to_approx(CHECKED_DELTA).epsilon
        if compute_gaussian_delta(spent.mu, float(implied)) > float(CHECKED_DELTA) * (1 + _FLOATS):
            yield "A mu is converted to an epsilon that it does not imply."
    if budget is not None and isinstance(budget.loss, GDP) and budget.epsilon is not None:
        mu = budget.loss.mu
        if compute_gaussian_delta(mu, float(budget.epsilon)) > float(budget.delta) * (1 + _FLOATS):
            yield "The mu of the budget allows more than its epsilon and delta."
    if budget is not None and budget.accounting == "zcdp" and budget.epsilon is not None:
        limit = budget.loss.to_zcdp()
        if convert_to_epsilon(limit.rho, budget.delta - limit.delta) > Fraction(budget.epsilon) * (1 + _SEARCH):
            yield "The rho of the budget allows more than its epsilon and delta."


def _fits(loss: PrivacyLoss, asked: AskedPrice) -> bool:  # noqa: PLR0911 - one return a pair of kinds
    match asked.loss, loss:
        case PureDP(most), PureDP(epsilon):
            return epsilon <= most
        case PureDP(most), ApproxDP(epsilon, delta):
            return epsilon <= most and delta <= asked.delta
        case ZCDP(most), ZCDP(rho, delta):
            return rho <= most and delta <= asked.delta
        case PureDP(most), ZCDP(rho, delta):  # a rho that this epsilon pays for
            return Fraction(rho) <= convert_to_rho(most) * (1 + _CONVERTED) and delta <= asked.delta
        case PureDP(most), GDP(mu_squared, delta):
            return float(mu_squared) <= convert_to_mu_squared(most) * (1 + _FLOATS) and delta <= asked.delta
        case ZCDP(most), GDP(mu_squared, delta):  # the same Gaussian
            return mu_squared <= 2 * most and delta <= asked.delta
        case _:
            return False


def convert_to_mu_squared(epsilon: Decimal) -> float:
    """The least mu**2 that epsilon-DP implies: mu = -2 x, where a standard normal is below x with 1/(1 + e^epsilon)."""
    rate = math.exp(-float(epsilon))
    return 4 * NormalDist().inv_cdf(rate / (1 + rate)) ** 2


def compute_gaussian_delta(mu: float, epsilon: float) -> float:
    """The least delta that mu-GDP implies at this epsilon (Balle and Wang 2018), in floats."""
    near, far = ((epsilon / mu + sign * mu / 2) / math.sqrt(2) for sign in (-1, 1))
    return (math.erfc(near) - math.exp(epsilon) * math.erfc(far)) / 2


def _find_rho(loss: PrivacyLoss) -> Fraction:
    match loss:
        case ZCDP(rho):
            return Fraction(rho)
        case GDP(mu_squared):
            return Fraction(mu_squared) / 2
        case PureDP(epsilon) | ApproxDP(epsilon):
            return convert_to_rho(epsilon)
        case _:
            assert_never(loss)


def covers(spent: PrivacyLoss, *certificates: Certificate) -> bool:
    """Whether a charge is at least the sum of all measurements, each in the kind of the charge."""
    return covers_losses(
        spent, [measured.loss for certificate in certificates for measured in certificate.measurements]
    )


def covers_losses(spent: PrivacyLoss, losses: Sequence[PrivacyLoss]) -> bool:
    """Whether a charge is at least the sum of these losses, each in the kind of the charge."""
    deltas = sum((Fraction(loss.delta) for loss in losses if not isinstance(loss, PureDP)), Fraction(0))
    if isinstance(spent, ZCDP):
        rhos = [_find_rho(loss) for loss in losses]
        return Fraction(spent.rho) >= sum(rhos) * (1 - _ROUNDING) and Fraction(spent.delta) >= deltas
    if isinstance(spent, GDP):
        known = [loss for loss in losses if not isinstance(loss, ZCDP)]
        squares = sum(
            float(loss.mu_squared) if isinstance(loss, GDP) else convert_to_mu_squared(loss.epsilon) for loss in known
        )
        enough = float(spent.mu_squared) >= squares * (1 - _FLOATS) and Fraction(spent.delta) >= deltas
        return enough and len(known) == len(losses)
    epsilons = [Fraction(loss.epsilon) for loss in losses if isinstance(loss, PureDP | ApproxDP)]
    charged = Fraction(0) if isinstance(spent, PureDP) else Fraction(spent.delta)
    return len(epsilons) == len(losses) and Fraction(spent.epsilon) >= sum(epsilons) and charged >= deltas
