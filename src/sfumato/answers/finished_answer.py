"""Answers to the queries of a question -> the answer to the question: windows, outer SELECTs, unions. Post-processing.

A column that shows a released column unchanged keeps its intervals. Where rows are selected or sorted by noisy values,
the intervals of the released rows hold for all of them together, so they hold for any selection. Sums over rows
(shares, running totals) have simulated intervals. For other computed columns no interval is stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.answers.answer import Answer, Cost
from sfumato.answers.explanation import NO_GROUP
from sfumato.answers.window_intervals import find_window_ends
from sfumato.kernel.losses import PrivacyLoss
from sfumato.query.query import Finish
from sfumato.query.released_tables import run_finish

SIMULATED = 0.9  # of the chance to miss: simulating around released instead of true values costs some confidence
POST_PROCESSED = (
    "The rows are computed from released rows (windows, CASE, an outer SELECT or several releases): this costs nothing."
)
COMPUTED_AFTER = "The column is computed from released rows, and no interval is stated for it."
TOGETHER = (
    "Rows are selected or sorted by noisy values, so the intervals are wider: with the stated confidence they hold for "
    "all released rows of a column at once."
)


@dataclass(frozen=True, slots=True)
class Bill:
    """What all releases of a question cost together."""

    cost: Cost
    population_cost: Cost
    loss: PrivacyLoss


def finish_answer(
    parts: Sequence[Answer], finish: Finish, bill: Bill | None = None, *, together: bool = False
) -> Answer:
    """The answer to a question, from the answers to its queries."""
    first = parts[0]
    released = [
        [[row[name] for name, _ in columns] for row in part.rows]
        for part, columns in zip(parts, finish.tables, strict=True)
    ]
    found = run_finish(finish.sql, finish.tables, released)
    width = len(finish.columns)
    rows = [dict(zip(finish.columns, row[:width], strict=True)) for row in found]
    numbers = [row[width] for row in found] if finish.keeps_rows else []
    details = _FinishedDetails(tuple(parts), finish, rows, numbers, together)

    def compute_detail(name: str) -> Any:  # noqa: ANN401 - each detail has a type of its own
        return getattr(details, name)()

    paid = bill or Bill(first.cost, first.population_cost, first.loss)
    keys = tuple(
        name
        for name, shown in zip(finish.columns, finish.unchanged, strict=True)
        if shown and all(column in parts[table].keys for table, column in shown)
    )
    return Answer(
        finish.columns, rows, first.confidence, paid.cost, first.remaining, first.entry, first.cached, first.head,
        paid.population_cost, first.own_remaining, keys, first.neighbours, paid.loss, compute_detail,
    )  # fmt: skip


def describe_finish(releases: int) -> str:
    """The sentence of explain() about what is computed from released rows."""
    if releases == 1:
        return POST_PROCESSED
    return f"{POST_PROCESSED} The cost is divided equally among {releases} releases."


@dataclass(frozen=True, slots=True, eq=False)
class _FinishedDetails:
    """The parts of an answer that are computed when they are first read: a method for each name in `DETAILS`."""

    parts: tuple[Answer, ...]
    finish: Finish
    rows: list[dict[str, Any]]
    numbers: list[int]
    together: bool

    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """The intervals of the columns that show a released column, row for row."""
        places = [(table, row) for table, part in enumerate(self.parts) for row in range(len(part.rows))]
        shown = [dict(columns) for columns in self.finish.unchanged]
        computed = self._find_computed_ends()
        made: list[dict[str, tuple[float, float]]] = []
        for at, row in enumerate(self.rows):
            ends: dict[str, tuple[float, float]] = {}
            if self.finish.keeps_rows:
                table, place = places[self.numbers[at]]
                known = self.parts[table].intervals[place]
                for name, columns in zip(self.finish.columns, shown, strict=True):
                    column = columns.get(table)
                    if column in known and row[name] is not None:
                        ends[name] = known[column]
                    elif name in computed and row[name] is not None:
                        low, high = computed[name]
                        ends[name] = (float(low[place]), float(high[place]))
            made.append(ends)
        return made

    def _find_computed_ends(self) -> dict[str, tuple[Any, Any]]:
        """The ends of shares, running totals and other sums over released rows."""
        first = self.parts[0]
        if len(self.parts) > 1 or not self.finish.keeps_rows or all(self.finish.unchanged):
            return {}
        simulated = first._details("simulated_columns")
        if not simulated:
            return {}
        miss = (1 - first.confidence) * SIMULATED / (len(first.rows) if self.together else 1)
        return find_window_ends(self.finish, first.rows, simulated, first.keys, miss)

    def measurements(self) -> tuple[Any, ...]:
        """The measurements of all queries."""
        return tuple(summary for part in self.parts for summary in part.measurements)

    def sentences(self) -> tuple[str, ...]:
        """The sentences of all queries, without repeats, and what was computed from them."""
        said = [describe_finish(len(self.parts))]
        if self.together and self.finish.keeps_rows:
            said.append(TOGETHER)
        without = self._list_without_interval()
        if without:
            said.append(f"No interval is stated for {', '.join(without)}: computed from noisy values.")
        return tuple(dict.fromkeys((*said, *(sentence for part in self.parts for sentence in part.sentences))))

    def sensitivities(self) -> tuple[Any, ...]:
        """How much one person can change the columns of each query."""
        return tuple(sensitivity for part in self.parts for sensitivity in part.sensitivities)

    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust some of the released rows."""
        return tuple(dict.fromkeys(warning for part in self.parts for warning in part.warnings))

    def interval_note(self) -> str:
        """The confidence of the intervals; which columns have none."""
        without = self._list_without_interval()
        note = next((part.interval_note for part in self.parts if part.interval_note), "")
        if len(without) == len([name for name in self.finish.columns if self._is_number(name)]):
            note = ""
        said = [note.removesuffix(NO_GROUP).strip()]
        if without:
            said.append(f"No interval is stated for {', '.join(without)}: computed from noisy values.")
        if any(part.interval_note.endswith(NO_GROUP) for part in self.parts):
            said.append(NO_GROUP)
        return " ".join(filter(None, said))

    def disclosure(self) -> dict[str, Any]:
        """The signed statements of what was released."""
        if len(self.parts) == 1:
            return self.parts[0].disclosure
        return {"parts": [part.disclosure for part in self.parts]}

    def _is_number(self, name: str) -> bool:
        values = [row[name] for row in self.rows]
        return any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)

    def _list_without_interval(self) -> list[str]:
        stated = {name for ends in self.intervals() for name in ends}
        keys = {
            name
            for name, shown in zip(self.finish.columns, self.finish.unchanged, strict=True)
            if shown and all(column in self.parts[table].keys for table, column in shown)
        }
        return [name for name in self.finish.columns if name not in stated | keys and self._is_number(name)]
