"""The ledger of one population: charge first, keep every answer, and let anybody check the sums."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType, TracebackType

from sfumato.errors import BudgetExceeded, InvalidParameter, KernelFault, LedgerError
from sfumato.kernel.certify import Certificate, Reservation
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.parameters import kind_of
from sfumato.kernel.release import Released
from sfumato.ledger.audit import Verification, audit, not_older
from sfumato.ledger.books import Books
from sfumato.ledger.charges import demand, exchanged, left_of, nothing, price, sublimit, total
from sfumato.ledger.entries import Entry, Head, Row, altered_error, canonical, charged_loss, loss_text, read_loss
from sfumato.ledger.schema import VERSION
from sfumato.ledger.store import Store
from sfumato.ledger.stored import VOID, Stored, answer_text, answers, description, is_void, measures, stored_answer

__all__ = ["AlreadyAnswered", "Entry", "Ledger", "Limit", "Stored", "Totals", "Verification"]
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
        self._sublimits = dict(sublimits)
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
                ledger._check_sublimits(limit.loss)
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
            ledger._check_sublimits(limit.loss)
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
        self._check(analyst, certificate)
        payload = description(certificate)
        with self._writing() as (books, now):
            before, newest = books.before(certificate.plan_digest, analyst)
            # the newest is enough: while one is without an answer, no other is made
            if before and before["payload"] == payload:
                answer = books.answer_to(before["number"])
                if answer is None:
                    return Reservation(before["number"], certificate)
                if not is_void(answer):
                    raise AlreadyAnswered("This charge has its answer already.")
            own = _spent_in(newest, now.budget)
            charge = self._charge(certificate, analyst, own, now)
            head = books.append(
                now,
                "charge",
                now.budget,
                total(now.spent, charge),
                analyst=analyst,
                plan_digest=certificate.plan_digest,
                answer_key=certificate.answer_key,
                loss=charge,
                analyst_spent=total(own, charge),
                payload=payload,
            )
        self._remember(head)
        return Reservation(head.number, certificate)

    def fits(self, analyst: str, certificate: Certificate) -> bool:
        """Whether `reserve` would be granted now. Nothing is written."""
        self._check(analyst, certificate)
        with self._reading() as (books, now):
            before, newest = books.before(certificate.plan_digest, analyst)
            paid = before is not None and before["payload"] == description(certificate)
            if before and paid and not is_void(books.answer_to(before["number"])):
                return True  # it is paid for already
            own = _spent_in(newest, now.budget)
            try:
                self._charge(certificate, analyst, own, now)
            except (BudgetExceeded, LedgerError):  # too dear, or in a currency that is not taken here
                return False
            return True

    def stored(self, certificate: Certificate, analyst: str) -> Stored | None:
        """An answer to the same question that is at least as precise, or None. The total is not charged again.

        An analyst with a sub-limit is given what they have seen before something that they would have to pay for.
        """
        self._check(analyst, certificate)
        with self._reading() as (books, head):
            hits = [row for row in _given(books, certificate.answer_key, analyst) if answers(row, certificate)]
            if not hits:
                return None
            pays = analyst in self._sublimits
            best = min(hits, key=lambda row: (pays and not _has(row, analyst), measures(row)[0][1], row["number"]))
            answer = books.answer_to(best["number"])
        if not _has(best, analyst):
            head = self._count_view(best, analyst)
        return stored_answer(best, answer, head)

    def history(self, answer_key: str, analyst: str) -> tuple[Stored, ...]:
        """Every answer under this key that the analyst has, paid for or counted as seen, oldest first."""
        with self._reading() as (books, head):
            own = [row for row in _given(books, answer_key, analyst) if _has(row, analyst)]
            return tuple(stored_answer(row, books.answer_to(row["number"]), head) for row in own)

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
            if analyst is None or analyst not in self._sublimits:
                return Totals(head.budget, head.spent, left_of(head.budget, head.spent))
            limit = sublimit(self._sublimits[analyst], head.budget)
            own = _spent_in(books.newest_of(analyst), head.budget)
            return Totals(limit, own, left_of(limit, own))

    def remaining(self) -> PrivacyLoss:
        """What the newest entry that was seen here has left of the population's budget; `totals` looks again."""
        newest = self._newest
        return self.totals().remaining if newest is None else left_of(newest.budget, newest.spent)

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

    def _count_view(self, charge: Row, analyst: str) -> Head:
        """Count an answer on the sub-limit of an analyst who sees it for the first time; the total stays as it is."""
        with self._writing() as (books, now):
            if books.has_seen(charge["number"], analyst):
                return now
            loss = exchanged(charged_loss(charge["loss"]), now.budget)
            own = _spent_in(books.newest_of(analyst), now.budget)
            self._demand_own(loss, own, analyst, now.budget, ())
            parts = {name: charge[name] for name in ("plan_digest", "answer_key")}
            parts |= {"analyst": analyst, "about": charge["number"], "loss": loss, "analyst_spent": total(own, loss)}
            head = books.append(now, "seen", now.budget, now.spent, **parts)
        self._remember(head)
        return head

    def _check(self, analyst: str, certificate: Certificate) -> None:
        if not isinstance(analyst, str) or not analyst or not analyst.isprintable():
            raise InvalidParameter("analyst", "must be a name in printable characters", kind_of(analyst))
        if certificate.population != self.population:
            raise KernelFault("This certificate is about another population.")

    def _check_sublimits(self, budget: PrivacyLoss) -> None:
        for each in self._sublimits.values():
            sublimit(each, budget)

    def _charge(self, certificate: Certificate, analyst: str, own: PrivacyLoss, now: Head) -> PrivacyLoss:
        """What a certificate costs here; refused where that does not fit."""
        shares = tuple(each.loss for each in certificate.measurements)
        charge = price(certificate.loss, shares, now.budget)
        demand(charge, now.spent, now.budget, "the population's budget", shares)
        self._demand_own(charge, own, analyst, now.budget, shares)
        return charge

    def _demand_own(
        self, charge: PrivacyLoss, own: PrivacyLoss, analyst: str, budget: PrivacyLoss, shares: tuple[PrivacyLoss, ...]
    ) -> None:
        if analyst in self._sublimits:
            demand(charge, own, sublimit(self._sublimits[analyst], budget), "this analyst's own limit", shares)


def _given(books: Books, answer_key: str, analyst: str) -> list[Row]:
    """The charges under a key whose answers were given: not those that were closed without one."""
    rows = books.answered(answer_key, analyst)
    return [row for row in rows if not is_void(books.answer_to(row["number"]))]


def _has(charge: Row, analyst: str) -> bool:
    """Whether the analyst has the answer to a charge of `Books.answered`."""
    return bool(charge["analyst"] == analyst or charge["seen"])


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
