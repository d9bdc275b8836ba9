"""Answers that pages show again under their own address. They were released already: showing one costs nothing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from sfumato.answers.answer import Answer
from sfumato.errors import PermissionDenied
from sfumato.kernel.entropy import SYSTEM
from sfumato.remote.answer_wire import read_answer_wire
from sfumato.service.account_tables import ANSWERS
from sfumato.service.accounts import Accounts, User, write_now

MOST_LISTED = 50
UNKNOWN = PermissionDenied("no-answer", "There is no answer at this address that you may see.", "Ask the question.")


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """An answer, and the question that it answers."""

    id: str
    user: str
    dataset: str
    asked: Mapping[str, Any]
    wire: Mapping[str, Any]
    time: str

    def read(self) -> Answer:
        """The answer as `ask` returned it."""
        return read_answer_wire(self.wire)


def save_answer(  # noqa: PLR0917 - what an answer consists of
    accounts: Accounts, user: str, dataset: str, asked: Mapping[str, Any], wire: Mapping[str, Any], job: str = ""
) -> str:
    """Keep an answer, and return the id of its address. That of a job has the job's id, and is kept once."""
    made = job or SYSTEM.take(12).tobytes().hex()
    row = {"id": made, "user": user, "dataset": dataset, "asked": json.dumps(dict(asked)),
           "answer": json.dumps(wire), "time": write_now()}  # fmt: skip
    accounts.write(lambda connection: connection.execute(ANSWERS.insert().prefix_with("OR IGNORE").values(row)))
    return made


def find_answer(accounts: Accounts, user: User, name: str) -> SavedAnswer:
    """A saved answer. An analyst sees their own; an owner sees all."""
    with accounts.reading() as connection:
        row = connection.execute(sa.select(ANSWERS).where(ANSWERS.c.id == name)).first()
    if row is None or (user.role != "owner" and row.user != user.name):
        raise UNKNOWN
    return _read(row)


def list_answers(accounts: Accounts, user: User, dataset: str) -> list[SavedAnswer]:
    """Somebody's own answers of a dataset, newest first."""
    own = (ANSWERS.c.user == user.name, ANSWERS.c.dataset == dataset)
    wanted = sa.select(ANSWERS).where(*own).order_by(ANSWERS.c.time.desc(), ANSWERS.c.id).limit(MOST_LISTED)
    with accounts.reading() as connection:
        return [_read(row) for row in connection.execute(wanted)]


def _read(row: Any) -> SavedAnswer:  # noqa: ANN401 - a row of the table
    return SavedAnswer(row.id, row.user, row.dataset, json.loads(row.asked), json.loads(row.answer), row.time)
