"""Hard neighbouring pairs of made-up datasets with a declared schema. No data of the owner is read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from sfumato.catalog.columns import Boolean, Category
from sfumato.catalog.dataset import Table
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.lab.auditing.contribution_pairs import list_pairs_above_bounds
from sfumato.lab.auditing.crowd_pairs import list_pairs_with_shared_links
from sfumato.lab.auditing.format_pairs import list_format_pairs
from sfumato.lab.auditing.ingestion_pairs import list_ingestion_pairs
from sfumato.lab.auditing.pair_maker import (
    ALONE,
    CROWD,
    HIGH,
    KINDS,
    LOW,
    MANY,
    DatasetPair,
    Held,
    PairMaker,
)
from sfumato.lab.auditing.throwaway_desk import Data
from sfumato.lab.auditing.unique_key_pairs import list_pairs_with_repeated_keys

NOBODY = "nobody against one person"
COUNTS_RAISED = (*range(13), 20, 31, 50, 99, 1_000)
MOST_CATEGORIES = 4  # values of a column that a person with extreme values gets in turn


def list_pairs(
    tables: Sequence[Table],
    public: Mapping[str, object],
    unit: PrivacyUnit,
    folder: Path,
    seed: int | None,
    *,
    formats: bool = True,
) -> Iterator[DatasetPair]:
    """Hard pairs for a question about these tables. Files are written in `folder`.

    Without `formats`, the sources are frames of Arrow and malformed CSV files only.
    """
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
    yield from list_pairs_with_repeated_keys(maker, crowd, first)
    yield from list_ingestion_pairs(maker, crowd, first, folder)
    if formats:
        yield from list_format_pairs(maker, crowd, folder)
    yield from list_pairs_with_shared_links(maker)


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
    most = maker.tables[maker.unit.table].most_count
    for held in (*COUNTS_RAISED, *((most - 1, most, most + 1) if most is not None else ())):
        (record,) = maker.make_person("", HIGH)[maker.unit.table]
        first, second = (
            maker.as_tables(maker.add(maker.add({}, crowd), {maker.unit.table: [{**record, count: number}]}))
            for number in (held, held + 1)
        )
        yield DatasetPair(f"a count of {held} is raised by one", first, second)
