"""How far a ledger was verified: a note next to its key, and signed with it."""

import json

from sfumato.canonical_text import write_canonical
from sfumato.ledger.audit import Seen
from sfumato.ledger.entries import Head
from sfumato.ledger.keyring import Keyring, is_signed

NOTE = "verified"


def read_verified(keyring: Keyring) -> Seen | None:
    """The last entry of the last verification; None if there was none, or if the note was altered."""
    note = keyring.read_note(NOTE)
    try:
        written = json.loads(note or "")
        number, hash_, signature = int(written["number"]), str(written["hash"]), str(written["signature"])
    except (ValueError, LookupError, TypeError):
        return None
    return (number, hash_) if is_signed(_write_claim(number, hash_), signature, keyring.public_key) else None


def remember_verified(keyring: Keyring, head: Head) -> None:
    """Note that all entries up to this head are correct."""
    signature = keyring.sign(_write_claim(head.number, head.hash))
    keyring.try_store_note(NOTE, write_canonical({"number": head.number, "hash": head.hash, "signature": signature}))


def _write_claim(number: int, hash_: str) -> str:
    return f"verified up to {number} {hash_}"
