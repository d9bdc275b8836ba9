"""The certificate: what a finished plan costs, derived again by the kernel. Only this can be charged and released."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise, carried_scale, carried_variance
from sfumato.kernel.plan import ROW_WEIGHT_EXPONENT, BoundedPlan, Kind, Measurement, answer_key, digest
from sfumato.kernel.sensitivity import Sensitivity, sensitivity


@dataclass(frozen=True, slots=True)
class Certified:
    """One measurement: how far one unit can move it, the noise that pays for it, and its share of the loss."""

    name: str
    exponent: int
    sensitivity: Sensitivity
    noise: Noise
    loss: PureDP | ZCDP

    @property
    def variance(self) -> Fraction:
        """An upper bound of the noise's variance, in squared steps: for comparing answers to the same question."""
        match self.noise:
            case LaplaceNoise(scale):
                return 2 * scale**2
            case GaussianNoise(variance):
                return variance


@dataclass(frozen=True, slots=True)
class Certificate:
    """What releasing a plan costs. `plan_digest` ties it to the plan; `answer_key` names what is measured."""

    plan_digest: str
    answer_key: str
    population: str
    cells: int
    measurements: tuple[Certified, ...]
    loss: PrivacyLoss


@dataclass(frozen=True, slots=True)
class Reservation:
    """A certificate that the ledger has charged. It is made by the ledger only, after the charge is committed."""

    entry_number: int
    certificate: Certificate


def certify(plan: BoundedPlan) -> Certificate:
    """Derive sensitivity, noise and loss of every measurement from the plan alone.

    Claim: K-27. Releasing the plan's integers with this noise satisfies `loss`.
    Requires: the engine computes what the plan says; unit and bound are the catalog's (curator).
    Relies on: K-09, K-10, K-17, K-25.
    Proof: docs/claims/K-27.md
    Checked by: tests/kernel/test_certify.py::test_scales_pay_for_the_sensitivity
    """
    certified = tuple(_certified(plan, measurement) for measurement in plan.measurements)
    losses: list[PrivacyLoss] = [each.loss for each in certified]
    loss = reduce(compose, losses)
    return Certificate(digest(plan), answer_key(plan), plan.population, plan.cells, certified, loss)


def _certified(plan: BoundedPlan, measurement: Measurement) -> Certified:
    if measurement.kind is not Kind.SUM:
        whole = measurement.kind is Kind.PEOPLE or plan.unit.per_row
        if measurement.exponent != (0 if whole else ROW_WEIGHT_EXPONENT):
            raise KernelFault("A count is measured on its own grid.")
    moved = sensitivity(plan, measurement)
    return Certified(measurement.name, measurement.exponent, moved, _noise(measurement, moved), measurement.loss)


def _noise(measurement: Measurement, moved: Sensitivity) -> Noise:
    if moved.l1 == 0:
        raise InvalidParameter(
            measurement.name, "must depend on the data", "a constant", "Write the constant into the query instead."
        )
    match measurement.loss:
        case PureDP(epsilon):
            if not epsilon:
                raise KernelFault("A measurement must spend something.")
            return LaplaceNoise(carried_scale(moved.l1 / Fraction(epsilon), "epsilon"))
        case ZCDP(rho):
            if not rho:
                raise KernelFault("A measurement must spend something.")
            return GaussianNoise(carried_variance(moved.l2_squared / (2 * Fraction(rho)), "rho"))
