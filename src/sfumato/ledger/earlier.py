"""What an analyst has of one question already, for an upgrade."""

from dataclasses import dataclass
from typing import Any

from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.books import Books
from sfumato.ledger.entries import Head, altered_error
from sfumato.ledger.quotes import has, taken_by_view
from sfumato.ledger.stored import Stored, read_summary, stored_answer


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an analyst has of one question: what the newest upgrade summed up with its answer, and the others.

    `through` is the last entry of the ledger that was looked at.
    """

    summed_up: tuple[dict[str, Any], Stored] | None
    rest: tuple[Stored, ...]
    through: int
    head: str


def earlier_answers(books: Books, head: Head, answer_key: str, analyst: str, limit: PrivacyLoss | None) -> Earlier:
    """The newest summary of an upgrade, and the answers that it lacks: those that the analyst got since, or all."""
    newest, summary = books.own_answer(answer_key, analyst, head.number + 1), None
    while newest is not None and (summary := read_summary(newest)) is None:
        newest = books.own_answer(answer_key, analyst, newest["number"])
    if newest is not None and summary is not None:
        got = books.obtained(answer_key, analyst, int(summary["through"]))
        numbers = [int(newest["about"]), *(int(row["about"]) for row in got if row["number"] != newest["number"])]
    else:
        numbers = [row["number"] for row in books.answered(answer_key, analyst) if has(row, analyst)]
    found = [_answer(books, number, analyst, limit, head) for number in numbers]
    if summary is None:
        return Earlier(None, tuple(found), head.number, head.hash)
    return Earlier((summary, found[0]), tuple(found[1:]), head.number, head.hash)


def _answer(books: Books, number: int, analyst: str, limit: PrivacyLoss | None, head: Head) -> Stored:
    """An answer that the analyst has: to see it again takes nothing."""
    charge = books.whole_row(number)
    if charge is None:
        raise altered_error(number, "is missing")
    taken = taken_by_view({**charge, "seen": True}, analyst, limit, head.budget)
    return stored_answer(charge, books.answer_to(number), head, taken)
