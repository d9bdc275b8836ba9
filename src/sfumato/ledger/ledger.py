"""The ledger of one population: charge first, keep every answer, and let anybody check the sums."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import IO

from sfumato.catalog.analysts import find_analyst, read_analyst
from sfumato.errors import InvalidParameter, KernelFault, LedgerError
from sfumato.kernel.certify import Certificate
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.parameters import kind_of
from sfumato.kernel.release import Released
from sfumato.kernel.reservation import Reservation
from sfumato.ledger.adoption import make_mark
from sfumato.ledger.audit import Seen, Verification, audit, refuse_older
from sfumato.ledger.database import Database
from sfumato.ledger.earlier_releases import EarlierReleases, find_earlier_releases
from sfumato.ledger.entries import Entry, Head, Row, read_charge, read_loss
from sfumato.ledger.export import write_export
from sfumato.ledger.fork_gate import GATE
from sfumato.ledger.keyring import Keyring
from sfumato.ledger.last_verified import read_verified, remember_verified
from sfumato.ledger.ledger_opening import Identity, admit, begin_ledger, prepare_reading, read_identity
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import (
    Spending,
    add_losses,
    convert_loss,
    describe_loss,
    fits,
    price,
    refuse_long_amounts,
    refuse_over_limit,
    spend_on,
    subtract_spent,
    zero_loss,
)
from sfumato.ledger.quotes import Quote, choose_stored, has_answer, price_view
from sfumato.ledger.recorded_neighbours import (
    describe_neighbours,
    read_neighbours,
    record_neighbours,
    refuse_other_neighbours,
)
from sfumato.ledger.segments import remember_ledger
from sfumato.ledger.stored_answers import (
    VOID,
    StoredAnswer,
    describe_certificate,
    is_void,
    read_shares,
    read_stored,
    write_answer,
)
from sfumato.ledger.sublimits import Sublimits

__all__ = ["AlreadyAnswered", "Entry", "Ledger", "Limit", "Quote", "Spending", "StoredAnswer", "Totals", "Verification"]
NOBODY: Mapping[str, PrivacyLoss] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Limit:
    """A population's budget; the kind of loss is the kind of accounting."""

    loss: PrivacyLoss

    def __post_init__(self) -> None:
        if not isinstance(self.loss, PrivacyLoss):
            raise InvalidParameter("limit", "must be a privacy loss: PureDP, ApproxDP or ZCDP", kind_of(self.loss))
        refuse_long_amounts(self.loss)


@dataclass(frozen=True, slots=True)
class Totals:
    """A budget, what is spent of it and what is left: losses of one kind."""

    limit: PrivacyLoss
    spent: PrivacyLoss
    remaining: PrivacyLoss


class AlreadyAnswered(KernelFault):
    """The same analyst has the answer to this very plan: it is stored, and nothing more is charged."""


class Ledger:
    """The budget of one population. Threads may share it; processes open their own on the same database."""

    def __init__(
        self,
        database: Database,
        identity: Identity,
        sublimits: Mapping[str, PrivacyLoss],
        keyring: Keyring | None,
        anchor: Seen | None,
    ) -> None:
        self.ledger_id = identity.ledger_id
        self.population = identity.population
        self._database = database
        self._sublimits = Sublimits(sublimits)
        self._names: tuple[str, ...] = ()  # that were seen in the entries
        self._keyring = keyring  # None: in memory
        self._anchor = anchor  # a ledger that was restored or adopted since has another one; None: only to be read
        self._expected = (0, "")  # an entry that must be there
        self._newest: Head | None = None  # the newest head seen: the ledger must never be older than this
        self._seeing = threading.Lock()
        self._generation = 0  # of the mark when this was opened

    @classmethod
    def create(
        cls,
        url: str | None,
        population: str,
        limit: Limit,
        sublimits: Mapping[str, PrivacyLoss] = NOBODY,
        neighbours: Neighbours | None = None,
    ) -> "Ledger":
        """A new ledger, where there is none: in memory (None), in a SQLite file (a path) or at a database URL.

        Its first entry records the neighbours, if they are given.
        """
        Sublimits(sublimits).check(limit.loss)
        identity = Identity(SYSTEM.take(16).tobytes().hex(), population)
        database = Database(url, must_exist=False)
        try:
            keyring = None if database.in_memory else Keyring.make(identity.ledger_id)
            head = begin_ledger(database, keyring, identity, limit.loss, describe_neighbours(neighbours))
        except BaseException:
            database.close()
            raise
        ledger = cls(database, identity, sublimits, keyring, (head.number, head.hash))
        ledger._remember(head)
        return ledger

    @classmethod
    def open(  # noqa: PLR0917 (its callers name what they pass)
        cls,
        url: str | None,
        ledger_id: str,
        population: str,
        limit: Limit | None = None,
        sublimits: Mapping[str, PrivacyLoss] = NOBODY,
        expected_head: str | tuple[int, str] | None = None,
        neighbours: Neighbours | None = None,
    ) -> "Ledger":
        """The ledger with this id. A missing, foreign, copied, shortened or older one is refused: never a fresh start.

        A limit that is not the ledger's own is refused too: only `set_limit` changes it. So are other neighbours than
        it records. `expected_head` is the hash of
        an entry that a reader has kept; it must be there.
        """
        _check_head(expected_head)
        database, identity = Database(url, must_exist=True), Identity(ledger_id, population)
        try:
            keyring, anchor = admit(database, identity)
            ledger = cls(database, identity, sublimits, keyring, (anchor.number, anchor.hash))
            ledger._expect(expected_head)
            mark = keyring.read_mark() if keyring else None
            ledger._generation = mark.generation if mark else 0
            with ledger._reading() as (rows, head):
                if keyring and anchor.number > 1:
                    remember_ledger(keyring, rows, anchor.hash)
            ledger._sublimits.check(head.budget)
            if limit is not None and limit.loss != head.budget:
                raise _other_limit_error(limit.loss, head.budget)
            if neighbours is not None:
                ledger.agree_on(neighbours)
        except BaseException:
            database.close()
            raise
        return ledger

    @classmethod
    def read_identity(cls, url: str) -> Identity | None:
        """What the ledger at this address says it is, before anything is believed; None where there is none."""
        database = Database(url, must_exist=False, read_only=True)
        try:
            if database.path is not None and not os.path.exists(database.path):
                return None
            return read_identity(database)
        finally:
            database.close()

    @classmethod
    def read(cls, url: str, ledger_id: str, population: str, sublimits: Mapping[str, PrivacyLoss] = NOBODY) -> "Ledger":
        """The ledger with this id, to be listed and verified: also a copy, a damaged one, or one in a read-only folder.

        Nothing can be charged to it.
        """
        database, identity = Database(url, must_exist=True, read_only=True), Identity(ledger_id, population)
        try:
            return cls(database, identity, sublimits, prepare_reading(database, identity), None)
        except BaseException:
            database.close()
            raise

    def reserve(self, analyst: str, certificate: Certificate) -> Reservation:
        """Charge a certificate, before any data is touched; an own charge that never got its answer is taken up again.

        Raises BudgetExceeded, and writes nothing, where the charge does not fit.
        """
        return self.charge(analyst, certificate)[0]

    def charge(self, analyst: str, certificate: Certificate, question: str = "") -> tuple[Reservation, Spending]:
        """`reserve`, and what it took now: nothing, where an earlier charge was taken up again.

        The question is recorded with the charge.
        """
        self._check(analyst, certificate)
        payload = describe_certificate(certificate)
        with self._writing() as (rows, now):
            who = self._recorded(rows, analyst)
            limit = self._sublimits.of(who, now.budget)
            before, newest = rows.before(certificate.plan_digest, who)
            # the newest is enough: while one is without an answer, no other is made
            if before and before["payload"] == payload:
                answer = rows.answer_to(before["number"])
                if answer is None:
                    return Reservation(before["number"], certificate), _spend_nothing(certificate, now, limit)
                if not is_void(answer):
                    raise AlreadyAnswered("This charge has its answer already.")
            own = _read_spent(newest, now.budget)
            charge = self._charge(certificate, who, own, now)
            head = rows.append(
                now,
                "charge",
                now.budget,
                add_losses(now.spent, charge),
                analyst=who,
                plan_digest=certificate.plan_digest,
                answer_key=certificate.answer_key,
                loss=charge,
                analyst_spent=add_losses(own, charge),
                payload=payload,
                question=question,
            )
        self._remember(head)
        return Reservation(head.number, certificate), spend_on(certificate.loss, charge, limit)

    def quote(self, analyst: str, certificate: Certificate) -> Quote:
        """What asking would take now, and whether that fits. Nothing is written."""
        self._check(analyst, certificate)
        with self._reading() as (rows, now):
            who = self._recorded(rows, analyst)
            limit = self._sublimits.of(who, now.budget)
            before, newest = rows.before(certificate.plan_digest, who)
            own = _read_spent(newest, now.budget)
            best = choose_stored(rows, certificate, who, limit, now.budget)
            if best is not None:
                taken = price_view(best, who, limit, now.budget)
                return Quote(
                    taken, taken.own is None or limit is None or fits(taken.own, own, limit), read_shares(best)
                )
            paid = before is not None and before["payload"] == describe_certificate(certificate)
            if before and paid and rows.answer_to(before["number"]) is None:
                return Quote(_spend_nothing(certificate, now, limit), True)  # it is paid for already
            try:
                charge = price(certificate.loss, _list_losses(certificate), now.budget)
            except LedgerError:  # a kind of loss that this budget cannot count
                return Quote(spend_on(certificate.loss, certificate.loss, limit), False)
            within = fits(charge, now.spent, now.budget) and (limit is None or fits(charge, own, limit))
            return Quote(spend_on(certificate.loss, charge, limit), within)

    def fits(self, analyst: str, certificate: Certificate) -> bool:
        """Whether asking would be granted now. Nothing is written."""
        return self.quote(analyst, certificate).fits

    def find_stored(self, certificate: Certificate, analyst: str) -> StoredAnswer | None:
        """An answer to the same question that is at least as precise, or None. The total is not charged again.

        Another analyst's answer counts on the own limit of the analyst who sees it for the first time. With a limit,
        it is used only if its loss is at most what was asked for.
        """
        self._check(analyst, certificate)
        with self._reading() as (rows, head):
            who = self._recorded(rows, analyst)
            limit = self._sublimits.of(who, head.budget)
            best = choose_stored(rows, certificate, who, limit, head.budget)
            if best is None:
                return None
            answer = rows.answer_to(best["number"])
        taken = price_view(best, who, limit, head.budget)
        if not has_answer(best, who):
            head, first = self._count_view(best, who)
            taken = taken if first else price_view({**best, "seen": True}, who, limit, head.budget)
        return read_stored(best, answer, head, taken)

    def find_earlier(self, answer_key: str, analyst: str) -> EarlierReleases:
        """What the analyst has under this key: the newest summary of an upgrade, and the answers that it lacks.

        Only entries since that summary are read, however many there are before it.
        """
        with self._reading() as (rows, head):
            who = self._recorded(rows, analyst)
            limit = self._sublimits.of(who, head.budget)
            return find_earlier_releases(rows, head, answer_key, who, limit)

    def store(self, reservation: Reservation, released: Released, summary: Mapping[str, object] | None = None) -> str:
        """Keep an answer with its charge, before it leaves; once only. The head's hash is returned.

        `summary` is what an upgrade sums up with it: see `earlier`.
        """
        certificate, number = reservation.certificate, reservation.entry_number
        if released.entry_number != number or released.certificate != certificate:
            raise KernelFault("This answer belongs to another charge.")
        cells = certificate.cells if released.keys is None else len(released.keys)
        shape = {each.name: (cells or 0) * each.width for each in certificate.measurements}
        if {name: len(cells) for name, cells in released.integers.items()} != shape:
            raise KernelFault("This answer has another shape than its certificate.")
        with self._writing() as (rows, now):
            charge, answered, newest = rows.charged(number)
            if not charge or charge["kind"] != "charge" or charge["payload"] != describe_certificate(certificate):
                raise KernelFault("This answer was never charged.")
            if answered:
                raise AlreadyAnswered("This charge has its answer already.")
            head = _close_charge(rows, now, charge, newest, write_answer(released, summary))
        self._remember(head)
        return head.hash

    def void(self, reservation: Reservation) -> None:
        """Close a charge whose answer could not be made, for good: its noise was drawn, and is not drawn again.

        What failed may have depended on the noise; to resume would be to choose among answers.
        """
        with self._writing() as (rows, now):
            charge, answered, newest = rows.charged(reservation.entry_number)
            if not charge or charge["kind"] != "charge" or answered:
                return
            head = _close_charge(rows, now, charge, newest, VOID)
        self._remember(head)

    def totals(self, analyst: str | None = None) -> Totals:
        """The population's budget; or the analyst's own, where one is declared."""
        with self._reading() as (rows, head):
            limit = None if analyst is None else self._sublimits.of(analyst, head.budget)
            if analyst is None or limit is None:
                return Totals(head.budget, head.spent, subtract_spent(head.budget, head.spent))
            own = _read_spent(rows.newest_of(self._recorded(rows, analyst)), head.budget)
            return Totals(limit, own, subtract_spent(limit, own))

    def read_remaining(self) -> PrivacyLoss:
        """What the newest entry that was seen here has left of the population's budget; `totals` looks again."""
        newest = self._newest
        return self.totals().remaining if newest is None else subtract_spent(newest.budget, newest.spent)

    def limited_analysts(self) -> list[str]:
        """Every analyst with a limit of their own: those that are declared, and those that have the default."""
        with self._reading() as (rows, head):
            others = [each for each in rows.analysts() if self._sublimits.of(each, head.budget) is not None]
        listed = self._sublimits.names()
        return [*listed, *(each for each in others if self._sublimits.listed(each) is None)]

    def has_sublimits(self, sublimits: Mapping[str, PrivacyLoss]) -> bool:
        """Whether the analysts' own limits are these."""
        return self._sublimits.agree(sublimits)

    def read_own_remaining(self, analyst: str) -> PrivacyLoss | None:
        """What is left of the analyst's own limit; None: they have none."""
        newest = self._newest
        if newest is not None and self._sublimits.of(analyst, newest.budget) is None:
            return None
        return self.totals(analyst).remaining

    @property
    def public_key(self) -> str | None:
        """The key that signs the entries, where it is here; None for a ledger in memory."""
        return self._keyring.public_key if self._keyring else None

    def head(self) -> tuple[int, str]:
        """The number and the hash of the last entry."""
        with self._reading() as (_, head):
            return head.number, head.hash

    def entries(self, newest: int | None = None) -> list[Entry]:
        """The newest entries (all of them by default), oldest first."""
        with self._reading() as (rows, _):
            return rows.newest(newest)

    def entry(self, number: int) -> Entry | None:
        """One entry; None: there is none of that number."""
        with self._reading() as (rows, _):
            row = rows.row(number)
            return None if row is None else Entry.of(row)

    def verify(self, *, full: bool = True, head: str | None = None) -> Verification:
        """Walk the chain: every hash, signature, sum and answer, and the heads that were seen before.

        Not `full`: only what was added since this user verified it last. `head` is the hash of an entry that a reader
        has kept, which must be there.
        """
        known, keyring = self._known(), self._keyring
        with self._database.read() as rows:
            before = read_verified(keyring) if keyring and not full else None
            found = audit(rows, self.ledger_id, self.population, known, keyring.public_key if keyring else "", before)
            if found.ok and head is not None and rows.number_of(head) is None:
                found = Verification(False, found.entries, None, "No entry has the expected hash.")
            if found.ok and keyring:
                remember_verified(keyring, rows.head(lock=False))
        return found

    def export(self, file: IO[str], *, answers: bool = False) -> int:
        """Write every entry as a line of JSON; how many there are. The integers of answers are left out by default."""
        with self._database.read() as rows:
            return write_export(rows, self.ledger_id, self.population, file, answers=answers)

    def open_charges(self) -> list[Entry]:
        """The charges that have no answer yet: asking the same question again takes them up at no further cost.

        Not so a watch, which is charged when it begins.
        """
        with self._reading() as (rows, _):
            return rows.open_charges()

    def set_limit(self, limit: Limit) -> None:
        """Change the population's budget: the owner's decision, and an entry.

        What is spent is carried over, exchanged if the kind of accounting changes. A limit below what is spent is
        allowed: nothing more can be charged then.
        """
        self._sublimits.check(limit.loss)
        with self._writing() as (rows, now):
            same = now.budget == limit.loss
            head = now if same else rows.append(now, "limit", limit.loss, convert_loss(now.spent, limit.loss))
        self._remember(head)

    def agree_on(self, neighbours: Neighbours) -> None:
        """Refuse other neighbours than the ledger records; where it was begun before it did, record these. An entry."""
        with self._reading() as (rows, _):
            found = read_neighbours(rows)
        if found is None:
            with self._writing() as (rows, now):
                found = read_neighbours(rows)  # another process may have been first
                head = now if found else record_neighbours(rows, now, neighbours)
            self._remember(head)
        refuse_other_neighbours(found or neighbours, neighbours)

    def close(self) -> None:
        """Give the connections back."""
        self._database.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[tuple[LedgerRows, Head]]:
        known = self._known()  # taken before the view, which therefore cannot be older
        with self._database.read() as rows:
            head = rows.head(lock=False)
            self._refuse_other(rows, head, known)
            yield rows, head
        self._remember(head)

    @contextmanager
    def _writing(self) -> Iterator[tuple[LedgerRows, Head]]:
        known = self._known()
        if self._anchor is None:
            raise LedgerError("ledger-read-only", "This ledger is open to be read only.", "Open the dataset to ask.")
        with self._database.write() as rows:
            head = rows.head(lock=True)
            self._refuse_other(rows, head, known)
            yield rows, head

    def _refuse_other(self, rows: LedgerRows, head: Head, known: tuple[Seen, ...]) -> None:
        """Refuse a ledger that is not the continuation of what was seen here, or that the owner has moved on."""
        for latest in known:
            refuse_older(rows, head, latest)
        if self._anchor is not None and self._anchor[0] != head.anchor:
            hint = "Open the dataset again."
            raise LedgerError("ledger-fenced", "The ledger was restored or adopted since it was opened here.", hint)

    def _known(self) -> tuple[Seen, ...]:
        """The newest entries that were seen: by this process, and by any process of this user (the mark)."""
        newest, mark = self._newest, self._keyring.read_mark() if self._keyring else None
        own = self._expected if newest is None else (newest.number, newest.hash)
        return (own,) if mark is None or (mark.number, mark.hash) == own else (own, (mark.number, mark.hash))

    def _remember(self, head: Head) -> None:
        with GATE.inside():
            with self._seeing:
                newer = self._newest is None or head.number > self._newest.number
                if newer:
                    self._newest = head
            if not newer or self._keyring is None or self._anchor is None:
                return
            mark = make_mark(head, self._anchor[1], self._database.path or "", self._generation)
            if not self._keyring.raise_mark(
                mark
            ):  # what was charged here since is not counted there: nothing is answered
                hint = "Open the dataset again; if this ledger is a copy, use the one that was adopted or restored."
                raise LedgerError("ledger-older", "The owner has adopted or restored this ledger meanwhile.", hint)

    def _expect(self, head: str | tuple[int, str] | None) -> None:
        """Demand an entry that a reader has kept, by its hash."""
        if isinstance(head, str):
            with self._database.read() as rows:
                number = rows.number_of(head)
            if number is None:
                hint = "It has forgotten that entry, or was never the ledger that the reader saw."
                raise LedgerError("ledger-older", "No entry of this ledger has the expected hash.", hint)
            head = (number, head)
        self._expected = head or self._expected

    def _count_view(self, charge: Row, analyst: str) -> tuple[Head, bool]:
        """Count an answer on the sub-limit of an analyst who sees it for the first time; the total stays as it is.

        False: it was counted meanwhile.
        """
        with self._writing() as (rows, now):
            if rows.has_seen(charge["number"], analyst):
                return now, False
            loss = convert_loss(read_charge(charge["loss"]), now.budget)
            own = _read_spent(rows.newest_of(analyst), now.budget)
            self._sublimits.refuse_over_limit(loss, own, analyst, now.budget, ())
            parts = {name: charge[name] for name in ("plan_digest", "answer_key")}
            parts |= {
                "analyst": analyst,
                "about": charge["number"],
                "loss": loss,
                "analyst_spent": add_losses(own, loss),
            }
            head = rows.append(now, "seen", now.budget, now.spent, **parts)
        self._remember(head)
        return head, True

    def _check(self, analyst: str, certificate: Certificate) -> None:
        read_analyst(analyst)
        if certificate.population != self.population:
            raise KernelFault("This certificate is about another population.")
        for each in _list_losses(certificate) or (certificate.loss,):
            refuse_long_amounts(each)

    def _recorded(self, rows: LedgerRows, analyst: str) -> str:
        """The name that this analyst's entries have: as it was recorded first, or is declared, or as it is given.

        Looked up inside the transaction, so that two spellings of one name never become two analysts.
        """
        found = find_analyst(analyst, self._names)
        if found is None:
            self._names = tuple(rows.analysts())
            found = find_analyst(analyst, self._names)
        return found or self._sublimits.listed(analyst) or read_analyst(analyst)

    def _charge(self, certificate: Certificate, analyst: str, own: PrivacyLoss, now: Head) -> PrivacyLoss:
        """What a certificate costs here; refused where that does not fit."""
        shares = _list_losses(certificate)
        charge = price(certificate.loss, shares, now.budget)
        refuse_over_limit(charge, now.spent, now.budget, "the population's budget", shares)
        self._sublimits.refuse_over_limit(charge, own, analyst, now.budget, shares)
        return charge


def _check_head(head: object) -> None:
    """Refuse what is neither a hash, nor a number and a hash, nor nothing."""
    number, hash_ = head if isinstance(head, tuple) and len(head) == 2 else (1, head)
    whole = isinstance(number, int) and not isinstance(number, bool) and 1 <= number < 2**63
    if head is not None and not (whole and isinstance(hash_, str) and hash_.isascii()):
        hint = "It is the ledger_head of an answer's disclosure."
        raise InvalidParameter("expected_head", "must be the hash of an entry", kind_of(head), hint)


def _list_losses(certificate: Certificate) -> tuple[PrivacyLoss, ...]:
    return tuple(each.loss for each in certificate.measurements)


def _spend_nothing(certificate: Certificate, now: Head, limit: PrivacyLoss | None) -> Spending:
    """What it takes to take up a charge again."""
    return spend_on(zero_loss(certificate.loss), zero_loss(now.budget), limit)


def _other_limit_error(wanted: PrivacyLoss, found: PrivacyLoss) -> LedgerError:
    message = f"The ledger's budget is {describe_loss(found)}, and {describe_loss(wanted)} is declared here."
    hint = "To change the budget, run `sfumato budget set` (or sf.set_budget): the change is recorded in the ledger."
    return LedgerError("ledger-limit", message, hint)


def _close_charge(rows: LedgerRows, now: Head, charge: Row, newest: Row | None, payload: str) -> Head:
    """Append what a charge came to: its answer, or that it will have none."""
    return rows.append(
        now,
        "answer",
        now.budget,
        now.spent,
        analyst=charge["analyst"],
        plan_digest=charge["plan_digest"],
        answer_key=charge["answer_key"],
        about=charge["number"],
        analyst_spent=_read_spent(newest, now.budget),
        payload=payload,
    )


def _read_spent(newest: Row | None, budget: PrivacyLoss) -> PrivacyLoss:
    """What an analyst has spent, from their last entry."""
    spent = read_loss(newest["analyst_spent"]) if newest else None
    return convert_loss(spent, budget) if spent else zero_loss(budget)
