"""Replaying the entries: every sum is computed again from the certified losses, and every rule is checked.

Somebody who alters entries can compute new hashes for them. The sums and rules would still fail here.
"""

import json
from dataclasses import replace
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.kernel.losses import PrivacyLoss, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.ledger.entries import ANCHORS, SCHEMA_VERSION, Entry, Row
from sfumato.ledger.entry_queries import (
    find_entry,
    find_newest_until,
    find_whole_entry,
    is_repeated,
    list_anchors,
    read_first_payload,
)
from sfumato.ledger.keyring import is_signed
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, convert_loss, fits, make_zero_loss, price
from sfumato.ledger.spending import read_charge, shorten

_NEIGHBOURS = ("neighbours", None, "")


class Replay:
    """The sums of the entries so far. `find_fault` checks the next entry against the rules."""

    def __init__(self, ledger_id: str, population: str) -> None:
        self._identity = (ledger_id, population)
        self._budget: PrivacyLoss | None = None
        self._spent: PrivacyLoss = PureDP(0)
        self._version = 1
        self._keys: list[tuple[int, str]] = []  # from which entry on which key signs
        self._own: dict[str, PrivacyLoss] = {}
        self._charges: dict[int, Entry] = {}
        self._followed: set[tuple[object, ...]] = set()
        self._past: LedgerRows | None = None  # where entries are looked up that this walk did not see
        self._start = 0

    @classmethod
    def resume(cls, rows: LedgerRows, number: int, ledger_id: str, population: str) -> "Replay":
        """The state after an entry that was verified before."""
        sums = cls(ledger_id, population)
        row = find_whole_entry(rows, number)
        _demand(row is not None)
        entry = Entry.from_row(row or {})
        sums._past, sums._start = rows, number
        sums._note_neighbours(json.loads(read_first_payload(rows) or "{}"))
        sums._budget, sums._spent, sums._version = entry.budget, entry.spent, entry.version
        anchors = [anchor["number"] for anchor in list_anchors(rows) if anchor["number"] <= number]
        declared = json.loads((find_whole_entry(rows, anchors[-1]) or {})["payload"])
        sums._keys = [(int(first), str(key)) for first, key in declared.get("keys", [])]
        return sums

    def find_fault(self, row: Row) -> str:
        """Why an entry cannot follow the ones before it; empty if it can."""
        try:
            entry = Entry.from_row(row)
            _demand(self._version <= entry.version <= SCHEMA_VERSION)
            self._version = entry.version
            payload = json.loads(row.get("payload") or "{}")
            correct = self._expect_entry(entry, payload) == entry
            if entry.kind in ANCHORS:
                self._change_keys(entry, payload)
        except (SfumatoError, ValueError, KeyError, TypeError, ArithmeticError):
            correct = False
        if not correct:
            return f"Entry {row['number']} breaks the ledger's rules, or its sums are wrong."
        if self.key and not is_signed(entry.hash, entry.signature, self.key):
            return f"Entry {row['number']} is not signed with the ledger's key."
        self._budget, self._spent = entry.budget, entry.spent
        if entry.analyst_spent is not None:
            self._own[entry.analyst] = entry.analyst_spent
        return ""

    def _find_own_spent(self, analyst: str) -> PrivacyLoss | None:
        """What an analyst has spent so far."""
        if analyst not in self._own and self._past is not None:
            row = find_newest_until(self._past, analyst, self._start)
            spent = None if row is None else Entry.from_row(row).analyst_spent
            if spent is not None:
                self._own[analyst] = spent
        return self._own.get(analyst)

    def _find_charge(self, number: int) -> Entry:
        """A charge that was made before."""
        if number not in self._charges and self._past is not None and number <= self._start:
            row = find_entry(self._past, number)
            if row is not None and row["kind"] == "charge":
                return Entry.from_row(row)
        return self._charges[number]

    @property
    def key(self) -> str:
        """The key that signs now; empty if the ledger is not signed."""
        return self._keys[-1][1] if self._keys else ""

    def _change_keys(self, entry: Entry, payload: dict[str, Any]) -> None:
        """Take the keys of an anchor: the keys so far, and perhaps one that signs from this entry on."""
        keys = [(int(number), str(key)) for number, key in payload.get("keys", [])]
        before = len(self._keys)
        _demand(keys[:before] == self._keys and all(number == entry.number for number, _ in keys[before:]))
        self._keys = keys

    def _note_neighbours(self, payload: dict[str, Any]) -> None:
        """Note that the neighbours are recorded, which may happen once."""
        if "neighbours" in payload:
            Neighbours.read(payload["neighbours"])
            self._followed.add(_NEIGHBOURS)

    def _expect_record(self, entry: Entry, payload: dict[str, Any], spent: PrivacyLoss) -> Entry:
        """The entry as the rules would have written it, if it is an anchor or records the neighbours."""
        if entry.kind == "neighbours":
            _demand("neighbours" in payload and _NEIGHBOURS not in self._followed)
            _demand(self._past is None or not is_repeated(self._past, entry, self._start))
            self._note_neighbours(payload)
            return replace(entry, analyst="", about=None, loss=None, spent=spent, analyst_spent=None)
        _demand(entry.kind != "migrate" or entry.version == payload["to"] > payload["from"])
        carried = add_losses(spent, read_charge(payload["carried"])) if "carried" in payload else spent
        return replace(entry, spent=shorten(carried))

    def _expect_entry(self, entry: Entry, payload: dict[str, Any]) -> Entry:
        """The entry as the rules would have written it."""
        if entry.kind == "open":
            identity = (payload["ledger_id"], payload["population"], entry.number)
            _demand(identity == (*self._identity, 1))
            self._note_neighbours(payload)
            return replace(entry, spent=make_zero_loss(entry.budget))
        spent = convert_loss(self._spent, entry.budget)
        if entry.kind == "limit":
            return replace(entry, spent=spent)
        _demand(self._budget == entry.budget)
        if entry.kind in (*ANCHORS, "neighbours"):
            return self._expect_record(entry, payload, spent)
        own = convert_loss(self._find_own_spent(entry.analyst) or make_zero_loss(entry.budget), entry.budget)
        if entry.kind == "charge":
            shares = tuple(read_charge(part["loss"]) for part in payload["measurements"])
            loss = price(read_charge(payload["loss"]), shares, entry.budget)
            _demand(fits(loss, spent, entry.budget))
            self._charges[entry.number] = entry
            return replace(entry, loss=loss, spent=add_losses(spent, loss), analyst_spent=add_losses(own, loss))
        charge, once = self._find_charge(entry.about or 0), (entry.kind, entry.about, entry.analyst)
        _demand(once not in self._followed and entry.kind in ("answer", "seen"))
        _demand(self._past is None or not is_repeated(self._past, entry, self._start))
        self._followed.add(once)
        _demand((entry.plan_digest, entry.answer_key) == (charge.plan_digest, charge.answer_key))
        if entry.kind == "answer":
            return replace(entry, analyst=charge.analyst, loss=None, spent=spent, analyst_spent=own)
        _demand(charge.loss is not None and charge.analyst != entry.analyst)
        loss = convert_loss(charge.loss or make_zero_loss(entry.budget), entry.budget)
        return replace(entry, loss=loss, spent=spent, analyst_spent=add_losses(own, loss))


def _demand(rule: bool) -> None:
    if not rule:
        raise ValueError("a rule of the ledger is broken")
