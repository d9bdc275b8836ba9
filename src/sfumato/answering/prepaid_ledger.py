"""One charge for questions that are chosen later. Part of the trusted perimeter."""

import hashlib

from sfumato.errors import KernelFault
from sfumato.kernel.certify import Certificate
from sfumato.kernel.losses import ApproxDP, PrivacyLoss
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.loss_sums import convert_loss, fits, make_zero_loss
from sfumato.ledger.spending import Spending


def prepay(ledger: Ledger, analyst: str, loss: PrivacyLoss, limit: PrivacyLoss, record: str) -> tuple[Ledger, Spending]:
    """Charge a loss in one entry, and return a ledger in memory with its own limit, and what the charge took.

    Claim: K-54. All releases on the returned ledger together satisfy `loss`, which the first ledger has charged.
    Relies on: K-16, K-17, K-27, K-28.
    Checked by: tests/learning/test_prepaid_ledger.py::test_a_prepaid_ledger_spends_what_was_charged_and_no_more
    """
    implied = limit.to_approx(loss.delta) if isinstance(loss, ApproxDP) else convert_loss(limit, loss)
    if not fits(implied, make_zero_loss(loss), loss):
        raise KernelFault("The limit of a prepaid ledger must imply the loss that is charged.")
    prepaid = Ledger.create(None, ledger.population, Limit(limit))
    name = hashlib.sha256(f"prepaid\n{prepaid.ledger_id}".encode()).hexdigest()
    certificate = Certificate((), ledger.population, 0, (), loss, plan_digest=name, answer_key=name)
    reservation, taken = ledger.charge(analyst, certificate, record)
    ledger.void(reservation)
    return prepaid, taken
