"""Questions in Python: where / group_by / agg, then ask or preview. They build the Query that their SQL means."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from sfumato.answering.ask import ask
from sfumato.answering.desk import AtDesk
from sfumato.answering.preview import Preview, preview
from sfumato.answers.answer import Answer
from sfumato.catalog.dataset import Dataset
from sfumato.drawing.cards import make_card, make_code, make_note
from sfumato.errors import InvalidParameter
from sfumato.query.frame import Aggregation, Frame, FrameQuery

Previewed_co = TypeVar("Previewed_co", covariant=True)  # what a preview returns: here, or from a service


class Asker(Protocol[Previewed_co]):
    """Asks a question that Python built: at a desk, or through a service."""

    def ask(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> Answer:  # noqa: ANN401 - of Curator.ask
        """Ask, with the options of Curator.ask."""
        ...

    def preview(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> Previewed_co:  # noqa: ANN401 - as above
        """Preview, with the options of Curator.preview."""
        ...


@dataclass(frozen=True, slots=True)
class DeskAsker:
    """Asks at the desk of a curator."""

    at_desk: AtDesk

    def ask(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> Answer:  # noqa: ANN401 - of Curator.ask
        with self.at_desk() as desk:
            return ask(desk, asked, epsilon, **options)

    def preview(self, asked: FrameQuery, epsilon: Any = None, **options: Any) -> Preview:  # noqa: ANN401 - as above
        with self.at_desk() as desk:
            return preview(desk, asked, epsilon, **options)


@dataclass(frozen=True, slots=True)
class Selection(Generic[Previewed_co]):
    """Rows of a protected table, perhaps in groups."""

    asker: Asker[Previewed_co]
    frame: Frame

    def __repr__(self) -> str:
        return describe_selection(self.frame)

    def where(self, condition: str) -> "Selection[Previewed_co]":
        """Keep the rows for which this SQL condition is true."""
        return replace(self, frame=self.frame.where(condition))

    def group_by(self, *keys: str) -> "Selection[Previewed_co]":
        """Group by columns, or by expressions such as "age > 65 AS old"."""
        return replace(self, frame=self.frame.group_by(*keys))

    def agg(self, **aggregates: Aggregation) -> "Question[Previewed_co]":
        """The question: agg(n=sf.count(), age=sf.mean("age"))."""
        return Question(self.asker, self.frame.agg(**aggregates))


@dataclass(frozen=True, slots=True)
class Question(Generic[Previewed_co]):
    """A question that is ready to be asked."""

    asker: Asker[Previewed_co]
    asked: FrameQuery

    def __repr__(self) -> str:
        return f"{self.sql()}\n{NEXT}"

    def _repr_html_(self) -> str:
        return make_card("Question", make_code(self.sql()), make_note(NEXT))

    def sql(self) -> str:
        """The same question in SQL."""
        return self.asked.sql()

    def ask(self, epsilon: Any = None, **options: Any) -> Answer:  # noqa: ANN401 - the options of Curator.ask
        """Ask, with the options of Curator.ask."""
        return self.asker.ask(self.asked, epsilon, **options)

    def preview(self, epsilon: Any = None, **options: Any) -> Previewed_co:  # noqa: ANN401 - the options of Curator.preview
        """Preview, with the options of Curator.preview."""
        return self.asker.preview(self.asked, epsilon, **options)


def begin_selection(asker: Asker[Previewed_co], dataset: Dataset, table: str | None) -> Selection[Previewed_co]:
    """A table to ask about. Without a name: the only table."""
    if table is None and len(dataset.tables) != 1:
        hint = f"Begin with select({next(iter(dataset.tables))!r}), then where, group_by and agg."
        raise InvalidParameter("table", f"must be one of {', '.join(dataset.tables)}", "nothing", hint)
    name = dataset.table(next(iter(dataset.tables)) if table is None else table).name
    return Selection(asker, Frame(dataset, name))


def describe_selection(frame: Frame) -> str:
    """Rows of a table in one line: they are not shown, only which ones they are."""
    where = [f"where {condition.text}" for condition in frame.conditions]
    grouped = [f"grouped by {', '.join(key.text for key in frame.keys)}"] if frame.keys else []
    rows = ", ".join([f"Rows of {frame.table}", *where, *grouped])
    return f"<{rows}; next: .agg(n=sf.count())>"


NEXT = "Nothing is asked yet: .preview(epsilon=0.5) is free, .ask(epsilon=0.5) spends."
