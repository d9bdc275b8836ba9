"""Prices and thresholds of a certificate, computed again without the kernel's own functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.lab.auditing.noise_sizes import compute_upper_tail

_DIGITS = 60
_ROUNDING = Fraction(1, 10**40)  # relative: far above the error of 60 digits


@dataclass(frozen=True, slots=True)
class AskedPrice:
    """What a question was allowed to cost, and the contribution bound that its threshold depends on."""

    loss: PureDP | ZCDP
    delta: Decimal
    max_groups_per_unit: int


def check_prices(certificate: Certificate, asked: AskedPrice, spent: PrivacyLoss) -> Iterator[str]:
    """The certificate costs at most what was asked, the ledger charged at least its parts, thresholds keep delta."""
    if not _fits(certificate.loss, asked):
        yield "The certified loss is above the price that was asked."
    if not _covers(spent, certificate):
        yield "The ledger charged less than the losses of the measurements."
    for measured in certificate.measurements:
        if measured.threshold is None:
            continue
        loss, noise = measured.loss, measured.noise
        allowed = Fraction(loss.delta) / asked.max_groups_per_unit if isinstance(loss, ApproxDP) else Fraction(0)
        chance = (
            Fraction(compute_upper_tail(noise.scale, measured.threshold - 1))
            if isinstance(noise, LaplaceNoise)
            else Fraction(1)
        )
        if chance > allowed * (1 + _ROUNDING):
            yield f"{measured.name}: a key of one person passes its threshold with a probability above its delta."


def convert_to_rho(epsilon: Decimal) -> Fraction:
    """The least rho that epsilon implies: epsilon tanh(epsilon / 2), with 50 correct digits."""
    with localcontext() as context:
        context.prec = _DIGITS
        shrunk = (-epsilon).exp()
        return Fraction(epsilon * (1 - shrunk) / (1 + shrunk))


def _fits(loss: PrivacyLoss, asked: AskedPrice) -> bool:
    match asked.loss, loss:
        case PureDP(most), PureDP(epsilon):
            return epsilon <= most
        case PureDP(most), ApproxDP(epsilon, delta):
            return epsilon <= most and delta <= asked.delta
        case ZCDP(most), ZCDP(rho, delta):
            return rho <= most and delta <= asked.delta
        case PureDP(most), ZCDP(rho, delta):  # a rho that this epsilon pays for
            return Fraction(rho) <= convert_to_rho(most) * (1 + _ROUNDING) and delta <= asked.delta
        case _:
            return False


def _covers(spent: PrivacyLoss, certificate: Certificate) -> bool:
    """Whether a charge is at least the sum of the parts, each in the kind of the charge."""
    losses = [measured.loss for measured in certificate.measurements]
    deltas = sum((Fraction(loss.delta) for loss in losses if not isinstance(loss, PureDP)), Fraction(0))
    if isinstance(spent, ZCDP):
        rhos = [Fraction(loss.rho) if isinstance(loss, ZCDP) else convert_to_rho(loss.epsilon) for loss in losses]
        return Fraction(spent.rho) >= sum(rhos) * (1 - _ROUNDING) and Fraction(spent.delta) >= deltas
    epsilons = [Fraction(loss.epsilon) for loss in losses if not isinstance(loss, ZCDP)]
    charged = Fraction(0) if isinstance(spent, PureDP) else Fraction(spent.delta)
    return len(epsilons) == len(losses) and Fraction(spent.epsilon) >= sum(epsilons) and charged >= deltas
