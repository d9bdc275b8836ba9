"""A ledger's database that refuses to go back in time.

It remembers the newest entry that this process saw, and the high-water mark of this user (`keyring`). A ledger that
does not hold them was shortened, replaced or put back to an older state: charges in it would be spent twice.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sfumato.errors import InvalidParameter, LedgerError, describe_kind
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.adoption import make_mark
from sfumato.ledger.audit import Seen, refuse_older
from sfumato.ledger.database import Database
from sfumato.ledger.entries import Head
from sfumato.ledger.entry_queries import find_number
from sfumato.ledger.fork_gate import GATE
from sfumato.ledger.keyring import Keyring
from sfumato.ledger.ledger_opening import Identity, admit, begin_ledger, prepare_reading
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.segments import remember_ledger


class GuardedDatabase:
    """Transactions on a ledger. A ledger that is older than the entries seen before is refused."""

    def __init__(self, database: Database, keyring: Keyring | None, anchor: Seen | None, generation: int = 0) -> None:
        self.database = database
        self.keyring = keyring  # None: a ledger in memory
        self.newest: Head | None = None  # the newest head that this process saw
        self._anchor = anchor  # the anchor when this was opened; None: open for reading only
        self._generation = generation  # of the mark when this was opened
        self._expected = (0, "")  # an entry that must be in the ledger
        self._lock = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[tuple[LedgerRows, Head]]:
        """One consistent view of the ledger, and its last entry."""
        known = self.list_known()  # before the view, which therefore cannot be older
        with self.database.read() as rows:
            head = rows.read_head(lock=False)
            self._refuse_other(rows, head, known)
            yield rows, head
        self.remember(head)

    @contextmanager
    def write(self) -> Iterator[tuple[LedgerRows, Head]]:
        """One transaction that excludes other writers, and the last entry before it. The caller calls `remember`."""
        known = self.list_known()
        if self._anchor is None:
            raise LedgerError("ledger-read-only", "This ledger is open for reading only.", "Open the dataset to ask.")
        with self.database.write() as rows:
            head = rows.read_head(lock=True)
            self._refuse_other(rows, head, known)
            if self.newest is not None and head.number > self.newest.number:
                self.database.others_write = True
            yield rows, head

    def list_known(self) -> tuple[Seen, ...]:
        """The newest entries that were seen: by this process, and by any process of this user (the mark)."""
        newest, mark = self.newest, self.keyring.read_mark() if self.keyring else None
        own = self._expected if newest is None else (newest.number, newest.hash)
        return (own,) if mark is None or (mark.number, mark.hash) == own else (own, (mark.number, mark.hash))

    def remember(self, head: Head) -> None:
        """Remember that this head was seen, here and in the user's mark."""
        with GATE:
            with self._lock:
                newer = self.newest is None or head.number > self.newest.number
                if newer:
                    self.newest = head
            if not newer or self.keyring is None or self._anchor is None:
                return
            mark = make_mark(head, self._anchor[1], self.database.path or "", self._generation)
            if not self.keyring.raise_mark(mark):  # another copy continues, and does not count what was charged here
                hint = "Open the dataset again. If this ledger is a copy, use the one that was adopted or restored."
                raise LedgerError("ledger-older", "The owner has adopted or restored this ledger meanwhile.", hint)

    def expect(self, head: str | tuple[int, str] | None) -> None:
        """Demand an entry that a reader has noted, by its hash."""
        if isinstance(head, str):
            with self.database.read() as rows:
                number = find_number(rows, head)
            if number is None:
                hint = "It has lost that entry, or it is not the ledger that the reader saw."
                raise LedgerError("ledger-older", "No entry of this ledger has the expected hash.", hint)
            head = (number, head)
        self._expected = head or self._expected

    def _refuse_other(self, rows: LedgerRows, head: Head, known: tuple[Seen, ...]) -> None:
        """Refuse a ledger that does not continue what was seen, or that was adopted or restored since it was opened."""
        for latest in known:
            refuse_older(rows, head, latest)
        if self._anchor is not None and self._anchor[0] != head.anchor:
            hint = "Open the dataset again."
            raise LedgerError("ledger-fenced", "The ledger was restored or adopted since it was opened here.", hint)


def create_guarded(
    url: str | None, identity: Identity, limit: PrivacyLoss, declared: Mapping[str, str]
) -> GuardedDatabase:
    """Begin a ledger. `declared` is what else its first entry says."""
    database = Database(url, must_exist=False)
    try:
        keyring = None if database.in_memory else Keyring.make(identity.ledger_id)
        head = begin_ledger(database, keyring, identity, limit, declared)
        guarded = GuardedDatabase(database, keyring, (head.number, head.hash))
        guarded.remember(head)
    except BaseException:
        database.close()
        raise
    return guarded


def open_guarded(url: str | None, identity: Identity, expected_head: str | tuple[int, str] | None) -> GuardedDatabase:
    """Open a ledger for charging. A missing, foreign, copied, shortened or older one is refused."""
    _check_head(expected_head)
    database = Database(url, must_exist=True)
    try:
        keyring, anchor = admit(database, identity)
        mark = keyring.read_mark()
        generation = mark.generation if mark else 0
        guarded = GuardedDatabase(database, keyring, (anchor.number, anchor.hash), generation)
        guarded.expect(expected_head)
        with guarded.read() as (rows, _):
            if anchor.number > 1:
                remember_ledger(keyring, rows, anchor.hash)
    except BaseException:
        database.close()
        raise
    return guarded


def read_guarded(url: str, identity: Identity) -> GuardedDatabase:
    """Open a ledger for reading, also if it is a copy, damaged, or in a read-only folder."""
    database = Database(url, must_exist=True, read_only=True)
    try:
        return GuardedDatabase(database, prepare_reading(database, identity), None)
    except BaseException:
        database.close()
        raise


def _check_head(head: object) -> None:
    """Refuse a head that is not a hash, a number and a hash, or None."""
    number, hash_ = head if isinstance(head, tuple) and len(head) == 2 else (1, head)
    whole = isinstance(number, int) and not isinstance(number, bool) and 1 <= number < 2**63
    if head is not None and not (whole and isinstance(hash_, str) and hash_.isascii()):
        hint = "It is the ledger_head of an answer's disclosure."
        raise InvalidParameter("expected_head", "must be the hash of an entry", describe_kind(head), hint)
