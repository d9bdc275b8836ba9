"""Make up people, their records and neighbouring datasets with a declared schema. No data of the owner is read."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.kernel.neighbours import Neighbours, PrivacyUnit

CROWD = 9  # people, or rows, that both datasets have
PUBLIC_ROWS, PUBLIC_NULLS = 12, 16
WORDS = ("smith", "baker", "", "Smith", "x\ty")
LONELY = "only one person holds this"

Record = dict[str, object]
CountRows = Callable[[Table], int]  # how many rows a person has in a table
Held = dict[str, list[Record]]  # records by table

# what the changed person's values are like
TYPICAL, LOW, HIGH, BEYOND, BELOW = "typical", "lowest", "highest", "far above the bounds", "far below the bounds"
NULLS, NOT_A_NUMBER, MANY, ALONE = "NULL", "NaN", "many rows", "a key of their own"
TWICE, ABOVE, UNDER, UNUSUAL = "twice the highest", "just too high", "just too low", "unusual"
KINDS = (TYPICAL, LOW, HIGH, BEYOND, BELOW, NULLS, NOT_A_NUMBER, MANY, ALONE, TWICE, ABOVE, UNDER, UNUSUAL)
UNUSUAL_MOMENT = "2024-06-01T23:59:59.999999+05:30"
LARGEST = "largest"  # the bound that is further from 0
EXTREME = (LOW, HIGH, BEYOND, BELOW, LARGEST)
UNUSUAL_TEXT = 'it\'s "quoted"; -- \\ %_ \u2603 \u00e9\u200b' + 300 * "x"


@dataclass(frozen=True, slots=True)
class DatasetPair:
    """Two neighbouring datasets: tables with their declarations and rows (an Arrow table or the path of a file)."""

    name: str
    first: Mapping[str, tuple[Table, object]]
    second: Mapping[str, tuple[Table, object]]
    same: bool = False  # they differ in what belongs to nobody: no integer may move
    may_be_refused: bool = False  # the owner's load of one of them may be refused, before any question


class PairMaker:
    """Makes records for the tables of one question."""

    def __init__(
        self, tables: Sequence[Table], public: Mapping[str, object], unit: PrivacyUnit, random: Random
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.unit = unit
        self.random = random
        self.private = [table for table in tables if not table.public]
        self.public = public
        self.replaces = unit.neighbours is Neighbours.REPLACE_ONE
        self.fixed = any(table.rows is not None or table.people is not None for table in tables)
        self._links = 0

    def make_crowd(self, people: int, kinds: Sequence[str] = (TYPICAL,)) -> Held:
        crowd: Held = {}
        for person in range(people):
            made = self.make_person(f"p{person}", self.random.choice(kinds))
            for name, records in made.items():
                count = self.tables[name].count_column
                for record in records if count is not None else ():
                    record[str(count)] = self.random.randrange(6)  # a record of a counts table is several people
            self.add(crowd, made)
        return crowd

    def make_person(
        self, name: str, kind: str, fixed: Mapping[str, object] | None = None, rows: CountRows | None = None
    ) -> Held:
        """The records of one person in all tables; of a row unit, one record in the unit's table.

        `fixed` gives values of columns. Such a person, and one with extreme values, has as many rows as count.
        `rows` gives their number instead, also in a table that is linked through another.
        """
        given = fixed or {}
        if self.unit.per_row:
            return {self.unit.table: [self._make_record(self.tables[self.unit.table], kind, given)]}
        held: Held = {}
        for table in sorted(self.private, key=self._count_links):  # a table after the one that it is linked through
            most = table.max_rows_per_unit
            usual = most if given or kind in EXTREME else self.random.choice((1, 1, 2, most))
            count = rows(table) if rows is not None else 3 * most + 2 if kind == MANY else usual
            if table.unit_through is None:
                owned: list[Record] = [{str(table.unit): name} for _ in range(count)]
            else:
                column, parent = table.unit_through
                parents = held.get(parent, ())
                if rows is not None and parents:
                    owned = [{column: parents[place % len(parents)][column]} for place in range(count)]
                else:
                    owned = [{column: row[column]} for row in parents for _ in range(min(count, 4))]
            held[table.name] = [self._make_record(table, kind, {**given, **own}) for own in owned]
        return held

    def make_first(self, crowd: Held, kind: str = LOW) -> Mapping[str, tuple[Table, object]]:
        """The first dataset of pairs: the crowd, and under replace-one the person who is replaced."""
        first = self.add({}, crowd)
        return self.as_tables(self.add(first, self.make_person("somebody else", kind)) if self.replaces else first)

    def make_pair(
        self, name: str, crowd: Held, kind: str, first: Mapping[str, tuple[Table, object]] | None = None
    ) -> DatasetPair:
        """The crowd without and with one person, or with one person replaced by another."""
        second = self.add(self.add({}, crowd), self.make_person("somebody", kind))
        return DatasetPair(name, first or self.make_first(crowd), self.as_tables(second))

    def _count_links(self, table: Table) -> int:
        depth = 0
        while table.unit_through is not None:
            table, depth = self.tables[table.unit_through[1]], depth + 1
        return depth

    def add(self, held: Held, more: Held) -> Held:
        for name, records in more.items():
            held.setdefault(name, []).extend(dict(record) for record in records)
        return held

    def _make_record(self, table: Table, kind: str, own: Mapping[str, object]) -> Record:
        """A record of one person. In a counts table, it has the count 1."""
        given = own if table.count_column is None else {**own, table.count_column: 1}
        return {
            name: given[name] if name in given else self.make_value(declared, kind)
            for name, declared in table.columns.items()
        }

    def make_value(self, declared: ColumnDeclaration, kind: str) -> object:  # noqa: PLR0911 - one return per type
        pick = self.random.choice
        if kind == NULLS and not isinstance(declared, Id):
            return None
        many = kind == MANY
        match declared:
            case Integer(lower=low, upper=high):
                return _choose_number(low, high, self.random.randint(low, high), HIGH if many else kind)
            case Real(lower=low, upper=high):
                return _choose_number(low, high, self.random.uniform(float(low), float(high)), HIGH if many else kind)
            case Category(values=values):
                often = values[:-1] if kind == TYPICAL and len(values) > 1 else values  # one cell is left empty
                return {LOW: values[0], HIGH: values[-1], LARGEST: values[-1], BEYOND: "not declared"}.get(
                    kind, pick(often)
                )
            case Boolean():
                return {LOW: False, HIGH: True, LARGEST: True}.get(kind, pick((True, False)))
            case Date() | DateTime() if kind == UNUSUAL:
                return UNUSUAL_MOMENT
            case Date(lower=first, upper=last):
                days = first.toordinal(), last.toordinal()
                chosen = {LOW: days[0], HIGH: days[1], LARGEST: days[1]}.get(kind, self.random.randint(*days))
                return "9999-12-31" if kind == BEYOND else str(date.fromordinal(chosen))
            case DateTime(lower=first, upper=last):
                step = self.random.random()
                moment: datetime = {LOW: first, HIGH: last, LARGEST: last}.get(kind, first + (last - first) * step)
                return str(moment.replace(microsecond=0) + timedelta(0))
            case Id():
                self._links += 1
                return f"link {self._links}"
            case _:
                if kind == UNUSUAL:
                    return UNUSUAL_TEXT
                return LONELY if kind == ALONE else f"word {self.random.randrange(99)}" if many else pick(WORDS)

    def as_tables(self, held: Held, *, as_text: bool = False) -> dict[str, tuple[Table, object]]:
        """Arrow tables, with public numbers of rows and people declared as they are in `held`."""
        made: dict[str, tuple[Table, object]] = {name: (self.tables[name], rows) for name, rows in self.public.items()}
        for table in self.private:
            records = held.get(table.name, [])
            people = len({record[str(table.unit)] for record in records}) if isinstance(table.unit, str) else None
            declared = replace(
                table,
                rows=None if table.rows is None else max(len(records), 1),
                people=None if table.people is None else max(people or 1, 1),
            )
            made[table.name] = declared, to_arrow(table, records, as_text=as_text)
        return made


def _choose_number(low: Any, high: Any, typical: Any, kind: str) -> object:  # noqa: ANN401 - integers or floats
    largest = low if abs(low) > abs(high) else high
    special = {
        LOW: low,
        HIGH: high,
        LARGEST: largest,
        BEYOND: 1e300,
        BELOW: -1e300,
        TWICE: 2 * high,
        ABOVE: high + 1,
        UNDER: low - 1,
    }
    return math.nan if kind == NOT_A_NUMBER else special.get(kind, typical)


def to_arrow(table: Table, records: Sequence[Record], *, as_text: bool) -> "pyarrow.Table":
    """Records in columns of floats, truth values and texts, or of texts only."""
    columns = {}
    for name, declared in table.columns.items():
        values = [record[name] for record in records]
        match declared:
            case Integer() | Real() if not as_text:
                numbers = [None if value is None else float(str(value)) for value in values]
                columns[name] = pyarrow.array(numbers, pyarrow.float64())
            case Boolean() if not as_text:
                columns[name] = pyarrow.array(values, pyarrow.bool_())
            case _:
                columns[name] = pyarrow.array([write_text(value) for value in values], pyarrow.string())
    return pyarrow.table(columns)


def to_typed_arrow(table: Table, records: Sequence[Record]) -> "pyarrow.Table":
    """Records in the types of their columns: whole numbers, days and moments are no floats and texts."""
    columns = {}
    for name, declared in table.columns.items():
        values = [record[name] for record in records]
        match declared:
            case Integer():
                columns[name] = pyarrow.array(
                    [None if value is None else int(str(value)) for value in values], pyarrow.int64()
                )
            case Date():
                days = [None if value is None else _find_day(str(value)) for value in values]
                columns[name] = pyarrow.array(days, pyarrow.date32())
            case DateTime():
                moments = [None if value is None else datetime.fromisoformat(str(value)) for value in values]
                utc = [
                    moment.astimezone(UTC).replace(tzinfo=None) if moment and moment.tzinfo else moment
                    for moment in moments
                ]
                columns[name] = pyarrow.array(utc, pyarrow.timestamp("us"))
            case _:
                columns[name] = to_arrow(table, records, as_text=False)[name]
    return pyarrow.table(columns)


def _find_day(text: str) -> date:
    moment = datetime.fromisoformat(text)
    return (moment.astimezone(UTC) if moment.tzinfo else moment).date()


def write_text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
