"""The plans that one charge pays for: a single plan, or several that are charged together and released one by one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sfumato.answering.joined_releases import join_releases, split_release
from sfumato.answering.plan_digests import bundle_and_name, certify_and_name
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates, Released, release, release_bundle
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.stored_answers import StoredAnswer

CheckCertificate = Callable[[Certificate], None]  # raises to refuse a certificate


def accept_any(_: Certificate) -> None:
    """Refuse nothing: the ledger's limits are enough."""


@dataclass(frozen=True, slots=True)
class CertifiedPlans:
    """Plans with the certificate of each, and the one certificate that is charged for all of them."""

    plans: tuple[BoundedPlan, ...]
    certificates: tuple[Certificate, ...]
    certificate: Certificate

    @property
    def bundled(self) -> bool:
        """Whether the plans are charged as a bundle (of one or more), not as a single plan."""
        return self.certificate is not self.certificates[0]

    def release(
        self, exact: Sequence[ExactAggregates], reservation: Reservation
    ) -> tuple[tuple[Released, ...], Released]:
        """Add noise to what was measured: the release of each plan, and the whole as the ledger stores it."""
        if not self.bundled:
            (measured,) = exact
            released = release(measured, reservation)
            return (released,), released
        parts = tuple(release_bundle(exact, self.certificates, reservation))
        return parts, join_releases(self.certificate, parts)

    def read_stored(self, stored: StoredAnswer) -> tuple[Released, ...]:
        """The releases in a stored answer, certified with the losses that they were released at."""
        certificates = self._certify_with(stored.shares)
        if self.bundled:
            return tuple(split_release(stored.entry_number, stored.integers, certificates, stored.keys))
        return (_read_release(stored, certificates[0]),)

    def _certify_with(self, shares: tuple[PrivacyLoss, ...]) -> tuple[Certificate, ...]:
        if shares == tuple(measured.loss for part in self.certificates for measured in part.measurements):
            return self.certificates
        left = iter(shares)
        return tuple(
            certify_and_name(replace_shares(plan, tuple(islice(left, len(plan.measurements))))) for plan in self.plans
        )


def certify_plan(plan: BoundedPlan) -> CertifiedPlans:
    """A single plan."""
    certificate = certify_and_name(plan)
    return CertifiedPlans((plan,), (certificate,), certificate)


def certify_together(plans: Sequence[BoundedPlan]) -> CertifiedPlans:
    """Plans that are charged together: all of them, or none."""
    certificates = tuple(certify_and_name(plan) for plan in plans)
    return CertifiedPlans(tuple(plans), certificates, bundle_and_name(certificates))


def read_stored(plan: BoundedPlan, stored: StoredAnswer) -> Released:
    """The release in the stored answer to one plan, certified with the losses that it was released at."""
    return _read_release(stored, certify_and_name(replace_shares(plan, stored.shares)))


def _read_release(stored: StoredAnswer, certificate: Certificate) -> Released:
    """A stored release, certified for the plan that was charged: an upgrade's plan has another digest than `ask`'s."""
    charged = replace(certificate, plan_digest=stored.plan_digest)
    return Released(stored.entry_number, charged, stored.integers, stored.keys)


def replace_shares(plan: BoundedPlan, shares: Sequence[PrivacyLoss]) -> BoundedPlan:
    """The plan with these losses for its measurements."""
    priced = zip(plan.measurements, shares, strict=True)
    return replace(plan, measurements=tuple(replace(measurement, loss=share) for measurement, share in priced))
