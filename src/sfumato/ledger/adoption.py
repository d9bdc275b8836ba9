"""The owner says which copy of a ledger continues: one moved, restored or copied file, from here on. It is an entry."""

from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import Place, read_anchor
from sfumato.ledger.audit import audit
from sfumato.ledger.books import Books
from sfumato.ledger.charges import in_words
from sfumato.ledger.entries import Head, loss_text
from sfumato.ledger.founding import Identity, continue_with, refuse_foreign
from sfumato.ledger.keyring import Keyring, Mark
from sfumato.ledger.schema import VERSION
from sfumato.ledger.segments import Segment, keep, listed, longest, missing_from, parted_from, seen_by, segments_of
from sfumato.ledger.store import DAMAGED, Store


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
        keep(self.keyring, (*self.segments, own))


def adopt(
    url: str, ledger_id: str, population: str, *, accept_missing: bool = False, accept_key: bool = False
) -> Adoption:
    """Continue the ledger at this address, which is then the only one that continues.

    Its chain, sums and signatures must hold. Entries that this user has seen, in whatever copy, and that are not in
    this one are missing: that is refused, unless the owner accepts it, and what they cost stays charged.
    """
    store, identity = Store(url, must_exist=True), Identity(ledger_id, population)
    try:
        done = continued(store, identity, "adopt", Accepted(accept_missing, accept_key))
        done.keep_mark(store.path or "")
        return done
    finally:
        store.close()


def continued(
    store: Store,
    identity: Identity,
    kind: str,
    accepted: Accepted,
    *,
    backup: Store | None = None,
    place: Place | None = None,
) -> Adoption:
    """Append the anchor that makes the ledger in this store the one that continues; the caller keeps its mark.

    `backup` takes the place of what is in the store, in the same transaction: nothing can be charged in between.
    `place` is where the ledger will be, if not where it is.
    """
    there = Keyring.find(identity.ledger_id)
    keyring = there or Keyring.make(identity.ledger_id)
    seen = keyring.mark()  # once: `keep_mark` refuses where it was raised since
    with store.write() as books:
        replaced = () if backup is None else _replaced_by(books, backup, identity, seen_by(keyring, seen, ()))
        if refuse_foreign(books, identity) < VERSION:
            books.alter_tables(books.version())
        found = audit(books, identity.ledger_id, identity.population, (), "")
        if not found.ok:
            hint = "Restore a backup that is whole: `sfumato ledger restore`."
            raise LedgerError("ledger-altered", f"Entry {found.first_broken} does not hold: {found.reason}", hint)
        now, counted = books.head(lock=True), segments_of(books)
        key = _refuse_foreign_key(books, now, there, accepted)
        known = parted_from(books, (*seen_by(keyring, seen, (*counted, *replaced)), *replaced))
        missing = missing_from(counted, known, now.budget)
        if missing.entries and not accepted.missing:
            raise _incomplete(missing.entries, missing.cost, seen)
        everything = longest((*known, *counted))
        keyring.demand_writable()
        keep(keyring, everything)  # before the commit: a user's folder that cannot be written stops it here
        declared = {"missing": missing.entries, "lost": listed(missing.segments)}
        head = continue_with(books, store, keyring, kind, declared, missing.cost, place)
    mark = mark_of(head, head.hash, store.path or "")
    return Adoption(
        head.number, head.hash, missing.entries, missing.cost, there is None, key, mark, seen, everything, keyring
    )


def mark_of(head: Head, anchor: str, path: str, generation: int = 0) -> Mark:
    """The mark that says that this head was seen."""
    return Mark(head.number, head.hash, loss_text(head.spent), anchor, path, generation)


def _replaced_by(books: Books, backup: Store, identity: Identity, home: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Put a backup in the place of these books; the segments that were there, as far as they can be read.

    What this user saw of one of them, and is not in it, is there too, as a segment of its own.
    """
    there: tuple[Segment, ...] = ()
    try:
        if books.has_tables() and refuse_foreign(books, identity) < VERSION:
            books.alter_tables(books.version())
        there = segments_of(books) if books.has_tables() else ()
        there += tuple(each for each in parted_from(books, home) if each not in home) if there else ()
    except (*DAMAGED, LedgerError, SQLAlchemyError) as error:
        if isinstance(error, LedgerError) and error.code in ("ledger-foreign", "ledger-newer"):
            raise
    with backup.read() as old:
        books.become(old)
    return there


def _refuse_foreign_key(books: Books, now: Head, own: Keyring | None, accepted: Accepted) -> str:
    """Refuse a ledger whose newest entries another key signed, while this user has the ledger's key.

    Whoever can write the file can append entries that are signed with a key of their own. Returned is that other key,
    where the owner accepts it, or where this user has none; else nothing.
    """
    keys = read_anchor(books, now).keys
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


def _incomplete(missing: int, carried: PrivacyLoss | None, newest: Mark | None) -> LedgerError:
    where = f" at {newest.place}" if newest and newest.place else ""
    cost = f" They cost {in_words(carried)}, which stays charged." if carried else ""
    lacking = "1 entry that was" if missing == 1 else f"{missing} entries that were"
    message = f"This ledger lacks at least {lacking} seen{where}."
    hint = (
        "Continue with the newest ledger if you have it. If those entries are lost, say so with --accept-missing: "
        f"their answers are gone.{cost}"
    )
    return LedgerError("ledger-older", message, hint)
