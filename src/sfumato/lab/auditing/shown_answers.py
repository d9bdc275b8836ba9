"""All that an answer shows: rows, and the details that are computed when they are read.

Every part must be computed from the released integers alone. So the answer to the first dataset of a pair is presented
again at the desk of the second one, from its released integers, and must show the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from sfumato.answering.desk import Desk
from sfumato.answering.present_answer import PlannedQuery, present_answer
from sfumato.answering.receipt import Receipt
from sfumato.answers.answer import DETAILS, Answer
from sfumato.kernel.release import Released
from sfumato.lab.auditing.output_parts import write_repr

SIGNED = "disclosure"  # a desk has a key of its own: the statement is compared, not its signature
_OF_THE_LEDGER = ("head", "entry", "_details")

Shown = Mapping[str, str]


def show_answer(answer: Answer) -> Shown:
    """Everything that a reader of an answer sees, by its name, as text."""
    shown = {name: write_repr(getattr(answer, name)) for name in DETAILS if name != SIGNED}
    plain = [part.name for part in fields(answer) if part.init and part.name not in _OF_THE_LEDGER]
    shown |= {name: write_repr(getattr(answer, name)) for name in plain}
    statement = {name: value for name, value in answer.disclosure.items() if name not in ("signature", "public_key")}
    return {
        **shown,
        SIGNED: write_repr(statement),
        "explain()": answer.explain(),
        "to_dict()": write_repr({**answer.to_dict(), "entry": None}),
        "_repr_html_()": answer._repr_html_(),
    }


def rebuild(released: Released) -> Released:
    """The same release, with nothing in it but what was released."""
    return Released(released.entry_number, released.certificate, dict(released.integers), released.keys)


def find_changed_details(
    desk: Desk, asked: PlannedQuery, released: Released, receipt: Receipt, shown: Shown
) -> Iterator[str]:
    """Present a release of another dataset at this desk: the details that are not as they were shown there."""
    again = show_answer(present_answer(desk, asked, rebuild(released), receipt))
    for name, text in shown.items():
        if again.get(name) != text:
            yield f"{name} of the answer depends on the data, and not on the released integers alone."
