"""Segments of a ledger's history, so that an adoption counts the charges of every copy that was ever seen.

A segment is an anchor and the entries up to the next anchor. One file wrote all of it, so of two views of a segment the
shorter one is the beginning of the longer one. Copies differ from an anchor on. So what all copies cost together is the
sum over their segments.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace

from sfumato.canonical_text import write_canonical
from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Row
from sfumato.ledger.entry_queries import find_entry, find_whole_entry, list_anchors
from sfumato.ledger.keyring import Keyring, Mark
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.loss_sums import add_losses, convert_loss, make_zero_loss, write_loss
from sfumato.ledger.spending import find_excess, read_charge

NOTE = "histories"  # the file next to the mark with the segments that this user has seen


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a segment that was seen: its anchor's hash and number, the amount spent before, the newest entry."""

    anchor: str
    first: int
    before: str
    number: int
    hash: str
    spent: str


def list_segments(rows: LedgerRows) -> tuple[Segment, ...]:
    """The segments of this ledger, and the missing ones that its anchors have counted."""
    anchors = list_anchors(rows)
    return (*_list_own(rows, anchors), *(segment for anchor in anchors for segment in _list_counted(rows, anchor)))


def _list_own(rows: LedgerRows, anchors: list[Row]) -> list[Segment]:
    """The segments whose entries are in this ledger."""
    lasts = [*(following["number"] - 1 for following in anchors[1:]), rows.read_head(lock=False).number]
    found = []
    for anchor, last in zip(anchors, lasts, strict=True):
        end = find_entry(rows, last) or anchor
        parts = (anchor["number"], anchor["spent"], end["number"], end["hash"], end["spent"])
        found.append(Segment(anchor["hash"], *parts))
    return found


def _list_counted(rows: LedgerRows, anchor: Row) -> list[Segment]:
    """The missing segments that an anchor counted. An old anchor records only their cost: that becomes one segment."""
    declared = json.loads((find_whole_entry(rows, anchor["number"]) or {}).get("payload") or "{}")
    if "lost" in declared or "carried" not in declared:
        return _read_segments(declared.get("lost", []))
    none, number = write_loss(make_zero_loss(read_charge(declared["carried"]))), anchor["number"]
    return [Segment(f"{anchor['hash']}/carried", number, none, number, anchor["hash"], declared["carried"])]


def list_seen(keyring: Keyring, mark: Mark | None, shown: Iterable[Segment]) -> tuple[Segment, ...]:
    """The segments that this user has seen. `shown` are others, which may say where the mark's segment began."""
    kept = _read_remembered(keyring)
    if mark is None:
        return kept
    same = [segment for segment in (*kept, *shown) if segment.anchor == mark.anchor]
    if same:
        return (*kept, replace(same[0], number=mark.number, hash=mark.hash, spent=mark.spent))
    none = write_loss(make_zero_loss(read_charge(mark.spent)))  # where it began is unknown, so all of it counts
    return (*kept, Segment(mark.anchor, mark.number, none, mark.number, mark.hash, mark.spent))


def rename_parted(rows: LedgerRows, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The same segments. If this ledger has another entry in place of a segment's newest, all of it counts.

    It then gets a name of its own. This happens only if a file was overwritten in place, and nobody noticed.
    """
    own = {segment.anchor: segment.number for segment in _list_own(rows, list_anchors(rows))}
    found = []
    for segment in segments:
        row = find_entry(rows, segment.number) if segment.number <= own.get(segment.anchor, 0) else None
        parted = row is not None and row["hash"] != segment.hash
        found.append(replace(segment, anchor=f"{segment.anchor}/{segment.hash}") if parted else segment)
    return tuple(found)


def choose_longest(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Of several views of a segment, the longest."""
    found: dict[str, Segment] = {}
    for segment in segments:
        if segment.anchor not in found or found[segment.anchor].number < segment.number:
            found[segment.anchor] = segment
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Missing:
    """What a ledger lacks: the segments, how many entries, and what they cost (None: nothing)."""

    segments: tuple[Segment, ...]
    entries: int
    cost: PrivacyLoss | None


def find_missing(counted: Iterable[Segment], seen: Iterable[Segment], budget: PrivacyLoss) -> Missing:
    """Charges that were seen but that the ledger does not count. The cost has the type of its budget."""
    have = {segment.anchor: segment for segment in choose_longest(counted)}
    lost, entries, cost = [], 0, make_zero_loss(budget)
    for segment in choose_longest(seen):
        there = have.get(segment.anchor)
        if there is not None and there.number >= segment.number:
            continue
        lost.append(segment)
        entries += segment.number - (there.number if there else segment.first - 1)
        shared = there.spent if there else segment.before
        spent = convert_loss(read_charge(segment.spent), budget)
        cost = add_losses(cost, find_excess(spent, convert_loss(read_charge(shared), budget)))
    return Missing(tuple(lost), entries, None if cost == make_zero_loss(budget) else cost)


def write_segments(segments: Iterable[Segment]) -> list[list[object]]:
    """Segments as JSON lists."""
    return [list(astuple(segment)) for segment in segments]


def remember_segments(keyring: Keyring, segments: Iterable[Segment]) -> None:
    """Remember these segments too, next to the mark. Refuse if they cannot be written."""
    keyring.store_note(NOTE, write_canonical(write_segments(choose_longest((*_read_remembered(keyring), *segments)))))


def remember_ledger(keyring: Keyring, rows: LedgerRows, anchor: str) -> None:
    """Remember the segments of a ledger that is opened, once per anchor."""
    kept = _read_remembered(keyring)
    if anchor not in {segment.anchor for segment in kept}:
        keyring.try_store_note(NOTE, write_canonical(write_segments(choose_longest((*kept, *list_segments(rows))))))


def _read_remembered(keyring: Keyring) -> tuple[Segment, ...]:
    text = keyring.read_note(NOTE)
    try:
        return tuple(_read_segments(json.loads(text))) if text else ()
    except (ValueError, TypeError, LookupError):
        message = "The record of the ledger's other copies is damaged and cannot be read."
        logging.getLogger("sfumato").warning(message)
        return ()


def _read_segments(written: list[list[object]]) -> list[Segment]:
    return [
        Segment(str(anchor), int(str(first)), str(before), int(str(number)), str(hash_), str(spent))
        for anchor, first, before, number, hash_, spent in written
    ]
