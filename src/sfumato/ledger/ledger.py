"""The ledger of one population: charge first, keep every answer, and let anybody check the sums."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, TracebackType

from sfumato.catalog.analysts import find_analyst, read_analyst
from sfumato.errors import InvalidParameter, KernelFault, LedgerError
from sfumato.kernel.certify import Certificate, Reservation
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.parameters import kind_of
from sfumato.kernel.release import Released
from sfumato.ledger.audit import Verification, audit, not_older
from sfumato.ledger.books import Books
from sfumato.ledger.charges import Taken, demand, exchanged, fits, left_of, nothing, price, taken_for, total
from sfumato.ledger.entries import Entry, Head, Row, altered_error, canonical, charged_loss, loss_text, read_loss
from sfumato.ledger.quotes import Quote, has, taken_by_view, usable
from sfumato.ledger.schema import VERSION
from sfumato.ledger.store import Store
from sfumato.ledger.stored import VOID, Stored, answer_text, description, is_void, shares_of, stored_answer
from sfumato.ledger.sublimits import Sublimits

__all__ = ["AlreadyAnswered", "Entry", "Ledger", "Limit", "Quote", "Stored", "Taken", "Totals", "Verification"]
NOBODY: Mapping[str, PrivacyLoss] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Limit:
    """A population's budget; the kind of loss is the kind of accounting."""

    loss: PrivacyLoss

    def __post_init__(self) -> None:
        if not isinstance(self.loss, PrivacyLoss):
            raise InvalidParameter("limit", "must be a privacy loss: PureDP, ApproxDP or ZCDP", kind_of(self.loss))


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

    def __init__(self, store: Store, ledger_id: str, population: str, sublimits: Mapping[str, PrivacyLoss]) -> None:
        self.ledger_id = ledger_id
        self.population = population
        self._store = store
        self._sublimits = Sublimits(sublimits)
        self._names: tuple[str, ...] = ()  # that were seen in the entries
        self._expected = (0, "")  # an entry that must be there
        self._newest: Head | None = None  # the newest head seen: the ledger must never be older than this
        self._seeing = threading.Lock()

    @classmethod
    def create(
        cls, url: str | None, population: str, limit: Limit, sublimits: Mapping[str, PrivacyLoss] = NOBODY
    ) -> "Ledger":
        """A new ledger, where there is none: in memory (None), in a SQLite file (a path) or at a database URL."""
        ledger = cls(Store(url, must_exist=False), SYSTEM.take(16).tobytes().hex(), population, sublimits)
        try:
            with ledger._store.write() as books:
                if books.has_tables():
                    hint = "Open it with its ledger_id, or choose another place."
                    raise LedgerError("ledger-exists", "There is a ledger at this address already.", hint)
                ledger._sublimits.check(limit.loss)
                books.make_tables()
                declared = {"ledger_id": ledger.ledger_id, "population": population, "limit": loss_text(limit.loss)}
                head = books.append(None, "open", limit.loss, nothing(limit.loss), payload=canonical(declared))
        except BaseException:
            ledger.close()
            raise
        ledger._remember(head)
        return ledger

    @classmethod
    def open(  # noqa: PLR0917 (its callers name what they pass)
        cls,
        url: str | None,
        ledger_id: str,
        population: str,
        limit: Limit,
        sublimits: Mapping[str, PrivacyLoss] = NOBODY,
        expected_head: tuple[int, str] | None = None,
    ) -> "Ledger":
        """The ledger with this id. A missing, foreign, shortened or older one is refused: never a fresh start."""
        ledger = cls(Store(url, must_exist=True), ledger_id, population, sublimits)
        ledger._expected = expected_head or ledger._expected
        try:
            with ledger._store.read() as books:
                if not books.has_tables():
                    raise LedgerError("ledger-missing", "There is no ledger at this address.", "Check the address.")
                outdated = books.version() < VERSION
            if outdated:
                with ledger._store.write() as books:
                    books.migrate()
            with ledger._store.read() as books:
                first = books.whole_row(1)
                if first is None:
                    raise altered_error(1, "is missing")
                declared = json.loads(first["payload"])
                if declared["ledger_id"] != ledger_id or declared["population"] != population:
                    hint = "Check ledger_id and population in the catalog, and the ledger's address."
                    raise LedgerError("ledger-foreign", "This ledger belongs to another dataset.", hint)
            with ledger._reading() as (books, head):
                pass
            ledger._sublimits.check(limit.loss)
            if head.budget != limit.loss:
                ledger._declare(limit.loss)
        except BaseException:
            ledger.close()
            raise
        ledger._remember(head)
        return ledger

    def reserve(self, analyst: str, certificate: Certificate) -> Reservation:
        """Charge a certificate, before any data is touched; an own charge that never got its answer is taken up again.

        Raises BudgetExceeded, and writes nothing, where the charge does not fit.
        """
        return self.charge(analyst, certificate)[0]

    def charge(self, analyst: str, certificate: Certificate) -> tuple[Reservation, Taken]:
        """`reserve`, and what it took now: nothing, where an earlier charge was taken up again."""
        self._check(analyst, certificate)
        payload = description(certificate)
        with self._writing() as (books, now):
            who = self._recorded(books, analyst)
            limit = self._sublimits.of(who, now.budget)
            before, newest = books.before(certificate.plan_digest, who)
            # the newest is enough: while one is without an answer, no other is made
            if before and before["payload"] == payload:
                answer = books.answer_to(before["number"])
                if answer is None:
                    return Reservation(before["number"], certificate), _nothing_for(certificate, now, limit)
                if not is_void(answer):
                    raise AlreadyAnswered("This charge has its answer already.")
            own = _spent_in(newest, now.budget)
            charge = self._charge(certificate, who, own, now)
            head = books.append(
                now,
                "charge",
                now.budget,
                total(now.spent, charge),
                analyst=who,
                plan_digest=certificate.plan_digest,
                answer_key=certificate.answer_key,
                loss=charge,
                analyst_spent=total(own, charge),
                payload=payload,
            )
        self._remember(head)
        return Reservation(head.number, certificate), taken_for(certificate.loss, charge, limit)

    def quote(self, analyst: str, certificate: Certificate) -> Quote:
        """What asking would take now, and whether that fits. Nothing is written."""
        self._check(analyst, certificate)
        with self._reading() as (books, now):
            who = self._recorded(books, analyst)
            limit = self._sublimits.of(who, now.budget)
            before, newest = books.before(certificate.plan_digest, who)
            own = _spent_in(newest, now.budget)
            best = usable(books, certificate, who, limit, now.budget)
            if best is not None:
                taken = taken_by_view(best, who, limit, now.budget)
                return Quote(taken, taken.own is None or limit is None or fits(taken.own, own, limit), shares_of(best))
            paid = before is not None and before["payload"] == description(certificate)
            if before and paid and books.answer_to(before["number"]) is None:
                return Quote(_nothing_for(certificate, now, limit), True)  # it is paid for already
            try:
                charge = price(certificate.loss, _losses(certificate), now.budget)
            except LedgerError:  # a kind of loss that this budget cannot count
                return Quote(taken_for(certificate.loss, certificate.loss, limit), False)
            within = fits(charge, now.spent, now.budget) and (limit is None or fits(charge, own, limit))
            return Quote(taken_for(certificate.loss, charge, limit), within)

    def fits(self, analyst: str, certificate: Certificate) -> bool:
        """Whether asking would be granted now. Nothing is written."""
        return self.quote(analyst, certificate).fits

    def stored(self, certificate: Certificate, analyst: str) -> Stored | None:
        """An answer to the same question that is at least as precise, or None. The total is not charged again.

        Another analyst's answer counts on the own limit of the analyst who sees it for the first time. With a limit,
        it is used only if its loss is at most what was asked for.
        """
        self._check(analyst, certificate)
        with self._reading() as (books, head):
            who = self._recorded(books, analyst)
            limit = self._sublimits.of(who, head.budget)
            best = usable(books, certificate, who, limit, head.budget)
            if best is None:
                return None
            answer = books.answer_to(best["number"])
        taken = taken_by_view(best, who, limit, head.budget)
        if not has(best, who):
            head, first = self._count_view(best, who)
            taken = taken if first else taken_by_view({**best, "seen": True}, who, limit, head.budget)
        return stored_answer(best, answer, head, taken)

    def history(self, answer_key: str, analyst: str) -> tuple[Stored, ...]:
        """Every answer under this key that the analyst has, paid for or counted as seen, oldest first."""
        with self._reading() as (books, head):
            who = self._recorded(books, analyst)
            own = [row for row in books.answered(answer_key, who) if has(row, who)]
            limit = self._sublimits.of(who, head.budget)
            return tuple(
                stored_answer(row, books.answer_to(row["number"]), head, taken_by_view(row, who, limit, head.budget))
                for row in own
            )

    def store(self, reservation: Reservation, released: Released) -> str:
        """Keep an answer with its charge, before it leaves; once only. The head's hash is returned."""
        certificate, number = reservation.certificate, reservation.entry_number
        if released.entry_number != number or released.certificate != certificate:
            raise KernelFault("This answer belongs to another charge.")
        cells = certificate.cells if released.keys is None else len(released.keys)
        shape = {each.name: (cells or 0) * each.width for each in certificate.measurements}
        if {name: len(cells) for name, cells in released.integers.items()} != shape:
            raise KernelFault("This answer has another shape than its certificate.")
        with self._writing() as (books, now):
            charge, answered, newest = books.charged(number)
            if not charge or charge["kind"] != "charge" or charge["payload"] != description(certificate):
                raise KernelFault("This answer was never charged.")
            if answered:
                raise AlreadyAnswered("This charge has its answer already.")
            head = _close(books, now, charge, newest, answer_text(released))
        self._remember(head)
        return head.hash

    def void(self, reservation: Reservation) -> None:
        """Close a charge whose answer could not be made, for good: its noise was drawn, and is not drawn again.

        What failed may have depended on the noise; to resume would be to choose among answers.
        """
        with self._writing() as (books, now):
            charge, answered, newest = books.charged(reservation.entry_number)
            if not charge or charge["kind"] != "charge" or answered:
                return
            head = _close(books, now, charge, newest, VOID)
        self._remember(head)

    def totals(self, analyst: str | None = None) -> Totals:
        """The population's budget; or the analyst's own, where one is declared."""
        with self._reading() as (books, head):
            limit = None if analyst is None else self._sublimits.of(analyst, head.budget)
            if analyst is None or limit is None:
                return Totals(head.budget, head.spent, left_of(head.budget, head.spent))
            own = _spent_in(books.newest_of(self._recorded(books, analyst)), head.budget)
            return Totals(limit, own, left_of(limit, own))

    def remaining(self) -> PrivacyLoss:
        """What the newest entry that was seen here has left of the population's budget; `totals` looks again."""
        newest = self._newest
        return self.totals().remaining if newest is None else left_of(newest.budget, newest.spent)

    def limited_analysts(self) -> list[str]:
        """Every analyst with a limit of their own: those that are declared, and those that have the default."""
        with self._reading() as (books, head):
            others = [each for each in books.analysts() if self._sublimits.of(each, head.budget) is not None]
        listed = self._sublimits.names()
        return [*listed, *(each for each in others if self._sublimits.listed(each) is None)]

    def own_remaining(self, analyst: str) -> PrivacyLoss | None:
        """What is left of the analyst's own limit; None: they have none."""
        newest = self._newest
        if newest is not None and self._sublimits.of(analyst, newest.budget) is None:
            return None
        return self.totals(analyst).remaining

    def head(self) -> tuple[int, str]:
        """The number and the hash of the last entry."""
        with self._reading() as (_, head):
            return head.number, head.hash

    def entries(self, newest: int | None = None) -> list[Entry]:
        """The newest entries (all of them by default), oldest first."""
        with self._reading() as (books, _):
            return books.newest(newest)

    def verify(self) -> Verification:
        """Walk the whole chain: every hash, every sum, every answer, and the head that was seen last."""
        latest = self._latest
        with self._store.read() as books:
            return audit(books, self.ledger_id, self.population, latest)

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Books, Head]]:
        latest = self._latest  # taken before the view, which therefore cannot be older
        with self._store.read() as books:
            head = books.head(lock=False)
            not_older(books, head, latest)
            yield books, head
        self._remember(head)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Books, Head]]:
        latest = self._latest
        with self._store.write() as books:
            head = books.head(lock=True)
            not_older(books, head, latest)
            yield books, head

    @property
    def _latest(self) -> tuple[int, str]:
        newest = self._newest
        return self._expected if newest is None else (newest.number, newest.hash)

    def _remember(self, head: Head) -> None:
        with self._seeing:
            if self._newest is None or head.number > self._newest.number:
                self._newest = head

    def _declare(self, limit: PrivacyLoss) -> None:
        """Chain the owner's change of the limit. What is spent is carried over, exchanged if the kind changes."""
        with self._writing() as (books, now):
            same = now.budget == limit
            head = now if same else books.append(now, "limit", limit, exchanged(now.spent, limit))
        self._remember(head)

    def _count_view(self, charge: Row, analyst: str) -> tuple[Head, bool]:
        """Count an answer on the sub-limit of an analyst who sees it for the first time; the total stays as it is.

        False: it was counted meanwhile.
        """
        with self._writing() as (books, now):
            if books.has_seen(charge["number"], analyst):
                return now, False
            loss = exchanged(charged_loss(charge["loss"]), now.budget)
            own = _spent_in(books.newest_of(analyst), now.budget)
            self._sublimits.demand(loss, own, analyst, now.budget, ())
            parts = {name: charge[name] for name in ("plan_digest", "answer_key")}
            parts |= {"analyst": analyst, "about": charge["number"], "loss": loss, "analyst_spent": total(own, loss)}
            head = books.append(now, "seen", now.budget, now.spent, **parts)
        self._remember(head)
        return head, True

    def _check(self, analyst: str, certificate: Certificate) -> None:
        read_analyst(analyst)
        if certificate.population != self.population:
            raise KernelFault("This certificate is about another population.")

    def _recorded(self, books: Books, analyst: str) -> str:
        """The name that this analyst's entries have: as it was recorded first, or is declared, or as it is given.

        Looked up inside the transaction, so that two spellings of one name never become two analysts.
        """
        found = find_analyst(analyst, self._names)
        if found is None:
            self._names = tuple(books.analysts())
            found = find_analyst(analyst, self._names)
        return found or self._sublimits.listed(analyst) or read_analyst(analyst)

    def _charge(self, certificate: Certificate, analyst: str, own: PrivacyLoss, now: Head) -> PrivacyLoss:
        """What a certificate costs here; refused where that does not fit."""
        shares = _losses(certificate)
        charge = price(certificate.loss, shares, now.budget)
        demand(charge, now.spent, now.budget, "the population's budget", shares)
        self._sublimits.demand(charge, own, analyst, now.budget, shares)
        return charge


def _losses(certificate: Certificate) -> tuple[PrivacyLoss, ...]:
    return tuple(each.loss for each in certificate.measurements)


def _nothing_for(certificate: Certificate, now: Head, limit: PrivacyLoss | None) -> Taken:
    """What it takes to take up a charge again."""
    return taken_for(nothing(certificate.loss), nothing(now.budget), limit)


def _close(books: Books, now: Head, charge: Row, newest: Row | None, payload: str) -> Head:
    """Append what a charge came to: its answer, or that it will have none."""
    return books.append(
        now,
        "answer",
        now.budget,
        now.spent,
        analyst=charge["analyst"],
        plan_digest=charge["plan_digest"],
        answer_key=charge["answer_key"],
        about=charge["number"],
        analyst_spent=_spent_in(newest, now.budget),
        payload=payload,
    )


def _spent_in(newest: Row | None, budget: PrivacyLoss) -> PrivacyLoss:
    """What an analyst has spent, from their last entry."""
    spent = read_loss(newest["analyst_spent"]) if newest else None
    return exchanged(spent, budget) if spent else nothing(budget)
