"""From a release and its receipt to the Answer that the analyst gets. Post-processing: no data is read here."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.answering.desk import Desk
from sfumato.answering.receipt import Receipt, population_cost
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.disclosure import statement
from sfumato.answers.present import Paid, asked_of, present
from sfumato.answers.released_values import Reading
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.release import Released
from sfumato.planning.planner import Planned
from sfumato.query.query import Query


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query, its plan, and the confidence of the intervals that the analyst wants."""

    query: Query
    planned: Planned
    confidence: Fraction


@dataclass(frozen=True, slots=True)
class CombinedReleases:
    """All releases that an upgraded answer is made from: their weighted mean, and their loss together."""

    reading: Reading
    loss: PrivacyLoss


def present_answer(
    desk: Desk, asked: PlannedQuery, released: Released, receipt: Receipt, combined: CombinedReleases | None = None
) -> Answer:
    """The answer to a question; made from all releases in `combined` if it is given."""
    certificate = released.certificate
    reading = Reading.of(released) if combined is None else combined.reading
    sensitivities = asked_of(asked.query, asked.planned, reading)
    disclosed = statement(asked.planned.plan, certificate, sensitivities, released.entry_number, receipt.head)
    own = desk.ledger.read_own_remaining(receipt.analyst)
    paid = Paid(
        asked.confidence, released.entry_number, receipt.cost, receipt.cached, receipt.head,
        Cost.of(desk.ledger.read_remaining()), population_cost(receipt.taken), None if own is None else Cost.of(own),
        certificate.loss if combined is None else combined.loss, sensitivities, desk.signer.sign(disclosed),
    )  # fmt: skip
    return present(asked.query, asked.planned, certificate, reading, paid)
