"""The ledger of one population: charge first, store every answer, and let anybody check the sums."""

from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import IO

from sfumato.catalog.analysts import read_analyst
from sfumato.errors import KernelFault
from sfumato.kernel.certify import Certificate
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.release import Released
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.audit import Verification
from sfumato.ledger.charging import (
    AlreadyAnswered,
    Shares,
    charge_certificate,
    close_charge,
    list_shares,
    read_own_spent,
)
from sfumato.ledger.earlier_releases import EarlierReleases, find_earlier_releases
from sfumato.ledger.entries import Entry, Head, Row
from sfumato.ledger.entry_queries import (
    find_entry,
    find_newest_of,
    list_newest,
    list_open_charges,
)
from sfumato.ledger.export import write_export
from sfumato.ledger.first_views import count_view
from sfumato.ledger.guarded_database import GuardedDatabase, create_guarded, open_guarded, read_guarded
from sfumato.ledger.index_contents import index_release
from sfumato.ledger.ledger_opening import Identity, read_identity
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, convert_loss
from sfumato.ledger.quotes import Quote, choose_stored, price_view, quote_certificate
from sfumato.ledger.recorded_analysts import RecordedAnalysts
from sfumato.ledger.recorded_neighbours import (
    describe_neighbours,
    read_neighbours,
    record_neighbours,
    refuse_other_neighbours,
)
from sfumato.ledger.release_index import may_be_stored
from sfumato.ledger.shared_transactions import SharedTransactions
from sfumato.ledger.spending import (
    Limit,
    Spending,
    Totals,
    build_other_limit_error,
    refuse_long_amounts,
    refuse_over_limit,
    spend_nothing,
    spend_on,
    subtract_spent,
)
from sfumato.ledger.stored_answers import VOID, StoredAnswer, find_shape, is_void, read_stored, write_answer
from sfumato.ledger.sublimits import Sublimits
from sfumato.ledger.verify_ledger import verify_ledger

__all__ = ["AlreadyAnswered", "Entry", "Ledger", "Limit", "Quote", "Spending", "StoredAnswer", "Totals", "Verification"]
NOBODY: Mapping[str, PrivacyLoss] = MappingProxyType({})


class Ledger:
    """The budget of one population. Threads may share it; each process opens its own on the same database."""

    def __init__(self, identity: Identity, sublimits: Mapping[str, PrivacyLoss], guarded: GuardedDatabase) -> None:
        self.ledger_id = identity.ledger_id
        self.population = identity.population
        self._guarded = guarded
        self._database = guarded.database
        self._shared = SharedTransactions(guarded.write, guarded.remember)
        self._sublimits = Sublimits(sublimits)
        self._analysts = RecordedAnalysts(self._sublimits)

    @classmethod
    def create(
        cls,
        url: str | None,
        population: str,
        limit: Limit,
        sublimits: Mapping[str, PrivacyLoss] = NOBODY,
        neighbours: Neighbours | None = None,
    ) -> "Ledger":
        """Begin a ledger where there is none: in memory (None), in a SQLite file (a path) or at a database URL.

        Its first entry records the neighbours, if they are given.
        """
        Sublimits(sublimits).check(limit.loss)
        identity = Identity(SYSTEM.take(16).tobytes().hex(), population)
        return cls(identity, sublimits, create_guarded(url, identity, limit.loss, describe_neighbours(neighbours)))

    @classmethod
    def open(  # noqa: PLR0917 - its callers name what they pass
        cls,
        url: str | None,
        ledger_id: str,
        population: str,
        limit: Limit | None = None,
        sublimits: Mapping[str, PrivacyLoss] = NOBODY,
        expected_head: str | tuple[int, str] | None = None,
        neighbours: Neighbours | None = None,
    ) -> "Ledger":
        """Open the ledger with this id. A missing, foreign, copied, shortened or older one is refused.

        A limit that differs from the ledger's is refused too, because only `set_limit` changes it. So are neighbours
        that differ from the recorded ones. `expected_head` is the hash of an entry that a reader has noted; it must be
        in the ledger.
        """
        identity = Identity(ledger_id, population)
        ledger = cls(identity, sublimits, open_guarded(url, identity, expected_head))
        try:
            with ledger._guarded.read() as (_, head):
                ledger._sublimits.check(head.budget)
            if limit is not None and limit.loss != head.budget:
                raise build_other_limit_error(limit.loss, head.budget)
            if neighbours is not None:
                ledger.agree_on(neighbours)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def read_identity(cls, url: str) -> Identity | None:
        """The identity that the ledger at this address claims, unchecked; None if there is no ledger."""
        return read_identity(url)

    @classmethod
    def read(cls, url: str, ledger_id: str, population: str, sublimits: Mapping[str, PrivacyLoss] = NOBODY) -> "Ledger":
        """Open the ledger with this id to list and verify it, also if it is a copy, damaged, or in a read-only folder.

        Nothing can be charged to it.
        """
        identity = Identity(ledger_id, population)
        return cls(identity, sublimits, read_guarded(url, identity))

    def reserve(self, analyst: str, certificate: Certificate) -> Reservation:
        """Charge a certificate before any data is read. The analyst's charge for it without an answer is resumed.

        If the charge does not fit, BudgetExceeded is raised and nothing is written.
        """
        return self.charge(analyst, certificate)[0]

    def charge(self, analyst: str, certificate: Certificate, question: str = "") -> tuple[Reservation, Spending]:
        """`reserve`, and what it took now: nothing, if an earlier charge was resumed.

        The question is recorded with the charge.
        """
        self._check(analyst, certificate)

        def write(rows: LedgerRows, now: Head) -> tuple[Head, tuple[Reservation, Spending, PrivacyLoss | None]]:
            name = self._analysts.find_name(rows, analyst)
            limit, spent = self._sublimits.find(name, now.budget), None

            def refuse(charge: PrivacyLoss, own: PrivacyLoss, shares: Shares) -> None:
                nonlocal spent
                spent = add_losses(own, charge)
                refuse_over_limit(charge, now.spent, now.budget, "the population's budget", shares)
                self._sublimits.refuse_over_limit(charge, own, name, now.budget, shares)

            reservation, head, charge = charge_certificate(rows, now, name, certificate, question, refuse)
            if charge is None:
                return head, (reservation, spend_nothing(certificate.loss, now.budget, limit), None)
            return head, (reservation, spend_on(certificate.loss, charge, limit), spent)

        reservation, taken, spent = self._shared.run(write)
        if spent is not None:
            self._analysts.note_spent(reservation.entry_number, spent)
        return reservation, taken

    def quote(self, analyst: str, certificate: Certificate) -> Quote:
        """What asking would take now, and whether it fits. Nothing is written."""
        self._check(analyst, certificate)
        with self._guarded.read() as (rows, now):
            name = self._analysts.find_name(rows, analyst)
            limit = self._sublimits.find(name, now.budget)
            return quote_certificate(rows, now, name, certificate, limit)

    def fits(self, analyst: str, certificate: Certificate) -> bool:
        """Whether asking would be granted now. Nothing is written."""
        return self.quote(analyst, certificate).fits

    def find_stored(self, certificate: Certificate, analyst: str) -> StoredAnswer | None:
        """An answer to the same question that is at least as precise, or None. The population does not pay again.

        Another analyst's answer counts on the own limit of the analyst who sees it for the first time. If they have a
        limit, it is used only if its loss is at most what they asked for.
        """
        self._check(analyst, certificate)
        with self._database.glance() as rows:
            if not may_be_stored(rows, certificate):  # most new questions end here; a charge checks the ledger itself
                return None
        with self._guarded.read() as (rows, head):
            name = self._analysts.find_name(rows, analyst)
            limit = self._sublimits.find(name, head.budget)
            release = choose_stored(rows, certificate, name, limit, head.budget, whole=True)
        if release is None:
            return None
        has = release.has
        if not has and release.answer is not None:
            head, limit, first = self._count_view(release.charge, release.answer["number"], analyst)
            has = not first
        taken = price_view(release.charge, limit, head.budget, has=has)
        return read_stored(release.charge, release.answer, head, taken)

    def find_earlier(self, answer_key: str, analyst: str) -> EarlierReleases:
        """The analyst's releases of this question: the newest summary of an upgrade, and those that are not in it.

        Only entries since that summary are read, however many there are before it.
        """
        with self._guarded.read() as (rows, head):
            name = self._analysts.find_name(rows, analyst)
            limit = self._sublimits.find(name, head.budget)
            return find_earlier_releases(rows, head, answer_key, name, limit)

    def store(self, reservation: Reservation, released: Released, summary: Mapping[str, object] | None = None) -> str:
        """Store the answer of a charge, before any of it leaves; once only. The head's hash is returned.

        `summary` is what an upgrade sums up: see `find_earlier`.
        """
        certificate, number = reservation.certificate, reservation.entry_number
        if released.entry_number != number or released.certificate != certificate:
            raise KernelFault("This answer belongs to another charge.")
        if {name: len(integers) for name, integers in released.integers.items()} != find_shape(released):
            raise KernelFault("This answer has another shape than its certificate.")
        text = write_answer(released, summary)

        def write(rows: LedgerRows, now: Head) -> tuple[Head, str]:
            head, charge = close_charge(rows, now, number, text, certificate)
            index_release(rows, head.number, charge, head.number, charge["analyst"])
            return head, head.hash

        return self._shared.run(write)

    def check_writable(self, reservation: Reservation) -> None:
        """Refuse if the answer of this charge could not be stored now. Nothing is written.

        For a draw that stores only some of its outcomes: otherwise a failure to store would show the outcome.
        """
        with self._guarded.write() as (rows, _):
            charge, answered, _ = rows.find_charge(reservation.entry_number)
            if charge is None or answered:
                raise AlreadyAnswered("This charge is closed.")
            self._database.check_room()

    def void(self, reservation: Reservation) -> bool:
        """Close a charge whose answer could not be made, for good. Its noise was drawn, and is not drawn again.

        False: it is closed already, by its answer. True also if another request has closed it without an answer.
        The failure may depend on the noise. A charge that could be resumed would let the analyst choose among answers.
        """
        with self._guarded.write() as (rows, now):
            charge, answer, _ = rows.find_charge(reservation.entry_number)
            if charge is None or answer is not None:
                return is_void(answer)
            head, _ = close_charge(rows, now, reservation.entry_number, VOID)
        self._guarded.remember(head)
        return True

    def totals(self, analyst: str | None = None) -> Totals:
        """The population's budget; or the analyst's own limit, if there is one."""
        with self._guarded.read() as (rows, head):
            limit = None if analyst is None else self._sublimits.find(analyst, head.budget)
            if analyst is None or limit is None:
                return Totals(head.budget, head.spent, subtract_spent(head.budget, head.spent))
            own = read_own_spent(find_newest_of(rows, self._analysts.find_name(rows, analyst)), head.budget)
            return Totals(limit, own, subtract_spent(limit, own))

    def read_remaining(self) -> PrivacyLoss:
        """What is left of the population's budget after the newest entry that was seen here; `totals` looks again."""
        newest = self._guarded.newest
        return self.totals().remaining if newest is None else subtract_spent(newest.budget, newest.spent)

    def read_own_remaining(self, analyst: str, charge: int | None = None) -> PrivacyLoss | None:
        """What is left of the analyst's own limit; None if they have none.

        With the number of a charge that was made here, it is what that charge left, and the ledger is not read again.
        """
        newest = self._guarded.newest
        limit = None if newest is None else self._sublimits.find(analyst, newest.budget)
        if newest is not None and limit is None:
            return None
        spent = None if charge is None else self._analysts.find_spent(charge)
        return self.totals(analyst).remaining if limit is None or spent is None else subtract_spent(limit, spent)

    def list_limited_analysts(self) -> list[str]:
        """Every analyst with a limit of their own: those that the catalog lists, and those with the default limit."""
        with self._guarded.read() as (rows, head):
            return self._analysts.list_limited(rows, head.budget)

    def has_sublimits(self, sublimits: Mapping[str, PrivacyLoss]) -> bool:
        """Whether the analysts' own limits are these."""
        return self._sublimits.agree(sublimits)

    @property
    def public_key(self) -> str | None:
        """The key that signs the entries, if it is here; None for a ledger in memory."""
        return self._guarded.keyring.public_key if self._guarded.keyring else None

    def head(self) -> tuple[int, str]:
        """The number and the hash of the last entry."""
        with self._guarded.read() as (_, head):
            return head.number, head.hash

    @property
    def newest_number(self) -> int:
        """The number of the newest entry that was seen here. Every later charge has a later number."""
        return self._guarded.newest.number if self._guarded.newest else 1

    def entries(self, newest: int | None = None, *, analyst: str = "", before: int | None = None) -> list[Entry]:
        """The newest entries (all by default), oldest first: of one analyst, if named, and before an entry's number."""
        with self._guarded.read() as (rows, _):
            return list_newest(rows, newest, analyst and self._analysts.find_name(rows, analyst), before)

    def entry(self, number: int) -> Entry | None:
        """The entry with this number; None if there is none."""
        with self._guarded.read() as (rows, _):
            row = find_entry(rows, number)
            return None if row is None else Entry.from_row(row)

    def open_charges(self) -> list[Entry]:
        """The charges that have no answer yet. Asking the same question again resumes one at no further cost.

        A watch is not resumed: it is charged when it begins.
        """
        with self._guarded.read() as (rows, _):
            return list_open_charges(rows)

    def verify(self, *, full: bool = True, head: str | None = None) -> Verification:
        """Check every hash, signature, sum and answer, the index of releases, and that entries seen before are there.

        If not `full`, only the entries since this user's last verification are checked. `head` is the hash of an entry
        that a reader has noted; it must be in the ledger.
        """
        return verify_ledger(self._guarded, Identity(self.ledger_id, self.population), full=full, head=head)

    def export(self, file: IO[str], *, answers: bool = False) -> int:
        """Write every entry as a line of JSON, and return how many. The integers of answers are left out by default."""
        with self._database.read() as rows:
            return write_export(rows, self.ledger_id, self.population, file, answers=answers)

    def set_limit(self, limit: Limit) -> None:
        """Change the population's budget. It is the owner's decision, and an entry.

        What is spent is carried over, and converted if the kind of accounting changes. The limit may be below what is
        spent; then nothing more can be charged.
        """
        self._sublimits.check(limit.loss)
        with self._guarded.write() as (rows, now):
            same = now.budget == limit.loss
            head = now if same else rows.append(now, "limit", limit.loss, convert_loss(now.spent, limit.loss))
        self._guarded.remember(head)

    def agree_on(self, neighbours: Neighbours) -> None:
        """Refuse neighbours that differ from the recorded ones. A ledger that records none gets these, as an entry."""
        with self._guarded.read() as (rows, _):
            found = read_neighbours(rows)
        if found is None:
            with self._guarded.write() as (rows, now):
                found = read_neighbours(rows)  # another process may have been first
                head = now if found else record_neighbours(rows, now, neighbours)
            self._guarded.remember(head)
        refuse_other_neighbours(found or neighbours, neighbours)

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _count_view(self, charge: Row, answer: int, analyst: str) -> tuple[Head, PrivacyLoss | None, bool]:
        """Count an answer on the own limit of an analyst who sees it for the first time. The total does not change.

        The analyst's name is looked up again: another spelling of it may have been recorded since the answer was found.
        The limit is returned too. False: the analyst has the answer already, since it was counted meanwhile.
        """
        with self._guarded.write() as (rows, now):
            name = self._analysts.find_name(rows, analyst)
            head, first = count_view(rows, now, charge, answer, name, self._sublimits)
        self._guarded.remember(head)
        return head, self._sublimits.find(name, head.budget), first

    def _check(self, analyst: str, certificate: Certificate) -> None:
        read_analyst(analyst)
        if certificate.population != self.population:
            raise KernelFault("This certificate is about another population.")
        for loss in list_shares(certificate) or (certificate.loss,):
            refuse_long_amounts(loss)
