"""What an answer takes of the population's budget and of an analyst's own limit, and which stored answer is used."""

from dataclasses import dataclass

from sfumato.errors import LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Row, read_charge
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import Spending, amounts_of, convert_loss, fits, price, zero_loss
from sfumato.ledger.stored_answers import is_precise_enough, read_certified_loss, read_measurements


@dataclass(frozen=True, slots=True)
class Quote:
    """What `ask` would do now: take this, if it fits. `shares`: those of the stored answer that it would return."""

    taken: Spending
    fits: bool
    shares: tuple[PrivacyLoss, ...] | None = None


def price_view(row: Row, analyst: str, limit: PrivacyLoss | None, budget: PrivacyLoss) -> Spending:
    """What a stored answer takes: nothing, but of the limit of an analyst who sees it for the first time."""
    free, loss = zero_loss(budget), read_certified_loss(row)
    if limit is None or has_answer(row, analyst):
        return Spending(free, None if limit is None else free, zero_loss(loss))
    return Spending(free, convert_loss(read_charge(row["loss"]), budget), loss)


def choose_stored(
    rows: LedgerRows, certificate: Certificate, analyst: str, limit: PrivacyLoss | None, budget: PrivacyLoss
) -> Row | None:
    """The charge of the stored answer that is used for a certificate: at least as precise, at the same delta.

    An analyst without a limit gets the most precise. One with a limit gets what they have, or else the cheapest; and
    never one whose loss is above what they asked for, since all of it would count as learned.
    """
    charges = [row for row in rows.answered(certificate.answer_key, analyst) if is_precise_enough(row, certificate)]
    charges = [row for row in charges if has_answer(row, analyst) or _is_convertible(row, budget)]
    if limit is None:
        return min(charges, key=lambda row: (read_measurements(row)[0][1], row["number"]), default=None)
    asked = _price_request(certificate, budget)

    def rank(row: Row) -> tuple[object, ...]:
        known = has_answer(row, analyst)
        cost = amounts_of(zero_loss(budget) if known else convert_loss(read_charge(row["loss"]), budget))
        return not known, cost, read_measurements(row)[0][1], row["number"]

    affordable = (
        row
        for row in charges
        if has_answer(row, analyst)
        or (asked and fits(convert_loss(read_charge(row["loss"]), budget), zero_loss(budget), asked))
    )
    return min(affordable, key=rank, default=None)


def has_answer(row: Row, analyst: str) -> bool:
    """Whether the analyst has the answer to a charge of `Books.answered`: paid for, or counted as seen."""
    return bool(row["analyst"] == analyst or row["seen"])


def _price_request(certificate: Certificate, budget: PrivacyLoss) -> PrivacyLoss | None:
    """What was asked for, in the budget's currency; None: it cannot be counted there."""
    try:
        return price(certificate.loss, tuple(each.loss for each in certificate.measurements), budget)
    except LedgerError:
        return None


def _is_convertible(row: Row, budget: PrivacyLoss) -> bool:
    """Whether the loss of an earlier answer can be counted in today's currency."""
    try:
        convert_loss(read_charge(row["loss"]), budget)
    except LedgerError:
        return False
    return True
