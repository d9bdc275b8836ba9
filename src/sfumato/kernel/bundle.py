"""What several releases on one charge cost: plans that are charged together, and sequences against one threshold."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.losses import PrivacyLoss, compose
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan, Count, People
from sfumato.kernel.released_steps import find_exponent
from sfumato.kernel.sensitivity import Sensitivity


def bundle(certificates: Sequence[Certificate]) -> Certificate:
    """One certificate for several: what they measure side by side, at their composed loss.

    Claim: K-36. Releasing every part with its own certificate satisfies `loss`.
    Relies on: K-17, K-27.
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    undeclared = any(certificate.cells is None for certificate in certificates)
    if not certificates or (undeclared and len(certificates) == 1):
        raise KernelFault("A bundle holds several questions, or one whose keys are declared.")
    if len({certificate.population for certificate in certificates}) != 1:
        raise KernelFault("A bundle is about one population.")
    measurements = tuple(
        replace(measured, name=name_bundle_part(number, measured.name), width=(certificate.cells or 1) * measured.width)
        for number, certificate in enumerate(certificates)
        for measured in certificate.measurements
    )
    losses: list[PrivacyLoss] = [certificate.loss for certificate in certificates]
    plans = tuple(plan for certificate in certificates for plan in certificate.plans)
    cells = None if undeclared else 1
    return Certificate(plans, certificates[0].population, cells, measurements, reduce(compose, losses))


def certify_sequence(watch: AboveThreshold, plan: BoundedPlan) -> Certificate:
    """What a sequence of questions like this one against one threshold costs, to be charged before the first of them.

    Claim: K-36. The certificate's loss is that of the whole sequence (K-34); no two sequences share a certificate, and
        neither do questions that differ in population, unit, neighbours, kind or grid.
    Relies on: K-34.
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    quantity = plan.measurements[0].quantity
    if plan.cells != 1 or len(plan.measurements) != 1 or not isinstance(quantity, Count | People):
        raise KernelFault("A question of a sequence is one count.")
    if watch.monotonic and plan.unit.neighbours is not Neighbours.ADD_REMOVE:
        raise KernelFault("Counts move the same way only when a unit is added or removed.")
    per_row = plan.unit.per_row
    grid = find_exponent(quantity, per_row=per_row)
    like = (watch.name, per_row, plan.unit.neighbours.value, type(quantity).__name__, grid)
    moved = Sensitivity(watch.sensitivity, watch.sensitivity**2)
    certified = Certified("crossed", 0, moved, LaplaceNoise(Fraction(watch.noise.value_scale)), watch.loss)
    return Certificate((), plan.population, 1, (certified,), watch.loss, "\n".join(map(str, like)))


def name_bundle_part(number: int, name: str) -> str:
    """The name of a part's measurement among those of the bundle."""
    return f"{number}.{name}"
