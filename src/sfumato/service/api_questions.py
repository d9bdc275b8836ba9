"""Questions that arrive over HTTP: their form, and the forms of an answer."""

import io
from typing import Annotated, Any, Literal

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from sfumato.answering.preview import Preview
from sfumato.answers.answer import Answer
from sfumato.curator import Curator
from sfumato.query.tokens import MOST_LETTERS
from sfumato.service.accounts import User

ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
MOST_QUESTIONS = 100  # of a workload
Amount = Annotated[str | float | int | None, Field(description="An exact decimal. A text keeps every digit.")]
Sql = Annotated[str, Field(max_length=MOST_LETTERS, examples=["SELECT COUNT(*) AS n FROM people"])]
Numbers = Annotated[dict[str, float], Field(max_length=1000)]


class Asked(BaseModel):
    """A question and its price."""

    model_config = ConfigDict(extra="forbid")
    sql: Sql
    epsilon: Amount = None
    rho: Amount = None
    delta: Amount = None
    confidence: str | float = "0.95"


class Question(Asked):
    """A question to be answered. `margin` asks for the smallest epsilon that gives these margins."""

    kind: Literal["question"] = "question"
    margin: Numbers | None = None


class PreviewQuestion(Asked):
    """A question to be previewed. `assume`: the number of rows, for margins that depend on it."""

    assume: Numbers | None = None


class WantedMargin(BaseModel):
    """A question of a workload. With a margin for each, the smallest loss for all of them is planned."""

    model_config = ConfigDict(extra="forbid")
    sql: Sql
    margin: float | Numbers | None = None


class WorkloadQuestion(BaseModel):
    """Several questions that are asked for one charge: all are paid, or none."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["workload"] = "workload"
    questions: Annotated[list[WantedMargin], Field(min_length=1, max_length=MOST_QUESTIONS)]
    epsilon: Amount = None
    rho: Amount = None
    confidence: str | float = "0.95"

    def write_wanted(self) -> Any:  # noqa: ANN401 - texts, or texts with margins
        """The questions as `plan` takes them."""
        if self.epsilon is None and self.rho is None:
            return [(question.sql, question.margin) for question in self.questions]
        return [
            question.sql if question.margin is None else (question.sql, question.margin) for question in self.questions
        ]


def preview_question(curator: Curator, asked: Asked, user: User) -> Preview:
    """Cost and margins of a question. It reads no row and costs nothing."""
    return curator.preview(
        asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, confidence=asked.confidence, analyst=user.name,
        assume=asked.assume if isinstance(asked, PreviewQuestion) else None,
    )  # fmt: skip


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
