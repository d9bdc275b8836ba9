"""Signatures on entries: made with the ledger's key, and checked once in each process."""

from sfumato.errors import LedgerError
from sfumato.ledger.entries import Row
from sfumato.ledger.keyring import Keyring, is_signed

MOST_KNOWN = 100_000


class Signatures:
    """Signs new entries, and tells whether an entry was signed with the key that was in force."""

    def __init__(self, keyring: Keyring | None, keys: tuple[tuple[int, str], ...]) -> None:
        self._keyring = keyring
        self._keys = keys
        self._known: set[tuple[str, str]] = set()  # of (hash, signature) that hold: a check takes 0.1 ms

    def sign(self, hash_: str) -> str:
        """The signature of an entry's hash."""
        if self._keyring is None:
            raise LedgerError("ledger-read-only", "This ledger is open to be read only.", "Open it with its key.")
        signature = self._keyring.sign(hash_)
        self._remember(hash_, signature)
        return signature

    def holds(self, row: Row) -> bool:
        """Whether the entry was signed. Entries before the first key are not: only the chain speaks for them."""
        key = next((key for first, key in reversed(self._keys) if row["number"] >= first), "")
        if not key or (row["hash"], row["signature"]) in self._known:
            return True
        if not is_signed(row["hash"], row["signature"], key):
            return False
        self._remember(row["hash"], row["signature"])
        return True

    def _remember(self, hash_: str, signature: str) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known.add((hash_, signature))
