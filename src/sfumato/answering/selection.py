"""The Python way to ask: where / group_by / agg, then ask or preview. It builds the very Query that its SQL means."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.query.frame import Aggregation, Frame, FrameQuery

if TYPE_CHECKING:
    from sfumato.answers.answer import Answer
    from sfumato.curator import Curator, Preview


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a protected table, perhaps in groups."""

    curator: "Curator"
    frame: Frame

    def where(self, condition: str) -> "Selection":
        """Keep rows for which this condition, in SQL, is true."""
        return replace(self, frame=self.frame.where(condition))

    def group_by(self, *keys: str) -> "Selection":
        """Group by columns, or by expressions such as "age > 65 AS old"."""
        return replace(self, frame=self.frame.group_by(*keys))

    def agg(self, **aggregates: Aggregation) -> "Question":
        """The question: agg(n=sf.count(), age=sf.mean("age"))."""
        return Question(self.curator, self.frame.agg(**aggregates))


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is ready to be asked."""

    curator: "Curator"
    asked: FrameQuery

    def sql(self) -> str:
        """The same question in SQL."""
        return self.asked.sql()

    def ask(self, epsilon: Any = None, **options: Any) -> "Answer":  # noqa: ANN401 - as Curator.ask
        """Ask, as Curator.ask does."""
        return self.curator.ask(self.sql(), epsilon, **options)

    def preview(self, epsilon: Any = None, **options: Any) -> "Preview":  # noqa: ANN401 - as Curator.preview
        """Preview, as Curator.preview does."""
        return self.curator.preview(self.sql(), epsilon, **options)
