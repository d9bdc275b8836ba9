"""Segments of a ledger's history: what every copy that was ever seen has charged, so that no adoption forgets it.

A segment is an anchor and the entries up to the next one. It is in one file, so of two views of it the shorter is the
beginning of the longer. Copies part at anchors only: what all copies cost together is the sum over their segments.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace

from sfumato.kernel.canonical_text import canonical_text
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Row
from sfumato.ledger.entry_queries import find_entry, find_whole_entry, list_anchors
from sfumato.ledger.keyring import Keyring, Mark
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, convert_loss, write_loss, zero_loss
from sfumato.ledger.spending import find_excess, read_charge

NOTE = "histories"  # the segments that this user has seen, beside the mark


@dataclass(frozen=True, slots=True)
class Segment:
    """What was seen of one segment: its anchor's hash and number, what was spent then, and its newest entry."""

    anchor: str
    first: int
    before: str
    number: int
    hash: str
    spent: str


def list_segments(rows: LedgerRows) -> tuple[Segment, ...]:
    """The segments of this ledger, and those that its anchors have counted although their entries are missing."""
    anchors = list_anchors(rows)
    return (*_list_own(rows, anchors), *(each for anchor in anchors for each in _list_counted(rows, anchor)))


def _list_own(rows: LedgerRows, anchors: list[Row]) -> list[Segment]:
    """The segments whose entries are in this ledger."""
    lasts = [*(each["number"] - 1 for each in anchors[1:]), rows.read_head(lock=False).number]
    found = []
    for anchor, last in zip(anchors, lasts, strict=True):
        end = find_entry(rows, last) or anchor
        parts = (anchor["number"], anchor["spent"], end["number"], end["hash"], end["spent"])
        found.append(Segment(anchor["hash"], *parts))
    return found


def _list_counted(rows: LedgerRows, anchor: Row) -> list[Segment]:
    """The missing segments that an anchor counted. One that does not list them is a segment that cost what it says."""
    declared = json.loads((find_whole_entry(rows, anchor["number"]) or {}).get("payload") or "{}")
    if "lost" in declared or "carried" not in declared:
        return _read_segments(declared.get("lost", []))
    none, number = write_loss(zero_loss(read_charge(declared["carried"]))), anchor["number"]
    return [Segment(f"{anchor['hash']}/carried", number, none, number, anchor["hash"], declared["carried"])]


def list_seen(keyring: Keyring, mark: Mark | None, shown: Iterable[Segment]) -> tuple[Segment, ...]:
    """The segments that this user has seen; `shown` are others, which may say where the mark's own began."""
    kept = _read_remembered(keyring)
    if mark is None:
        return kept
    same = [each for each in (*kept, *shown) if each.anchor == mark.anchor]
    if same:
        return (*kept, replace(same[0], number=mark.number, hash=mark.hash, spent=mark.spent))
    none = write_loss(zero_loss(read_charge(mark.spent)))  # where it began is not known: then all of it counts
    return (*kept, Segment(mark.anchor, mark.number, none, mark.number, mark.hash, mark.spent))


def rename_parted(rows: LedgerRows, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The same segments. One whose newest entry is another one in this ledger gets a name of its own: all of it counts.

    That happens only where a file was overwritten in place, and nobody noticed.
    """
    own = {each.anchor: each.number for each in _list_own(rows, list_anchors(rows))}
    found = []
    for each in segments:
        row = find_entry(rows, each.number) if each.number <= own.get(each.anchor, 0) else None
        parted = row is not None and row["hash"] != each.hash
        found.append(replace(each, anchor=f"{each.anchor}/{each.hash}") if parted else each)
    return tuple(found)


def choose_longest(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Of several views of a segment, the one that saw most."""
    found: dict[str, Segment] = {}
    for each in segments:
        if each.anchor not in found or found[each.anchor].number < each.number:
            found[each.anchor] = each
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Missing:
    """What a ledger lacks of what was seen: the segments, how many entries, and what they cost (None: nothing)."""

    segments: tuple[Segment, ...]
    entries: int
    cost: PrivacyLoss | None


def find_missing(counted: Iterable[Segment], seen: Iterable[Segment], budget: PrivacyLoss) -> Missing:
    """What was seen, beyond what the ledger has counted, in the currency of its budget."""
    have = {each.anchor: each for each in choose_longest(counted)}
    lost, entries, cost = [], 0, zero_loss(budget)
    for each in choose_longest(seen):
        there = have.get(each.anchor)
        if there is not None and there.number >= each.number:
            continue
        lost.append(each)
        entries += each.number - (there.number if there else each.first - 1)
        shared = there.spent if there else each.before
        spent = convert_loss(read_charge(each.spent), budget)
        cost = add_losses(cost, find_excess(spent, convert_loss(read_charge(shared), budget)))
    return Missing(tuple(lost), entries, None if cost == zero_loss(budget) else cost)


def write_segments(segments: Iterable[Segment]) -> list[list[object]]:
    """Segments as they are written."""
    return [list(astuple(each)) for each in segments]


def remember_segments(keyring: Keyring, segments: Iterable[Segment]) -> None:
    """Remember these segments too, beside the mark; refuse where that cannot be written."""
    keyring.store_note(NOTE, canonical_text(write_segments(choose_longest((*_read_remembered(keyring), *segments)))))


def remember_ledger(keyring: Keyring, rows: LedgerRows, anchor: str) -> None:
    """Remember the segments of a ledger that is opened, once for each anchor."""
    kept = _read_remembered(keyring)
    if anchor not in {each.anchor for each in kept}:
        keyring.try_store_note(NOTE, canonical_text(write_segments(choose_longest((*kept, *list_segments(rows))))))


def _read_remembered(keyring: Keyring) -> tuple[Segment, ...]:
    text = keyring.read_note(NOTE)
    try:
        return tuple(_read_segments(json.loads(text))) if text else ()
    except (ValueError, TypeError, LookupError):
        message = "What this user has seen of the ledger's other copies cannot be read: it is damaged."
        logging.getLogger("sfumato").warning(message)
        return ()


def _read_segments(written: list[list[object]]) -> list[Segment]:
    return [
        Segment(str(anchor), int(str(first)), str(before), int(str(number)), str(hash_), str(spent))
        for anchor, first, before, number, hash_, spent in written
    ]
