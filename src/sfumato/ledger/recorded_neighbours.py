"""The neighbouring relation of a ledger. Losses under different relations cannot be added, so a ledger has one.

The first entry records it. A ledger that was begun before Sfumato recorded it gets an entry for it when a dataset opens
it next.
"""

import json

from sfumato.canonical_text import write_canonical
from sfumato.errors import LedgerError
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.entries import Head, build_altered_error
from sfumato.ledger.entry_queries import find_neighbours_entry, find_whole_entry
from sfumato.ledger.ledger_rows import LedgerRows


def describe_neighbours(neighbours: Neighbours | None) -> dict[str, str]:
    """The part of an entry's payload that records the neighbours."""
    return {} if neighbours is None else {"neighbours": neighbours.value}


def read_neighbours(rows: LedgerRows) -> Neighbours | None:
    """The neighbours that the entries record; None if they record none."""
    first, later = find_whole_entry(rows, 1), find_neighbours_entry(rows)
    if first is None:
        raise build_altered_error(1, "is missing")
    declared = json.loads(first["payload"]).get("neighbours")
    if declared is None and later is not None:
        declared = json.loads(later["payload"])["neighbours"]
    return None if declared is None else Neighbours.read(declared)


def record_neighbours(rows: LedgerRows, now: Head, neighbours: Neighbours) -> Head:
    """Append the entry that records the neighbours."""
    return rows.append(
        now, "neighbours", now.budget, now.spent, payload=write_canonical(describe_neighbours(neighbours))
    )


def refuse_other_neighbours(found: Neighbours, wanted: Neighbours) -> None:
    """Refuse a dataset whose neighbours differ from the recorded ones."""
    if found is not wanted:
        message = f"The ledger records neighbours = {found.value!r}, and {wanted.value!r} is declared here."
        hint = (
            f"Declare neighbours = {found.value!r}. Losses under different relations cannot be added, so a ledger "
            "has one relation."
        )
        raise LedgerError("ledger-neighbours", message, hint)
