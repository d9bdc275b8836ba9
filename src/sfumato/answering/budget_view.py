"""A budget as users see it: its limit, what is spent, and what is left."""

from dataclasses import dataclass
from decimal import Decimal

from sfumato.answers.answer import Cost
from sfumato.drawing.cards import make_card, make_gauge
from sfumato.drawing.text_tables import write_text_gauge
from sfumato.shown_amounts import LETTERS, round_amounts


@dataclass(frozen=True)
class Spending:
    """A budget: its limit, what is spent, and what is left."""

    limit: Cost
    spent: Cost
    remaining: Cost

    def list_gauges(self) -> list[tuple[float, str]]:
        """For each part of the budget: the share that is spent, and the amounts in words."""
        limits = self.limit.as_text()
        spent, is_spent_rounded = round_amounts(self.spent.as_text(), "up")
        left, is_left_rounded = round_amounts(self.remaining.as_text(), "down")
        note = " (rounded)" if is_spent_rounded or is_left_rounded else ""
        return [
            (
                float(Decimal(spent[name]) / Decimal(limit)),
                f"{LETTERS[name]} = {spent[name]} of {limit} is spent, {left[name]} is left{note}",
            )
            for name, limit in limits.items()
            if Decimal(limit)
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{write_text_gauge(share)} {words}" for share, words in self.list_gauges())

    def make_html(self) -> str:
        """The gauges as HTML, to stand in a card."""
        return "".join(make_gauge(share, words) for share, words in self.list_gauges())

    def _repr_html_(self) -> str:
        return make_card("Budget", self.make_html())
