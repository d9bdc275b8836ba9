"""The certificate: what a finished plan costs, derived again by the kernel. Only this can be charged and released."""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import assert_never

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.key_rounds import KeyRounds
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.mechanisms import BoxNoise, LaplaceNoise, Noise, choose_box_noise, choose_noise
from sfumato.kernel.plan import (
    KEY_WEIGHT_EXPONENT,
    ROW_WEIGHT_EXPONENT,
    BoundedPlan,
    Choice,
    Extreme,
    Loss,
    Measurement,
    Mode,
    Products,
    Quantiles,
    WeightedKeys,
)
from sfumato.kernel.released_steps import count_bins, find_exponent
from sfumato.kernel.sensitivity import Sensitivity, bound_terms, bound_unit_weight, derive_sensitivity
from sfumato.kernel.weighted_keys import WeightedKeyRule

BinChoice = QuantileChoice | ExtremeChoice | ModeChoice


@dataclass(frozen=True, slots=True)
class Certified:
    """One measurement: how far one unit can move it, the noise that pays for it, and its share of the loss."""

    name: str
    exponent: int
    sensitivity: Sensitivity
    noise: Noise | BoxNoise | BinChoice
    loss: Loss
    threshold: int | None = None  # of undeclared keys: the least noisy number of people, or the least noisy weight
    width: int = 1  # integers in each cell
    weight_exponent: int = 0  # of a choice: the grid of the weights in its bins
    key_rounds: KeyRounds | None = None  # of undeclared keys that are weighed twice: noise and threshold are the last


@dataclass(frozen=True, slots=True)
class Certificate:
    """What releasing plans costs: one plan, those of a bundle, or none for a sequence, which `sequence` names.

    By `plan_digest` and `answer_key` the ledger finds a charge and a stored answer. No proof depends on them.
    """

    plans: tuple[BoundedPlan, ...]
    population: str
    cells: int | None  # None: undeclared keys
    measurements: tuple[Certified, ...]
    loss: PrivacyLoss
    sequence: str = ""
    plan_digest: str = field(default="", compare=False)
    answer_key: str = field(default="", compare=False)


def certify(plan: BoundedPlan) -> Certificate:
    """Derive sensitivity, noise and loss of every measurement from the plan alone.

    Claim: K-27. Releasing the plan's integers with this noise satisfies `loss`.
    Requires: the engine computes what the plan says; unit and bounds are those of the catalog (curator).
    Relies on: K-09, K-10, K-17, K-25.
    Checked by: tests/kernel/test_certify.py::test_scales_pay_for_the_sensitivity
    """
    certified = tuple(_certify_one(plan, measurement) for measurement in plan.measurements)
    losses: list[PrivacyLoss] = [measurement.loss for measurement in plan.measurements]
    loss = reduce(compose, losses)
    return Certificate((plan,), plan.population, plan.cells, certified, loss)


def _certify_one(plan: BoundedPlan, measurement: Measurement) -> Certified:
    name, quantity, unit = measurement.name, measurement.quantity, plan.unit
    moved = derive_sensitivity(plan, quantity)
    match measurement.loss:
        case ApproxDP(epsilon, delta) as loss:  # undeclared keys: a threshold that a key of one unit seldom reaches
            limits = plan.max_groups_per_unit, unit.neighbours
            if isinstance(quantity, WeightedKeys):
                rounds = KeyRounds(epsilon, delta, *limits) if quantity.rounds == 2 else None
                rule = rounds or WeightedKeyRule(epsilon, delta, *limits)
                return Certified(name, KEY_WEIGHT_EXPONENT, moved, rule.noise, loss, rule.threshold, key_rounds=rounds)
            keys = KeyRule(epsilon, delta, *limits)
            if keys.scale * Fraction(epsilon) < moved.l1:
                raise KernelFault("The keys cost more than their share.")
            return Certified(name, 0, moved, LaplaceNoise(keys.scale), loss, keys.threshold)
        case PureDP(epsilon) as loss if isinstance(quantity, Choice):
            choice = _choose_rule(plan, quantity, epsilon)
            weight_exponent = 0 if unit.per_row else ROW_WEIGHT_EXPONENT
            return Certified(name, 0, moved, choice, loss, None, quantity.width, weight_exponent)
        case PureDP() as loss if isinstance(quantity, Products):
            box = choose_box_noise(bound_terms(plan, quantity), plan.cells or 0, loss)
            return Certified(name, quantity.exponent, moved, box, loss, width=quantity.width)
        case loss:
            if moved.l1 == 0:
                hint = "Write the constant into the query instead."
                raise InvalidParameter(name, "must depend on the data", "a constant", hint)
            noise = choose_noise(moved.l1, moved.l2_squared, loss)
            exponent = find_exponent(quantity, per_row=unit.per_row)
            return Certified(name, exponent, moved, noise, loss, width=quantity.width)


def _choose_rule(plan: BoundedPlan, quantity: Choice, epsilon: Decimal) -> BinChoice:
    """All cells share the epsilon: the weights of one unit are bounded over all of them."""
    bins, reach, neighbours = count_bins(quantity), bound_unit_weight(plan), plan.unit.neighbours
    match quantity:
        case Quantiles(fractions=fractions, miss=miss):
            return QuantileChoice(fractions, bins, reach, neighbours, plan.cells != 1, epsilon, miss)
        case Extreme(largest=largest):
            return ExtremeChoice(largest, bins, reach, neighbours, epsilon)
        case Mode(width=most):
            return ModeChoice(most, bins, reach, neighbours, epsilon)
        case _:
            assert_never(quantity)
