"""Questions in Python: where / group_by / agg, then ask or preview. They build the Query that their SQL means."""

from dataclasses import dataclass, replace
from typing import Any

from sfumato.answering.ask import ask
from sfumato.answering.desk import AtDesk
from sfumato.answering.preview import Preview, preview
from sfumato.answers.answer import Answer
from sfumato.drawing.cards import make_card, make_code, make_note
from sfumato.query.frame import Aggregation, Frame, FrameQuery


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a protected table, perhaps in groups."""

    at_desk: AtDesk
    frame: Frame

    def __repr__(self) -> str:
        return describe_selection(self.frame)

    def where(self, condition: str) -> "Selection":
        """Keep the rows for which this SQL condition is true."""
        return replace(self, frame=self.frame.where(condition))

    def group_by(self, *keys: str) -> "Selection":
        """Group by columns, or by expressions such as "age > 65 AS old"."""
        return replace(self, frame=self.frame.group_by(*keys))

    def agg(self, **aggregates: Aggregation) -> "Question":
        """The question: agg(n=sf.count(), age=sf.mean("age"))."""
        return Question(self.at_desk, self.frame.agg(**aggregates))


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is ready to be asked."""

    at_desk: AtDesk
    asked: FrameQuery

    def __repr__(self) -> str:
        return describe_question_object(self.sql())

    def _repr_html_(self) -> str:
        return make_question_card(self.sql())

    def sql(self) -> str:
        """The same question in SQL."""
        return self.asked.sql()

    def ask(self, epsilon: Any = None, **options: Any) -> Answer:  # noqa: ANN401 - the options of Curator.ask
        """Ask, with the options of Curator.ask."""
        with self.at_desk() as desk:
            return ask(desk, self.asked, epsilon, **options)

    def preview(self, epsilon: Any = None, **options: Any) -> Preview:  # noqa: ANN401 - the options of Curator.preview
        """Preview, with the options of Curator.preview."""
        with self.at_desk() as desk:
            return preview(desk, self.asked, epsilon, **options)


def describe_selection(frame: Frame) -> str:
    """Rows of a table in one line: they are not shown, only which ones they are."""
    where = [f"where {condition.text}" for condition in frame.conditions]
    grouped = [f"grouped by {', '.join(key.text for key in frame.keys)}"] if frame.keys else []
    rows = ", ".join([f"Rows of {frame.table}", *where, *grouped])
    return f"<{rows}; next: .agg(n=sf.count())>"


NEXT = "Nothing is asked yet: .preview(epsilon=0.5) is free, .ask(epsilon=0.5) spends."


def describe_question_object(sql: str) -> str:
    """A question that is not asked yet, as text."""
    return f"{sql}\n{NEXT}"


def make_question_card(sql: str) -> str:
    """The same as HTML."""
    return make_card("Question", make_code(sql), make_note(NEXT))
