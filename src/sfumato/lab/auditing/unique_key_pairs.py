"""Hard pairs for unique keys and joins: keys that a person repeats, keys of two people, and rows that all meet."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from sfumato.kernel.expressions import Column
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.lab.auditing.contribution_pairs import choose_group, multiply_rows
from sfumato.lab.auditing.pair_maker import LARGEST, TYPICAL, DatasetPair, Held, PairMaker
from sfumato.lab.auditing.throwaway_desk import Data

REPEATS = 4  # rows of one person with the same key
MOST_MET = 8  # rows of one person in a table that all meet


def list_pairs_with_repeated_keys(maker: PairMaker, crowd: Held, first: Data) -> Iterator[DatasetPair]:
    """A person who repeats unique keys, one with the keys of another person, and the same records in another order."""
    if not any(table.unique for table in maker.private) or maker.fixed:
        return
    repeated = _repeat_keys(maker, "somebody")
    yield DatasetPair(
        "a person who repeats unique keys", first, maker.as_tables(maker.add(maker.add({}, crowd), repeated))
    )
    others = maker.add(maker.add({}, crowd), _repeat_keys(maker, "a: before"))
    before = maker.as_tables(
        maker.add(maker.add({}, others), _repeat_keys(maker, "somebody else")) if maker.replaces else others
    )
    after = maker.as_tables(maker.add(maker.add({}, others), repeated))
    yield DatasetPair("a person with the unique keys of another", before, after)
    turned = {name: records[::-1] for name, records in maker.add(maker.add({}, others), repeated).items()}
    yield DatasetPair("the same records in another order", after, maker.as_tables(turned), same=True)


def _repeat_keys(maker: PairMaker, name: str) -> Held:
    """Each key several times, with other values beside it. The last row has no value of the key."""
    person = maker.make_person(name, TYPICAL, rows=multiply_rows(1, REPEATS))
    for table in maker.private:
        for key in table.unique:
            for place, record in enumerate(person[table.name]):
                record.update(
                    (column, _choose(maker, table.name, column, place // REPEATS))
                    for column in key
                    if column != table.unit and (table.unit_through is None or column != table.unit_through[0])
                )
            for column in key[-1:] if key[-1] != table.unit and table.unit_through is None else ():
                person[table.name][-1][column] = None
    return person


def _choose(maker: PairMaker, table: str, column: str, place: int) -> object:
    return choose_group(maker.tables[table].columns[column], place)


def list_pairs_that_meet(source: Source, maker: PairMaker, crowd: Held) -> Iterator[DatasetPair]:
    """A person whose rows in joined tables all have the same compared values, or meet one by one.

    Somebody else has the same values: rows of two people never meet.
    """
    links = {table.unit_through[0] for table in maker.private if table.unit_through is not None}
    columns = sorted({name for join in list_private_joins(source) for name in _list_compared(join)} - links)
    if not columns or maker.unit.per_row or maker.fixed:
        return
    for text, step in (("all", 0), ("one by one", 1)):
        other, somebody = (_make_meeting(maker, name, columns, step) for name in ("a: the other", "somebody"))
        held = maker.add(maker.add({}, crowd), other)
        second = maker.as_tables(maker.add(maker.add({}, held), somebody))
        yield DatasetPair(f"a person whose joined rows meet ({text})", maker.make_first(held), second)


def _make_meeting(maker: PairMaker, name: str, columns: Sequence[str], step: int) -> Held:
    person = maker.make_person(name, LARGEST, rows=lambda table: min(2 * table.max_rows_per_unit, MOST_MET))
    for table in maker.private:
        own = [column for column in columns if column in table.columns and column != table.unit]
        for place, record in enumerate(person[table.name]):
            record.update((column, _choose(maker, table.name, column, step * place)) for column in own)
    return person


def list_private_joins(source: Source) -> Iterator[Join]:
    """The joins of two private sources."""
    match source:
        case Join(left, right, multiplicity=multiplicity):
            if multiplicity is None:
                yield source
            yield from list_private_joins(left)
            yield from list_private_joins(right)
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            yield from list_private_joins(inner)
        case Union(parts):
            for part in parts:
                yield from list_private_joins(part)
        case Scan() | PublicScan():
            pass
        case _:
            assert_never(source)


def _list_compared(join: Join) -> Sequence[str]:
    sides = [side for two in join.on for side in two]
    return [side.name.rpartition(".")[2] for side in sides if isinstance(side, Column)]
