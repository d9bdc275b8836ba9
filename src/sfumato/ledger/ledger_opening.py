"""Beginning a ledger, checking it before it is used, migrating it, and continuing it. Each step is one transaction."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.canonical_text import write_canonical
from sfumato.errors import LedgerError
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
from sfumato.ledger.audit import refuse_older
from sfumato.ledger.database import Database
from sfumato.ledger.entries import SCHEMA_VERSION, Head, build_altered_error
from sfumato.ledger.entry_queries import find_entry, read_first_payload
from sfumato.ledger.keyring import Keyring
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, make_zero_loss, write_loss
from sfumato.ledger.schema import alter_tables, has_tables, make_tables, read_version
from sfumato.ledger.server_address import make_schema
from sfumato.ledger.signatures import Signatures
from sfumato.ledger.spending import shorten

FIRST_SIGNED = 2  # the first version of the tables that holds signatures; older ledgers cannot be read as they are
NO_LEDGER = (
    "Check the address. If a ledger was there, its file is now empty or another database: "
    "restore the newest backup with `sfumato ledger restore`."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The id of a ledger, and the population whose budget it is. The first entry records both."""

    ledger_id: str
    population: str


def begin_ledger(
    database: Database, keyring: Keyring | None, identity: Identity, limit: PrivacyLoss, declared: Mapping[str, str]
) -> Head:
    """Make the tables and the first entry. `declared` is what else the first entry says."""
    with database.write() as rows:
        make_schema(rows.connection, database.schema)
        if has_tables(rows):
            hint = "Open it with its ledger_id, or choose another place."
            raise LedgerError("ledger-exists", "There is a ledger at this address already.", hint)
        make_tables(rows)
        parts = {
            **declared,
            "ledger_id": identity.ledger_id,
            "population": identity.population,
            "limit": write_loss(limit),
            **describe_anchor(keyring, database.path, 1),
        }
        _start_signing(database, rows, keyring, parts)
        return rows.append(None, "open", limit, make_zero_loss(limit), payload=write_canonical(parts))


def read_identity(url: str) -> Identity | None:
    """The identity that the ledger at this address claims, unchecked; None if there is no ledger."""
    database = Database(url, must_exist=False, read_only=True)
    try:
        if database.path is not None and not os.path.exists(database.path):
            return None
        with database.read() as rows:
            return _read_first_entry(rows) if has_tables(rows) else None
    finally:
        database.close()


def admit(database: Database, identity: Identity) -> tuple[Keyring, Anchor]:
    """Check the ledger before it is charged: its id, its place, and its key. Migrate an older one.

    From then on, new entries are signed, and unsigned ones are refused. The key and the anchor are returned.
    """
    with database.read() as rows:
        version = refuse_foreign(rows, identity)
    keyring = Keyring.find(identity.ledger_id)
    if version < FIRST_SIGNED:
        keyring, version = migrate_unsigned(database, identity), SCHEMA_VERSION
    with database.read() as rows:
        find_entry(rows, 1)  # checks its hash
        anchor = read_anchor(rows, rows.read_head(lock=False))
        refuse_unsigned(rows, anchor, keyring.read_mark() if keyring else None)
    refuse_a_copy(anchor, database.path)
    key = refuse_another_key(anchor, keyring)
    database.signatures = Signatures(key, anchor.keys)
    return key, anchor if version == SCHEMA_VERSION else migrate(database, key)


def prepare_reading(database: Database, identity: Identity) -> Keyring | None:
    """Prepare to read this ledger as it is, broken or not. Its key is returned, if it is here. Nothing is written."""
    with database.read() as rows:
        refuse_missing(rows)
        version = read_version(rows) if read_first_payload(rows) is None else refuse_foreign(rows, identity)
    if version < FIRST_SIGNED:
        hint = "Open the dataset once where it can be written: this brings the ledger up to date."
        raise LedgerError("ledger-outdated", "This ledger was written by an earlier version of sfumato.", hint)
    keyring = Keyring.find(identity.ledger_id)
    try:
        with database.read() as rows:
            anchor = read_anchor(rows, rows.read_head(lock=False))
            refuse_unsigned(rows, anchor, keyring.read_mark() if keyring else None)
        database.signatures = Signatures(None, anchor.keys)
    except LedgerError:  # an audit names what is broken; totals are not believed without a signature
        database.signatures = Signatures(None, ((1, keyring.public_key),)) if keyring else None
    return keyring


def migrate_unsigned(database: Database, identity: Identity) -> Keyring:
    """Bring a ledger of the first version up to date, and give it a key. It is an entry, the first that is signed."""
    keyring = Keyring.make(identity.ledger_id)
    seen = keyring.read_mark()
    if seen is not None:
        hint = f"Use the ledger at {seen.place}. If this older one is to continue, run `sfumato ledger adopt`."
        raise LedgerError("ledger-older", "This ledger was brought up to date before, and this copy was not.", hint)
    with database.write() as rows:
        _append_migration(database, rows, keyring)
    return keyring


def migrate(database: Database, keyring: Keyring) -> Anchor:
    """Bring the tables of a signed ledger up to date. It is an entry, so that older programs stop writing."""
    with database.write() as rows:
        head, mark = rows.read_head(lock=True), keyring.read_mark()
        if mark is not None:
            refuse_older(rows, head, (mark.number, mark.hash))
        _append_migration(database, rows, keyring)
        return read_anchor(rows, rows.read_head(lock=False))


def _append_migration(database: Database, rows: LedgerRows, keyring: Keyring) -> None:
    before = read_version(rows)
    if before < SCHEMA_VERSION:  # another process may have been first
        append_anchor(rows, database, keyring, "migrate", {"from": before, "to": SCHEMA_VERSION})


def append_anchor(  # noqa: PLR0917 - its callers name what they pass
    rows: LedgerRows,
    database: Database,
    keyring: Keyring | None,
    kind: str,
    declared: dict[str, Any],
    carried: PrivacyLoss | None = None,
    place: Place | None = None,
) -> Head:
    """Append an anchor: from here on the ledger is at this place and is signed with this key.

    `carried` is what was spent in entries that are missing; it stays spent.
    """
    version = read_version(rows)
    if version < SCHEMA_VERSION:
        alter_tables(rows, version)
    now = rows.read_head(lock=True)
    keys = read_anchor(rows, now).keys
    parts = {**declared, **describe_anchor(keyring, database.path, now.number + 1, keys)}
    if place is not None:
        parts["place"] = place
    if carried is not None:
        parts["carried"] = write_loss(carried)
    _start_signing(database, rows, keyring, parts)
    spent = shorten(now.spent if carried is None else add_losses(now.spent, carried))
    return rows.append(now, kind, now.budget, spent, payload=write_canonical(parts))


def _start_signing(database: Database, rows: LedgerRows, keyring: Keyring | None, declared: Mapping[str, Any]) -> None:
    """Sign the entries from here on, with the newest key that the anchor declares."""
    if keyring is not None:
        database.signatures = rows.signatures = Signatures(
            keyring, tuple((number, key) for number, key in declared["keys"])
        )


def refuse_foreign(rows: LedgerRows, wanted: Identity) -> int:
    """The version of the tables; a missing or foreign ledger is refused."""
    refuse_missing(rows)
    if _read_first_entry(rows) != wanted:
        hint = "Check ledger_id and population in the catalog, and the ledger's address."
        raise LedgerError("ledger-foreign", "This ledger belongs to another dataset.", hint)
    return read_version(rows)


def refuse_missing(rows: LedgerRows) -> None:
    """Refuse a database without a ledger."""
    if not has_tables(rows):
        raise LedgerError("ledger-missing", "There is no ledger at this address.", NO_LEDGER)


def _read_first_entry(rows: LedgerRows) -> Identity:
    payload = read_first_payload(rows)
    if payload is None:
        raise build_altered_error(1, "is missing")
    declared = json.loads(payload)
    return Identity(str(declared["ledger_id"]), str(declared["population"]))
