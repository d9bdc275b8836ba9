"""The owner says which copy of a ledger continues: one moved, restored or copied file, from here on. It is an entry."""

from dataclasses import dataclass, replace

from sfumato.errors import LedgerError
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.anchor import Place
from sfumato.ledger.audit import audit
from sfumato.ledger.books import Books
from sfumato.ledger.charges import beyond, exchanged, in_words
from sfumato.ledger.entries import Head, charged_loss, loss_text
from sfumato.ledger.founding import Identity, continue_with, refuse_foreign
from sfumato.ledger.keyring import Keyring, Mark
from sfumato.ledger.schema import VERSION
from sfumato.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption did: its entry, how many entries are missing, and the loss that stays charged for them."""

    entry: int
    hash: str
    missing: int
    carried: PrivacyLoss | None
    new_key: bool
    mark: Mark
    keyring: Keyring

    def keep_mark(self, path: str) -> None:
        """Let the mark begin anew here: other copies are refused from now on."""
        self.keyring.replace_mark(replace(self.mark, place=path))


def adopt(url: str, ledger_id: str, population: str, *, accept_missing: bool = False) -> Adoption:
    """Continue the ledger at this address, which is then the only one that continues.

    Its chain, sums and signatures must hold. Where it ends before the newest entry that this user has seen, entries
    are missing: that is refused, unless the owner accepts it, and what they cost stays charged.
    """
    store, identity = Store(url, must_exist=True), Identity(ledger_id, population)
    try:
        done = continued(store, identity, "adopt", accept_missing=accept_missing)
        done.keep_mark(store.path or "")
        return done
    finally:
        store.close()


def continued(
    store: Store,
    identity: Identity,
    kind: str,
    *,
    accept_missing: bool,
    seen: Mark | None = None,
    place: Place | None = None,
) -> Adoption:
    """Append the anchor that makes the ledger in this store the one that continues; the caller keeps its mark.

    `seen` is a newer ledger, if one is known; `place` is where this one will be, if not where it is.
    """
    there = Keyring.find(identity.ledger_id)
    keyring = there or Keyring.make(identity.ledger_id)
    with store.write() as books:
        if refuse_foreign(books, identity) < VERSION:
            books.alter_tables(books.version())
        found = audit(books, identity.ledger_id, identity.population, (), "")
        if not found.ok:
            hint = "Restore a backup that is whole: `sfumato ledger restore`."
            raise LedgerError("ledger-altered", f"Entry {found.first_broken} does not hold: {found.reason}", hint)
        now = books.head(lock=True)
        newest = max((each for each in (keyring.mark(), seen) if each), key=lambda mark: mark.number, default=None)
        missing, carried = _missing(books, now, newest)
        if missing and not accept_missing:
            raise _incomplete(missing, carried, newest)
        head = continue_with(books, store, keyring, kind, {"missing": missing}, carried, place)
    mark = mark_of(head, head.hash, store.path or "")
    return Adoption(head.number, head.hash, missing, carried, there is None, mark, keyring)


def mark_of(head: Head, anchor: str, path: str) -> Mark:
    """The mark that says that this head was seen."""
    return Mark(head.number, head.hash, loss_text(head.spent), anchor, path)


def _missing(books: Books, now: Head, newest: Mark | None) -> tuple[int, PrivacyLoss | None]:
    """How many entries of what was seen are not in this ledger, and what they cost."""
    if newest is None:
        return 0, None
    there = books.row(newest.number) if newest.number <= now.number else None
    if there is not None and there["hash"] == newest.hash:
        return 0, None
    spent = exchanged(charged_loss(newest.spent), now.budget)
    shared = exchanged(charged_loss(_last_shared(books, now, newest)), now.budget)
    lost = beyond(spent, shared)
    return max(newest.number - now.number, 1), lost if lost != beyond(spent, spent) else None


def _last_shared(books: Books, now: Head, newest: Mark) -> str:
    """What was spent at the newest entry that this ledger surely shares with the one that was seen.

    Within one anchor there is one file, so the shorter chain is the beginning of the longer. Two that differ in their
    anchor may have parted at any adoption in this chain: then the oldest is taken, which never counts too little.
    """
    own = books.row(now.anchor)
    anchors = [each for each in books.anchors() if each["kind"] in ("adopt", "restore")]
    parted = [each["number"] for each in anchors if each["number"] <= newest.number]
    if own is None or own["hash"] == newest.anchor or not parted:
        return loss_text(now.spent)
    before = books.row(min(parted) - 1)
    return str(before["spent"]) if before else loss_text(now.spent)


def _incomplete(missing: int, carried: PrivacyLoss | None, newest: Mark | None) -> LedgerError:
    where = f" at {newest.place}" if newest and newest.place else ""
    cost = f" They cost {in_words(carried)}, which stays charged." if carried else ""
    message = f"This ledger lacks at least {missing} entries that were seen{where}."
    hint = (
        "Continue with the newest ledger if you have it. If those entries are lost, say so with --accept-missing: "
        f"their answers are gone.{cost}"
    )
    return LedgerError("ledger-older", message, hint)
