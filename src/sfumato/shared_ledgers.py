"""Shared ledgers in memory: one per named population, until the process ends.

All data about the same people, in one process, spends one budget. These ledgers are never closed or dropped, because
what was spent stays spent.
"""

import threading
from collections.abc import Mapping

from sfumato.catalog.names import fold
from sfumato.errors import LedgerError
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.fork_gate import GATE
from sfumato.ledger.ledger import Ledger, Limit

_LEDGERS: dict[str, Ledger] = {}
_LOCK = threading.Lock()
SECRET = SYSTEM.take(32).tobytes()  # of this process: the key of data versions


def open_shared_ledger(
    population: str, limit: PrivacyLoss, sublimits: Mapping[str, PrivacyLoss], neighbours: Neighbours
) -> Ledger:
    """Open the one ledger of this population in this process. It is made at the first call."""
    with GATE, _LOCK:  # a fork waits until the lock is free: a child would wait for it for ever
        found = _LEDGERS.get(fold(population))
        if found is None:
            found = Ledger.create(None, population, Limit(limit), sublimits, neighbours)
            _LEDGERS[fold(population)] = found
            return found
    if found.population != population:
        hint = "Use the same spelling, or name another population."
        raise LedgerError("ledger-foreign", f"The population {found.population!r} is spelled differently here.", hint)
    if found.totals().limit != limit or not found.has_sublimits(sublimits):
        hint = "Give the same budget and analysts as before, or name another population."
        message = f"The population {population!r} has another budget in this process."
        raise LedgerError("ledger-limit", message, hint)
    found.agree_on(neighbours)
    return found
