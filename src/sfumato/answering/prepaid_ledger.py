"""One charge for questions that are chosen later. Part of the trusted perimeter."""

import hashlib
from decimal import Decimal
from fractions import Fraction

from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.sensitivity import Sensitivity
from sfumato.ledger.ledger import Ledger, Limit
from sfumato.ledger.spending import Spending


def prepay(ledger: Ledger, analyst: str, epsilon: Decimal, record: str) -> tuple[Ledger, Spending]:
    """Charge epsilon in one entry, and return a ledger in memory with epsilon as its limit, and what was taken.

    Claim: K-54. All releases on the returned ledger together satisfy epsilon-DP, which the first ledger has charged.
    Relies on: K-17, K-27, K-28.
    Checked by: tests/learning/test_prepaid_ledger.py::test_a_prepaid_ledger_spends_what_was_charged_and_no_more
    """
    loss, one = PureDP(epsilon), Fraction(1)
    prepaid = Ledger.create(None, ledger.population, Limit(loss))
    name = hashlib.sha256(f"prepaid\n{prepaid.ledger_id}".encode()).hexdigest()
    whole = Certified("prepaid", 0, Sensitivity(one, one), LaplaceNoise(one / Fraction(loss.epsilon)), loss)
    certificate = Certificate(name, name, ledger.population, 1, (whole,), loss)
    reservation, taken = ledger.charge(analyst, certificate, record)
    reservation.take(prepaid)
    ledger.void(reservation)
    return prepaid, taken
