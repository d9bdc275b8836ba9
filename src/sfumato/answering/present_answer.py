"""From a release and its receipt to the Answer that the analyst gets. Post-processing: no data is read here."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.answering.desk import Desk
from sfumato.answering.receipt import Receipt, compute_population_cost
from sfumato.answers.answer import Answer, Cost
from sfumato.answers.disclosure import ReleasedLoss, write_statement
from sfumato.answers.finished_answer import finish_answer
from sfumato.answers.interval_columns import add_interval_columns
from sfumato.answers.make_answer import Payment, make_answer
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.answers.released_values import Reading
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
    loss: ReleasedLoss


def present_answer(
    desk: Desk,
    asked: PlannedQuery,
    released: Released,
    receipt: Receipt,
    combined: CombinedReleases | None = None,
    *,
    finished: bool = True,
) -> Answer:
    """The answer to a question; made from all releases in `combined` if it is given.

    Without `finished`, the released rows are shown, and not what the question computes from them.
    """
    certificate = released.certificate
    reading = Reading.from_release(released) if combined is None else combined.reading
    loss = ReleasedLoss.from_release(released) if combined is None else combined.loss
    own = desk.ledger.read_own_remaining(receipt.analyst, None if receipt.cached else released.entry_number)
    paid = Payment(
        released.entry_number, receipt.cost, receipt.cached, receipt.head, Cost.from_loss(desk.ledger.read_remaining()),
        compute_population_cost(receipt.taken), None if own is None else Cost.from_loss(own),
        loss.whole,
    )  # fmt: skip

    def sign(sensitivities: Sequence[ColumnSensitivity]) -> dict[str, Any]:
        entry, head = released.entry_number, receipt.head
        return desk.signer.sign(write_statement(asked.planned.plan, certificate, loss, sensitivities, entry, head))

    query = asked.query
    made = make_answer(query, asked.planned, certificate, reading, asked.confidence, paid, sign)
    if not finished:
        return made
    if query.finish is not None:
        made = finish_answer([made], query.finish, together=query.together)
    return add_interval_columns(made, query.interval_columns)
