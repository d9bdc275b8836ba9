"""The certificate: what a finished plan costs, derived again by the kernel. Only this can be charged and released."""

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import NoReturn

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.keys import ThresholdedKeys
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


class Reservation:
    """A certificate that the ledger has charged. It is made by the ledger only, after the charge is committed.

    It pays for one release, in the process that it was made in. It cannot be changed, copied or written out: the ledger
    gives another one for a charge that was never answered.
    """

    __slots__ = ("_lock", "_process", "_taken_by", "certificate", "entry_number")

    entry_number: int
    certificate: Certificate
    _lock: threading.Lock
    _process: int
    _taken_by: object | None

    def __init__(self, entry_number: int, certificate: Certificate) -> None:
        for name, value in (
            ("entry_number", entry_number),
            ("certificate", certificate),
            ("_lock", threading.Lock()),
            ("_process", os.getpid()),
            ("_taken_by", None),
        ):
            object.__setattr__(self, name, value)

    def take(self, user: object) -> None:
        """Let `user` have it. Who has it may take it again; nobody else can.

        Claim: K-28. Of all callers, in all threads and forks, with all their users, one user at most gets past this.
        Requires: `user` is kept alive by the caller for as long as it draws noise.
        Relies on: threading.Lock.
        Proof: docs/claims/K-28.md
        Checked by: tests/kernel/test_release.py::test_a_reservation_is_released_once
        """
        if os.getpid() != self._process:  # a fork copies it: each process would release
            raise KernelFault("A reservation belongs to the process that made it.")
        with self._lock:
            if self._taken_by is None:
                object.__setattr__(self, "_taken_by", user)
        if self._taken_by is not user:
            raise KernelFault("This reservation was used: a charge pays for one release.")

    def __repr__(self) -> str:
        return f"Reservation(entry_number={self.entry_number}, taken={self._taken_by is not None})"

    def __init_subclass__(cls) -> NoReturn:
        raise KernelFault("A reservation has no other kinds.")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise KernelFault("A reservation cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise KernelFault("A reservation cannot be changed.")

    def __copy__(self) -> NoReturn:
        raise KernelFault("A reservation cannot be copied or written out.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise KernelFault("A reservation cannot be copied or written out.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise KernelFault("A reservation cannot be copied or written out.")

    def __getstate__(self) -> NoReturn:
        raise KernelFault("A reservation cannot be copied or written out.")


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
    rule = ThresholdedKeys(loss.epsilon, loss.delta, plan.max_groups_per_unit, plan.unit.neighbours)
    if Fraction(rule.loss.delta) > Fraction(loss.delta) or rule.scale * Fraction(loss.epsilon) < moved.l1:
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
