"""How a ledger begins, is opened, is brought up to date and is continued by its owner: each step is one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import (
    Anchor,
    Place,
    anchoring,
    read_anchor,
    refuse_a_copy,
    refuse_another_key,
    refuse_unsigned,
)
from sfumato.ledger.books import Books
from sfumato.ledger.charges import nothing, shortened, total
from sfumato.ledger.entries import Head, altered_error, canonical, loss_text
from sfumato.ledger.keyring import Keyring
from sfumato.ledger.schema import VERSION
from sfumato.ledger.seal import Seal
from sfumato.ledger.store import Store

NO_LEDGER = (
    "Check the address. If a ledger was there, its file is empty now or another database: "
    "restore it from the newest backup, with `sfumato ledger restore`."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the first entry says a ledger is: its id, and the people whose budget it is."""

    ledger_id: str
    population: str


def found(
    store: Store, keyring: Keyring | None, identity: Identity, limit: PrivacyLoss, declared: Mapping[str, str]
) -> Head:
    """Make the tables and the first entry, where there are none. `declared` is what else the first entry says."""
    with store.write() as books:
        if books.has_tables():
            hint = "Open it with its ledger_id, or choose another place."
            raise LedgerError("ledger-exists", "There is a ledger at this address already.", hint)
        books.make_tables()
        parts = {
            **declared,
            "ledger_id": identity.ledger_id,
            "population": identity.population,
            "limit": loss_text(limit),
            **anchoring(keyring, store.path, 1),
        }
        _seal(store, books, keyring, parts)
        return books.append(None, "open", limit, nothing(limit), payload=canonical(parts))


def identity_of(store: Store) -> Identity | None:
    """What the ledger at this address says it is, before anything is believed; None where there is none."""
    with store.read() as books:
        return _identity(books) if books.has_tables() else None


def admit(store: Store, identity: Identity) -> tuple[Keyring, Anchor]:
    """Check that this ledger is the one that is meant, here, with its key; migrate an older one.

    The key and the anchor are returned. From then on, entries are signed, and unsigned ones are refused.
    """
    with store.read() as books:
        version = refuse_foreign(books, identity)
    keyring = Keyring.find(identity.ledger_id)
    if version < VERSION:
        keyring = migrate(store, identity)
    with store.read() as books:
        books.row(1)  # whose hash is checked now
        anchor = read_anchor(books, books.head(lock=False))
        refuse_unsigned(books, anchor, keyring.mark() if keyring else None)
    refuse_a_copy(anchor, store.path)
    kept = refuse_another_key(anchor, keyring)
    store.seal = Seal(kept, anchor.keys)
    return kept, anchor


def look_into(store: Store, identity: Identity) -> Keyring | None:
    """Prepare to read this ledger as it is, broken or not; its key, if it is here. Nothing is written."""
    with store.read() as books:
        refuse_missing(books)
        version = books.version() if books.first_payload() is None else refuse_foreign(books, identity)
    if version < VERSION:
        hint = "Open the dataset once where it can be written: the ledger is then brought up to date."
        raise LedgerError("ledger-outdated", "This ledger was written by an earlier version of sfumato.", hint)
    keyring = Keyring.find(identity.ledger_id)
    try:
        with store.read() as books:
            anchor = read_anchor(books, books.head(lock=False))
            refuse_unsigned(books, anchor, keyring.mark() if keyring else None)
        store.seal = Seal(None, anchor.keys)
    except LedgerError:  # an audit names what is broken; totals are not believed without a signature
        store.seal = Seal(None, ((1, keyring.public_key),)) if keyring else None
    return keyring


def migrate(store: Store, identity: Identity) -> Keyring:
    """Bring an older ledger up to date, and give it a key. That is an entry, which from then on is signed."""
    keyring = Keyring.make(identity.ledger_id)
    seen = keyring.mark()
    if seen is not None:
        hint = f"Use the ledger at {seen.place}; or, if this older one is to continue, run `sfumato ledger adopt`."
        raise LedgerError("ledger-older", "This ledger was brought up to date before, and this copy was not.", hint)
    with store.write() as books:
        before = books.version()
        if before < VERSION:  # another process may have been first
            continue_with(books, store, keyring, "migrate", {"from": before, "to": VERSION})
    return keyring


def continue_with(  # noqa: PLR0917 (its callers name what they pass)
    books: Books,
    store: Store,
    keyring: Keyring | None,
    kind: str,
    declared: dict[str, Any],
    carried: PrivacyLoss | None = None,
    place: Place | None = None,
) -> Head:
    """Append an anchor: from here on the ledger is at this place, and is signed with this key.

    `carried` is what was spent in entries that are missing: it stays spent.
    """
    version = books.version()
    if version < VERSION:
        books.alter_tables(version)
    now = books.head(lock=True)
    keys = read_anchor(books, now).keys
    parts = {**declared, **anchoring(keyring, store.path, now.number + 1, keys)}
    if place is not None:
        parts["place"] = place
    if carried is not None:
        parts["carried"] = loss_text(carried)
    _seal(store, books, keyring, parts)
    spent = shortened(now.spent if carried is None else total(now.spent, carried))
    return books.append(now, kind, now.budget, spent, payload=canonical(parts))


def _seal(store: Store, books: Books, keyring: Keyring | None, declared: Mapping[str, Any]) -> None:
    """Sign from here on, as the anchor declares."""
    if keyring is not None:
        store.seal = books.seal = Seal(keyring, tuple((number, key) for number, key in declared["keys"]))


def refuse_foreign(books: Books, wanted: Identity) -> int:
    """The version of the tables; a missing or foreign ledger is refused."""
    refuse_missing(books)
    if _identity(books) != wanted:
        hint = "Check ledger_id and population in the catalog, and the ledger's address."
        raise LedgerError("ledger-foreign", "This ledger belongs to another dataset.", hint)
    return books.version()


def refuse_missing(books: Books) -> None:
    """Refuse a database without a ledger."""
    if not books.has_tables():
        raise LedgerError("ledger-missing", "There is no ledger at this address.", NO_LEDGER)


def _identity(books: Books) -> Identity:
    payload = books.first_payload()
    if payload is None:
        raise altered_error(1, "is missing")
    declared = json.loads(payload)
    return Identity(str(declared["ledger_id"]), str(declared["population"]))
