"""Hard neighbouring pairs of made-up datasets with a declared schema. No data of the owner is read."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from sfumato.catalog.columns import Boolean, Category, Id
from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import TextFormat
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.lab.auditing.contribution_pairs import list_pairs_above_bounds
from sfumato.lab.auditing.pair_maker import (
    ALONE,
    CROWD,
    HIGH,
    KINDS,
    LOW,
    MANY,
    TYPICAL,
    DatasetPair,
    Held,
    PairMaker,
    Record,
    write_text,
)
from sfumato.lab.auditing.throwaway_desk import Data

SKIPPING = TextFormat(on_error="skip", quoted_newlines=False)
NOBODY = "nobody against one person"
COUNTS_RAISED = (0, 1, 2, 3, 10, 1_000)
MOST_CATEGORIES = 4  # values of a column that a person with extreme values gets in turn


def list_pairs(
    tables: Sequence[Table], public: Mapping[str, object], unit: PrivacyUnit, folder: Path, seed: int | None
) -> Iterator[DatasetPair]:
    """Hard pairs for a question about these tables. Text files are written in `folder`."""
    random = Random(seed)  # noqa: S311 - made-up rows
    maker = PairMaker(tables, public, unit, random)
    crowd = maker.make_crowd(CROWD)
    first = maker.make_first(crowd)  # one object for many pairs: it is run once
    for name in KINDS:
        if name == MANY and unit.per_row:
            continue
        text = f"a person with {name}" if name in (MANY, ALONE) else f"a person with {name} values"
        yield maker.make_pair(text, crowd, name, first)
    if not maker.fixed:
        yield maker.make_pair(NOBODY, {}, HIGH)
        yield maker.make_pair(f"{NOBODY} with lowest values", {}, LOW)
    yield from list_pairs_in_categories(maker, crowd, first)
    yield from list_pairs_above_bounds(maker, crowd, first)
    yield from list_pairs_with_raised_counts(maker, crowd)
    yield make_pair_in_other_types(maker, crowd, first)
    yield from list_pairs_with_malformed_line(maker, crowd, folder)


def list_random_pairs(
    tables: Sequence[Table], public: Mapping[str, object], unit: PrivacyUnit, count: int, seed: int | None
) -> Iterator[DatasetPair]:
    """Pairs with random rows, each person with values of several kinds."""
    random = Random(seed)  # noqa: S311 - made-up rows
    for number in range(count):
        maker = PairMaker(tables, public, unit, random)
        crowd = maker.make_crowd(random.randrange(0 if not maker.fixed else 1, 7), KINDS)
        first = maker.make_first(crowd, random.choice(KINDS))
        yield maker.make_pair(f"random pair {number + 1}", crowd, random.choice(KINDS), first)


def list_pairs_in_categories(maker: PairMaker, crowd: Held, first: Data) -> Iterator[DatasetPair]:
    """A person with highest (lowest) values in each category in turn, so that some pass the question's filters.

    Under replace-one, the person who is replaced has the same values in another category.
    """
    for column, values in _list_categories(maker):
        for place, value in enumerate(values[:MOST_CATEGORIES]):
            for kind in (HIGH, LOW):
                before = first
                if maker.replaces:
                    replaced = maker.make_person("somebody else", kind, {column: values[place - 1]})
                    before = maker.as_tables(maker.add(maker.add({}, crowd), replaced))
                person = maker.make_person("somebody", kind, {column: value})
                after = maker.as_tables(maker.add(maker.add({}, crowd), person))
                yield DatasetPair(f"a person with {kind} values, {column} {place + 1}", before, after)


def _list_categories(maker: PairMaker) -> Iterator[tuple[str, tuple[object, ...]]]:
    seen = set()
    for table in maker.private:
        for column, declared in table.columns.items():
            if column not in seen and isinstance(declared, Category | Boolean):
                seen.add(column)
                yield column, tuple(declared.values) if isinstance(declared, Category) else (False, True)


def list_pairs_with_raised_counts(maker: PairMaker, crowd: Held) -> Iterator[DatasetPair]:
    """One count of a counts table is raised by one."""
    count = maker.tables[maker.unit.table].count_column if maker.unit.per_row else None
    if count is None or maker.replaces:
        return
    for held in COUNTS_RAISED:
        (record,) = maker.make_person("", HIGH)[maker.unit.table]
        sides = [
            maker.as_tables(maker.add(maker.add({}, crowd), {maker.unit.table: [{**record, count: number}]}))
            for number in (held, held + 1)
        ]
        yield DatasetPair(f"a count of {held} is raised by one", *sides)


def make_pair_in_other_types(maker: PairMaker, crowd: Held, first: Data) -> DatasetPair:
    """One person's text makes every column of the second dataset a column of texts."""
    second = maker.add(maker.add({}, crowd), maker.make_person("somebody", TYPICAL))
    for name, records in second.items():
        table = maker.tables[name]
        kept = {column for column, kind in table.columns.items() if isinstance(kind, Id)} | {table.count_column}
        records[-1].update({column: "no such value" for column in records[-1] if column not in kept})
    return DatasetPair("another dtype", first, maker.as_tables(second, as_text=True))


def list_pairs_with_malformed_line(maker: PairMaker, crowd: Held, folder: Path) -> Iterator[DatasetPair]:
    """The second dataset has a line with too many fields; the owner chose to skip such lines."""
    if maker.replaces or not crowd:  # a line that is skipped is nobody's: the number of people stays
        return
    for name in [table.name for table in maker.private]:
        sides: list[dict[str, tuple[Table, object]]] = []
        for side, line in (("first", ""), ("second", '"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u\n')):
            made = dict(maker.as_tables(crowd))
            path = folder / f"{name}-{side}.csv"
            path.write_text(_write_csv(maker.tables[name], crowd.get(name, [])) + line)
            made[name] = replace(maker.tables[name], reading=SKIPPING), path
            sides.append(made)
        yield DatasetPair(f"a malformed line in {name}", *sides)


def _write_csv(table: Table, records: Sequence[Record]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([write_text(record[name]) or "" for name in table.columns] for record in records)
    return text.getvalue()
