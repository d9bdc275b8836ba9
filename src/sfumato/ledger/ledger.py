"""The ledger of one population: charge first, keep every answer, and let anybody check the sums."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import isqrt
from types import MappingProxyType, TracebackType
from typing import Any, assert_never

from sfumato.errors import BudgetExceeded, InvalidParameter, KernelFault, LedgerError, SfumatoError
from sfumato.kernel.certify import Certificate, Reservation
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import plain, sum_exactly
from sfumato.kernel.losses import ZCDP, ApproxDP, PrivacyLoss, PureDP, compose
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.parameters import kind_of
from sfumato.kernel.release import Released
from sfumato.ledger.store import Books, Entry, Head, Row, Store, altered, altered_error, canonical, loss_text, read_loss

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


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was given before. Each of `certificate_measure` is a name, a variance and the noise's kind."""

    entry_number: int
    certificate_measure: tuple[tuple[str, Fraction, str], ...]
    integers: dict[str, tuple[int, ...]]
    loss: PrivacyLoss
    head: str
    analyst: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What an audit found: how many entries hold, and which is the first that does not."""

    ok: bool
    entries: int
    first_broken: int | None
    reason: str


class AlreadyAnswered(KernelFault):
    """The same analyst has the answer to this very plan: it is stored, and nothing more is charged."""


class Ledger:
    """The budget of one population. Threads may share it; processes open their own on the same database."""

    def __init__(self, store: Store, ledger_id: str, population: str, sublimits: Mapping[str, PrivacyLoss]) -> None:
        self.ledger_id = ledger_id
        self.population = population
        self._store = store
        self._sublimits = dict(sublimits)
        self._latest = (0, "")  # the newest head seen: the ledger must never be older than this

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
                head = books.append(None, "open", limit.loss, _nothing(limit.loss), payload=canonical(declared))
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
        ledger._latest = expected_head or ledger._latest
        try:
            with ledger._store.read() as books:
                if not books.has_tables():
                    raise LedgerError("ledger-missing", "There is no ledger at this address.", "Check the address.")
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
        payload = _description(certificate)
        shares = tuple(each.loss for each in certificate.measurements)
        with self._writing() as (books, now):
            before = books.newest_charge(certificate.plan_digest, analyst)
            # the newest is enough: while one is without an answer, no other is made
            if before and before["payload"] == payload:
                if books.answer_to(before["number"]) is not None:
                    raise AlreadyAnswered("This charge has its answer already.")
                return Reservation(before["number"], certificate)
            charge = _price(certificate.loss, shares, now.budget)
            own = _spent_by(books, analyst, now.budget)
            _demand(charge, now.spent, now.budget, "the population's budget", shares)
            self._demand_own(charge, own, analyst, now.budget, shares)
            head = books.append(
                now,
                "charge",
                now.budget,
                _sum(now.spent, charge),
                analyst=analyst,
                plan_digest=certificate.plan_digest,
                answer_key=certificate.answer_key,
                loss=charge,
                analyst_spent=_sum(own, charge),
                payload=payload,
            )
        self._remember(head)
        return Reservation(head.number, certificate)

    def stored(self, certificate: Certificate, analyst: str) -> Stored | None:
        """An answer to the same question that is at least as precise, or None. The total is not charged again.

        An analyst with a sub-limit is given what they have seen before something that they would have to pay for.
        """
        self._check(analyst, certificate)
        with self._reading() as (books, head):
            hits = [row for row in books.answered(certificate.answer_key) if _answers(row, certificate)]
            if not hits:
                return None
            known = {row["number"]: _has_seen(books, row, analyst) for row in hits}
            pays = analyst in self._sublimits
            best = min(hits, key=lambda row: (pays and not known[row["number"]], _measures(row)[0][1], row["number"]))
            answer = books.answer_to(best["number"])
        if not known[best["number"]]:
            head = self._count_view(best, analyst)
        if answer is None:
            raise altered_error(best["number"])
        integers = {name: tuple(cells) for name, cells in json.loads(answer["payload"]).items()}
        loss = _read(json.loads(best["payload"])["loss"])
        return Stored(best["number"], _measures(best), integers, loss, head.hash, best["analyst"])

    def store(self, reservation: Reservation, released: Released) -> str:
        """Keep an answer with its charge, before it leaves; once only. The head's hash is returned."""
        certificate, number = reservation.certificate, reservation.entry_number
        if released.entry_number != number or released.certificate != certificate:
            raise KernelFault("This answer belongs to another charge.")
        shape = {each.name: certificate.cells for each in certificate.measurements}
        if {name: len(cells) for name, cells in released.integers.items()} != shape:
            raise KernelFault("This answer has another shape than its certificate.")
        with self._writing() as (books, now):
            charge = books.whole_row(number)
            if not charge or charge["kind"] != "charge" or charge["payload"] != _description(certificate):
                raise KernelFault("This answer was never charged.")
            if books.answer_to(number):
                raise AlreadyAnswered("This charge has its answer already.")
            head = books.append(
                now,
                "answer",
                now.budget,
                now.spent,
                analyst=charge["analyst"],
                plan_digest=charge["plan_digest"],
                answer_key=charge["answer_key"],
                about=number,
                analyst_spent=_spent_by(books, charge["analyst"], now.budget),
                payload=canonical(released.integers),
            )
        self._remember(head)
        return head.hash

    def totals(self, analyst: str | None = None) -> Totals:
        """The population's budget; or the analyst's own, where one is declared."""
        with self._reading() as (books, head):
            if analyst is None or analyst not in self._sublimits:
                return Totals(head.budget, head.spent, _left(head.budget, head.spent))
            limit = _sublimit(self._sublimits[analyst], head.budget)
            own = _spent_by(books, analyst, head.budget)
            return Totals(limit, own, _left(limit, own))

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
            audit = _Audit(self.ledger_id, self.population)
            held, previous = 0, ""
            with closing(books.walk()) as rows:
                for row in rows:
                    reason = _break_of(row, held + 1, previous, latest) or audit.fault_of(row)
                    if reason:
                        return Verification(False, held, held + 1, reason)
                    held, previous = held + 1, row["hash"]
            try:
                _not_older(books, books.head(lock=False), latest)
            except SfumatoError as error:
                whole = held >= max(books.claimed_number(), latest[0], 1)
                return Verification(False, held, held if whole else held + 1, error.message)
        return Verification(True, held, None, "Every entry holds.")

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
            _not_older(books, head, latest)
            yield books, head
        self._remember(head)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Books, Head]]:
        latest = self._latest
        with self._store.write() as books:
            head = books.head(lock=True)
            _not_older(books, head, latest)
            yield books, head

    def _remember(self, head: Head) -> None:
        self._latest = max(self._latest, (head.number, head.hash))

    def _declare(self, limit: PrivacyLoss) -> None:
        """Chain the owner's change of the limit. What is spent is carried over, exchanged if the kind changes."""
        with self._writing() as (books, now):
            same = now.budget == limit
            head = now if same else books.append(now, "limit", limit, _exchanged(now.spent, limit))
        self._remember(head)

    def _count_view(self, charge: Row, analyst: str) -> Head:
        """Count an answer on the sub-limit of an analyst who sees it for the first time; the total stays as it is."""
        with self._writing() as (books, now):
            if _has_seen(books, charge, analyst):
                return now
            loss = _exchanged(_read(charge["loss"]), now.budget)
            own = _spent_by(books, analyst, now.budget)
            self._demand_own(loss, own, analyst, now.budget, ())
            parts = {name: charge[name] for name in ("plan_digest", "answer_key")}
            parts |= {"analyst": analyst, "about": charge["number"], "loss": loss, "analyst_spent": _sum(own, loss)}
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
            _sublimit(each, budget)

    def _demand_own(
        self, charge: PrivacyLoss, own: PrivacyLoss, analyst: str, budget: PrivacyLoss, shares: tuple[PrivacyLoss, ...]
    ) -> None:
        if analyst in self._sublimits:
            _demand(charge, own, _sublimit(self._sublimits[analyst], budget), "this analyst's own limit", shares)


def _amounts(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    match loss:
        case PureDP(amount):
            return Fraction(amount), Fraction(0)
        case ApproxDP(amount, delta) | ZCDP(amount, delta):
            return Fraction(amount), Fraction(delta)
        case _:
            assert_never(loss)


def _of_kind(kind: PrivacyLoss, amount: Fraction, delta: Fraction) -> PrivacyLoss:
    match kind:
        case PureDP():
            return PureDP(sum_exactly(amount))
        case ApproxDP():
            return ApproxDP(sum_exactly(amount), sum_exactly(delta))
        case ZCDP():
            return ZCDP(sum_exactly(amount), sum_exactly(delta))
        case _:
            assert_never(kind)


def _nothing(kind: PrivacyLoss) -> PrivacyLoss:
    return _of_kind(kind, Fraction(0), Fraction(0))


def _sum(one: PrivacyLoss, two: PrivacyLoss) -> PrivacyLoss:
    (amount, delta), (more, more_delta) = _amounts(one), _amounts(two)
    return _of_kind(one, amount + more, delta + more_delta)


def _left(limit: PrivacyLoss, spent: PrivacyLoss) -> PrivacyLoss:
    """What is left; nothing, not less, where the owner lowered the limit below what is spent."""
    (most, most_delta), (amount, delta) = _amounts(limit), _amounts(spent)
    return _of_kind(limit, max(Fraction(0), most - amount), max(Fraction(0), most_delta - delta))


def _fits(charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss) -> bool:
    """Whether both amounts stay within the limit, to the last digit."""
    parts = zip(_amounts(charge), _amounts(spent), _amounts(limit), strict=True)
    return all(more + before <= most for more, before, most in parts)


def _exchanged(loss: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """The loss in the budget's currency: never less than it was, and refused where there is no such rate."""
    match budget, loss:
        case ZCDP(), _:
            return loss.to_zcdp()
        case _, ZCDP():
            hint = "Declare the budget with accounting='zcdp', or ask with epsilon= and Laplace noise."
            raise LedgerError("ledger-currency", "This budget counts epsilon, and a zCDP loss has none.", hint)
        case PureDP(), ApproxDP(delta=delta) if delta:
            hint = "Declare a budget with a delta."
            raise LedgerError("ledger-currency", "This budget has no delta to spend.", hint)
        case _:
            return _of_kind(budget, *_amounts(loss))


def _price(loss: PrivacyLoss, shares: tuple[PrivacyLoss, ...], budget: PrivacyLoss) -> PrivacyLoss:
    """What a certificate costs here. In zCDP each measurement is exchanged alone, which is cheaper than their sum."""
    if isinstance(budget, ZCDP) and shares and reduce(compose, shares) == loss:
        return reduce(compose, (each.to_zcdp() for each in shares), _nothing(budget))
    return _exchanged(loss, budget)


def _sublimit(declared: PrivacyLoss, budget: PrivacyLoss) -> PrivacyLoss:
    """A sub-limit in the budget's currency. A limit on epsilon has no equal in rho: exchange would loosen it."""
    if isinstance(declared, ZCDP) == isinstance(budget, ZCDP):
        return _exchanged(declared, budget)
    hint = "Declare both in epsilon, or both in rho."
    raise LedgerError("ledger-currency", "An analyst's limit must count what the budget counts.", hint)


def _demand(
    charge: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss, whose: str, shares: tuple[PrivacyLoss, ...]
) -> None:
    if _fits(charge, spent, limit):
        return
    left = _left(limit, spent)
    amount, _ = _amounts(left)
    hint = "Nothing more fits; questions that were answered before can still be asked."
    if amount:
        hint = f"A question of at most {_words(left)} still fits."
        # epsilon**2 / 2 bounds the rho of epsilon, however it is split; in millionths, rounded down
        epsilon = Fraction(isqrt(int(2 * amount * 10**12)), 10**6)
        if isinstance(left, ZCDP) and epsilon and any(isinstance(each, PureDP) for each in shares):
            hint += f" With Laplace noise that is epsilon = {plain(epsilon)}."
    message = f"This costs {_words(charge)}, and {_words(left)} is left of {whose} of {_words(limit)}."
    raise BudgetExceeded(message, hint, charge, left)


def _words(loss: PrivacyLoss) -> str:
    amount, delta = (plain(each) for each in _amounts(loss))
    name = "rho" if isinstance(loss, ZCDP) else "epsilon"
    return f"{name} = {amount}" if isinstance(loss, PureDP) else f"{name} = {amount}, delta = {delta}"


def _description(certificate: Certificate) -> str:
    """What was certified, as it is kept with the charge: enough to price it again and to judge its precision."""
    measurements = [
        {
            "name": each.name,
            "noise": "laplace" if isinstance(each.noise, LaplaceNoise) else "gaussian",
            "variance": str(each.variance),
            "exponent": each.exponent,
            "loss": loss_text(each.loss),
        }
        for each in certificate.measurements
    ]
    whole = {"cells": certificate.cells, "loss": loss_text(certificate.loss), "measurements": measurements}
    return canonical(whole)


def _measures(charge: Row) -> tuple[tuple[str, Fraction, str], ...]:
    described = json.loads(charge["payload"])["measurements"]
    return tuple((each["name"], Fraction(each["variance"]), each["noise"]) for each in described)


def _answers(charge: Row, certificate: Certificate) -> bool:
    """Whether every measurement of a stored answer is at least as precise as the wanted one, at the same delta."""
    loss = _read(json.loads(charge["payload"])["loss"])
    kept = {name: variance for name, variance, _ in _measures(charge)}
    wanted = {each.name: each.variance for each in certificate.measurements}
    same_delta = _amounts(loss)[1] == _amounts(certificate.loss)[1]
    return same_delta and kept.keys() == wanted.keys() and all(kept[name] <= wanted[name] for name in wanted)


def _read(text: str) -> PrivacyLoss:
    loss = read_loss(text)
    if loss is None:
        raise KernelFault("A charge has a loss.")
    return loss


def _has_seen(books: Books, charge: Row, analyst: str) -> bool:
    return bool(charge["analyst"] == analyst) or books.has_seen(charge["number"], analyst)


def _spent_by(books: Books, analyst: str, budget: PrivacyLoss) -> PrivacyLoss:
    row = books.newest_of(analyst)
    spent = read_loss(row["analyst_spent"]) if row else None
    return _exchanged(spent, budget) if spent else _nothing(budget)


def _not_older(books: Books, head: Head, latest: tuple[int, str]) -> None:
    number, known = latest
    hint = "Restore the newest ledger: charges that it has forgotten would be spent twice."
    if head.number < number:
        message = (
            f"The ledger is older than it was: it ends before entry {number}, and entry {head.number + 1} is missing."
        )
        raise LedgerError("ledger-older", message, hint)
    if number == head.number:
        same = known == head.hash
    else:
        row = books.row(number) if number else None
        same = not number or (row is not None and row["hash"] == known)
    if not same:
        raise LedgerError("ledger-older", f"Entry {number} is not the one that was there before.", hint)


def _break_of(row: Row, number: int, previous: str, latest: tuple[int, str]) -> str:
    """Why a row does not continue the chain, or nothing."""
    if row["number"] != number:
        return f"Entry {number} is missing."
    if altered(row):
        return f"Entry {number} was altered."
    if row["previous"] != previous:
        return f"Entry {number} does not follow the one before it."
    if number == latest[0] and row["hash"] != latest[1]:
        return f"Entry {number} is not the one that was there before."
    return ""


class _Audit:
    """The sums done again from the certified losses alone: hashes can be made anew, sums cannot be made wrong."""

    def __init__(self, ledger_id: str, population: str) -> None:
        self._identity = (ledger_id, population)
        self._budget: PrivacyLoss | None = None
        self._spent: PrivacyLoss = PureDP(0)
        self._own: dict[str, PrivacyLoss] = {}
        self._charges: dict[int, Entry] = {}
        self._followed: set[tuple[object, ...]] = set()

    def fault_of(self, row: Row) -> str:
        """Why an entry cannot follow the ones before it, or nothing."""
        try:
            entry = Entry.of(row)
            held = self._wanted(entry, json.loads(row["payload"] or "{}")) == entry
        except (SfumatoError, ValueError, KeyError, TypeError, ArithmeticError):
            held = False
        if not held:
            return f"Entry {row['number']} breaks the ledger's rules, or its sums are wrong."
        self._budget, self._spent = entry.budget, entry.spent
        if entry.analyst_spent is not None:
            self._own[entry.analyst] = entry.analyst_spent
        return ""

    def _wanted(self, entry: Entry, payload: dict[str, Any]) -> Entry:
        """The entry as the rules would have written it."""
        if entry.kind == "open":
            identity = (payload["ledger_id"], payload["population"], entry.number)
            _must(identity == (*self._identity, 1))
            return replace(entry, spent=_nothing(entry.budget))
        spent = _exchanged(self._spent, entry.budget)
        if entry.kind == "limit":
            return replace(entry, spent=spent)
        _must(self._budget == entry.budget)
        own = _exchanged(self._own.get(entry.analyst, _nothing(entry.budget)), entry.budget)
        if entry.kind == "charge":
            shares = tuple(_read(each["loss"]) for each in payload["measurements"])
            loss = _price(_read(payload["loss"]), shares, entry.budget)
            _must(_fits(loss, spent, entry.budget))
            self._charges[entry.number] = entry
            return replace(entry, loss=loss, spent=_sum(spent, loss), analyst_spent=_sum(own, loss))
        charge, once = self._charges[entry.about or 0], (entry.kind, entry.about, entry.analyst)
        _must(once not in self._followed and entry.kind in ("answer", "seen"))
        self._followed.add(once)
        _must((entry.plan_digest, entry.answer_key) == (charge.plan_digest, charge.answer_key))
        if entry.kind == "answer":
            return replace(entry, analyst=charge.analyst, loss=None, spent=spent, analyst_spent=own)
        _must(charge.loss is not None and charge.analyst != entry.analyst)
        loss = _exchanged(charge.loss or _nothing(entry.budget), entry.budget)
        return replace(entry, loss=loss, spent=spent, analyst_spent=_sum(own, loss))


def _must(rule: bool) -> None:
    if not rule:
        raise ValueError("a rule of the ledger is broken")
