"""The books done again from the first entry: every hash, every sum, every rule."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import LedgerError, SfumatoError
from sfumato.kernel.losses import PrivacyLoss, PureDP
from sfumato.ledger.books import Books
from sfumato.ledger.charges import exchanged, fits, nothing, price, shortened, total
from sfumato.ledger.entries import ANCHORS, Entry, Head, Row, altered, charged_loss
from sfumato.ledger.keyring import is_signed
from sfumato.ledger.schema import VERSION

Seen = tuple[int, str]  # the number and the hash of an entry that was seen


@dataclass(frozen=True, slots=True)
class Verification:
    """What an audit found: how many entries hold, and which is the first that does not."""

    ok: bool
    entries: int
    first_broken: int | None
    reason: str


def audit(books: Books, ledger_id: str, population: str, known: Sequence[Seen], public_key: str) -> Verification:
    """Walk the whole chain, up to the head and past those that were seen before."""
    sums = _Sums(ledger_id, population)
    held, previous = 0, ""
    with closing(books.walk()) as rows:
        for row in rows:
            reason = _break_of(row, held + 1, previous, known) or sums.fault_of(row)
            if reason:
                return Verification(False, held, held + 1, reason)
            held, previous = held + 1, row["hash"]
    try:
        head = books.head(lock=False)
        for latest in known:
            not_older(books, head, latest)
    except SfumatoError as error:
        whole = held >= max(books.claimed_number(), 1, *(number for number, _ in known))
        return Verification(False, held, held if whole else held + 1, error.message)
    if public_key and sums.key != public_key:
        return Verification(
            False, held, held, "The entries are signed with another key than the one that is kept here."
        )
    return Verification(True, held, None, "Every entry holds.")


def not_older(books: Books, head: Head, latest: Seen) -> None:
    """Refuse a ledger that does not hold the entry that was seen last."""
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


def _break_of(row: Row, number: int, previous: str, known: Sequence[Seen]) -> str:
    """Why a row does not continue the chain, or nothing."""
    if row["number"] != number:
        return f"Entry {number} is missing."
    if altered(row):
        return f"Entry {number} was altered."
    if row["previous"] != previous:
        return f"Entry {number} does not follow the one before it."
    if any(number == seen and row["hash"] != hash_ for seen, hash_ in known):
        return f"Entry {number} is not the one that was there before."
    return ""


class _Sums:
    """The sums done again from the certified losses alone: hashes can be made anew, sums cannot be made wrong."""

    def __init__(self, ledger_id: str, population: str) -> None:
        self._identity = (ledger_id, population)
        self._budget: PrivacyLoss | None = None
        self._spent: PrivacyLoss = PureDP(0)
        self._version = 1
        self._keys: list[tuple[int, str]] = []  # from which entry on which key signs
        self._own: dict[str, PrivacyLoss] = {}
        self._charges: dict[int, Entry] = {}
        self._followed: set[tuple[object, ...]] = set()

    def fault_of(self, row: Row) -> str:
        """Why an entry cannot follow the ones before it, or nothing."""
        try:
            entry = Entry.of(row)
            _must(self._version <= entry.version <= VERSION)
            self._version = entry.version
            payload = json.loads(row["payload"] or "{}")
            held = self._wanted(entry, payload) == entry
            if entry.kind in ANCHORS:
                self._change_keys(entry, payload)
        except (SfumatoError, ValueError, KeyError, TypeError, ArithmeticError):
            held = False
        if not held:
            return f"Entry {row['number']} breaks the ledger's rules, or its sums are wrong."
        if self.key and not is_signed(entry.hash, entry.signature, self.key):
            return f"Entry {row['number']} is not signed with the ledger's key."
        self._budget, self._spent = entry.budget, entry.spent
        if entry.analyst_spent is not None:
            self._own[entry.analyst] = entry.analyst_spent
        return ""

    @property
    def key(self) -> str:
        """The key that signs now; empty where nothing is signed."""
        return self._keys[-1][1] if self._keys else ""

    def _change_keys(self, entry: Entry, payload: dict[str, Any]) -> None:
        """Take the keys of an anchor: those before, and perhaps one that signs from this entry on."""
        keys = [(int(number), str(key)) for number, key in payload.get("keys", [])]
        before = len(self._keys)
        _must(keys[:before] == self._keys and all(number == entry.number for number, _ in keys[before:]))
        self._keys = keys

    def _wanted(self, entry: Entry, payload: dict[str, Any]) -> Entry:
        """The entry as the rules would have written it."""
        if entry.kind == "open":
            identity = (payload["ledger_id"], payload["population"], entry.number)
            _must(identity == (*self._identity, 1))
            return replace(entry, spent=nothing(entry.budget))
        spent = exchanged(self._spent, entry.budget)
        if entry.kind == "limit":
            return replace(entry, spent=spent)
        _must(self._budget == entry.budget)
        if entry.kind in ANCHORS:
            _must(entry.kind != "migrate" or entry.version == payload["to"] > payload["from"])
            carried = total(spent, charged_loss(payload["carried"])) if "carried" in payload else spent
            return replace(entry, spent=shortened(carried))
        own = exchanged(self._own.get(entry.analyst, nothing(entry.budget)), entry.budget)
        if entry.kind == "charge":
            shares = tuple(charged_loss(each["loss"]) for each in payload["measurements"])
            loss = price(charged_loss(payload["loss"]), shares, entry.budget)
            _must(fits(loss, spent, entry.budget))
            self._charges[entry.number] = entry
            return replace(entry, loss=loss, spent=total(spent, loss), analyst_spent=total(own, loss))
        charge, once = self._charges[entry.about or 0], (entry.kind, entry.about, entry.analyst)
        _must(once not in self._followed and entry.kind in ("answer", "seen"))
        self._followed.add(once)
        _must((entry.plan_digest, entry.answer_key) == (charge.plan_digest, charge.answer_key))
        if entry.kind == "answer":
            return replace(entry, analyst=charge.analyst, loss=None, spent=spent, analyst_spent=own)
        _must(charge.loss is not None and charge.analyst != entry.analyst)
        loss = exchanged(charge.loss or nothing(entry.budget), entry.budget)
        return replace(entry, loss=loss, spent=spent, analyst_spent=total(own, loss))


def _must(rule: bool) -> None:
    if not rule:
        raise ValueError("a rule of the ledger is broken")
