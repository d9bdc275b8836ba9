"""Signatures of entries: made with the ledger's key, and checked once per process and entry."""

from collections import OrderedDict
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger.entries import Row, build_altered_error, is_altered
from sfumato.ledger.keyring import Keyring, is_signed

MOST_REMEMBERED = 100_000
UNREAD = ("payload", "anchor")  # what a row of the ledger's entries may lack
MOST_WRITTEN = 16  # rows of this process: an answer reads its own charge, the next charge reads that answer


class Signatures:
    """Signs new entries, and checks that an entry was signed with the key that was in force at its number."""

    def __init__(self, keyring: Keyring | None, keys: tuple[tuple[int, str], ...]) -> None:
        self._keyring = keyring
        self._keys = keys
        self._valid: set[tuple[str, str]] = set()  # (hash, signature) pairs that were checked: a check takes 0.1 ms
        self._written: OrderedDict[int, Row] = OrderedDict()  # the newest rows that this process hashed and signed

    def sign(self, row: dict[str, Any]) -> str:
        """The signature of an entry. The row, with this signature, is what reading it later is compared with."""
        if self._keyring is None:
            raise LedgerError("ledger-read-only", "This ledger is open for reading only.", "Open it with its key.")
        signature = self._keyring.sign(row["hash"])
        self._remember(row["hash"], signature)
        self._written[row["number"]] = {**row, "signature": signature}
        if len(self._written) > MOST_WRITTEN:
            self._written.popitem(last=False)
        return signature

    def is_valid(self, row: Row) -> bool:
        """Whether the entry was signed. Entries before the first key have no signature: only the chain covers them."""
        key = next((key for first, key in reversed(self._keys) if row["number"] >= first), "")
        if not key or (row["hash"], row["signature"]) in self._valid:
            return True
        if not is_signed(row["hash"], row["signature"], key):
            return False
        self._remember(row["hash"], row["signature"])
        return True

    def is_as_written(self, row: Row) -> bool:
        """Whether the row is what this process wrote under that number. The payload counts only if it was read."""
        written = self._written.get(row["number"])
        if written is None or row.get("payload") not in (None, written["payload"]):
            return False
        return all(row[name] == value for name, value in written.items() if name not in UNREAD)

    def _remember(self, hash_: str, signature: str) -> None:
        if len(self._valid) >= MOST_REMEMBERED:
            self._valid.clear()
        self._valid.add((hash_, signature))


def check_entry(row: Row, signatures: Signatures | None) -> Row:
    """The entry itself. An altered one, or one that is not signed with the ledger's key, is refused."""
    if signatures and signatures.is_as_written(row):
        return row
    if is_altered(row):
        raise build_altered_error(row["number"])
    if signatures and not signatures.is_valid(row):
        raise build_altered_error(row["number"], "is not signed with the ledger's key")
    return row


def check_head(row: Row | None, signatures: Signatures | None) -> Row:
    """The last entry beside the head row. It is refused if it was altered, or if the two do not agree."""
    if row is None:
        raise LedgerError("ledger-altered", "The ledger has lost its totals.", "Restore it from its latest backup.")
    number, claimed = row["number"] or 0, row["head_number"]
    if number:
        check_entry(row, signatures)
    if number != claimed:
        what = "is missing" if number < claimed else "was never added by the ledger"
        raise build_altered_error(min(number, claimed) + 1, what)
    if not number or any(row[name] != row[f"head_{name}"] for name in ("hash", "budget", "spent")):
        raise build_altered_error(number, "does not agree with the totals")
    return row
