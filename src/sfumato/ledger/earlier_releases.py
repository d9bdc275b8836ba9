"""What an analyst has of one question already, for an upgrade."""

from dataclasses import dataclass
from typing import Any

from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Head, altered_error
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.quotes import has_answer, price_view
from sfumato.ledger.stored_answers import StoredAnswer, read_stored, read_summary


@dataclass(frozen=True, slots=True)
class EarlierReleases:
    """What an analyst has of one question: what the newest upgrade summed up with its answer, and the others.

    `through` is the last entry of the ledger that was looked at.
    """

    summed_up: tuple[dict[str, Any], StoredAnswer] | None
    rest: tuple[StoredAnswer, ...]
    through: int
    head: str


def find_earlier_releases(
    rows: LedgerRows, head: Head, answer_key: str, analyst: str, limit: PrivacyLoss | None
) -> EarlierReleases:
    """The newest summary of an upgrade, and the answers that it lacks: those that the analyst got since, or all."""
    newest, summary = rows.own_answer(answer_key, analyst, head.number + 1), None
    while newest is not None and (summary := read_summary(newest)) is None:
        newest = rows.own_answer(answer_key, analyst, newest["number"])
    if newest is not None and summary is not None:
        got = rows.obtained(answer_key, analyst, int(summary["through"]))
        numbers = [int(newest["about"]), *(int(row["about"]) for row in got if row["number"] != newest["number"])]
    else:
        numbers = [row["number"] for row in rows.answered(answer_key, analyst) if has_answer(row, analyst)]
    found = [_read_answer(rows, number, analyst, limit, head) for number in numbers]
    if summary is None:
        return EarlierReleases(None, tuple(found), head.number, head.hash)
    return EarlierReleases((summary, found[0]), tuple(found[1:]), head.number, head.hash)


def _read_answer(rows: LedgerRows, number: int, analyst: str, limit: PrivacyLoss | None, head: Head) -> StoredAnswer:
    """An answer that the analyst has: to see it again takes nothing."""
    charge = rows.whole_row(number)
    if charge is None:
        raise altered_error(number, "is missing")
    taken = price_view({**charge, "seen": True}, analyst, limit, head.budget)
    return read_stored(charge, rows.answer_to(number), head, taken)
