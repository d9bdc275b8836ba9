"""Hard pairs of people with more rows than count: just above the contribution bound, and far above it."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from random import Random

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real
from sfumato.kernel.expressions import collect_columns
from sfumato.kernel.row_sources import TIMES_MET, Capped, Derived, Join, PerKey, PerUnit, Source, Union
from sfumato.lab.auditing.audit_stage import Stage
from sfumato.lab.auditing.pair_maker import CROWD, LARGEST, MANY, CountRows, DatasetPair, Held, PairMaker
from sfumato.lab.auditing.throwaway_desk import Data

MOST_ROWS_OF_ONE = 2_000  # rows of one person in a table; larger numbers are left out


def add_rows(more: int, of: str | None = None) -> CountRows:
    """So many rows more than the contribution bound: in all tables, or in the table `of`."""
    return lambda table: table.max_rows_per_unit + (more if of in (None, table.name) else 0)


def multiply_rows(times: int, more: int = 0) -> CountRows:
    """So many times the contribution bound, and some more."""
    return lambda table: times * table.max_rows_per_unit + more


# a fault begins at some number of rows: the steps are close above the bound, and around what joins read of a person
LADDER: tuple[tuple[str, CountRows], ...] = (
    *((f"max_rows_per_unit + {more}", add_rows(more)) for more in (1, 2, 3)),
    *((f"{times} times max_rows_per_unit", multiply_rows(times)) for times in (3, 5, TIMES_MET, 2 * TIMES_MET)),
    *((f"{times} times max_rows_per_unit + 1", multiply_rows(times, 1)) for times in (TIMES_MET, 2 * TIMES_MET)),
)


def make_pair_with_many_rows(stage: Stage) -> DatasetPair:
    """A crowd, and a person with many more rows than count. Rows that are people have one."""
    maker = PairMaker(stage.tables, stage.public, stage.unit, Random(1))  # noqa: S311 - made-up rows
    return maker.make_pair("a person with many rows", maker.make_crowd(CROWD), MANY)


def list_pairs_above_bounds(
    maker: PairMaker, crowd: Held, first: Data, values: Mapping[str, object] | None = None
) -> Iterator[DatasetPair]:
    """A person with more rows than count, in all tables or in one of several.

    `values` are those of a row that the question counts.
    """
    if maker.unit.per_row:
        return
    alone = [(f"max_rows_per_unit + 1 (in {table.name})", add_rows(1, table.name)) for table in maker.private]
    for text, rows in (*LADDER, *(alone if len(alone) > 1 else ())):
        if max(map(rows, maker.private)) <= MOST_ROWS_OF_ONE:
            person = maker.make_person("somebody", LARGEST, values, rows)
            after = maker.as_tables(maker.add(maker.add({}, crowd), person))
            yield DatasetPair(f"a person with {text} rows", first, after)


def list_pairs_above_groups(
    stage: Stage, maker: PairMaker, crowd: Held, first: Data, values: Mapping[str, object]
) -> Iterator[DatasetPair]:
    """A person with rows in more groups than count: one more, two more, and twice as many and one more."""
    keys = find_key_columns(stage)
    if maker.unit.per_row or not keys:
        return
    for more in (1, 2, None):
        person = maker.make_person("somebody", LARGEST, values, add_rows(0))
        for table in maker.private:
            most = table.max_groups_per_unit
            groups = most + more if more is not None else 2 * most + 1
            records = person[table.name]
            rows = [dict(records[place % len(records)]) for place in range(max(groups, len(records)))]
            for place, record in enumerate(rows if groups <= MOST_ROWS_OF_ONE else ()):
                record.update(
                    (name, choose_group(declared, place % groups))
                    for name, declared in table.columns.items()
                    if name in keys and not isinstance(declared, Id)
                )
            person[table.name] = rows
        text = f"max_groups_per_unit + {more}" if more is not None else "2 times max_groups_per_unit + 1"
        after = maker.as_tables(maker.add(maker.add({}, crowd), person))
        yield DatasetPair(f"a person in {text} groups", first, after)


def find_key_columns(stage: Stage) -> set[str]:
    """The columns that the question groups by: outside, for each person, and those whose different values it counts."""
    query = stage.query
    read = [key.expression for key in query.keys]
    read += [expression for source in _list_grouped(query.source) for _, expression in source.keys]
    for aggregate in query.aggregates:
        if aggregate.value is not None and aggregate.function.endswith("DISTINCT"):
            read += [measured_value.expression for measured_value in (aggregate.value, *aggregate.also)]
    return {name.rpartition(".")[2] for expression in read for name in collect_columns(expression)}


def _list_grouped(source: Source) -> Iterator[PerKey]:
    """The sources with a row for each person and key."""
    match source:
        case PerKey(inner):
            yield source
            yield from _list_grouped(inner)
        case Derived(inner) | PerUnit(inner) | Capped(inner):
            yield from _list_grouped(inner)
        case Join(left, right):
            yield from _list_grouped(left)
            yield from _list_grouped(right)
        case Union(parts):
            for part in parts:
                yield from _list_grouped(part)
        case _:
            return


def choose_group(declared: ColumnDeclaration, place: int) -> object:
    """A value of a column; another place gives another group where the column has enough values."""
    match declared:
        case Category(values=values):
            return values[place % len(values)]
        case Boolean():
            return place % 2 == 1
        case Integer(lower=low, upper=high):
            return low + place % (high - low + 1)
        case Real(lower=low, upper=high):
            return min(low + place, high)
        case Date(lower=low, upper=high) | DateTime(lower=low, upper=high):
            return str(min(low + timedelta(days=31 * place), high))
        case _:
            return f"group {place}"
