"""How many units are counted in each undeclared text key, where each unit is counted in at most so many of its keys.

The result is that of the query of `lower_people`, in less time and memory: DuckDB puts the keys of each unit in order,
and they are counted as they come, in pieces. Part of the trusted perimeter: claim K-26.
"""

from collections.abc import Callable, Iterable, Iterator

import duckdb
import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sfumato.engines.plan_queries import TextRows
from sfumato.engines.sql.selection_order import number_key, number_unit, place
from sfumato.ingest.hidden_names import KEY, NAMED

NAME = f"{KEY}0"
ROWS_AT_ONCE = 1 << 19
BITS = 32  # of the number of a key: with its place below 2**31, it fits a BIGINT
Ints = npt.NDArray[np.int64]
Piece = tuple[Ints, Ints]  # units, and the numbers of their keys


def count_texts(cursor: duckdb.DuckDBPyConnection, texts: TextRows) -> tuple[list[str], Ints]:
    """The keys in which some unit is counted, and the sum of the weights of these units.

    Claim: K-26. The keys and weights are those of `lower_people`.
    Requires: weights below 2**30.
    Checked by: tests/engines/test_text_counts.py::test_the_counts_are_those_of_one_query
    """
    first, second = (number.sql("duckdb") for number in number_key([exp.column(NAME)]))
    numbers = f"ROW_NUMBER() OVER (ORDER BY {NAME}) - 1 AS number, {first} AS first, {second} AS second"
    query = f"SELECT {NAME}, {numbers} FROM (SELECT DISTINCT {NAME} FROM ({texts.query}))"
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE {NAMED} AS {query}")
    names = cursor.execute(f"SELECT {NAME} FROM {NAMED} ORDER BY number").fetchnumpy()[NAME]
    counted = np.zeros(len(names), np.int64)
    for units, keys in _end_at_units(_read_in_order(cursor, texts.query)):
        counted += _count_piece(units, keys, len(names), texts.most, texts.weigh)
    cursor.execute(f"DROP TABLE {NAMED}")
    return names[counted > 0].tolist(), counted[counted > 0]


def _read_in_order(cursor: duckdb.DuckDBPyConnection, rows: str) -> Iterator[Piece]:
    """Units and the numbers of their keys: those of one unit together, in its order, as often as they occur."""
    (kind,) = cursor.sql(f"SELECT unit FROM ({rows})").types
    is_number = str(kind) != "VARCHAR"
    number = number_unit(exp.column("unit"), is_number=is_number).sql("duckdb")
    order = place(exp.column("first"), exp.column("second"), exp.column("unit_number")).sql("duckdb")
    held = f"SELECT unit, {NAME}, {number} AS unit_number FROM ({rows})"
    if not is_number:  # a hash is computed once for each unit, and pieces have numbers
        units = f"SELECT DISTINCT unit FROM ({rows})"
        units = f"SELECT unit, ROW_NUMBER() OVER () AS place, {number} AS unit_number FROM ({units})"
        held = f"SELECT place AS unit, {NAME}, unit_number FROM ({rows}) JOIN ({units}) USING (unit)"
    query = f"SELECT unit, {order} * {1 << BITS} + number AS place FROM ({held}) JOIN {NAMED} USING ({NAME})"
    for piece in cursor.sql(f"{query} ORDER BY unit, place").to_arrow_reader(ROWS_AT_ONCE):
        units, places = (column.to_numpy() for column in piece.columns)
        yield units, places & ((1 << BITS) - 1)


def _end_at_units(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same rows in pieces that end where a unit ends."""
    rest: Piece | None = None
    for piece in pieces:
        units, keys = piece if rest is None else map(np.concatenate, zip(rest, piece, strict=True))
        end = int(np.argmax(units == units[-1])) if len(units) else 0
        rest = units[end:], keys[end:]
        yield units[:end], keys[:end]
    if rest is not None:
        yield rest


def _count_piece(units: Ints, keys: Ints, names: int, most: int, weigh: Callable[[int], int] | None) -> Ints:
    """The weights of the units in each key. Sums of doubles are exact below 2**53."""
    different = np.ones(len(units), bool)
    different[1:] = (units[1:] != units[:-1]) | (keys[1:] != keys[:-1])
    units, keys = units[different], keys[different]
    kept = np.ones(len(units), bool)
    kept[most:] = units[most:] != units[:-most]  # so many places before, there is another unit
    units, keys = units[kept], keys[kept]
    if weigh is None:
        return np.bincount(keys, minlength=names)
    begins = np.flatnonzero(np.append(True, units[1:] != units[:-1])[: len(units)])
    held = np.diff(np.append(begins, len(units)))
    sizes, places = np.unique(held, return_inverse=True)
    weights = np.array([weigh(int(size)) for size in sizes], np.float64)[places]
    return np.bincount(keys, np.repeat(weights, held), names).astype(np.int64)
