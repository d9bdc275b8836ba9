"""The entry for the first view of a stored answer by an analyst who was not charged for it."""

from sfumato.ledger.charging import read_own_spent
from sfumato.ledger.entries import Head, Row
from sfumato.ledger.entry_queries import find_newest_of, has_seen
from sfumato.ledger.index_contents import index_release
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, convert_loss
from sfumato.ledger.spending import read_charge
from sfumato.ledger.sublimits import Sublimits


def count_view(  # noqa: PLR0917 - one caller
    rows: LedgerRows, now: Head, charge: Row, answer: int, analyst: str, sublimits: Sublimits
) -> tuple[Head, bool]:
    """Count an answer on the own limit of an analyst who sees it for the first time. The total does not change.

    False: the analyst has it already, since it was counted meanwhile. If it does not fit under the analyst's limit,
    BudgetExceeded is raised.
    """
    if charge["analyst"] == analyst or has_seen(rows, charge["number"], analyst):
        return now, False
    loss = convert_loss(read_charge(charge["loss"]), now.budget)
    own = read_own_spent(find_newest_of(rows, analyst), now.budget)
    sublimits.refuse_over_limit(loss, own, analyst, now.budget, ())
    parts = {name: charge[name] for name in ("plan_digest", "answer_key")}
    parts |= {"analyst": analyst, "about": charge["number"], "loss": loss}
    head = rows.append(now, "seen", now.budget, now.spent, analyst_spent=add_losses(own, loss), **parts)
    index_release(rows, head.number, charge, answer, analyst)
    return head, True
