"""Charging a certificate, and closing its charge with an answer: one release per charge.

Part of the trusted perimeter. A charge has at most one answer. A charge without an answer can be resumed, because
nothing that was drawn for it has left: `charge_and_release` stores an answer before it returns any of it. A
charge whose answer failed after the draw is closed as void (claim K-28), and is never resumed. Two requests may hold
one charge. The first to close it decides: with an answer, which both get, or as void, and then neither gets one.
"""

from collections.abc import Callable

from sfumato.errors import KernelFault, LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.entries import Head, Row
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.ledger_tables import GET_ANSWER
from sfumato.ledger.loss_sums import add_losses, convert_loss, fits, make_zero_loss, price, read_loss
from sfumato.ledger.stored_answers import describe_certificate, is_void

Shares = tuple[PrivacyLoss, ...]
Refuse = Callable[[PrivacyLoss, PrivacyLoss, Shares], None]


class AlreadyAnswered(KernelFault):
    """This analyst has the answer to this plan: it is stored, and nothing is charged."""


def charge_certificate(  # noqa: PLR0917 - one caller
    rows: LedgerRows, now: Head, analyst: str, certificate: Certificate, question: str, refuse: Refuse
) -> tuple[Reservation, Head, PrivacyLoss | None]:
    """Charge a certificate, or resume the analyst's charge for it that has no answer; then the charged loss is None.

    `refuse(charge, own_spent, shares)` raises BudgetExceeded for a charge that does not fit; `append` checks it again.
    """
    payload = describe_certificate(certificate)
    before, newest = rows.find_charge_of_plan(certificate.plan_digest, analyst)
    own, shares = read_own_spent(newest, now.budget), list_shares(certificate)
    charge = price(certificate.loss, shares, now.budget)
    # the newest is enough: while one is open, no other is made
    if before and before["payload"] == payload and _has_paid(before, charge, now.budget):
        answer = rows.find_row(GET_ANSWER, charge=before["number"])
        if answer is None:
            return Reservation(before["number"], certificate), now, None
        if not is_void(answer):
            raise AlreadyAnswered("This charge has its answer already.")
    refuse(charge, own, shares)
    parts = {"plan_digest": certificate.plan_digest, "answer_key": certificate.answer_key, "payload": payload}
    parts |= {"analyst": analyst, "question": question}
    spent, own_spent = add_losses(now.spent, charge), add_losses(own, charge)
    head = rows.append(now, "charge", now.budget, spent, loss=charge, analyst_spent=own_spent, **parts)
    return Reservation(head.number, certificate), head, charge


def close_charge(
    rows: LedgerRows, now: Head, number: int, payload: str, certificate: Certificate | None = None
) -> tuple[Head, Row]:
    """Append the answer of a charge, or that it will have none. A charge is closed once.

    The charge must be of this certificate, if one is given.
    """
    charge, answer, newest = rows.find_charge(number)
    if charge is None or (certificate is not None and charge["payload"] != describe_certificate(certificate)):
        raise KernelFault("This answer was never charged.")
    if is_void(answer):
        message = "Another request for the same charge failed and closed it, so this request gets no answer either."
        raise LedgerError("charge-closed", message)  # the desk adds that it is spent, and that asking again costs
    if answer:
        raise AlreadyAnswered("This charge has its answer already.")
    parts = {name: charge[name] for name in ("analyst", "plan_digest", "answer_key")}
    parts |= {"about": number, "analyst_spent": read_own_spent(newest, now.budget), "payload": payload}
    return rows.append(now, "answer", now.budget, now.spent, **parts), charge


def _has_paid(before: Row, charge: PrivacyLoss, budget: PrivacyLoss) -> bool:
    """Whether an earlier charge was at least as large. It holds also if two plans have one digest."""
    paid = read_loss(before["loss"])
    return paid is not None and fits(charge, make_zero_loss(budget), convert_loss(paid, budget))


def list_shares(certificate: Certificate) -> Shares:
    """The loss of each measurement."""
    return tuple(measurement.loss for measurement in certificate.measurements)


def read_own_spent(newest: Row | None, budget: PrivacyLoss) -> PrivacyLoss:
    """What an analyst has spent, from their last entry, in the kind of the budget."""
    spent = read_loss(newest["analyst_spent"]) if newest else None
    return convert_loss(spent, budget) if spent else make_zero_loss(budget)
