"""Counting what a load does to each value.

What became of a row's values is a small number, of five columns in one. Where a source can be read once more, the
numbers are computed after the load, and only of columns that hold a value which a lost one would have become: most
columns hold none. Else the load writes the numbers beside the columns. They are counted and dropped before the table is
used, so a snapshot holds none of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import assert_never

import duckdb

from sfumato.catalog.catalog_keys import NAMES
from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.catalog.dataset import Table
from sfumato.errors import InvalidParameter
from sfumato.ingest.canonical import FLOATS, INTEGERS
from sfumato.ingest.connections import ROWS_AT_ONCE
from sfumato.ingest.hidden_names import ABSENT, OUTCOME, PARSED, VALUE
from sfumato.ingest.load_report import ColumnReport, CountedLater, GroupsOver, PeopleReport
from sfumato.ingest.parsing import choose_sql_type, match_category, round_half_up
from sfumato.ingest.source_refusals import build_rows_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote, quote_text

MOST_SAMPLED = 1_000
AT_ONCE = 5  # columns in one number: so few outcomes are counted in an array, not in a hash table
RANGE_BITS = 21  # ids within so many bits are counted in an array instead of a hash table
PIECE_BITS, PIECE_BITS_OF_FILE = 18, 16  # of these ids at once: a snapshot file is written with little memory
SETS = {30: "INTEGER", 60: "BIGINT", 120: "HUGEINT"}  # so many categories are the bits of a number


class Outcome(IntEnum):
    """What became of one value."""

    KEPT = 0
    NULL = 1
    UNREADABLE = 2
    UNDECLARED = 3
    CLAMPED_BELOW = 4
    CLAMPED_ABOVE = 5
    ROUNDED = 6


def note_absent(name: str, kind: str) -> str:
    """What the parsing step notes of a source's column: is it NULL?"""
    column = quote(name)
    absent = f"({column} IS NULL OR isnan({column}))" if kind in FLOATS else f"{column} IS NULL"
    return f"{absent} AS {quote(ABSENT + name)}"


def pass_on_parsed(name: str) -> list[str]:
    """What the next step passes on: the parsed value, and whether there was one."""
    return [f"{quote(name)} AS {quote(PARSED + name)}", quote(ABSENT + name)]


def pack_outcomes(columns: Mapping[str, ColumnDeclaration]) -> dict[str, str]:
    """The outcomes of columns as numbers in base 7, a few columns in each, by the names under which they are kept."""
    found, names = {}, list(columns)
    for begin in range(0, len(names), AT_ONCE):
        some = names[begin : begin + AT_ONCE]
        digits = [
            f"{len(Outcome) ** place} * ({write_outcome(name, columns[name])})" for place, name in enumerate(some)
        ]
        found[f"{OUTCOME}{begin // AT_ONCE}"] = f"CAST({' + '.join(digits)} AS USMALLINT)"
    return found


def write_outcome(name: str, declared: ColumnDeclaration) -> str:
    """The outcome of a value, by comparing what was parsed with what is kept."""
    parsed, kept, absent = quote(PARSED + name), quote(name), quote(ABSENT + name)
    same = f"WHEN {parsed} = {kept} THEN {Outcome.KEPT:d}"
    lost = f"WHEN {absent} THEN {Outcome.NULL:d} WHEN {parsed} IS NULL THEN {Outcome.UNREADABLE:d}"
    clamped = (
        f"WHEN {parsed} < {kept} THEN {Outcome.CLAMPED_BELOW:d} WHEN {parsed} > {kept} THEN {Outcome.CLAMPED_ABOVE:d}"
    )
    nan = f"WHEN isnan(CAST({parsed} AS DOUBLE)) THEN {Outcome.UNREADABLE:d}"
    match declared:
        case Integer():
            to_whole = f"WHEN {round_half_up(parsed)} = {kept} THEN {Outcome.ROUNDED:d}"
            cases = f"{same} {lost} {nan} {to_whole} {clamped}"
        case Real():
            cases = f"{same} {lost} {nan} {clamped}"
        case Date() | DateTime():
            cases = f"{same} {lost} {clamped}"
        case Category(nullable=True):
            kept_first = f"WHEN {kept} IS NOT NULL THEN {Outcome.KEPT:d}"
            cases = f"{kept_first} {lost} WHEN {kept} IS NULL THEN {Outcome.UNDECLARED:d}"
        case Category():  # what is undeclared became the first value, as NULL did
            cases = f"{lost} WHEN {match_category(parsed, declared)} IS NULL THEN {Outcome.UNDECLARED:d}"
        case Boolean() | Text() | Id():
            cases = lost
        case _:
            assert_never(declared)
    return f"CASE {cases} ELSE {Outcome.KEPT:d} END"


def is_counted_later(table: Table, source: SourceRelation) -> bool:
    """Are outcomes counted after the load, by reading the columns that may have lost a value once more?

    Else they are written with the rows: CSV files take long to read, and rows that repeat a unique key are dropped.
    """
    return source.records is None and not table.unique


def find_suspects(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Mapping[str, ColumnDeclaration],
    source: SourceRelation,
) -> dict[str, ColumnDeclaration]:
    """The columns in which the load may have changed or lost a value, by the values that it would have put there."""
    if not columns:
        return {}
    tests = ", ".join(_hold_substitute(name, columns[name], source.columns[name]) for name in columns)
    with use_statistics(connection):
        found = connection.execute(f"SELECT {tests} FROM {quote(table)}").fetchall()[0]
    return {name: declared for (name, declared), suspect in zip(columns.items(), found, strict=True) if suspect}


def _hold_substitute(name: str, declared: ColumnDeclaration, kind: str) -> str:
    """Whether a pinned column holds what `clamp_column` makes of a value that it cannot keep."""
    substitutes: list[object] = []
    match declared:
        case Integer() if kind not in INTEGERS:
            return "COUNT(*) > 0"  # a rounded value looks as any other
        case Integer(lower=lower, upper=upper):
            substitutes = [lower, upper, (lower + upper) // 2]
        case Real(lower=lower, upper=upper):
            substitutes = [float(lower), float(upper), (lower + upper) / 2]
        case Date(lower=lower, upper=upper) | DateTime(lower=lower, upper=upper):
            substitutes = [lower, upper, lower + (upper - lower) // 2]
        case Category(values=values):
            substitutes = [values[0]]
        case Boolean():
            substitutes = [False]
        case Text():
            substitutes = [""]
        case Id():
            pass
        case _:
            assert_never(declared)
    column, tests = quote(name), []
    if getattr(declared, "nullable", True):
        tests, substitutes = [f"COUNT(*) > COUNT({column})"], substitutes[:-1]
    if substitutes:
        stored = choose_sql_type(declared)
        equal = " OR ".join(f"{column} = CAST({quote_text(str(value))} AS {stored})" for value in substitutes)
        tests.append(f"COALESCE(bool_or({equal}), false)")
    return " OR ".join(tests)


def count_outcomes(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Mapping[str, ColumnDeclaration],
    source: SourceRelation,
    select_outcomes: Callable[[Mapping[str, ColumnDeclaration]], str],
) -> tuple[int, dict[str, ColumnReport]]:
    """The rows of a table that was just written, and the report of each column; written outcomes are dropped.

    `select_outcomes` makes the query of the outcomes of a few columns over the source.
    """
    counted: list[tuple[int, int, int]] = []
    rows = int(connection.execute(f"SELECT COUNT(*) FROM {quote(table)}").fetchall()[0][0])
    noted = source.list_doubtful(columns)
    for number, column in enumerate(pack_outcomes(noted)):
        counted += _count_packed(connection, quote(table), number, column)
        connection.execute(f"ALTER TABLE {quote(table)} DROP COLUMN {quote(column)}")
    if source.doubtful is not None:
        noted = find_suspects(connection, table, columns, source)
        names = list(noted)
        for number, begin in enumerate(range(0, len(names), AT_ONCE)):
            some = {name: noted[name] for name in names[begin : begin + AT_ONCE]}
            found = _count_packed(connection, f"({select_outcomes(some)})", number, f"{OUTCOME}0")
            if sum(count for *_, count in found) != rows:
                raise build_rows_error(table)
            counted += found
    found_columns = report_columns(noted, rows, counted)
    kept = {name: ColumnReport(name, NAMES[type(declared)], rows) for name, declared in columns.items()}
    return rows, kept | found_columns


def _count_packed(
    connection: duckdb.DuckDBPyConnection, relation: str, number: int, column: str
) -> list[tuple[int, int, int]]:
    query = f"SELECT {quote(column)}, COUNT(*) FROM {relation} GROUP BY ALL"
    return [(number, digits, count) for digits, count in connection.execute(query).fetchall()]


def report_columns(
    columns: Mapping[str, ColumnDeclaration], rows: int, counted: Iterable[tuple[int, int, int]]
) -> dict[str, ColumnReport]:
    """The report of each column, from how often each number of `pack_outcomes` is there: place, number, how often."""
    names = list(columns)
    found = {name: dict.fromkeys(Outcome, 0) for name in names}
    for number, digits, count in counted:
        rest = digits
        for name in names[number * AT_ONCE : (number + 1) * AT_ONCE]:
            rest, digit = divmod(rest, len(Outcome))
            found[name][Outcome(digit)] += count
    reports = {}
    for name, declared in columns.items():
        counts = found[name]
        null, unreadable, undeclared = (counts[lost] for lost in (Outcome.NULL, Outcome.UNREADABLE, Outcome.UNDECLARED))
        reports[name] = ColumnReport(
            name, NAMES[type(declared)], rows - null - unreadable - undeclared, null, unreadable, undeclared,
            counts[Outcome.CLAMPED_BELOW], counts[Outcome.CLAMPED_ABOVE], counts[Outcome.ROUNDED],
        )  # fmt: skip
    return reports


@contextmanager
def use_statistics(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Count pinned rows with what DuckDB knows of them: no NaN is among them (see `pinned_rows.read_row_by_row`)."""
    ((disabled,),) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    connection.execute(f"SET disabled_optimizers = '{disabled.replace('statistics_propagation', '').strip(',')}'")
    try:
        yield
    finally:
        connection.execute(f"SET disabled_optimizers = '{disabled}'")


def count_people(
    connection: duckdb.DuckDBPyConnection, table: Table, people: str, rows_of_unit: str, unit: str, *, stays_open: bool
) -> PeopleReport:
    """How many rows and groups people have, of a table with one row for each person and of the pinned one.

    `stays_open`: the connection does, so the groups of a large table are counted when they are read.
    """
    most, groups = table.max_rows_per_unit, table.max_groups_per_unit
    rows = quote(rows_of_unit)
    spread = f"SELECT {rows}, COUNT(*) FROM {people} WHERE {quote(unit)} IS NOT NULL GROUP BY {rows} ORDER BY {rows}"
    held = [(int(number), int(count)) for number, count in connection.execute(spread).fetchall()]
    count, above = sum(units for _, units in held), sum(units for number, units in held if number > most)
    median, most_have, largest = (_find_quantile(held, count, percent) for percent in (50, 95, 100))
    later = CountedLater(lambda: _count_groups_later(connection, table, quote(unit)))
    if largest <= groups:
        later = CountedLater.of((name, 0) for name in _list_keys(table))
    elif not stays_open or sum(number * units for number, units in held) <= ROWS_AT_ONCE:
        pieces = _cut_into_pieces(connection, people, quote(unit))
        later = CountedLater.of(_count_over_groups(connection, table, quote(unit), pieces))
    return PeopleReport(count, median, most_have, largest, most, groups, above, later)


def _find_quantile(held: Sequence[tuple[int, int]], people: int, percent: int) -> int:
    """The least number of rows that so many of the people have at most."""
    seen = 0
    for number, units in held:
        seen += units
        if 100 * seen >= percent * people:
            return number
    return 0


def _list_keys(table: Table) -> list[str]:
    """The columns whose values are known, so that a question may group by them without a threshold."""
    return [name for name, declared in table.columns.items() if isinstance(declared, (Category, Boolean))]


def _count_groups_later(connection: duckdb.DuckDBPyConnection, table: Table, unit: str) -> GroupsOver:
    try:
        cursor = connection.cursor()  # of its own: another thread may be answering
    except duckdb.ConnectionException:
        hint = "Read the groups of people in load_report before the curator is closed."
        raise InvalidParameter("curator", "must be open", "one that was closed", hint) from None
    with cursor:
        return _count_over_groups(cursor, table, unit, ["true"])


def _count_over_groups(
    connection: duckdb.DuckDBPyConnection, table: Table, unit: str, pieces: Sequence[str]
) -> GroupsOver:
    """The people in more groups than declared, by each column of known values."""
    groups, keys = table.max_groups_per_unit, _list_keys(table)
    names = [name for name in keys if _count_most_groups(table.columns[name]) > groups]
    found = dict.fromkeys(keys, 0)
    if not names:
        return tuple(found.items())
    null = ", ".join(f"COUNT(*) > COUNT({quote(name)})" for name in names)
    nulls = connection.execute(f"SELECT {null} FROM {quote(table.name)}").fetchall()[0]
    over = [
        f"{_is_over(name, table.columns[name], groups, nulls=has_null)} AS o{index}"
        for index, (name, has_null) in enumerate(zip(names, nulls, strict=True))
    ]
    inner = f"SELECT {', '.join(over)} FROM {quote(table.name)}"
    counts = ", ".join(f"COUNT(*) FILTER (WHERE o{index})" for index in range(len(names)))
    for some in pieces:
        query = f"SELECT {counts} FROM ({inner} WHERE {some} GROUP BY {unit})"
        for name, count in zip(names, connection.execute(query).fetchall()[0], strict=True):
            found[name] += int(count)
    return tuple(found.items())


def _cut_into_pieces(connection: duckdb.DuckDBPyConnection, people: str, unit: str) -> list[str]:
    """Conditions that divide the people: DuckDB holds all people of a small range of numbers in an array at once."""
    low, high = connection.execute(f"SELECT MIN({unit}), MAX({unit}) FROM {people}").fetchall()[0]
    if not isinstance(low, int) or not isinstance(high, int) or high - low >= 1 << RANGE_BITS:
        return ["true"]
    piece = (1 << PIECE_BITS) - 2  # the array has a place for NULL too
    if high - low >= piece and _is_in_file(connection):
        piece = (1 << PIECE_BITS_OF_FILE) - 2
    return [f"{unit} BETWEEN {begin} AND {begin + piece - 1}" for begin in range(low, high + 1, piece)]


def _is_in_file(connection: duckdb.DuckDBPyConnection) -> bool:
    here = "SELECT path IS NOT NULL FROM duckdb_databases() WHERE database_name = current_database()"
    return bool(connection.execute(here).fetchall()[0][0])


def _count_most_groups(declared: ColumnDeclaration) -> int:
    """How many groups a column with known values can have."""
    values = len(declared.values) if isinstance(declared, Category) else 2
    return values + getattr(declared, "nullable", True)


def _is_over(name: str, declared: ColumnDeclaration, groups: int, *, nulls: bool) -> str:
    """Whether a person has more values than that in a column; NULL is a value too. Few values are a set of bits."""
    column = quote(name)
    texts = isinstance(declared, Category) and isinstance(declared.values[0], str)
    if groups == 1:
        number = f"enum_code({column})" if texts else column
        if not nulls:
            return f"(MIN({number}) <> MAX({number}))"
        least = 0 if texts or not isinstance(declared, Category) else min(map(int, declared.values))
        value = (
            f"COALESCE(CAST({number} AS {'INTEGER' if texts else 'BIGINT'}), {least - 1})"  # NULL is below all others
        )
        return f"(MIN({value}) <> MAX({value}))"
    null = f"CAST(bool_or({column} IS NULL) AS INTEGER)"
    distinct = f"COUNT(DISTINCT {column})"
    if isinstance(declared, Category) and texts:
        for most, kind in SETS.items():
            if len(declared.values) <= most:
                bit = f"1::{kind} << CAST(enum_code({column}) AS {kind})"
                distinct = f"COALESCE(bit_count(bit_or({bit})), 0)"
                break
    return f"({distinct} + {null} > {groups})"


def sample_lost_values(connection: duckdb.DuckDBPyConnection, selected: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Some values with one of these outcomes, as text. `selected` gives a column's outcomes and its source's VALUE."""
    wanted = ", ".join(f"{code:d}" for code in outcomes)
    lost = f"SELECT CAST({VALUE} AS VARCHAR) FROM ({selected}) WHERE {quote(f'{OUTCOME}0')} IN ({wanted})"
    return [str(row[0]) for row in connection.execute(f"{lost} LIMIT {MOST_SAMPLED}").fetchall()]
