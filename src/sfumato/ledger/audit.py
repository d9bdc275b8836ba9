"""Verifying a ledger from its first entry on: every hash, signature, sum and rule."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.anchor import read_anchor
from sfumato.ledger.entries import Head, Row, is_altered
from sfumato.ledger.entry_queries import find_entry, read_claimed_number, walk_entries
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.replay import Replay

Seen = tuple[int, str]  # the number and the hash of an entry that was seen


@dataclass(frozen=True, slots=True)
class Verification:
    """What an audit found: how many entries are correct, and which is the first that is not."""

    ok: bool
    entries: int
    first_broken: int | None
    reason: str
    verified_before: int = 0  # how many of the entries were verified earlier, and were not checked again


def audit(  # noqa: PLR0917 - its callers name what they pass
    rows: LedgerRows,
    ledger_id: str,
    population: str,
    known: Sequence[Seen],
    public_key: str,
    verified: Seen | None = None,
) -> Verification:
    """Check all entries, or those after `verified`, and that the entries in `known` are there."""
    start = verified if verified is not None and _is_recorded(rows, verified) else (0, "")
    sums = Replay.resume(rows, start[0], ledger_id, population) if start[0] else Replay(ledger_id, population)
    with closing(walk_entries(rows, start[0])) as entries:
        walked = walk(entries, sums, start, known)
    if not walked.ok:
        return walked
    held = walked.entries
    try:
        head = rows.read_head(lock=False)
        read_anchor(rows, head)
        for latest in known:
            refuse_older(rows, head, latest)
    except SfumatoError as error:
        whole = held >= max(read_claimed_number(rows), 1, *(number for number, _ in known))
        return Verification(False, held, held if whole else held + 1, error.message)
    if public_key and sums.key != public_key:
        reason = "The entries are signed with another key than the one that is kept here."
        return Verification(False, held, held, reason)
    return walked


def walk(entries: Iterable[Row], sums: Replay, start: Seen, known: Sequence[Seen] = ()) -> Verification:
    """Check every row after `start`: its hash, its place in the chain, its signature and its sums."""
    held, previous = start
    for row in entries:
        reason = _find_break(row, held + 1, previous, known) or sums.find_fault(row)
        if reason:
            return Verification(False, held, held + 1, reason, start[0])
        held, previous = held + 1, row["hash"]
    return Verification(True, held, None, "All entries are correct.", start[0])


def _is_recorded(rows: LedgerRows, seen: Seen) -> bool:
    """Whether this entry is in the ledger. If not, the audit starts at the first entry, and names the fault."""
    try:
        row = find_entry(rows, seen[0])
    except SfumatoError:
        return False
    return row is not None and row["hash"] == seen[1]


def refuse_older(rows: LedgerRows, head: Head, latest: Seen) -> None:
    """Refuse a ledger that does not hold an entry that was seen before."""
    number, known = latest
    hint = "Restore the newest ledger. Otherwise the charges that this one lacks would be spent twice."
    if head.number < number:
        message = (
            f"The ledger is older than it was: it ends before entry {number}, and entry {head.number + 1} is missing."
        )
        raise LedgerError("ledger-older", message, hint)
    if number == head.number:
        same = known == head.hash
    else:
        row = find_entry(rows, number) if number else None
        same = not number or (row is not None and row["hash"] == known)
    if not same:
        raise LedgerError("ledger-older", f"Entry {number} is not the one that was there before.", hint)


def _find_break(row: Row, number: int, previous: str, known: Sequence[Seen]) -> str:
    """Why a row does not continue the chain; empty if it does."""
    if row["number"] != number:
        return f"Entry {number} is missing."
    if is_altered(row):
        return f"Entry {number} was altered."
    if row["previous"] != previous:
        return f"Entry {number} does not follow the one before it."
    if any(number == seen and row["hash"] != hash_ for seen, hash_ in known):
        return f"Entry {number} is not the one that was there before."
    return ""
