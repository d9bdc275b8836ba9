"""Adoption: the owner decides which copy of a ledger continues. The decision is an entry."""

from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import Place, read_anchor
from sfumato.ledger.audit import audit
from sfumato.ledger.database import DAMAGED, Database
from sfumato.ledger.entries import SCHEMA_VERSION, Head
from sfumato.ledger.index_contents import build_index
from sfumato.ledger.keyring import Keyring, Mark
from sfumato.ledger.ledger_opening import Identity, append_anchor, refuse_foreign
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import write_loss
from sfumato.ledger.schema import alter_tables, has_tables, read_version, replace_rows
from sfumato.ledger.segments import (
    Segment,
    choose_longest,
    find_missing,
    list_seen,
    list_segments,
    remember_segments,
    rename_parted,
    write_segments,
)
from sfumato.ledger.spending import describe_loss


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the owner accepts: that entries are missing, or that another key signed the newest ones."""

    missing: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Adoption:
    """The result of an adoption: its entry, how many entries are missing, and the loss that stays charged for them.

    `key_before` is the key that signed until then, if another one signs now.
    """

    entry: int
    hash: str
    missing: int
    carried: PrivacyLoss | None
    new_key: bool
    key_before: str
    mark: Mark
    seen: Mark | None
    segments: tuple[Segment, ...]
    keyring: Keyring

    def keep_mark(self, path: str) -> None:
        """Set the high-water mark to this entry. Other copies are refused from then on."""
        self.keyring.replace_mark(replace(self.mark, place=path), self.seen)
        own = Segment(self.hash, self.entry, self.mark.spent, self.entry, self.hash, self.mark.spent)
        remember_segments(self.keyring, (*self.segments, own))


def adopt(
    url: str, ledger_id: str, population: str, *, accept_missing: bool = False, accept_key: bool = False
) -> Adoption:
    """Continue with the ledger at this address. Every other copy is refused from then on.

    Its chain, sums and signatures must be correct. An entry is missing if this user has seen it in any copy and it is
    not in this one. That is refused unless the owner accepts it. What missing entries cost stays charged.
    """
    database, identity = Database(url, must_exist=True), Identity(ledger_id, population)
    try:
        done = continue_ledger(database, identity, "adopt", Accepted(accept_missing, accept_key))
        done.keep_mark(database.path or "")
        return done
    finally:
        database.close()


def continue_ledger(
    database: Database,
    identity: Identity,
    kind: str,
    accepted: Accepted,
    *,
    backup: Database | None = None,
    place: Place | None = None,
) -> Adoption:
    """Append the anchor with which the ledger in this database continues. The caller sets the mark.

    `backup` replaces what is in the database, in the same transaction, so that nothing can be charged in between.
    `place` is where the ledger will be, if it is moved afterwards.
    """
    there = Keyring.find(identity.ledger_id)
    keyring = there or Keyring.make(identity.ledger_id)
    seen = keyring.read_mark()  # once: `keep_mark` refuses where it was raised since
    with database.write() as rows:
        replaced = () if backup is None else _replace_rows(rows, backup, identity, list_seen(keyring, seen, ()))
        if refuse_foreign(rows, identity) < SCHEMA_VERSION:
            alter_tables(rows, read_version(rows))
        found = audit(rows, identity.ledger_id, identity.population, (), "")
        if not found.ok:
            hint = "Restore an intact backup: `sfumato ledger restore`."
            raise LedgerError("ledger-altered", f"Entry {found.first_broken} is not correct: {found.reason}", hint)
        build_index(rows)  # the audit does not check it
        now, counted = rows.read_head(lock=True), list_segments(rows)
        key = _refuse_foreign_key(rows, now, there, accepted)
        known = rename_parted(rows, (*list_seen(keyring, seen, (*counted, *replaced)), *replaced))
        missing = find_missing(counted, known, now.budget)
        if missing.entries and not accepted.missing:
            raise _build_missing_error(missing.entries, missing.cost, seen)
        everything = choose_longest((*known, *counted))
        keyring.demand_writable()
        remember_segments(
            keyring, everything
        )  # before the commit: a user's folder that cannot be written stops it here
        declared = {"missing": missing.entries, "lost": write_segments(missing.segments)}
        head = append_anchor(rows, database, keyring, kind, declared, missing.cost, place)
    mark = make_mark(head, head.hash, database.path or "")
    return Adoption(
        head.number, head.hash, missing.entries, missing.cost, there is None, key, mark, seen, everything, keyring
    )


def make_mark(head: Head, anchor: str, path: str, generation: int = 0) -> Mark:
    """The mark that records that this head was seen."""
    return Mark(head.number, head.hash, write_loss(head.spent), anchor, path, generation)


def _replace_rows(
    rows: LedgerRows, backup: Database, identity: Identity, home: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Replace these rows with a backup. Return the segments that were there, as far as they can be read.

    If this user saw entries of such a segment that are not in it, they are returned as a segment of their own.
    """
    there: tuple[Segment, ...] = ()
    try:
        if has_tables(rows) and refuse_foreign(rows, identity) < SCHEMA_VERSION:
            alter_tables(rows, read_version(rows))
        there = list_segments(rows) if has_tables(rows) else ()
        there += tuple(segment for segment in rename_parted(rows, home) if segment not in home) if there else ()
    except (*DAMAGED, LedgerError, SQLAlchemyError) as error:
        if isinstance(error, LedgerError) and error.code in ("ledger-foreign", "ledger-newer"):
            raise
    with backup.read() as old:
        replace_rows(rows, old)
    return there


def _refuse_foreign_key(rows: LedgerRows, now: Head, own: Keyring | None, accepted: Accepted) -> str:
    """Refuse a ledger whose newest entries were signed with another key, if this user has the ledger's key.

    Whoever can write the file can append entries that are signed with a key of their own. The other key is returned if
    the owner accepts it or if this user has no key; otherwise the empty text.
    """
    keys = read_anchor(rows, now).keys
    if not keys or (own is not None and keys[-1][1] == own.public_key):
        return ""
    first, key = keys[-1]
    if own is not None and not accepted.key:
        message = f"Entries {first} to {now.number} were signed with a key that is not yours: {key}."
        hint = (
            "If it is the key of another machine or user of yours, and you want these entries, pass --accept-key. "
            "Otherwise somebody else wrote them: restore an earlier backup."
        )
        raise LedgerError("ledger-key", message, hint)
    return key


def _build_missing_error(missing: int, carried: PrivacyLoss | None, newest: Mark | None) -> LedgerError:
    where = f" at {newest.place}" if newest and newest.place else ""
    cost = f" They cost {describe_loss(carried)}, which stays charged." if carried else ""
    lacking = "1 entry that was" if missing == 1 else f"{missing} entries that were"
    message = f"This ledger lacks at least {lacking} seen{where}."
    hint = (
        "Continue with the newest ledger if you have it. If those entries are lost, say so with --accept-missing: "
        f"their answers are gone.{cost}"
    )
    return LedgerError("ledger-older", message, hint)
