"""Several plans on one reservation: charged together, released one by one."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.certify import Certificate, Certified, Reservation, certify
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss, compose
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan, Kind
from sfumato.kernel.release import ExactAggregates, Released
from sfumato.kernel.sensitivity import Sensitivity


def bundle(certificates: Sequence[Certificate]) -> Certificate:
    """One certificate for several: what they measure side by side, at their composed loss.

    Claim: K-36. Releasing every part with its own certificate satisfies `loss`.
    Requires: nothing.
    Relies on: K-17, K-27.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    if not certificates or any(each.cells is None for each in certificates):
        raise KernelFault("A bundle holds questions whose keys are declared.")
    if len({each.population for each in certificates}) != 1:
        raise KernelFault("A bundle is about one population.")
    measurements = tuple(
        replace(each, name=_name(number, each.name), width=(one.cells or 0) * each.width)
        for number, one in enumerate(certificates)
        for each in one.measurements
    )
    losses: list[PrivacyLoss] = [each.loss for each in certificates]
    digests, keys = ("\n".join(getattr(each, name) for each in certificates) for name in ("plan_digest", "answer_key"))
    return Certificate(
        _hash("bundle", digests), _hash("bundle", keys), certificates[0].population, 1, measurements,
        reduce(compose, losses),
    )  # fmt: skip


def parts(reservation: Reservation, certificates: Sequence[Certificate]) -> list[Reservation]:
    """The reservation of each part of a charged bundle.

    Claim: K-36. Only the very parts that were charged get a reservation, each one, once.
    Requires: the reservation was committed (ledger).
    Relies on: K-28.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    if bundle(certificates) != reservation.certificate:
        raise KernelFault("These parts were not charged together.")
    reservation.take(object())
    return [Reservation(reservation.entry_number, each) for each in certificates]


def together(reservation: Reservation, released: Sequence[Released]) -> Released:
    """Released parts as one answer, to be stored with the bundle's charge.

    Claim: K-36. It holds the parts' integers and nothing else.
    Requires: nothing.
    Relies on: nothing: it is post-processing.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    integers = {
        _name(number, name): cells for number, each in enumerate(released) for name, cells in each.integers.items()
    }
    return Released(reservation.entry_number, reservation.certificate, integers)


def apart(stored: Released, certificates: Sequence[Certificate]) -> list[Released]:
    """A stored bundle as its parts again.

    Claim: K-36. It holds the parts' integers and nothing else.
    Requires: nothing.
    Relies on: nothing: it is post-processing.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    return [
        Released(
            stored.entry_number,
            one,
            {each.name: stored.integers[_name(number, each.name)] for each in one.measurements},
        )
        for number, one in enumerate(certificates)
    ]


def allowance(watch: AboveThreshold, plan: BoundedPlan) -> Certificate:
    """What a sequence of questions like this one against one threshold costs, to be charged before the first of them.

    Claim: K-36. The certificate's loss is that of the whole sequence (K-34); no two sequences share a certificate, and
        neither do questions that differ in population, unit, neighbours, kind or grid.
    Requires: nothing.
    Relies on: K-34.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    if plan.cells != 1 or [each.kind for each in plan.measurements] not in ([Kind.COUNT], [Kind.PEOPLE]):
        raise KernelFault("A question of a sequence is one count.")
    if watch.monotonic and plan.unit.neighbours is not Neighbours.ADD_REMOVE:
        raise KernelFault("Counts move the same way only when a unit is added or removed.")
    (measured,) = plan.measurements
    like = (watch.name, plan.unit.per_row, plan.unit.neighbours.value, measured.kind.value, measured.exponent)
    name = _hash("sequence", "\n".join(map(str, like)))
    moved = Sensitivity(watch.sensitivity, watch.sensitivity**2)
    certified = Certified("crossed", 0, moved, LaplaceNoise(Fraction(watch.noise.value_scale)), watch.loss)
    return Certificate(name, name, plan.population, 1, (certified,), watch.loss)


def crosses(exact: ExactAggregates, plan: BoundedPlan, watch: AboveThreshold, reservation: Reservation) -> bool:
    """Has the one count that was measured reached the sequence's threshold?

    Claim: K-36. The answers to all questions of the sequence together satisfy the allowance's loss.
    Requires: the reservation of the allowance was committed (ledger).
    Relies on: K-25, K-34.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    certificate = certify(plan)
    if exact.plan_digest != certificate.plan_digest or reservation.certificate != allowance(watch, plan):
        raise KernelFault("This question belongs to another plan, or was not paid for.")
    (measured,) = certificate.measurements
    (cells,) = exact._integers.values()
    if len(cells) != 1 or measured.sensitivity.l1 > watch.sensitivity:
        raise KernelFault("A question of a sequence is one count that one unit moves no further than was declared.")
    reservation.take(watch)
    return watch.check(int(cells[0]), SYSTEM)


def _name(number: int, name: str) -> str:
    return f"{number}.{name}"


def _hash(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()
