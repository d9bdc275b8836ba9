"""The rows that an engine pinned: are they those of the source, and does one person change only their own?"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import CatalogError
from sfumato.ingest.hidden_names import HIDDEN, ROWS_OF_UNIT, STEPS, UNIT
from sfumato.ingest.pinned_rows import find_grids
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.neighbours import Neighbours, PrivacyUnit
from sfumato.lab.auditing.plain_reading import PinnedTables, count_met, read_plainly
from sfumato.lab.auditing.plain_unique_keys import Row
from sfumato.lab.auditing.throwaway_desk import Data

Frozen = tuple[tuple[str, str], ...]


def read_pinned(engine: DuckDBEngine) -> PinnedTables:
    """All rows of the pinned tables, with the columns that pinning adds."""
    held = {}
    for name in engine.tables:
        quoted = name.replace('"', '""')
        found = engine._connection.execute(f'SELECT * FROM "{quoted}"')
        columns = [column[0] for column in found.description]
        held[name] = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    return held


def check_pinned(data: Data, pinned: PinnedTables) -> Iterator[str]:
    """Pinned rows are those of a plain reading; their steps, units and numbers of rows follow from them."""
    expected = read_plainly(data)
    for name, (table, _) in data.items():
        if table.public:
            continue
        if not count_met(table, pinned[name]):
            yield f"{name}: joins read another number of a person's rows than declared."
        yield from (f"{name}: {fault}" for fault in _check_steps(table, pinned[name]))
        if expected is not None:
            yield from (f"{name}: {fault}" for fault in _compare_rows(expected[name], pinned[name]))


def _check_steps(table: Table, rows: list[Row]) -> Iterator[str]:
    for column, grid in find_grids(table).items():
        for row in rows if rows and STEPS + column in rows[0] else ():
            value: Scalar = row[column]
            exact = None
            if isinstance(value, int | float):
                exact = math.floor(Fraction(value) / Fraction(2) ** grid.exponent + Fraction(1, 2))
            if row[STEPS + column] != exact or (exact is not None and not grid.lower <= exact <= grid.upper):
                yield f"{column}: the steps of a value are not those of its grid, or beyond its bounds."
                break


def _compare_rows(expected: list[Row], pinned: list[Row]) -> Iterator[str]:
    names = sorted(expected[0]) if expected else []
    kept = [name for name in names if not name.startswith(HIDDEN) or name in (UNIT, ROWS_OF_UNIT)]
    if len(expected) != len(pinned):
        yield f"{len(pinned)} rows are pinned where a plain reading of the source gives {len(expected)}."
        return
    for name in kept:
        if _count([name], expected) != _count([name], pinned):
            shown = {UNIT: "ids", ROWS_OF_UNIT: "numbers of rows of a person"}.get(name, f"the column {name}")
            yield f"{shown}: pinned otherwise than a plain reading of the source gives."
            return
    if _count(kept, expected) != _count(kept, pinned):
        yield "values of one record are pinned in another."


def _count(names: list[str], rows: list[Row]) -> Counter[Frozen]:
    return Counter(tuple((name, _write(name, row.get(name))) for name in names) for row in rows)


def _write(name: str, value: Scalar) -> str:
    if name == UNIT:
        return str(value)  # numbers of the source may be kept as numbers
    return repr(float(value) + 0.0) if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)


def compare_pinned(
    first: PinnedTables, second: PinnedTables, tables: Mapping[str, Table], unit: PrivacyUnit, *, same: bool
) -> Iterator[str]:
    """One person changes no row of another person: neither its values nor what pinning adds to it.

    `same`: the datasets differ in what belongs to nobody.
    """
    gone, come = set[str](), set[str]()
    for name, table in tables.items():
        if table.public:
            if _count_all(first[name]) != _count_all(second[name]):
                yield f"{name}: the rows of a public table depend on private ones."
            continue
        before, after = _count_all(first[name]), _count_all(second[name])
        for changed, units in ((before - after, gone), (after - before, come)):
            if unit.per_row:
                units |= {f"{name} {place}" for place in range(changed.total())}
            else:
                units |= {dict(row)[UNIT] for row in changed}
    replaced = unit.neighbours is Neighbours.REPLACE_ONE
    if same and gone | come:
        yield "Pinned rows changed though no record of a person changed."
    elif max(len(gone), len(come)) > 1 or (not replaced and len(gone | come) > 1):
        yield "One person's records changed how the records of others are pinned."


def check_public_numbers(data: Data) -> Iterator[str]:
    """A table with another number of rows or people than it makes public must not be loaded."""
    for name, (table, rows) in data.items():
        for key in ("rows", "people"):
            number = getattr(table, key)
            if number is None or table.public:
                continue
            declared = replace(table, rows=number + 1) if key == "rows" else replace(table, people=number + 1)
            with suppress(CatalogError):
                DuckDBEngine.of_tables({**data, name: (declared, rows)}).close()
                yield f"{name}: it was loaded although its public number of {key} is false."


def _count_all(rows: list[Row]) -> Counter[Frozen]:
    return Counter(tuple((name, _write(name, value)) for name, value in sorted(row.items())) for row in rows)
