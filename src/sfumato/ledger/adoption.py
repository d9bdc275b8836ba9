"""The owner says which copy of a ledger continues: one moved, restored or copied file, from here on. It is an entry."""

from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import Place, read_anchor
from sfumato.ledger.audit import audit
from sfumato.ledger.database import DAMAGED, Database
from sfumato.ledger.entries import SCHEMA_VERSION, Head
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
    """What the owner has said to accept: that entries are missing, and that another key signed the newest ones."""

    missing: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption did: its entry, how many entries are missing, and the loss that stays charged for them.

    `key_before` is the key that signed until then, where it is not the one that signs now.
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
        """Let the mark begin anew here: other copies are refused from now on."""
        self.keyring.replace_mark(replace(self.mark, place=path), self.seen)
        own = Segment(self.hash, self.entry, self.mark.spent, self.entry, self.hash, self.mark.spent)
        remember_segments(self.keyring, (*self.segments, own))


def adopt(
    url: str, ledger_id: str, population: str, *, accept_missing: bool = False, accept_key: bool = False
) -> Adoption:
    """Continue the ledger at this address, which is then the only one that continues.

    Its chain, sums and signatures must hold. Entries that this user has seen, in whatever copy, and that are not in
    this one are missing: that is refused, unless the owner accepts it, and what they cost stays charged.
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
    """Append the anchor that makes the ledger in this store the one that continues; the caller keeps its mark.

    `backup` takes the place of what is in the store, in the same transaction: nothing can be charged in between.
    `place` is where the ledger will be, if not where it is.
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
            hint = "Restore a backup that is whole: `sfumato ledger restore`."
            raise LedgerError("ledger-altered", f"Entry {found.first_broken} does not hold: {found.reason}", hint)
        now, counted = rows.read_head(lock=True), list_segments(rows)
        key = _refuse_foreign_key(rows, now, there, accepted)
        known = rename_parted(rows, (*list_seen(keyring, seen, (*counted, *replaced)), *replaced))
        missing = find_missing(counted, known, now.budget)
        if missing.entries and not accepted.missing:
            raise _missing_error(missing.entries, missing.cost, seen)
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
    """The mark that says that this head was seen."""
    return Mark(head.number, head.hash, write_loss(head.spent), anchor, path, generation)


def _replace_rows(
    rows: LedgerRows, backup: Database, identity: Identity, home: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Put a backup in the place of these books; the segments that were there, as far as they can be read.

    What this user saw of one of them, and is not in it, is there too, as a segment of its own.
    """
    there: tuple[Segment, ...] = ()
    try:
        if has_tables(rows) and refuse_foreign(rows, identity) < SCHEMA_VERSION:
            alter_tables(rows, read_version(rows))
        there = list_segments(rows) if has_tables(rows) else ()
        there += tuple(each for each in rename_parted(rows, home) if each not in home) if there else ()
    except (*DAMAGED, LedgerError, SQLAlchemyError) as error:
        if isinstance(error, LedgerError) and error.code in ("ledger-foreign", "ledger-newer"):
            raise
    with backup.read() as old:
        replace_rows(rows, old)
    return there


def _refuse_foreign_key(rows: LedgerRows, now: Head, own: Keyring | None, accepted: Accepted) -> str:
    """Refuse a ledger whose newest entries another key signed, while this user has the ledger's key.

    Whoever can write the file can append entries that are signed with a key of their own. Returned is that other key,
    where the owner accepts it, or where this user has none; else nothing.
    """
    keys = read_anchor(rows, now).keys
    if not keys or (own is not None and keys[-1][1] == own.public_key):
        return ""
    first, key = keys[-1]
    if own is not None and not accepted.key:
        message = f"Entries {first} to {now.number} were signed with another key than yours: {key}."
        hint = (
            "If you know whose key that is (another machine or user of yours), and want their entries, say so with "
            "--accept-key. Otherwise somebody else wrote them: restore a backup from before."
        )
        raise LedgerError("ledger-key", message, hint)
    return key


def _missing_error(missing: int, carried: PrivacyLoss | None, newest: Mark | None) -> LedgerError:
    where = f" at {newest.place}" if newest and newest.place else ""
    cost = f" They cost {describe_loss(carried)}, which stays charged." if carried else ""
    lacking = "1 entry that was" if missing == 1 else f"{missing} entries that were"
    message = f"This ledger lacks at least {lacking} seen{where}."
    hint = (
        "Continue with the newest ledger if you have it. If those entries are lost, say so with --accept-missing: "
        f"their answers are gone.{cost}"
    )
    return LedgerError("ledger-older", message, hint)
