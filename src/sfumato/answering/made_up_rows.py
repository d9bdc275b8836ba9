"""Made-up rows for a rehearsal, drawn evenly from the declared types and bounds. No data is read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real
from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.samplers import uniform_below

if TYPE_CHECKING:
    import pyarrow

ROWS = 1_000
ROWS_PER_UNIT = 2


def find_needed_tables(names: Iterable[str], dataset: Dataset) -> list[Table]:
    """The tables of a question, and the tables that link their rows to a privacy unit."""
    found: dict[str, Table] = {}
    waiting = [dataset.table(name) for name in names]
    while waiting:
        table = waiting.pop()
        found[table.name] = table
        if table.unit_through is not None:
            waiting.append(dataset.table(table.unit_through[1]))
    return list(found.values())


def declare_made_up(table: Table) -> Table:
    """The declaration of the made-up rows. Their number is public where the table's is."""
    rows = None if table.rows is None else ROWS
    return replace(table, rows=rows, people=None if table.people is None else ROWS // ROWS_PER_UNIT)


def make_rows(table: Table, rows: int = ROWS) -> "pyarrow.Table":
    """Rows within the declared types and bounds, evenly spread. Every unit has up to two."""
    import pyarrow  # noqa: PLC0415 - 25 MiB that asking does not need

    made: dict[str, list[object]] = {
        name: [1] * rows if name == table.count_column else _draw_column(declared, rows)
        for name, declared in table.columns.items()
    }
    kept = _choose_rows(made, dict(table.multiplicities), rows)
    return pyarrow.table({name: [values[place] for place in kept] for name, values in made.items()})


def _choose_rows(made: Mapping[str, list[object]], most: Mapping[str, int], rows: int) -> list[int]:
    """Rows of a public table in which no value occurs more often than in the real one."""
    seen: Counter[tuple[str, object]] = Counter()
    kept = []
    for place in range(rows):
        values = [(name, made[name][place]) for name in most]
        if all(seen[name, value] < most[name] for name, value in values):
            seen.update(values)
            kept.append(place)
    return kept


def _draw_column(declared: ColumnDeclaration, rows: int) -> list[object]:  # noqa: PLR0911 - one return per type
    match declared:
        case Integer(lower=lower, upper=upper):
            return [lower + step for step in _draw_below(upper - lower + 1, rows)]
        case Real(lower=lower, upper=upper):
            return [lower + (upper - lower) * step / 2**30 for step in _draw_below(2**30 + 1, rows)]
        case Category(values=values):
            return [values[step] for step in _draw_below(len(values), rows)]
        case Boolean():
            return [step == 1 for step in _draw_below(2, rows)]
        case Date(lower=lower, upper=upper):
            first = lower.toordinal()
            return [date.fromordinal(first + step) for step in _draw_below(upper.toordinal() - first + 1, rows)]
        case DateTime(lower=begin, upper=end):
            seconds = (end - begin) // timedelta(seconds=1)
            return [begin + timedelta(seconds=step) for step in _draw_below(seconds + 1, rows)]
        case Id():
            return [str(index // ROWS_PER_UNIT) for index in range(rows)]
        case _:
            return [f"text {step}" for step in _draw_below(100, rows)]


def _draw_below(bound: int, rows: int) -> list[int]:
    drawn: list[int] = uniform_below(bound, rows, SYSTEM).astype(np.int64).tolist()
    return drawn
