"""Pairs for every format of a source: the same records are pinned alike, and one person's change no other's."""

from collections.abc import Iterator
from pathlib import Path

from sfumato.catalog.columns import Id
from sfumato.errors import MissingExtra
from sfumato.lab.auditing.pair_maker import KINDS, LOW, MANY, TWICE, DatasetPair, Held, PairMaker
from sfumato.lab.auditing.source_formats import FORMATS, HOLD_ANYTHING, Write, make_portable
from sfumato.lab.auditing.throwaway_desk import Data


def list_format_pairs(maker: PairMaker, crowd: Held, folder: Path) -> Iterator[DatasetPair]:
    """Records with values of every kind, as texts and in each format; then one person more, or another, in it.

    That person's values are beyond the bounds. Where the format holds any text, the last record has no readable value.
    """
    people = maker.add({}, crowd)
    for place, kind in enumerate(KINDS):
        if kind != MANY:
            maker.add(people, maker.make_person(f"f{place}", kind, rows=lambda _: 1))
    before = maker.make_person("somebody else", LOW) if maker.replaces else {}
    first = _make_portable(maker, maker.add(maker.add({}, people), before))
    second = _make_portable(maker, maker.add(maker.add({}, people), maker.make_person("somebody", TWICE)))
    texts = maker.as_tables(first, as_text=True)
    for number, (name, write) in enumerate(FORMATS.items()):
        try:
            made = _write(maker, first, write, folder / f"first-{number}")
        except MissingExtra:  # of a library that is not installed here, nobody passes frames
            continue
        yield DatasetPair(f"the same records in columns of texts and in {name}", texts, made, same=True)
        held = make_last_unreadable(maker, second) if name in HOLD_ANYTHING else second
        yield DatasetPair(f"a person in {name}", made, _write(maker, held, write, folder / f"second-{number}"))


def make_last_unreadable(maker: PairMaker, held: Held) -> Held:
    """The same records, but the last of each table has no readable value."""
    made = maker.add({}, held)
    for name, records in made.items():
        table = maker.tables[name]
        kept = {column for column, kind in table.columns.items() if isinstance(kind, Id)} | {table.count_column}
        records[-1].update({column: "no such value" for column in records[-1] if column not in kept})
    return made


def _make_portable(maker: PairMaker, held: Held) -> Held:
    return {name: [make_portable(maker.tables[name], record) for record in records] for name, records in held.items()}


def _write(maker: PairMaker, held: Held, write: Write, path: Path) -> Data:
    declared = maker.as_tables(held, as_text=True)
    private = {table.name: table for table in maker.private}
    return {
        name: (table, rows if name not in private else _write_one(maker, name, held, write, path))
        for name, (table, rows) in declared.items()
    }


def _write_one(maker: PairMaker, name: str, held: Held, write: Write, path: Path) -> object:
    return write(maker.tables[name], held.get(name, []), path.with_name(f"{path.name}-{name}"))
