"""Pinning the owner's data: an immutable, typed table that holds what the catalog declares and nothing else.

Part of the trusted perimeter: claims K-35 (weights and counts) and K-50 (values).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor
from pathlib import Path

import duckdb

from sfumato.catalog.columns import ColumnDeclaration, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.catalog.text_format import KEYS as READING_KEYS
from sfumato.ingest.canonical import WHOLE, canonical
from sfumato.ingest.counting import (
    RANGE_BITS,
    Outcome,
    beside_held,
    beside_parsed,
    count_outcomes,
    count_people,
    lost_values,
    packed,
)
from sfumato.ingest.grid_columns import steps_of, width
from sfumato.ingest.hidden_names import (
    CENTRED,
    MET,
    OWNER,
    PEOPLE,
    PINNED,
    ROWS_OF_UNIT,
    SPELLED,
    STEPS,
    UNIT,
    VALUE,
    WEIGHT,
)
from sfumato.ingest.ids import id_of
from sfumato.ingest.join_cap import mark_met
from sfumato.ingest.load_report import AS_USUAL, ColumnReport, Loading, PeopleReport, TableReport
from sfumato.ingest.parsing import held, read, sql_type
from sfumato.ingest.problems import with_problems
from sfumato.ingest.progress import progress_bar
from sfumato.ingest.public import described, keep_facts
from sfumato.ingest.readers import Source, opened, readable
from sfumato.ingest.source_refusals import not_enough_memory, refused, unreadable
from sfumato.ingest.sql_quoting import quoted
from sfumato.ingest.unit_rows import (
    People,
    count_rows_of_people,
    drop_people,
    owner_of,
)
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.plan import LOWERING_VERSION, ROW_WEIGHT_EXPONENT, Grid, grid_exponent

FIRST_ROWS = 100_000  # are searched for examples of what is rare
LAYOUT = 7  # of what a snapshot holds: one that was made by other rules is made anew
MOST_ROWS = (1 << 31) - 1  # of one unit; a larger bound bounds nothing
PUSHDOWNS = ("type_pushdown", "scalar_fn_pushdown")  # into a CSV reader, which drops rows where TRY_CAST gives NULL


def pin(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    data: object,
    folder: Path | None = None,
    loading: Loading = AS_USUAL,
) -> TableReport:
    """Read the source, on the owner's path, into a table of the declared names and types; report what that changed.

    Values are clamped to their bounds; NaN, failed casts and undeclared categories are NULL, or the public midpoint
    where a column is declared not nullable; rows without a unit are dropped; numbers are stored on their grid too.
    """
    found, short_of_memory, origin = None, False, made_from(table)
    try:
        found = _read(connection, table, data, folder, loading)
    except duckdb.OutOfMemoryException:
        short_of_memory = True
    except (duckdb.Error, RuntimeError, ValueError, OSError):  # their texts may quote a record, and are not kept
        found = None
    if short_of_memory:
        raise not_enough_memory(table.name)
    if found is None:
        raise unreadable(table.name)
    table, report, counts = found
    if counts.of_records and counts.of_people == counts.pinned != counts.in_source:
        hint = "Please report it: the reader of CSV files and the check of their records disagree."
        raise refused(table.name, "its records could not be told apart with certainty.", hint)
    if not counts.agree:
        hint = "The id must have the same value whenever it is read. If it is a generated column, store its values."
        raise refused(table.name, "its rows could not be matched with their people.", hint)
    if table.public:
        keep_facts(connection, table)
    if table.rows is not None and _count(connection, table) != table.rows:
        hint = "Declare the number of rows that it has, or none: rows = n makes n public."
        raise refused(table.name, "it has another number of rows than is declared.", hint)
    if table.people is not None and _count(connection, table, f"DISTINCT {quoted(UNIT)}") != table.people:
        hint = "Declare the number of people who have rows in it, or none: people = n makes n public."
        raise refused(table.name, "it has another number of people than is declared.", hint)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {PINNED} (name VARCHAR, declared VARCHAR, version VARCHAR)")
    connection.execute(f"DELETE FROM {PINNED} WHERE name = ?", [table.name])
    version = SYSTEM.take(8).tobytes().hex()
    connection.execute(f"INSERT INTO {PINNED} VALUES (?, ?, ?)", [table.name, origin, version])
    return report


def _read(
    connection: duckdb.DuckDBPyConnection, table: Table, data: object, folder: Path | None, loading: Loading
) -> "tuple[Table, TableReport, _Counts]":
    """Write the table. Returns it with the declarations of a public table's columns, the report, and counts of rows."""
    with (
        progress_bar(connection, _title(table), quiet=loading.quiet) as doing,
        opened(
            connection, table.name, data, folder, table.reading, declared=table.columns, everything=table.public
        ) as found,
    ):
        readable(connection, table.name, found, table.columns)
        if table.public:
            table = described(connection, table, found)
        source = found if table.unit_through is None else _through(connection, table, found)
        with _settings(connection):
            connection.execute(f"CREATE OR REPLACE TABLE {quoted(table.name)} ({_columns(table, source)})")
            people = None
            if table.unit is not ROW:
                doing("people")
                people = count_rows_of_people(connection, table, source)
            doing("rows")
            connection.execute(f"INSERT INTO {quoted(table.name)} BY NAME {_selected(table, source, people)}")
            doing("load report")
            report = with_problems(
                _counted(connection, table, found.dropped), table, partial(_sampled, connection, table, source)
            )
        counts = _count_rows(connection, table, found, report)
        if table.unit is not ROW:
            drop_people(connection)
            mark_met(connection, table)
    return table, report, counts


@dataclass(frozen=True, slots=True)
class _Counts:
    """The rows of a source, counted in three ways that must agree: in the source, by person, and when pinned.

    `of_records`: those in the source are the records that the check of CSV files found.
    """

    in_source: int
    of_people: int
    pinned: int
    of_records: bool

    @property
    def agree(self) -> bool:
        return self.in_source == self.of_people == self.pinned


def _count_rows(connection: duckdb.DuckDBPyConnection, table: Table, source: Source, report: TableReport) -> _Counts:
    """Count the rows of a source that was just pinned. Where the counts differ, a row was lost or repeated.

    The people and the rows are read one after the other: an id that changes in between would lose rows. A CSV file has
    as many rows as its check found records.
    """
    count = f"SELECT COUNT(*) FROM {source.relation}"
    there = source.records if source.records is not None else int(connection.execute(count).fetchall()[0][0])
    pinned = report.records_read - report.malformed
    counted = pinned
    if table.unit is not ROW:
        total = f"SELECT COALESCE(SUM({quoted(ROWS_OF_UNIT)}), 0) FROM {PEOPLE}"
        counted = int(connection.execute(total).fetchall()[0][0])
    return _Counts(there, counted, pinned, source.records is not None)


def _title(table: Table) -> str:
    return f"Loading {table.name}" if table.source is None else f"Loading {table.name} from {table.source}"


def _count(connection: duckdb.DuckDBPyConnection, table: Table, what: str = "*") -> int:
    return int(connection.execute(f"SELECT COUNT({what}) FROM {quoted(table.name)}").fetchall()[0][0])


def _through(connection: duckdb.DuckDBPyConnection, table: Table, source: Source) -> Source:
    """The source with the person of each row, who is named by another table; rows that lead to nobody are dropped.

    Names are found as the catalog finds them: in any case. Of the source, declared columns alone are taken.
    """
    column, named_table = table.unit_through or ("", "")
    through = find_name(named_table, [row[0] for row in connection.execute(f"SELECT name FROM {PINNED}").fetchall()])
    if through is None:
        raise refused(table.name, "the table that names its people is not pinned.", "Run `sfumato prepare`.")
    unit, other = quoted(UNIT), quoted(through)
    there = {str(row[0]): str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {other}").fetchall()}
    link = quoted(find_name(column, there) or UNIT)  # the other table's own unit is kept under another name
    named = f"FROM {other} WHERE {link} IS NOT NULL GROUP BY {link}"
    people = f"SELECT {link} AS link, MIN({unit}) AS owner, MAX({unit}) AS also {named}"
    if connection.execute(f"SELECT COUNT(*) FROM ({people}) WHERE owner <> also").fetchall()[0][0]:
        hint = f"In {through}, {column} must name rows of one person only."
        raise refused(table.name, "some of its rows would belong to two people.", hint)
    same = f"{id_of('rows.' + quoted(column), source.columns[column])} = CAST(people.link AS VARCHAR)"
    taken = ", ".join([*(f"rows.{quoted(name)}" for name in table.columns), f"people.owner AS {quoted(OWNER)}"])
    relation = f"(SELECT {taken} FROM {source.relation} rows LEFT JOIN ({people}) people ON {same})"  # or NULL: dropped
    columns = {name: source.columns[name] for name in table.columns}
    return replace(source, relation=relation, columns={**columns, OWNER: there[UNIT]})


def in_order(tables: Mapping[str, Table]) -> list[Table]:
    """Tables so that the ones that others reach their people through come first."""
    done: list[Table] = []
    waiting = list(tables.values())
    while waiting:
        there = {each.name for each in done}
        ready = [each for each in waiting if each.unit_through is None or _named(each.unit_through[1], there)]
        done += ready or waiting
        waiting = [each for each in waiting if each not in ready] if ready else []
    return done


def _named(name: str, tables: set[str]) -> bool:
    return find_name(name, tables) is not None


@contextmanager
def _settings(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """How DuckDB reads a source: TRY_CAST row by row, and people counted fast."""
    there = {row[0] for row in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    connection.execute(f"SET disabled_optimizers = '{','.join(each for each in PUSHDOWNS if each in there)}'")
    connection.execute(f"SET perfect_ht_threshold = {RANGE_BITS}")
    yield
    connection.execute("RESET perfect_ht_threshold")
    connection.execute("RESET disabled_optimizers")


def layout(table: Table) -> dict[str, str]:
    """The columns of a pinned table and their types, which follow from its declaration; but a unit may be a number."""
    columns = {name: sql_type(declared) for name, declared in _kept(table).items()}
    if table.unit is not ROW:
        columns |= {UNIT: "VARCHAR", ROWS_OF_UNIT: "INTEGER", WEIGHT: "INTEGER", MET: "BOOLEAN"}
    for name, each in stored_steps(table).items():
        columns[STEPS + name] = width(each)
        if table.unit is not ROW:
            columns[CENTRED + name] = width(each)
    return columns or {ROWS_OF_UNIT: "INTEGER"}  # rows of which nothing is declared can be counted


def _columns(table: Table, source: Source) -> str:
    """As they are declared, and no better packed in a file than can be read and added up at once; but texts are."""
    columns = layout(table)
    if table.unit is not ROW and source.columns[owner_of(table)] in WHOLE:
        columns[UNIT] = source.columns[owner_of(table)]
    described = []
    for name, kind in columns.items():
        packing = "bitpacking" if name.startswith((STEPS, CENTRED)) else "uncompressed"
        described.append(f"{quoted(name)} {kind}{'' if kind == 'VARCHAR' else f' USING COMPRESSION {packing}'}")
    # until they are counted: to look for a better packing would take longer than to write them
    outcomes = [f"{quoted(name)} USMALLINT USING COMPRESSION uncompressed" for name in packed(_kept(table))]
    return ", ".join([*described, *outcomes])


def _typed(
    kept: Mapping[str, ColumnDeclaration], source: Source, steps: Mapping[str, Grid], further: Mapping[str, str]
) -> str:
    """Rows as they are kept, with their outcomes: in steps, so that nothing is computed twice.

    `further`: other expressions over the source, by name.
    """
    read_as, held_to = [], []
    for name, declared in kept.items():
        kind = source.columns[name]
        read_as += [f"{read(name, declared, kind, source.reading)} AS {quoted(name)}", beside_parsed(name, kind)]
        held_to += [f"{held(name, declared, kind)} AS {quoted(name)}", *beside_held(name)]
    read_as += [f"{value} AS {quoted(name)}" for name, value in further.items()]
    on_grid = [f"{steps_of(name, kept[name], each)} AS {quoted(STEPS + name)}" for name, each in steps.items()]
    outcomes = [f"{value} AS {quoted(name)}" for name, value in packed(kept).items()]
    names = [quoted(name) for name in (*kept, *further)]
    return (
        f"SELECT {', '.join([*names, *on_grid, *outcomes])} FROM (SELECT "
        f"{', '.join([*held_to, *map(quoted, further)])} FROM (SELECT {', '.join(read_as)} FROM {source.relation}))"
    )


def _selected(table: Table, source: Source, people: People | None) -> str:
    """The query of a pinned table."""
    kept, stored = _kept(table), stored_steps(table)
    if people is None:
        return _typed(kept, source, stored, {} if kept else {ROWS_OF_UNIT: "1"})
    rows, most = quoted(ROWS_OF_UNIT), min(table.max_rows_per_unit, MOST_ROWS)
    final = [f"typed.{quoted(name)}" for name in (*kept, *packed(kept))]
    final += [f"{people.unit} AS {quoted(UNIT)}", f"counted.{rows}", f"true AS {quoted(MET)}"]
    final.append(f"{_weight(f'counted.{rows}', most)} AS {quoted(WEIGHT)}")
    for name, each in stored.items():
        steps = f"typed.{quoted(STEPS + name)}"
        for column, value in ((STEPS, steps), (CENTRED, f"({steps} - {each.middle})")):
            final.append(f"{_weighed(value, each, most)} AS {quoted(column + name)}")
    typed = _typed(kept, source, stored, {SPELLED: people.spelling})
    matched = f"FROM ({typed}) typed JOIN {people.counted} counted ON typed.{SPELLED} = counted.{SPELLED}"
    return f"SELECT {', '.join(final)} {matched}"


def _weight(rows: str, most: int) -> str:
    """The weight of each row of a person with so many rows."""
    weight = f"CASE WHEN {rows} <= {most} THEN {1 << -ROW_WEIGHT_EXPONENT} "
    weight += f"ELSE {most << -ROW_WEIGHT_EXPONENT} // {rows} END"
    return f"CAST({weight} AS INTEGER)"


def _counted(connection: duckdb.DuckDBPyConnection, table: Table, malformed: int) -> TableReport:
    """What the load of a table did, of its outcomes and its people."""
    rows, columns = count_outcomes(connection, table.name, _kept(table))
    if table.unit is ROW:
        people = None if table.public else PeopleReport(rows, 1, 1, 1, 1, 1, 0)
        return TableReport(table.name, rows + malformed, malformed, 0, rows, tuple(columns.values()), people)
    people = count_people(connection, table, PEOPLE, ROWS_OF_UNIT, UNIT)
    query = f"SELECT COALESCE(SUM({quoted(ROWS_OF_UNIT)}), 0) FROM {PEOPLE} WHERE {quoted(UNIT)} IS NULL"
    nobody = int(connection.execute(query).fetchall()[0][0])
    if isinstance(table.unit, str):
        columns = {table.unit: ColumnReport(table.unit, "id", rows), **columns}
    reported = tuple(columns[name] for name in table.columns)
    return TableReport(table.name, rows + nobody + malformed, malformed, nobody, rows, reported, people)


def _sampled(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: Source,
    column: str,
    outcomes: Sequence[Outcome],
    *,
    first_rows: bool,
) -> list[str]:
    """Some lost values of a column: from the source's first rows only, where they are few and merely examples."""
    relation = f"(SELECT * FROM {source.relation} LIMIT {FIRST_ROWS})" if first_rows else source.relation
    value = canonical(quoted(column), source.columns[column])  # a plain cast fails for moments beyond the calendar
    selected = _typed({column: table.columns[column]}, replace(source, relation=relation), {}, {VALUE: value})
    return lost_values(connection, selected, outcomes)


def _weighed(steps: str, each: Grid, most: int) -> str:
    """As lowering does it: rows of a unit with n > r rows weigh r/n each, rounded toward zero."""
    reach = max(abs(each.lower), abs(each.upper), each.upper - each.middle, each.middle - each.lower) * most
    wide = "INTEGER" if reach < 1 << 31 else "BIGINT" if reach < 1 << 63 else "HUGEINT"
    rows = f"counted.{quoted(ROWS_OF_UNIT)}"
    less = f"({steps}::{wide} * {most}) // {rows}"
    return f"CAST(CASE WHEN {rows} <= {most} THEN {steps} ELSE {less} END AS {width(each)})"


def _kept(table: Table) -> dict[str, ColumnDeclaration]:
    """The columns that a snapshot holds by name: not the person's id, which is kept as the unit."""
    return {name: declared for name, declared in table.columns.items() if name != table.unit}


def declared_digest(table: Table) -> str:
    """Of every declaration that a snapshot was made from, or that an answer takes as true of it."""
    columns = sorted((name, repr(declared)) for name, declared in table.columns.items())
    reading = [(key, getattr(table.reading, key)) for key in READING_KEYS]
    parts = (
        LOWERING_VERSION, table.name, table.source, str(table.unit), table.unit_through, table.max_rows_per_unit,
        table.rows, table.people, table.public, reading, columns,
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def made_from(table: Table) -> str:
    """The rules and the declaration that a table's pinned data follows from."""
    return f"{LAYOUT}:{declared_digest(table)}"


def versions_of(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, str]:
    """The version of each pinned table; a declaration that has changed since it was pinned is refused."""
    there = {row[0]: row[1:] for row in connection.execute(f"SELECT * FROM {PINNED}").fetchall()}
    for name, table in tables.items():
        if name not in there or there[name][0] != made_from(table):
            raise refused(
                name,
                "it is not pinned as it is declared now; a declaration has changed.",
                "Run `sfumato prepare`: the data becomes a new version.",
            )
    return {name: str(there[name][1]) for name in tables}


def stored_steps(table: Table) -> dict[str, Grid]:
    """What a plan may rely on of each numeric column: its grid, and its declared bounds in steps."""
    stored = {}
    for name, exponent in grids_of(table).items():
        declared = table.columns[name]
        if isinstance(declared, (Integer, Real)):
            lower, upper = (
                floor(Fraction(end) / Fraction(2) ** exponent + Fraction(1, 2))
                for end in (declared.lower, declared.upper)
            )
            stored[name] = Grid(lower, upper, exponent)
    return stored


def grids_of(table: Table) -> dict[str, int]:
    """The exponent of the grid of each numeric column, by its declared bounds."""
    return {
        name: grid_exponent(
            declared.lower, declared.upper, whole=isinstance(declared, Integer), per_row=table.unit is ROW
        )
        for name, declared in table.columns.items()
        if isinstance(declared, (Integer, Real))
    }
