"""Hard pairs for reading: spellings of ids, rows of nobody, columns of other types, and malformed lines.

One person's records must not change how the records of others are read.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sfumato.catalog.text_format import TextFormat
from sfumato.lab.auditing.format_pairs import make_last_unreadable
from sfumato.lab.auditing.pair_maker import (
    HIGH,
    LARGEST,
    TYPICAL,
    DatasetPair,
    Held,
    PairMaker,
    to_typed_arrow,
)
from sfumato.lab.auditing.source_formats import write_csv
from sfumato.lab.auditing.throwaway_desk import Data

SKIPPING = TextFormat(on_error="skip", quoted_newlines=False)
SPELLINGS = {
    "a number": ("7", "007", " 7", "+7", "7.0", "7.00\t", "7\u00a0"),
    "a UUID": (
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567-E89B-12D3-A456-426614174000",
        "123e4567e89b12d3a456426614174000",
        "{123e4567-e89b-12d3-a456-426614174000}",
        "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
    ),
    "a name": ("caf\u00e9", "cafe\u0301", " caf\u00e9", "caf\u00e9\x00"),
    "a truth value": ("true", "True", " TRUE"),
    "a decimal": ("0.5", "0.50", ".5", "5e-1"),
}
NO_IDS = (None, "", "  ", "\u00a0")
MALFORMED = {
    "a quote that is not closed": b'"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u\n',
    "too many fields": b"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v\n",
    "bytes that are no text": b"\xff\xfe\xff,\xff\n",
}


def list_ingestion_pairs(maker: PairMaker, crowd: Held, first: Data, folder: Path) -> Iterator[DatasetPair]:
    """All pairs for reading. Text files are written in `folder`."""
    if not maker.unit.per_row and not maker.fixed:
        for text, ids in SPELLINGS.items():
            second = maker.add({}, crowd)
            for spelled in ids:
                maker.add(second, maker.make_person(spelled, LARGEST))
            yield DatasetPair(f"a person whose id is {text} in {len(ids)} spellings", first, maker.as_tables(second))
        yield _make_pair_of_nobody(maker, crowd)
    yield make_pair_in_other_types(maker, crowd, first)
    yield from list_pairs_with_malformed_line(maker, crowd, folder)


def _make_pair_of_nobody(maker: PairMaker, crowd: Held) -> DatasetPair:
    """The second dataset has rows without an id. They belong to nobody, and are not counted."""
    second = maker.add({}, crowd)
    for number, missing in enumerate(NO_IDS):
        made = maker.make_person(f"nobody {number}", HIGH)
        for table in maker.private:
            column = table.unit if table.unit_through is None else table.unit_through[0]
            maker.add(second, {table.name: [{**record, str(column): missing} for record in made[table.name]]})
    return DatasetPair("rows without an id", maker.as_tables(crowd), maker.as_tables(second), same=True)


def make_pair_in_other_types(maker: PairMaker, crowd: Held, first: Data) -> DatasetPair:
    """One person's text makes every column of the second dataset a column of texts."""
    second = maker.add(maker.add({}, crowd), maker.make_person("somebody", TYPICAL))
    unreadable = make_last_unreadable(maker, second)
    return DatasetPair("another dtype", first, maker.as_tables(unreadable, as_text=True))


def make_typed_pair(maker: PairMaker, written: Held, which: str) -> DatasetPair:
    """The same records in columns of texts and in typed columns."""
    first = maker.as_tables(written, as_text=True)
    typed = dict(first)
    for table in maker.private:
        typed[table.name] = first[table.name][0], to_typed_arrow(table, written.get(table.name, []))
    return DatasetPair(f"the same {which} in columns of texts and in typed columns", first, typed, same=True)


def list_pairs_with_malformed_line(maker: PairMaker, crowd: Held, folder: Path) -> Iterator[DatasetPair]:
    """The second dataset has a malformed line among the others; the owner chose to skip such lines."""
    if maker.replaces or not crowd:  # a line that is skipped is nobody's: the number of people stays
        return
    for name in [table.name for table in maker.private]:
        lines = write_csv(maker.tables[name], crowd.get(name, [])).encode().splitlines(keepends=True)
        middle = 1 + len(lines) // 2
        declared = replace(maker.tables[name], reading=SKIPPING)
        (folder / f"{name}.csv").write_bytes(b"".join(lines))
        first = {**maker.as_tables(crowd), name: (declared, folder / f"{name}.csv")}
        for number, (text, line) in enumerate(MALFORMED.items()):
            path = folder / f"{name}-{number}.csv"
            path.write_bytes(b"".join([*lines[:middle], line, *lines[middle:]]))
            second = {**maker.as_tables(crowd), name: (declared, path)}
            yield DatasetPair(f"a malformed line in {name} ({text})", first, second, same=True)
