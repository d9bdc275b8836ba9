"""Questions for the ledger's tests: real plans, real certificates, and answers whose noise does not matter here."""

from dataclasses import replace

from sfumato.answering.plan_digests import certify_and_name
from sfumato.kernel.expressions import Literal
from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import ROW, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Count, Measurement
from sfumato.kernel.release import ExactAggregates, Released, release
from sfumato.kernel.row_sources import Scan

POPULATION = "crowd"
COUNT = Measurement("n", Count(None), PureDP(1))
PLAN = BoundedPlan(
    population=POPULATION,
    source=Scan("people", "1"),
    unit=PrivacyUnit("people", ROW),
    max_groups_per_unit=1,
    filters=(),
    keys=(),
    measurements=(COUNT,),
)


def make_question(loss, about="everybody", **changes):
    """The certificate of a count; `loss` is its share, or one share for each of several counts."""
    losses = loss if isinstance(loss, tuple) else (loss,)
    measurements = tuple(replace(COUNT, name=f"n{i}", loss=loss) for i, loss in enumerate(losses))
    return certify_and_name(replace(PLAN, filters=(Literal(about),), measurements=measurements, **changes))


def make_answer(reservation):
    """The kernel's own release, of made-up integers."""
    certificate = reservation.certificate
    exact = {measurement.name: [40 + i] * certificate.cells for i, measurement in enumerate(certificate.measurements)}
    return release(ExactAggregates(certificate.plans[0], exact), reservation)


def ask(ledger, analyst, certificate):
    """Answer as a curator does: take a stored answer, or charge, release and store. True if it was charged."""
    if ledger.find_stored(certificate, analyst):
        return False
    reservation = ledger.reserve(analyst, certificate)
    ledger.store(reservation, make_answer(reservation))
    return True


def make_plain_answer(reservation, value=7):
    """An answer without noise, so that a test can recognise it."""
    certificate = reservation.certificate
    integers = {measurement.name: (value,) * certificate.cells for measurement in certificate.measurements}
    return Released(reservation.entry_number, certificate, integers)
