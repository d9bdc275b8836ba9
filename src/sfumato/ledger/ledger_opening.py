"""How a ledger begins, is opened, is brought up to date and is continued by its owner: each step is one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import LedgerError
from sfumato.kernel.canonical_text import canonical_text
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import (
    Anchor,
    Place,
    describe_anchor,
    read_anchor,
    refuse_a_copy,
    refuse_another_key,
    refuse_unsigned,
)
from sfumato.ledger.database import Database
from sfumato.ledger.entries import Head, altered_error, write_loss
from sfumato.ledger.keyring import Keyring
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, shorten, zero_loss
from sfumato.ledger.schema import VERSION
from sfumato.ledger.signatures import Signatures

NO_LEDGER = (
    "Check the address. If a ledger was there, its file is empty now or another database: "
    "restore it from the newest backup, with `sfumato ledger restore`."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the first entry says a ledger is: its id, and the people whose budget it is."""

    ledger_id: str
    population: str


def begin_ledger(
    database: Database, keyring: Keyring | None, identity: Identity, limit: PrivacyLoss, declared: Mapping[str, str]
) -> Head:
    """Make the tables and the first entry, where there are none. `declared` is what else the first entry says."""
    with database.write() as rows:
        if rows.has_tables():
            hint = "Open it with its ledger_id, or choose another place."
            raise LedgerError("ledger-exists", "There is a ledger at this address already.", hint)
        rows.make_tables()
        parts = {
            **declared,
            "ledger_id": identity.ledger_id,
            "population": identity.population,
            "limit": write_loss(limit),
            **describe_anchor(keyring, database.path, 1),
        }
        _start_signing(database, rows, keyring, parts)
        return rows.append(None, "open", limit, zero_loss(limit), payload=canonical_text(parts))


def read_identity(database: Database) -> Identity | None:
    """What the ledger at this address says it is, before anything is believed; None where there is none."""
    with database.read() as rows:
        return _read_first_entry(rows) if rows.has_tables() else None


def admit(database: Database, identity: Identity) -> tuple[Keyring, Anchor]:
    """Check that this ledger is the one that is meant, here, with its key; migrate an older one.

    The key and the anchor are returned. From then on, entries are signed, and unsigned ones are refused.
    """
    with database.read() as rows:
        version = refuse_foreign(rows, identity)
    keyring = Keyring.find(identity.ledger_id)
    if version < VERSION:
        keyring = migrate(database, identity)
    with database.read() as rows:
        rows.row(1)  # whose hash is checked now
        anchor = read_anchor(rows, rows.head(lock=False))
        refuse_unsigned(rows, anchor, keyring.read_mark() if keyring else None)
    refuse_a_copy(anchor, database.path)
    kept = refuse_another_key(anchor, keyring)
    database.seal = Signatures(kept, anchor.keys)
    return kept, anchor


def prepare_reading(database: Database, identity: Identity) -> Keyring | None:
    """Prepare to read this ledger as it is, broken or not; its key, if it is here. Nothing is written."""
    with database.read() as rows:
        refuse_missing(rows)
        version = rows.version() if rows.first_payload() is None else refuse_foreign(rows, identity)
    if version < VERSION:
        hint = "Open the dataset once where it can be written: the ledger is then brought up to date."
        raise LedgerError("ledger-outdated", "This ledger was written by an earlier version of sfumato.", hint)
    keyring = Keyring.find(identity.ledger_id)
    try:
        with database.read() as rows:
            anchor = read_anchor(rows, rows.head(lock=False))
            refuse_unsigned(rows, anchor, keyring.read_mark() if keyring else None)
        database.seal = Signatures(None, anchor.keys)
    except LedgerError:  # an audit names what is broken; totals are not believed without a signature
        database.seal = Signatures(None, ((1, keyring.public_key),)) if keyring else None
    return keyring


def migrate(database: Database, identity: Identity) -> Keyring:
    """Bring an older ledger up to date, and give it a key. That is an entry, which from then on is signed."""
    keyring = Keyring.make(identity.ledger_id)
    seen = keyring.read_mark()
    if seen is not None:
        hint = f"Use the ledger at {seen.place}; or, if this older one is to continue, run `sfumato ledger adopt`."
        raise LedgerError("ledger-older", "This ledger was brought up to date before, and this copy was not.", hint)
    with database.write() as rows:
        before = rows.version()
        if before < VERSION:  # another process may have been first
            append_anchor(rows, database, keyring, "migrate", {"from": before, "to": VERSION})
    return keyring


def append_anchor(  # noqa: PLR0917 (its callers name what they pass)
    rows: LedgerRows,
    database: Database,
    keyring: Keyring | None,
    kind: str,
    declared: dict[str, Any],
    carried: PrivacyLoss | None = None,
    place: Place | None = None,
) -> Head:
    """Append an anchor: from here on the ledger is at this place, and is signed with this key.

    `carried` is what was spent in entries that are missing: it stays spent.
    """
    version = rows.version()
    if version < VERSION:
        rows.alter_tables(version)
    now = rows.head(lock=True)
    keys = read_anchor(rows, now).keys
    parts = {**declared, **describe_anchor(keyring, database.path, now.number + 1, keys)}
    if place is not None:
        parts["place"] = place
    if carried is not None:
        parts["carried"] = write_loss(carried)
    _start_signing(database, rows, keyring, parts)
    spent = shorten(now.spent if carried is None else add_losses(now.spent, carried))
    return rows.append(now, kind, now.budget, spent, payload=canonical_text(parts))


def _start_signing(database: Database, rows: LedgerRows, keyring: Keyring | None, declared: Mapping[str, Any]) -> None:
    """Sign from here on, as the anchor declares."""
    if keyring is not None:
        database.seal = rows.seal = Signatures(keyring, tuple((number, key) for number, key in declared["keys"]))


def refuse_foreign(rows: LedgerRows, wanted: Identity) -> int:
    """The version of the tables; a missing or foreign ledger is refused."""
    refuse_missing(rows)
    if _read_first_entry(rows) != wanted:
        hint = "Check ledger_id and population in the catalog, and the ledger's address."
        raise LedgerError("ledger-foreign", "This ledger belongs to another dataset.", hint)
    return rows.version()


def refuse_missing(rows: LedgerRows) -> None:
    """Refuse a database without a ledger."""
    if not rows.has_tables():
        raise LedgerError("ledger-missing", "There is no ledger at this address.", NO_LEDGER)


def _read_first_entry(rows: LedgerRows) -> Identity:
    payload = rows.first_payload()
    if payload is None:
        raise altered_error(1, "is missing")
    declared = json.loads(payload)
    return Identity(str(declared["ledger_id"]), str(declared["population"]))
