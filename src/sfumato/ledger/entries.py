"""One line of the ledger: how its losses are written, how it is hashed, and how an altered one is told."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import lru_cache
from typing import Any, assert_never

from sfumato.errors import KernelFault, LedgerError
from sfumato.kernel.canonical_text import canonical_text
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP

Row = Mapping[str, Any]
ANCHORS = ("open", "migrate", "adopt", "restore")  # kinds that say where the ledger is and whose key signs it
KINDS = (*ANCHORS, "limit", "neighbours", "charge", "answer", "seen")


def sha256(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits; damaged text is hashed as the bytes that it was read from."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def write_loss(loss: PrivacyLoss | None) -> str:
    """A loss as it is kept: every digit, never a float."""
    match loss:
        case None:
            return ""
        case PureDP(epsilon):
            return canonical_text({"epsilon": plain(epsilon)})
        case ApproxDP(epsilon, delta):
            return canonical_text({"delta": plain(delta), "epsilon": plain(epsilon)})
        case ZCDP(rho, delta):
            return canonical_text({"delta": plain(delta), "rho": plain(rho)})
        case _:
            assert_never(loss)


@lru_cache(maxsize=4096)
def read_loss(text: str) -> PrivacyLoss | None:
    """The loss that `loss_text` wrote."""
    if not text:
        return None
    try:
        parts = {name: Decimal(digits) for name, digits in json.loads(text).items()}
        if "rho" in parts:
            return ZCDP(parts["rho"], parts["delta"])
        return ApproxDP(parts["epsilon"], parts["delta"]) if "delta" in parts else PureDP(parts["epsilon"])
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        hint = "Run `sfumato ledger verify`, and restore the ledger from a backup that is not older."
        raise LedgerError("ledger-altered", "The ledger holds an amount that it never wrote.", hint) from None


def read_charge(text: str) -> PrivacyLoss:
    """The loss of a charge, which always has one."""
    loss = read_loss(text)
    if loss is None:
        raise KernelFault("A charge has a loss.")
    return loss


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `about` is the charge that an answer or a view belongs to; `budget` is the limit then."""

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
    def of(cls, row: Row) -> "Entry":
        """The entry that a row of the table holds."""
        values = {field.name: row[field.name] for field in fields(cls)}
        for name in ("loss", "budget", "spent", "analyst_spent"):
            values[name] = read_loss(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry: its number and hash, the totals after it, and the entry that anchors the ledger (ANCHORS)."""

    number: int
    hash: str
    budget: PrivacyLoss
    spent: PrivacyLoss
    anchor: int = 1


_FIRST = (
    "number", "kind", "analyst", "plan_digest", "answer_key", "about", "loss", "budget", "spent", "analyst_spent",
    "payload_hash", "time",
)  # fmt: skip
CHAINED = {1: _FIRST, 2: (*_FIRST, "version", "question")}  # by the version of the schema: what is hashed of an entry


def chain_hash(previous: str, row: Row) -> str:
    """The hash of an entry: of the hash before it and of its own fields."""
    chained = CHAINED.get(row["version"], CHAINED[2])  # a version that is none is hashed, and so told
    return sha256(previous + "\n" + canonical_text({name: row[name] for name in chained}))


def is_altered(row: Row) -> bool:
    """Whether the row is no longer what was hashed."""
    payload = row.get("payload")  # which is not always read
    if payload is not None and sha256(str(payload)) != row["payload_hash"]:
        return True
    return bool(chain_hash(str(row["previous"]), row) != row["hash"])


def altered_error(number: int, what: str = "was altered") -> LedgerError:
    """The refusal to work from an entry that does not hold."""
    hint = "Run `sfumato ledger verify`, and restore the ledger from a backup that is not older."
    return LedgerError("ledger-altered", f"Entry {number} of the ledger {what}.", hint)
