"""The certificate: what a finished plan costs, derived again by the kernel. Only this can be charged and released."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise, carried_scale, carried_variance
from sfumato.kernel.plan import (
    ROW_WEIGHT_EXPONENT,
    SQUARED,
    BoundedPlan,
    Extreme,
    Kind,
    Measurement,
    Mode,
    Quantiles,
    answer_key,
    digest,
)
from sfumato.kernel.sensitivity import Sensitivity, sensitivity, weight_of_a_unit

BinChoice = QuantileChoice | ExtremeChoice | ModeChoice


@dataclass(frozen=True, slots=True)
class Certified:
    """One measurement: how far one unit can move it, the noise that pays for it, and its share of the loss."""

    name: str
    exponent: int
    sensitivity: Sensitivity
    noise: Noise | BinChoice
    loss: PureDP | ApproxDP | ZCDP
    threshold: int | None = None  # of keys that the data names: the least noisy number of people
    width: int = 1  # integers for each cell
    weight_exponent: int = 0  # of a choice: the grid of the weights in its bins

    @property
    def variance(self) -> Fraction:
        """An upper bound of the noise's variance, in squared steps: for comparing answers to the same question."""
        match self.noise:
            case LaplaceNoise(scale):
                return 2 * scale**2
            case GaussianNoise(variance):
                return variance
            case choice:
                return choice.spread**2


@dataclass(frozen=True, slots=True)
class Certificate:
    """What releasing a plan costs. `plan_digest` ties it to the plan; `answer_key` names what is measured."""

    plan_digest: str
    answer_key: str
    population: str
    cells: int | None  # None: the data names the keys
    measurements: tuple[Certified, ...]
    loss: PrivacyLoss


def certify(plan: BoundedPlan) -> Certificate:
    """Derive sensitivity, noise and loss of every measurement from the plan alone.

    Claim: K-27. Releasing the plan's integers with this noise satisfies `loss`.
    Requires: the engine computes what the plan says; unit and bound are the catalog's (curator).
    Relies on: K-09, K-10, K-17, K-25.
    Checked by: tests/kernel/test_certify.py::test_scales_pay_for_the_sensitivity
    """
    certified = tuple(_certified(plan, measurement) for measurement in plan.measurements)
    losses: list[PrivacyLoss] = [each.loss for each in certified]
    loss = reduce(compose, losses)
    return Certificate(digest(plan), answer_key(plan), plan.population, plan.cells, certified, loss)


def _certified(plan: BoundedPlan, measurement: Measurement) -> Certified:
    if measurement.kind in (Kind.COUNT, Kind.PEOPLE, Kind.KEYS):
        whole = measurement.kind is not Kind.COUNT or plan.unit.per_row
        if measurement.exponent != (0 if whole else ROW_WEIGHT_EXPONENT):
            raise KernelFault("A count is measured on its own grid.")
    moved = sensitivity(plan, measurement)
    if isinstance(measurement.loss, ApproxDP):
        return _keys(plan, measurement, moved, measurement.loss)
    if measurement.choice is not None:
        return _choice(plan, measurement, moved)
    grid = 2 * measurement.exponent if measurement.kind in SQUARED else measurement.exponent
    noise = _noise(measurement, moved)
    return Certified(measurement.name, grid, moved, noise, measurement.loss, width=measurement.width)


def _keys(plan: BoundedPlan, measurement: Measurement, moved: Sensitivity, loss: ApproxDP) -> Certified:
    """Keys that the data names: noise on the people of each, and a threshold that a lonely key seldom reaches."""
    rule = KeyRule(loss.epsilon, loss.delta, plan.max_groups_per_unit, plan.unit.neighbours)
    if rule.scale * Fraction(loss.epsilon) < moved.l1:
        raise KernelFault("The keys cost more than their share.")
    return Certified(measurement.name, 0, moved, LaplaceNoise(rule.scale), loss, rule.threshold)


def _choice(plan: BoundedPlan, measurement: Measurement, moved: Sensitivity) -> Certified:
    """One of public bins: all cells share the epsilon, since one unit's weights are bounded over all of them."""
    if not isinstance(measurement.loss, PureDP):
        hint = "Ask with epsilon=."
        raise InvalidParameter("rho", "must not be given for quantiles, MIN, MAX, MODE and TOP_K", "a rho", hint)
    bins, epsilon = measurement.bins, measurement.loss.epsilon
    reach, whose = weight_of_a_unit(plan), plan.unit.neighbours
    match measurement.choice:
        case Quantiles(fractions):
            rule: BinChoice = QuantileChoice(fractions, bins, reach, whose, plan.cells != 1, epsilon)
        case Extreme(largest):
            rule = ExtremeChoice(largest, bins, reach, whose, epsilon)
        case Mode(most):
            rule = ModeChoice(most, bins, reach, whose, epsilon)
        case _:
            raise KernelFault("A choice is one of these.")
    grid = 0 if plan.unit.per_row else ROW_WEIGHT_EXPONENT
    return Certified(measurement.name, 0, moved, rule, measurement.loss, None, measurement.width, grid)


def _noise(measurement: Measurement, moved: Sensitivity) -> Noise:
    if moved.l1 == 0:
        raise InvalidParameter(
            measurement.name, "must depend on the data", "a constant", "Write the constant into the query instead."
        )
    match measurement.loss:
        case ApproxDP():
            raise KernelFault("Only keys that the data names spend a delta.")
        case PureDP(epsilon):
            if not epsilon:
                raise KernelFault("A measurement must spend something.")
            return LaplaceNoise(carried_scale(moved.l1 / Fraction(epsilon), "epsilon"))
        case ZCDP(rho):
            if not rho:
                raise KernelFault("A measurement must spend something.")
            return GaussianNoise(carried_variance(moved.l2_squared / (2 * Fraction(rho)), "rho"))
