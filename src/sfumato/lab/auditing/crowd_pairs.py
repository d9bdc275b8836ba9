"""Pairs of crowds: of every small size, of many people above their bounds, and of people who share a link."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from sfumato.catalog.columns import Id
from sfumato.kernel.row_sources import TIMES_MET
from sfumato.lab.auditing.contribution_pairs import choose_group, multiply_rows
from sfumato.lab.auditing.pair_maker import LARGEST, LOW, TYPICAL, CountRows, DatasetPair, Held, PairMaker

SMALL = range(13)  # people: a fault at one of these numbers is met
LARGER = (17, 33, 50, 65, 100, 257)  # and at these, with one person more
MOST_CROWDED = 3_000  # rows of many people who are all above their bounds
MOST_PEOPLE = 300  # of them: among so many, hashes of two bytes or fewer meet


def list_crowd_pairs(maker: PairMaker, values: Mapping[str, object]) -> Iterator[DatasetPair]:
    """One person more (or another) in crowds of every small size and of some larger ones. Each person has one row.

    `values` are those of a row that the question counts.
    """
    people = [maker.make_person(f"n{place}", TYPICAL, values, lambda _: 1) for place in range(max(LARGER) + 2)]
    if maker.replaces:
        for size in (*SMALL[::2], *LARGER[1::2]):
            if size or not maker.fixed:
                other = maker.make_person("somebody else", LOW, values, lambda _: 1)
                first, second = (
                    maker.as_tables(_join(maker, [*people[:size], last])) for last in (other, people[size])
                )
                yield DatasetPair(f"a crowd of {size}, and a person", first, second)
        return
    made = {size: maker.as_tables(_join(maker, people[:size])) for size in SMALL}
    for size, more in pairwise(SMALL):
        yield DatasetPair(f"a crowd of {size}, and a person", made[size], made[more])
    for size in LARGER:
        first, second = (maker.as_tables(_join(maker, people[:count])) for count in (size, size + 1))
        yield DatasetPair(f"a crowd of {size}, and a person", first, second)


def _join(maker: PairMaker, people: list[Held]) -> Held:
    held: Held = {table.name: [] for table in maker.private}
    for person in people:
        maker.add(held, person)
    return held


def list_pairs_of_many(maker: PairMaker, values: Mapping[str, object], keys: set[str]) -> Iterator[DatasetPair]:
    """Many people, each with more rows and in more groups than count: nobody takes the place of another.

    `keys` are the columns that the question groups by. Joins read so many times the bound of a person's rows.
    """
    if maker.unit.per_row:
        return
    above_groups: CountRows = lambda table: 2 * table.max_groups_per_unit + 1  # noqa: E731 - beside the other
    for text, rows in (("groups", above_groups), ("rows of joins", multiply_rows(TIMES_MET, 2))):
        rows_of_one = sum(map(rows, maker.private))
        count = min(MOST_PEOPLE, MOST_CROWDED // rows_of_one)
        if count < 2:
            continue
        crowd = [_make_spread(maker, f"m{place}", values, keys, rows) for place in range(count)]
        last = _make_spread(maker, "somebody", values, keys, rows)
        before = [_make_spread(maker, "somebody else", values, keys, rows)] if maker.replaces else []
        first, second = (maker.as_tables(_join(maker, [*crowd, *others])) for others in (before, [last]))
        yield DatasetPair(f"{count} people and one more, each above the {text} that count", first, second)


def _make_spread(maker: PairMaker, name: str, values: Mapping[str, object], keys: set[str], rows: CountRows) -> Held:
    """A person whose rows are in as many groups as they can be; one of four is in no declared group."""
    person = maker.make_person(name, LARGEST, values, rows)
    for table, records in person.items():
        columns = maker.tables[table].columns
        spread = {column: columns[column] for column in keys & set(columns) if not isinstance(columns[column], Id)}
        for place, record in enumerate(records):
            for column, kind in spread.items():
                record[column] = choose_group(kind, place) if place % 4 else None
    return person


def list_pairs_with_shared_links(maker: PairMaker) -> Iterator[DatasetPair]:
    """Somebody holds the link of another person, with an id that comes before or after theirs.

    The owner's load is refused, or the linked rows stay those of one person.
    """
    for table in maker.private:
        if table.unit_through is None or maker.unit.per_row or maker.fixed:
            continue
        column, parent = table.unit_through
        person = maker.make_person("b: the first", LARGEST)
        for name in ("a: before", "c: after"):
            other = maker.make_person(name, LARGEST, rows=lambda _: 1)
            for record in other[parent]:
                record[column] = person[parent][0][column]
            other[table.name] = []
            crowd = maker.make_crowd(2)
            held = maker.add(maker.add({}, crowd), person)
            replaced = maker.make_person("somebody else", LOW) if maker.replaces else {}
            first, second = (maker.as_tables(maker.add(maker.add({}, held), last)) for last in (replaced, other))
            text = f"somebody ({name[3:]}) who shares {column} of {parent} with another person"
            yield DatasetPair(text, first, second, may_be_refused=True)
