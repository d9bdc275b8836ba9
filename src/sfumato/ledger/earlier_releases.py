"""The releases of one question that an analyst has, for an upgrade."""

from dataclasses import dataclass
from typing import Any

from sfumato.kernel.losses import PrivacyLoss
from sfumato.ledger.entries import Head
from sfumato.ledger.ledger_rows import LedgerRows
from sfumato.ledger.quotes import price_view
from sfumato.ledger.release_index import build_index_error, find_own_answer, list_obtained
from sfumato.ledger.stored_answers import StoredAnswer, read_stored, read_summary


@dataclass(frozen=True, slots=True)
class EarlierReleases:
    """The releases of one question that an analyst has.

    `summed_up` is the newest summary of an upgrade, with the answer that it was stored with. `rest` are the releases
    that the summary does not include. `through` is the number of the last entry that was looked at.
    """

    summed_up: tuple[dict[str, Any], StoredAnswer] | None
    rest: tuple[StoredAnswer, ...]
    through: int
    head: str


def find_earlier_releases(
    rows: LedgerRows, head: Head, answer_key: str, analyst: str, limit: PrivacyLoss | None
) -> EarlierReleases:
    """The newest summary of an upgrade and the releases that the analyst got since; all releases without a summary."""
    newest, summary, own = find_own_answer(rows, answer_key, analyst, head.number + 1), None, []
    while newest is not None:
        own.append(int(newest["number"]))
        if (summary := read_summary(newest)) is not None:
            break
        newest = find_own_answer(rows, answer_key, analyst, newest["number"])
    obtained = list_obtained(rows, answer_key, analyst, int(summary["through"]) if summary else 0)
    stored = {  # an answer that the analyst has is free
        answer["number"]: read_stored(charge, answer, head, price_view(charge, limit, head.budget, has=True))
        for charge, answer in obtained
    }
    for number in own:
        if number not in stored:  # the index hides it
            raise build_index_error(number)
    if newest is None or summary is None:
        return EarlierReleases(None, tuple(stored.values()), head.number, head.hash)
    summed_up = stored.pop(newest["number"])
    return EarlierReleases((summary, summed_up), tuple(stored.values()), head.number, head.hash)
