"""Several plans on one reservation: charged together, released one by one."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from sfumato.errors import KernelFault
from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.certify import Certificate, Certified, Reservation
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss, compose
from sfumato.kernel.mechanisms import LaplaceNoise
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

    Claim: K-36. Only the very parts that were charged get a reservation.
    Requires: the reservation was committed (ledger); each part is released once (caller).
    Relies on: K-28.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_bundle_costs_the_sum_and_releases_its_parts_only
    """
    if bundle(certificates) != reservation.certificate:
        raise KernelFault("These parts were not charged together.")
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


def allowance(watch: AboveThreshold, population: str) -> Certificate:
    """What a sequence of questions against one threshold costs, to be charged before the first of them.

    Claim: K-36. The certificate's loss is that of the whole sequence (K-34), and no two sequences share a certificate.
    Requires: nothing.
    Relies on: K-34.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    name = _hash("sequence", SYSTEM.take(32).tobytes().hex())
    moved = Sensitivity(watch.sensitivity, watch.sensitivity**2)
    certified = Certified("crossed", 0, moved, LaplaceNoise(Fraction(watch.noise.value_scale)), watch.loss)
    return Certificate(name, name, population, 1, (certified,), watch.loss)


def crosses(exact: ExactAggregates, certificate: Certificate, watch: AboveThreshold, reservation: Reservation) -> bool:
    """Has the one count that was measured reached the sequence's threshold?

    Claim: K-36. The answers to all questions of the sequence together satisfy the allowance's loss.
    Requires: the reservation of the allowance was committed (ledger).
    Relies on: K-25, K-34.
    Proof: docs/claims/K-36.md
    Checked by: tests/kernel/test_bundle.py::test_a_sequence_is_charged_once_and_checks_every_question
    """
    paid = reservation.certificate.loss == watch.loss and Decimal(watch.loss.epsilon) > 0
    if exact.plan_digest != certificate.plan_digest or not paid:
        raise KernelFault("This question belongs to another plan, or was not paid for.")
    (measured,) = certificate.measurements
    (cells,) = exact._integers.values()
    if len(cells) != 1 or measured.sensitivity.l1 > watch.sensitivity:
        raise KernelFault("A question of a sequence is one count that one unit moves no further than was declared.")
    return watch.check(int(cells[0]), SYSTEM)


def _name(number: int, name: str) -> str:
    return f"{number}.{name}"


def _hash(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()
