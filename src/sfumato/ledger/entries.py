"""One entry of the ledger, its hash, and the check that it was not altered."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sfumato.canonical_text import write_canonical
from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.loss_sums import read_loss

Row = Mapping[str, Any]
SCHEMA_VERSION = 3  # of the tables; see `schema`
ANCHORS = ("open", "migrate", "adopt", "restore")  # kinds that say where the ledger is and whose key signs it
KINDS = (*ANCHORS, "limit", "neighbours", "charge", "answer", "seen")


def sha256(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits. Text that was not UTF-8 is hashed as its original bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `about` is the charge that an answer or a view belongs to; `budget` is the limit at that time."""

    number: int
    kind: str  # one of KINDS
    analyst: str
    plan_digest: str
    answer_key: str
    about: int | None
    loss: PrivacyLoss | None
    budget: PrivacyLoss
    spent: PrivacyLoss
    analyst_spent: PrivacyLoss | None
    payload_hash: str
    time: str
    previous: str
    hash: str
    version: int
    question: str
    signature: str

    @classmethod
    def from_row(cls, row: Row) -> "Entry":
        """The entry that a row of the table holds."""
        values = {field.name: row[field.name] for field in fields(cls)}
        for name in ("loss", "budget", "spent", "analyst_spent"):
            values[name] = read_loss(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry: its number and hash, the totals after it, and the number of the newest anchor (ANCHORS)."""

    number: int
    hash: str
    budget: PrivacyLoss
    spent: PrivacyLoss
    anchor: int = 1


_FIRST = (
    "number", "kind", "analyst", "plan_digest", "answer_key", "about", "loss", "budget", "spent", "analyst_spent",
    "payload_hash", "time",
)  # fmt: skip
_SECOND = (*_FIRST, "version", "question")
CHAINED = {1: _FIRST, 2: _SECOND, 3: _SECOND}  # by schema version: which columns of an entry are hashed


def hash_entry(previous: str, row: Row) -> str:
    """The hash of an entry: of the previous entry's hash and of its own columns."""
    chained = CHAINED.get(row["version"], _SECOND)  # the hash of a version that does not exist never matches
    return sha256(previous + "\n" + write_canonical({name: row[name] for name in chained}))


def is_altered(row: Row) -> bool:
    """Whether the row differs from what was hashed. The payload is checked only if it was read."""
    payload = row.get("payload")
    if payload is not None and sha256(str(payload)) != row["payload_hash"]:
        return True
    return bool(hash_entry(str(row["previous"]), row) != row["hash"])


def build_altered_error(number: int, what: str = "was altered") -> LedgerError:
    """The refusal to use an entry that fails its checks."""
    hint = "Run `sfumato ledger verify`, and restore the newest intact backup: `sfumato ledger restore`."
    return LedgerError("ledger-altered", f"Entry {number} of the ledger {what}.", hint)
