"""What an answer takes of the population's budget and of an analyst's own limit, and which stored answer is used."""

from dataclasses import dataclass

from sfumato.errors import LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.books import Books
from sfumato.ledger.charges import Taken, amounts_of, exchanged, fits, nothing, price
from sfumato.ledger.entries import Row, charged_loss
from sfumato.ledger.stored import answers, certified_loss, measures


@dataclass(frozen=True, slots=True)
class Quote:
    """What `ask` would do now: take this, if it fits. `shares`: those of the stored answer that it would return."""

    taken: Taken
    fits: bool
    shares: tuple[PrivacyLoss, ...] | None = None


def taken_by_view(row: Row, analyst: str, limit: PrivacyLoss | None, budget: PrivacyLoss) -> Taken:
    """What a stored answer takes: nothing, but of the limit of an analyst who sees it for the first time."""
    free, loss = nothing(budget), certified_loss(row)
    if limit is None or has(row, analyst):
        return Taken(free, None if limit is None else free, nothing(loss))
    return Taken(free, exchanged(charged_loss(row["loss"]), budget), loss)


def usable(
    books: Books, certificate: Certificate, analyst: str, limit: PrivacyLoss | None, budget: PrivacyLoss
) -> Row | None:
    """The charge of the stored answer that is used for a certificate: at least as precise, at the same delta.

    An analyst without a limit gets the most precise. One with a limit gets what they have, or else the cheapest; and
    never one whose loss is above what they asked for, since all of it would count as learned.
    """
    rows = [row for row in books.answered(certificate.answer_key, analyst) if answers(row, certificate)]
    rows = [row for row in rows if has(row, analyst) or _countable(row, budget)]
    if limit is None:
        return min(rows, key=lambda row: (measures(row)[0][1], row["number"]), default=None)
    asked = _asked(certificate, budget)

    def rank(row: Row) -> tuple[object, ...]:
        known = has(row, analyst)
        cost = amounts_of(nothing(budget) if known else exchanged(charged_loss(row["loss"]), budget))
        return not known, cost, measures(row)[0][1], row["number"]

    affordable = (
        row
        for row in rows
        if has(row, analyst) or (asked and fits(exchanged(charged_loss(row["loss"]), budget), nothing(budget), asked))
    )
    return min(affordable, key=rank, default=None)


def has(row: Row, analyst: str) -> bool:
    """Whether the analyst has the answer to a charge of `Books.answered`: paid for, or counted as seen."""
    return bool(row["analyst"] == analyst or row["seen"])


def _asked(certificate: Certificate, budget: PrivacyLoss) -> PrivacyLoss | None:
    """What was asked for, in the budget's currency; None: it cannot be counted there."""
    try:
        return price(certificate.loss, tuple(each.loss for each in certificate.measurements), budget)
    except LedgerError:
        return None


def _countable(row: Row, budget: PrivacyLoss) -> bool:
    """Whether the loss of an earlier answer can be counted in today's currency."""
    try:
        exchanged(charged_loss(row["loss"]), budget)
    except LedgerError:
        return False
    return True
