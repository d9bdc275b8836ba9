"""Record what reaches a release on a throwaway desk, and repeat the release with the same or with new noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sfumato.answering.certified_plans import CertifiedPlans
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import Desk
from sfumato.answering.joined_releases import join_releases
from sfumato.answering.plan_digests import bundle_and_name
from sfumato.answering.receipt import Answered
from sfumato.engines.engine import Engine
from sfumato.kernel.certify import Certificate
from sfumato.kernel.entropy import SYSTEM, ByteArray
from sfumato.kernel.key_rounds import Holdings
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import CellKey, ExactAggregates, Released, release_bundle, release_with
from sfumato.kernel.reservation import Reservation
from sfumato.lab.auditing.throwaway_desk import Wrap, require_throwaway


@dataclass(frozen=True, slots=True)
class ExactIntegers:
    """The integers of one ExactAggregates. They are made-up rows' integers: nothing here is private."""

    integers: dict[str, tuple[int, ...]]
    keys: tuple[CellKey, ...] | None
    bins: dict[str, tuple[dict[int, int], ...]]
    holdings: tuple[tuple[int, int], ...] | None = None  # people and cells, where keys are weighed in two rounds

    @classmethod
    def read(cls, exact: ExactAggregates) -> "ExactIntegers":
        """Read what an engine measured on made-up rows."""
        integers = {name: tuple(cells.tolist()) for name, cells in exact._integers.items()}
        bins = {name: tuple(map(dict, cells)) for name, cells in exact._bins.items()}
        pairs = exact._holdings
        held = None if pairs is None else tuple(zip(pairs.people.tolist(), pairs.cells.tolist(), strict=True))
        return cls(integers, exact._keys, bins, held)

    def to_exact(self, plan: BoundedPlan) -> ExactAggregates:
        """These integers as an engine returns them."""
        integers = {name: list(cells) for name, cells in self.integers.items()}
        held = None
        if self.holdings is not None:
            people, cells = np.array(self.holdings, np.int64).reshape(-1, 2).T
            held = Holdings(people.copy(), cells.copy())
        bins = {name: list(filled) for name, filled in self.bins.items()}
        return ExactAggregates(plan, integers, self.keys, bins, held)


class RecordedEntropy:
    """A tape of random bytes. `rewind` lets the next run take the same bytes in the same order."""

    def __init__(self) -> None:
        self._tape = bytearray()
        self._position = 0

    @property
    def taken(self) -> int:
        """How many bytes were taken since the last `rewind`."""
        return self._position

    def rewind(self) -> None:
        self._position = 0

    def copy(self) -> "RecordedEntropy":
        """The same bytes, from the beginning."""
        tape = RecordedEntropy()
        tape._tape += self._tape
        return tape

    def take(self, count: int) -> ByteArray:
        """The next bytes of the tape; where it ends, new ones are recorded."""
        end = self._position + count
        if end > len(self._tape):
            self._tape += SYSTEM.take(end - len(self._tape)).tobytes()
        part = np.frombuffer(bytes(self._tape[self._position : end]), np.uint8)
        self._position = end
        return part


class RecordingEngine:
    """An engine that notes the plans it ran and what it measured."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.measured: list[tuple[BoundedPlan, ExactIntegers]] = []

    def check(self, plan: BoundedPlan) -> None:
        self._inner.check(plan)

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        exact = self._inner.aggregate(plan)
        self.measured.append((plan, ExactIntegers.read(exact)))
        return exact

    def close(self) -> None:
        self._inner.close()


def record_with(wrap: Wrap | None, recorders: list[RecordingEngine]) -> Wrap:
    """A wrap that puts a recorder around `wrap`, and adds it to `recorders`."""

    def record(inner: Engine) -> Engine:
        recorders.append(RecordingEngine(inner if wrap is None else wrap(inner)))
        return recorders[-1]

    return record


@dataclass(frozen=True, slots=True)
class RecordedPlans:
    """A certified plan whose noise comes from a tape. The desk charges, measures and stores it as any other."""

    plans: tuple[BoundedPlan, ...]
    certificate: Certificate
    entropy: RecordedEntropy

    def release(
        self, exact: Sequence[ExactAggregates], reservation: Reservation
    ) -> tuple[tuple[Released, ...], Released]:
        """Release with the bytes of the tape."""
        (measured,) = exact
        released = release_with(measured, reservation, self.entropy)
        return (released,), released


@dataclass(frozen=True, slots=True)
class RepeatedPlans:
    """One plan, measured once and released many times on one charge that pays for all releases."""

    plans: tuple[BoundedPlan, ...]
    certificates: tuple[Certificate, ...]
    certificate: Certificate

    def release(
        self, exact: Sequence[ExactAggregates], reservation: Reservation
    ) -> tuple[tuple[Released, ...], Released]:
        """The kernel's release of a bundle: new noise for every part."""
        (measured,) = exact
        parts = tuple(release_bundle([measured] * len(self.certificates), self.certificates, reservation))
        return parts, join_releases(self.certificate, parts)


def release_recorded(desk: Desk, certified: CertifiedPlans, analyst: str, entropy: RecordedEntropy) -> Answered:
    """Charge and release one plan with the noise of a tape. Only a throwaway desk is accepted."""
    require_throwaway(desk.ledger)
    recorded = RecordedPlans(certified.plans, certified.certificate, entropy)
    return charge_and_release(desk.engine, desk.ledger, cast(CertifiedPlans, recorded), analyst, "replay")


def release_repeatedly(desk: Desk, certified: CertifiedPlans, analyst: str, times: int) -> tuple[Released, ...]:
    """Charge for many releases of one plan with declared keys, measure once, and release each with new noise."""
    require_throwaway(desk.ledger)
    certificates = certified.certificates * times
    repeated = RepeatedPlans(certified.plans, certificates, bundle_and_name(certificates))
    released = charge_and_release(desk.engine, desk.ledger, cast(CertifiedPlans, repeated), analyst, "audit").released
    return released
