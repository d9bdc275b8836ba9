# ruff: noqa: PLC0415 - commands import this; what is heavy is imported when it is needed
"""Entries of the ledger as JSON and as text: losses, times and recorded questions."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.kernel.losses import PrivacyLoss
    from sfumato.ledger.ledger import Entry, Ledger

FAILED, PREPAID = "failed", "prepaid"  # how a charge can be closed without a stored answer
OUTCOMES = {
    FAILED: "failed: noise was drawn and no answer was given; the charge is spent",
    PREPAID: "prepaid: the process that paid gives the answers, and they are not stored in this ledger",
}


def write_entry_json(entry: "Entry", ledger: "Ledger") -> dict[str, Any]:
    """An entry as `--json` prints it. Its charge is looked up in the ledger, where it was closed without an answer."""
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "outcome": _find_outcome(entry, ledger),
        "analyst": entry.analyst or None,
        "about": entry.about,
        "loss": write_loss_as_json(entry.loss),
        "budget": write_loss_as_json(entry.budget),
        "spent": write_loss_as_json(entry.spent),
        "hash": entry.hash,
        "question": json.loads(entry.question) if entry.question else None,
    }


def _find_outcome(entry: "Entry", ledger: "Ledger") -> str | None:
    """How the entry closes its charge; None if it closes none."""
    from sfumato.ledger.stored_answers import VOID_HASH

    if entry.kind != "answer":
        return None
    if entry.payload_hash != VOID_HASH:
        return "answered"
    charge = ledger.entry(entry.about or 0)
    prepaid = charge is not None and charge.question and json.loads(charge.question)["how"] == PREPAID
    return PREPAID if prepaid else FAILED


def describe_question(question: dict[str, Any] | None) -> str:
    """A recorded question in one line: its SQL, the margins that were asked for, and other options."""
    if question is None:
        return ""
    if question["how"] == PREPAID:
        details = [f"{name} {value}" for name, value in question.items() if name not in ("how", "questions", "purpose")]
        return "; ".join([f"prepaid for {question['purpose']}", *details])
    parts = [str(part["sql"]) for part in question["questions"]]
    wanted = [
        f"±{width:g} of {name}" for part in question["questions"] for name, width in part.get("margin", {}).items()
    ]
    known = ("how", "questions", "confidence", "request")
    more = [f"{name.replace('_', ' ')} {value}" for name, value in question.items() if name not in known]
    words = "; ".join([*parts, *([f"wanted: {', '.join(wanted)}"] if wanted else []), *more])
    return words if question["how"] == "ask" else f"{question['how']}: {words}"


def show_time(time: str) -> str:
    """A time to the second; `ledger show` prints all digits."""
    return time[:19].replace("T", " ")


def write_loss_as_json(loss: "PrivacyLoss | None") -> dict[str, str] | None:
    """A loss as `--json` prints it."""
    from sfumato.answers.answer import Cost

    return None if loss is None else Cost.from_loss(loss).as_text()
