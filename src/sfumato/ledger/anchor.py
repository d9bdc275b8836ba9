"""Anchors: the entries that record where a ledger is and which key signs it.

The first entry is an anchor, and so is every entry by which the owner changes the place or the key.

A copy of the file is in another place than its newest anchor says. It is refused until the owner says that the copy
continues (`sfumato ledger adopt`), which is the next anchor.
"""

import json
import os
from dataclasses import dataclass
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger.entries import ANCHORS, Head, build_altered_error
from sfumato.ledger.entry_queries import find_newest_anchor, find_number, find_whole_entry
from sfumato.ledger.keyring import Keyring, Mark, is_signed
from sfumato.ledger.ledger_rows import LedgerRows

Place = dict[str, Any]  # path, device, inode of a file; empty for a ledger on a server or in memory


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the newest anchor records: which key signs from which entry on, and the place of the file."""

    number: int
    hash: str
    keys: tuple[tuple[int, str], ...]
    place: Place

    @property
    def key(self) -> str:
        """The key that signs now; empty if the ledger is not signed."""
        return self.keys[-1][1] if self.keys else ""


def locate_file(path: str | None) -> Place:
    """The place of a file: its path, device and inode."""
    if path is None:
        return {}
    found = os.stat(path)
    return {"path": os.path.abspath(path), "device": found.st_dev, "inode": found.st_ino}


def read_anchor(rows: LedgerRows, head: Head) -> Anchor:
    """The newest anchor, which is the one in force. The head row repeats its number, but is not hashed or signed."""
    newest = find_newest_anchor(rows)
    row = None if newest is None else find_whole_entry(rows, newest)
    if row is None or row["kind"] not in ANCHORS:
        raise build_altered_error(newest or 1, "is missing")
    if row["number"] != head.anchor:
        raise build_altered_error(row["number"], "does not agree with the totals")
    declared = json.loads(row["payload"])
    keys = tuple((int(number), str(key)) for number, key in declared.get("keys", []))
    return Anchor(row["number"], row["hash"], keys, declared.get("place", {}))


def refuse_unsigned(rows: LedgerRows, anchor: Anchor, seen: Mark | None) -> None:
    """Refuse an anchor that its own key did not sign, or that is older than one that this user has seen.

    Every ledger in a database is signed. An anchor without a key, or with keys that sign only later entries, would
    switch the signatures off.
    """
    row = find_whole_entry(rows, anchor.number) or {}
    in_force = bool(anchor.keys) and anchor.keys[-1][0] <= anchor.number
    if not in_force or not is_signed(anchor.hash, row.get("signature", ""), anchor.key):
        raise build_altered_error(anchor.number, "is not signed with the ledger's key")
    if seen is not None and seen.anchor != anchor.hash and (find_number(rows, seen.anchor) or 0) > anchor.number:
        raise build_altered_error(find_number(rows, seen.anchor) or 0)


def describe_anchor(
    keyring: Keyring | None, path: str | None, number: int, keys: tuple[tuple[int, str], ...] = ()
) -> Place:
    """The keys and the place that an anchor with this number records."""
    if keyring is not None and (not keys or keys[-1][1] != keyring.public_key):
        keys = (*keys, (number, keyring.public_key))
    return {"keys": [list(pair) for pair in keys], "place": locate_file(path)}


def refuse_another_key(anchor: Anchor, keyring: Keyring | None) -> Keyring:
    """Refuse a ledger whose key is not here. Otherwise return its key."""
    if keyring is None or keyring.public_key != anchor.key:
        hint = (
            "Copy the key from the machine or user that has it (SFUMATO_HOME); "
            "or, if the ledger continues here, run `sfumato ledger adopt`, which says which key signed what."
        )
        raise LedgerError("ledger-key", "The key that signs this ledger is not here.", hint)
    return keyring


def refuse_a_copy(anchor: Anchor, path: str | None) -> None:
    """Refuse a file that is not the one that its newest anchor records."""
    if path is None or not anchor.place:
        return
    found = locate_file(path)
    if os.stat(path).st_nlink > 1:
        hint = "Remove the other name (a hard link): SQLite would keep two journals for one ledger."
        raise LedgerError("ledger-copied", "The ledger's file has two names.", hint)
    same = found["inode"] == anchor.place.get("inode")
    if not same or all(found[part] != anchor.place.get(part) for part in ("device", "path")):
        message = f"This ledger is a copy: it belongs at {anchor.place.get('path')}."
        hint = (
            "If this copy is the one that continues (moved or restored), run `sfumato ledger adopt`. "
            "Two copies would be two budgets for the same people."
        )
        raise LedgerError("ledger-copied", message, hint)
