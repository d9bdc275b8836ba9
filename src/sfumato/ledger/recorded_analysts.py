"""The analysts that a ledger's entries name, and what each has left of their own limit."""

from sfumato.catalog.analysts import find_analyst, read_analyst
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entry_queries import list_analysts
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.sublimits import Sublimits

MOST_NOTED = 32  # charges whose answers are being made


class RecordedAnalysts:
    """Names of analysts as they were recorded first, and what they had spent after the newest charges made here."""

    def __init__(self, sublimits: Sublimits) -> None:
        self._sublimits = sublimits
        self._names: tuple[str, ...] = ()  # that were seen in the entries
        self._own_spent: dict[int, PrivacyLoss] = {}  # by the number of a charge

    def find_name(self, rows: LedgerRows, analyst: str) -> str:
        """The name of this analyst's entries: as it was first recorded, or as the catalog lists it, or as it is given.

        It is looked up inside the transaction, so that two spellings of one name never become two analysts.
        """
        found = find_analyst(analyst, self._names)
        if found is None:
            self._names = tuple(list_analysts(rows))
            found = find_analyst(analyst, self._names)
        return found or self._sublimits.find_listed(analyst) or read_analyst(analyst)

    def list_limited(self, rows: LedgerRows, budget: PrivacyLoss) -> list[str]:
        """Every analyst with a limit of their own: those that the catalog lists, and those with the default limit."""
        others = [name for name in list_analysts(rows) if self._sublimits.find(name, budget) is not None]
        return [*self._sublimits.names(), *(name for name in others if self._sublimits.find_listed(name) is None)]

    def note_spent(self, charge: int, spent: PrivacyLoss) -> None:
        """Note what the charged analyst has spent with this charge."""
        self._own_spent = {**dict(list(self._own_spent.items())[1 - MOST_NOTED :]), charge: spent}

    def find_spent(self, charge: int) -> PrivacyLoss | None:
        """What the charged analyst had spent with this charge; None if it was not one of the newest made here."""
        return self._own_spent.get(charge)
