"""Questions that arrive over HTTP: their form, the limits of a grant, and the forms of an answer."""

import io
from typing import Annotated

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from sfumato.answering.preview import Preview
from sfumato.answers.answer import Answer
from sfumato.curator import Curator
from sfumato.errors import PermissionDenied
from sfumato.number_arguments import read_positive_decimal
from sfumato.query.tokens import MOST_LETTERS
from sfumato.service.accounts import Accounts, Grant, User

ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
Amount = Annotated[str | float | int | None, Field(description="An exact decimal. A text keeps every digit.")]


class Asked(BaseModel):
    """A question and its price."""

    model_config = ConfigDict(extra="forbid")
    sql: str = Field(max_length=MOST_LETTERS, examples=["SELECT COUNT(*) AS n FROM people"])
    epsilon: Amount = None
    rho: Amount = None
    delta: Amount = None
    confidence: str | float = "0.95"


class Question(Asked):
    """A question to be answered. `margin` asks for the smallest epsilon that gives these margins."""

    margin: dict[str, float] | None = None


class PreviewQuestion(Asked):
    """A question to be previewed. `assume`: the number of rows, for margins that depend on it."""

    assume: dict[str, float] | None = None


def preview_question(curator: Curator, asked: Asked, user: User) -> Preview:
    """Cost and margins of a question. It reads no row and costs nothing."""
    return curator.preview(
        asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, confidence=asked.confidence, analyst=user.name,
        assume=asked.assume if isinstance(asked, PreviewQuestion) else None,
    )  # fmt: skip


def ask_question(accounts: Accounts, curator: Curator, grant: Grant | None, asked: Question, user: User) -> Answer:
    """Answer a question within the reader's grant, and write it down in the log."""
    _check_single_limit(curator, grant, asked, user)
    answer = curator.ask(
        asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, margin=asked.margin, confidence=asked.confidence,
        analyst=user.name,
    )  # fmt: skip
    accounts.log(user.name, "ask", curator.dataset.name, f"entry {answer.entry}, cost {answer.cost}")
    return answer


def _check_single_limit(curator: Curator, grant: Grant | None, asked: Question, user: User) -> None:
    """Refuse a question above the limit for a single question, before anything is charged."""
    if grant is None or not grant.per_query:
        return
    most = read_positive_decimal(grant.per_query, "per_query")
    hint = f"Ask with epsilon={grant.per_query} or less."
    if asked.margin is not None:
        message = "With a limit for each question, ask with an epsilon instead of a margin."
        raise PermissionDenied("per-query-limit", message, hint)
    loss = preview_question(curator, asked, user).cost.epsilon
    if loss is None or loss > most:
        raise PermissionDenied("per-query-limit", f"A single question may cost at most {grant.per_query}.", hint)


def write_arrow(answer: Answer) -> Response:
    """The answer as an Arrow stream."""
    import pyarrow  # noqa: PLC0415 - where it is wanted

    table, sink = answer.to_arrow(intervals=True), io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue(), media_type=ARROW)


def write_csv(answer: Answer) -> Response:
    """The answer as CSV."""
    import pyarrow.csv  # noqa: PLC0415 - where it is wanted

    sink = io.BytesIO()
    pyarrow.csv.write_csv(answer.to_arrow(intervals=True), sink)
    return Response(sink.getvalue(), media_type=CSV)
