# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Entries of the ledger as JSON and as text: losses, times and recorded questions."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.kernel.losses import PrivacyLoss
    from sfumato.ledger.ledger import Entry


def write_entry_json(entry: "Entry") -> dict[str, Any]:
    """An entry as `--json` prints it."""
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "analyst": entry.analyst or None,
        "about": entry.about,
        "loss": write_loss_as_json(entry.loss),
        "budget": write_loss_as_json(entry.budget),
        "spent": write_loss_as_json(entry.spent),
        "hash": entry.hash,
        "question": json.loads(entry.question) if entry.question else None,
    }


def describe_question(question: dict[str, Any] | None) -> str:
    """A recorded question in one line: its SQL, the margins that were asked for, and other options."""
    if question is None:
        return ""
    parts = [str(part["sql"]) for part in question["questions"]]
    wanted = [
        f"±{width:g} of {name}" for part in question["questions"] for name, width in part.get("margin", {}).items()
    ]
    known = ("how", "questions", "confidence")
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


def describe_amounts(loss: dict[str, str] | None) -> str:
    """A loss as text: ε = 0.5, δ = 1e-6. A delta of zero is left out."""
    shown = {"epsilon": "ε", "delta": "δ"}
    parts = {name: text for name, text in (loss or {}).items() if name != "delta" or text != "0"}
    return ", ".join(f"{shown.get(name, name)} = {text}" for name, text in parts.items())
