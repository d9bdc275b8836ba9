"""`sf.lab.neighbours`: every neighbour of a small table, and the one that changes the answer most."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Panel, Rule
from sfumato.kernel.neighbours import Neighbours
from sfumato.lab.explanations.lesson_page import LessonPage, PageTable, save_page, write_html, write_text
from sfumato.lab.explanations.neighbour_tables import (
    TABLE_OF_QUERY,
    Answer,
    Neighbour,
    NeighbourList,
    QueryName,
    SmallTable,
    answer_query,
    check_query,
    find_table,
    list_neighbours,
)


@dataclass(frozen=True, slots=True)
class NeighbourView:
    """A query on a small table, and all neighbours of the table under each relation."""

    query: QueryName
    table: SmallTable
    answer: Answer
    relations: tuple[NeighbourList, ...]

    @property
    def figure(self) -> Figure:
        return Figure(
            f"Neighbours of {self.table.name}: {self.query}",
            tuple(_draw_relation(self, found) for found in self.relations),
            "Each dot is the answer of one neighbour. The cross is the neighbour that changes the answer most.",
        )

    @property
    def page(self) -> LessonPage:
        return make_neighbour_page(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `sfumato lab neighbours --json`."""
        return {
            "query": self.query,
            "data": self.table.name,
            "rows": list(self.table.rows),
            "domain": [self.table.low, self.table.high],
            "answer": [float(value) for value in self.answer],
            "relations": [
                {
                    "relation": found.relation.value,
                    "neighbours": len(found.neighbours),
                    "greatest_change": float(found.worst.distance),
                    "by": found.worst.change,
                    "bound": float(found.bound),
                    "formula": found.formula,
                }
                for found in self.relations
            ],
        }

    save = save_page
    __str__ = write_text
    __repr__ = write_text
    _repr_html_ = write_html


def neighbours(
    query: str = "average",
    data: str | None = None,
    relation: Neighbours | str | None = None,
    rows: Sequence[int] | None = None,
) -> NeighbourView:
    """Enumerate the neighbours of a small table, and find the one that changes the answer most.

    `query`: average, maximum, count, sum or histogram. `data`: heights (1 to 300), integers (1 to 10) or diseases
    (numbers 1 to 4). `relation`: add-remove or replace-one; both by default. `rows` replaces the rows of the table.
    """
    name = check_query(query)
    table = find_table(TABLE_OF_QUERY[name] if data is None else data)
    if rows is not None:
        table = replace(table, rows=tuple(int(value) for value in rows))
    relations = tuple(Neighbours) if relation is None else (Neighbours.read(relation),)
    found = tuple(list_neighbours(name, table, chosen) for chosen in relations)
    return NeighbourView(name, table, answer_query(name, table, table.rows), found)


def make_neighbour_page(view: NeighbourView) -> LessonPage:
    table = view.table
    asked = f"count of {table.counts}" if view.query == "count" else f"{view.query} of {table.column}"
    rows = ", ".join(map(str, table.rows))
    paragraphs = [
        f"Table {table.name}: {rows}. Each row is one person; every value lies from {table.low} to {table.high}. "
        f"The {asked} is {show_answer(view.answer)}."
    ]
    paragraphs += [
        f"{found.relation.value}: {len(found.neighbours):,} neighbours. The answer changes most, by "
        f'{show_number(found.worst.distance)}, with "{found.worst.change}". No table with {len(table.rows)} rows '
        f"allows more than {show_bound(found)}."
        for found in view.relations
    ]
    tables = [_summarise(view, found) for found in view.relations]
    tables += [_list_all(found) for found in view.relations]
    notes = [
        "The sensitivity is the bound for every table: the noise must hide the change in the worst table, not only in "
        "this one."
    ]
    if view.query == "maximum":
        notes.append("One person can change the maximum by the whole range. Use a private choice (sf.choose) instead.")
    if view.query == "average":
        notes.append("Under add-remove the number of rows is private too, so Sfumato measures a sum and a count.")
    return LessonPage(
        f"Which neighbour changes the {view.query} most?",
        tuple(paragraphs),
        view.figure,
        (),
        (*tables, _compare_queries()),
        tuple(notes),
    )


def show_number(value: Fraction) -> str:
    return f"{float(value):,.4g}"


def show_bound(found: NeighbourList) -> str:
    """The bound with its formula, if that is more than the number."""
    number = show_number(found.bound)
    return number if found.formula == number else f"{found.formula} = {number}"


def show_answer(answer: Answer) -> str:
    return show_number(answer[0]) if len(answer) == 1 else "(" + ", ".join(map(show_number, answer)) + ")"


def _summarise(view: NeighbourView, found: NeighbourList) -> PageTable:
    """One line for each row of the table that is changed, with the range of answers."""
    lines = []
    for place in sorted({neighbour.place for neighbour in found.neighbours}):
        here = [neighbour for neighbour in found.neighbours if neighbour.place == place]
        most = max(here, key=lambda neighbour: neighbour.distance)
        mark = "<- most" if most is found.worst else ""
        lines.append(
            (_name_change(view.table, place, here), _show_range(here), most.change, show_number(most.distance), mark)
        )
    heads = ("change", "answers", "most by", "change", "")
    return PageTable(heads, tuple(lines), (3,), f"{found.relation.value}: {len(found.neighbours):,} neighbours")


def _name_change(table: SmallTable, place: int, here: list[Neighbour]) -> str:
    if len(here) == 1:
        return here[0].change
    if place == len(table.rows):
        return f"add {table.low} ... {table.high}"
    return f"replace {table.rows[place]}"


def _show_range(here: list[Neighbour]) -> str:
    if len(here[0].answer) > 1:
        return show_answer(here[0].answer) if len(here) == 1 else f"{len(here)} histograms"
    answers = [neighbour.answer[0] for neighbour in here]
    least, most = show_number(min(answers)), show_number(max(answers))
    return least if least == most else f"{least} to {most}"


def _list_all(found: NeighbourList) -> PageTable:
    rows = tuple(
        (
            neighbour.change,
            ", ".join(map(str, neighbour.rows)),
            show_answer(neighbour.answer),
            show_number(neighbour.distance),
        )
        for neighbour in found.neighbours
    )
    heads = ("change", "rows", "answer", "distance")
    return PageTable(heads, rows, (3,), f"{found.relation.value}: all {len(rows):,} neighbours", folded=True)


def _compare_queries() -> PageTable:
    """The same for every query and its usual table: the greatest change here, and the bound for every table."""
    rows = []
    for query, name in TABLE_OF_QUERY.items():
        table = find_table(name)
        cells = [list_neighbours(query, table, relation) for relation in Neighbours]
        shown = [f"{show_number(found.worst.distance)} of {show_number(found.bound)}" for found in cells]
        rows.append((query, name, *shown))
    heads = ("query", "data", *(relation.value for relation in Neighbours))
    return PageTable(heads, tuple(rows), (2, 3), "Greatest change in the table, of the bound for every table")


def _draw_relation(view: NeighbourView, found: NeighbourList) -> Panel:
    single = len(view.answer) == 1
    size = len(view.table.rows)
    points = [
        (neighbour.place + 1.0, float(neighbour.answer[0] if single else neighbour.distance))
        for neighbour in found.neighbours
    ]
    worst = found.worst
    at = (worst.place + 1.0, float(worst.answer[0] if single else worst.distance))
    true = float(view.answer[0]) if single else 0.0
    values = [true, *(value for _, value in points)]
    room = (max(values) - min(values)) * 0.12 or 1.0
    added = ((size + 1.0, "added"),) if found.relation is Neighbours.ADD_REMOVE else ()
    ticks = tuple((place + 1.0, str(value)) for place, value in enumerate(view.table.rows)) + added
    label = "row that is removed, or added" if added else "row that is replaced"
    return Panel(
        f"{found.relation.value}: {len(found.neighbours):,} neighbours",
        f"The answers of all neighbours. The greatest change is {show_number(worst.distance)}.",
        Axis(label, 0.5, size + (1.5 if added else 0.5), ticks),
        Axis(view.query if single else "L1 distance", min(values) - room, max(values) + room),
        (
            Dots(tuple(points), "protected", "neighbour", size=2.2),
            Rule("limit", y=true, text="the table itself"),
            Dots((at,), "naive", "greatest change", shape="cross", size=6),
        ),
    )
