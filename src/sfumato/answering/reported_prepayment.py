"""A prepayment that says what became of its charge if it is interrupted (Ctrl-C). No privacy proof depends on it."""

from sfumato.answering.prepaid_ledger import prepay
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.spending import Spending

NEWEST = 20  # entries that are searched for the charge
NOT_CHARGED = "Nothing was charged."


def prepay_and_report(
    ledger: Ledger, analyst: str, loss: PrivacyLoss, limit: PrivacyLoss, record: str
) -> tuple[Ledger, Spending]:
    """`prepay`. An interrupt gets a note: whether the charge was made, which is then spent and cannot be used."""
    before, _ = ledger.head()
    try:
        return prepay(ledger, analyst, loss, limit, record)
    except Exception:
        raise
    except BaseException as interrupt:  # KeyboardInterrupt, SystemExit and the like
        charged = [
            entry.number for entry in ledger.entries(NEWEST) if entry.number > before and entry.question == record
        ]
        interrupt.add_note(
            f"Entry {charged[0]} was charged and is spent: the interrupt came before anything could be asked on it. "
            "Starting again is another charge."
            if charged
            else NOT_CHARGED
        )
        raise
