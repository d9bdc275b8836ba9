"""Small tables, their neighbours under both relations, and how far each neighbour's answer is: by enumeration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from sfumato.errors import InvalidParameter, describe_kind
from sfumato.kernel.neighbours import Neighbours
from sfumato.number_arguments import read_whole_number

QueryName: TypeAlias = Literal["average", "maximum", "count", "sum", "histogram"]
QUERIES: tuple[QueryName, ...] = get_args(QueryName)
MOST_NEIGHBOURS = 20_000

Answer: TypeAlias = tuple[Fraction, ...]  # one number, or one for each value of a histogram
Rows: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SmallTable:
    """One column of whole numbers. `low` and `high` are public, and `counted` is what the count asks for."""

    name: str
    column: str
    low: int
    high: int
    rows: Rows
    counted: int
    counts_above: bool  # count the values above `counted`, or equal to it

    def __post_init__(self) -> None:
        if len(self.rows) < 2 or not all(self.low <= value <= self.high for value in self.rows):
            rule = f"must be two or more numbers from {self.low} to {self.high}"
            raise InvalidParameter("rows", rule, "fewer, or others")

    @property
    def domain(self) -> range:
        return range(self.low, self.high + 1)

    @property
    def counts(self) -> str:
        return f"{self.column} {'>' if self.counts_above else '='} {self.counted}"


TABLES = (
    SmallTable("heights", "height", 1, 300, (152, 164, 171, 180, 195), 170, True),
    SmallTable("integers", "number", 1, 10, (2, 3, 3, 5, 7), 4, True),
    SmallTable("diseases", "disease", 1, 4, (1, 2, 1, 3, 1, 2, 4, 1), 1, False),
)
TABLE_OF_QUERY: dict[QueryName, str] = {
    "average": "heights", "maximum": "integers", "sum": "integers", "count": "diseases", "histogram": "diseases",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A table that differs in one person, with the answer and its distance to the answer of the original table."""

    change: str  # in words
    place: int  # the row that is removed or replaced; the number of rows for an added row
    rows: Rows
    answer: Answer
    distance: Fraction  # L1 for a histogram


@dataclass(frozen=True, slots=True)
class NeighbourList:
    """All neighbours of a table under one relation."""

    relation: Neighbours
    neighbours: tuple[Neighbour, ...]
    bound: Fraction  # for every table with as many rows
    formula: str

    @property
    def worst(self) -> Neighbour:
        """The neighbour that changes the answer most; the first of several."""
        return max(self.neighbours, key=lambda neighbour: neighbour.distance)


def find_table(name: object) -> SmallTable:
    for table in TABLES:
        if table.name == name:
            return table
    raise InvalidParameter("data", f"must be one of {', '.join(table.name for table in TABLES)}", describe_kind(name))


def check_query(query: object) -> QueryName:
    for name in QUERIES:
        if query == name:
            return name
    raise InvalidParameter("query", f"must be one of {', '.join(QUERIES)}", describe_kind(query))


def answer_query(query: QueryName, table: SmallTable, rows: Rows) -> Answer:
    """The exact answer for these rows."""
    return _FORMULAS[query](table, rows)


def _average(_: SmallTable, rows: Rows) -> Answer:
    return (Fraction(sum(rows), len(rows)),)


def _maximum(_: SmallTable, rows: Rows) -> Answer:
    return (Fraction(max(rows)),)


def _sum(_: SmallTable, rows: Rows) -> Answer:
    return (Fraction(sum(rows)),)


def _count(table: SmallTable, rows: Rows) -> Answer:
    counted = [value > table.counted if table.counts_above else value == table.counted for value in rows]
    return (Fraction(sum(counted)),)


def _histogram(table: SmallTable, rows: Rows) -> Answer:
    return tuple(Fraction(rows.count(value)) for value in table.domain)


_FORMULAS: dict[QueryName, Callable[[SmallTable, Rows], Answer]] = {
    "average": _average, "maximum": _maximum, "count": _count, "sum": _sum, "histogram": _histogram,
}  # fmt: skip


def list_neighbours(query: QueryName, table: SmallTable, relation: Neighbours) -> NeighbourList:
    """Change one person in every possible way, and answer the query each time."""
    whole = len(table.rows) * (len(table.domain) + 1)
    if read_whole_number(whole, "neighbours", 1) > MOST_NEIGHBOURS:
        raise InvalidParameter("rows", f"must have at most {MOST_NEIGHBOURS} neighbours", "more")
    before = answer_query(query, table, table.rows)
    found = []
    for change, place, rows in _change_one(table, relation):
        after = answer_query(query, table, rows)
        distance = sum((abs(new - old) for new, old in zip(after, before, strict=True)), Fraction(0))
        found.append(Neighbour(change, place, rows, after, distance))
    return NeighbourList(relation, tuple(found), *bound_change(query, table, relation))


def _change_one(table: SmallTable, relation: Neighbours) -> Iterator[tuple[str, int, Rows]]:
    rows = table.rows
    for place, value in enumerate(rows):
        rest = rows[:place], rows[place + 1 :]
        if relation is Neighbours.ADD_REMOVE:
            yield f"remove {value}", place, rest[0] + rest[1]
        else:
            for other in table.domain:
                if other != value:
                    yield f"replace {value} by {other}", place, (*rest[0], other, *rest[1])
    if relation is Neighbours.ADD_REMOVE:
        for value in table.domain:
            yield f"add {value}", len(rows), (*rows, value)


def bound_change(query: QueryName, table: SmallTable, relation: Neighbours) -> tuple[Fraction, str]:
    """The most that one person changes the answer, over all tables with as many rows: a number and its formula."""
    low, high, size = table.low, table.high, len(table.rows)
    replaced = relation is Neighbours.REPLACE_ONE
    match query:
        case "average":
            return Fraction(high - low, size), f"({high} - {low})/{size}"
        case "maximum":
            return Fraction(high - low), f"{high} - {low}"
        case "sum":
            return (Fraction(high - low), f"{high} - {low}") if replaced else (Fraction(high), f"{high}")
        case "count":
            return Fraction(1), "1"
        case "histogram":
            return (Fraction(2), "2") if replaced else (Fraction(1), "1")
