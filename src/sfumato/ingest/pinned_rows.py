"""The rows of a pinned table: their columns and types, and the SQL that reads and clamps them.

Part of the trusted perimeter: claims K-35 (counts) and K-50 (values).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from math import floor

import duckdb

from sfumato.catalog.columns import ColumnDeclaration, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.catalog.public_grid import choose_exponent
from sfumato.errors import CatalogError, KernelFault
from sfumato.ingest.canonical import WHOLE
from sfumato.ingest.counting import RANGE_BITS, note_absent, pack_outcomes, pass_on_parsed
from sfumato.ingest.hidden_names import MET, PEOPLE, ROWS_OF_UNIT, STEPS, UNIT
from sfumato.ingest.join_cap import mark_met
from sfumato.ingest.parsing import choose_sql_type, clamp_column, parse_column, round_half_up, write_double
from sfumato.ingest.source_refusals import build_public_count_error, build_records_error, build_rows_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote
from sfumato.ingest.unit_rows import count_rows_of_people, find_owner_column
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.plan import Grid

PUSHDOWNS = ("type_pushdown", "scalar_fn_pushdown")  # into a CSV reader, which drops rows where TRY_CAST gives NULL
STATISTICS = "statistics_propagation"  # Parquet files state limits of their numbers that leave out NaN


def write_rows(
    connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation, show_step: Callable[[str], None]
) -> None:
    """Write the pinned table, and the table PEOPLE for a table with a unit column.

    Where no unit has more rows than its bound, every row weighs 1 and is met: ROWS_OF_UNIT and MET are then computed
    columns that take no place.

    Claim: K-35. Each row has its unit's number of rows, or 1 where that is within max_rows_per_unit; MET marks at most
        TIMES_MET * max_rows_per_unit rows of a unit.
    Requires: the source is open and readable, inside `read_row_by_row`.
    Relies on: K-50 (values), K-51 (ids).
    Checked by: tests/engines/test_snapshot.py::test_a_snapshot_is_what_plain_python_makes
    """
    unit, weighed = None, bool(table.unique)
    if table.unit is not ROW:
        show_step("people")
        if source.columns[find_owner_column(table)] in WHOLE:  # no NaN, and counted faster by its limits
            _disable(connection, PUSHDOWNS)
        unit = count_rows_of_people(connection, table, source)
        _disable(connection, (*PUSHDOWNS, STATISTICS))
        weighed = weighed or _count(connection, f"({_select_over(table)} LIMIT 1)") > 0
    show_step("rows")
    name = quote(table.name)
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({_define_columns(table, source, weighed=weighed)})")
    connection.execute(f"INSERT INTO {name} BY NAME {_select_rows(table, source, unit, weighed=weighed)}")
    if table.unit is not ROW and weighed:
        mark_met(connection, table)


@contextmanager
def read_row_by_row(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Settings of DuckDB under which each row is read by its own values, and people are counted fast."""
    _disable(connection, (*PUSHDOWNS, STATISTICS))
    connection.execute(f"SET perfect_ht_threshold = {RANGE_BITS}")
    try:
        yield
    finally:
        connection.execute("RESET perfect_ht_threshold")
        connection.execute("RESET disabled_optimizers")


def _disable(connection: duckdb.DuckDBPyConnection, optimizers: tuple[str, ...]) -> None:
    known = {row[0] for row in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    connection.execute(f"SET disabled_optimizers = '{','.join(name for name in optimizers if name in known)}'")


def find_lost_rows(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> CatalogError | None:
    """Count the rows in three ways that must agree: in the source, by person, and pinned. Else return the refusal.

    People and rows are read one after the other, so the hashes of all ids must add up to the same: an id that changed
    in between would have another number of rows. A CSV file must have as many rows as records were checked.
    """
    in_source = source.records if source.records is not None else _count(connection, source.relation)
    pinned = by_unit = _count(connection, quote(table.name))
    if table.unit is not ROW:
        rows, unit = quote(ROWS_OF_UNIT), quote(UNIT)
        total, hashed = f"COALESCE(SUM({rows}), 0)", f"CAST(hash({unit}) >> 34 AS BIGINT)"
        by_unit = _count(connection, PEOPLE, total)
        pinned += _count(connection, f"{PEOPLE} WHERE {unit} IS NULL", total)
        counted = _count(connection, f"{PEOPLE} WHERE {unit} IS NOT NULL", f"COALESCE(SUM(({hashed}) * {rows}), 0)")
        if counted != _count(connection, quote(table.name), f"COALESCE(SUM({hashed}), 0)"):
            return build_rows_error(table.name)
    if in_source == by_unit == pinned:
        return None
    of_records = source.records is not None and by_unit == pinned
    return build_records_error(table.name) if of_records else build_rows_error(table.name)


def check_public_counts(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Refuse a table that has another number of rows, or of people, than its declaration makes public."""
    name = quote(table.name)
    if table.rows is not None and _count(connection, name) != table.rows:
        raise build_public_count_error(table.name, "rows")
    if table.people is not None and _count(connection, name, f"COUNT(DISTINCT {quote(UNIT)})") != table.people:
        raise build_public_count_error(table.name, "people")


def _count(connection: duckdb.DuckDBPyConnection, relation: str, what: str = "COUNT(*)") -> int:
    return int(connection.execute(f"SELECT {what} FROM {relation}").fetchall()[0][0])


def list_columns(table: Table) -> dict[str, str]:
    """The columns of a pinned table and their types, by its declaration; but a unit may be a number."""
    columns = {name: choose_sql_type(declared) for name, declared in list_kept(table).items()}
    columns |= {STEPS + name: _choose_step_type(grid) for name, grid in find_grids(table).items()}
    if table.unit is not ROW:
        columns |= {UNIT: "VARCHAR", ROWS_OF_UNIT: "INTEGER", MET: "BOOLEAN"}
    return columns or {ROWS_OF_UNIT: "INTEGER"}  # rows without declared columns can still be counted


def list_kept(table: Table) -> dict[str, ColumnDeclaration]:
    """The declared columns that a snapshot holds by name. The id column is not among them: it is kept as UNIT."""
    return {name: declared for name, declared in table.columns.items() if name != table.unit}


def find_grids(table: Table) -> dict[str, Grid]:
    """The grid of each numeric column, and its declared bounds in steps of that grid."""
    grids = {}
    for name, declared in table.columns.items():
        if isinstance(declared, (Integer, Real)):
            ends, per_row = (declared.lower, declared.upper), table.unit is ROW
            exponent = choose_exponent(*ends, whole=isinstance(declared, Integer), per_row=per_row)
            lower, upper = (floor(Fraction(end) / Fraction(2) ** exponent + Fraction(1, 2)) for end in ends)
            grids[name] = Grid(lower, upper, exponent)
    return grids


def _define_columns(table: Table, source: SourceRelation, *, weighed: bool) -> str:
    """The columns for CREATE TABLE. Packing: columns of numbers are read and added up fastest as they are."""
    columns = list_columns(table)
    if table.unit is not ROW and source.columns[find_owner_column(table)] in WHOLE:
        columns[UNIT] = source.columns[find_owner_column(table)]
    defined = []
    computed = {} if weighed or table.unit is ROW else {ROWS_OF_UNIT: "1", MET: "true"}
    for name, kind in columns.items():
        packing = f" USING COMPRESSION {'bitpacking' if name.startswith(STEPS) else 'uncompressed'}"
        how = f" GENERATED ALWAYS AS ({computed[name]}) VIRTUAL" if name in computed else packing
        defined.append(f"{quote(name)} {kind}{'' if kind == 'VARCHAR' else how}")
    # outcomes are dropped once they are counted: looking for a better packing would take longer than writing them
    counted = pack_outcomes(source.list_doubtful(list_kept(table)))
    return ", ".join([*defined, *(f"{quote(name)} USMALLINT USING COMPRESSION uncompressed" for name in counted)])


def select_typed(
    kept: Mapping[str, ColumnDeclaration], source: SourceRelation, grids: Mapping[str, Grid], further: Mapping[str, str]
) -> str:
    """The query of typed values, their steps and their outcomes. Each step is a SELECT: nothing is computed twice.

    `further`: other expressions over the source, by name.
    """
    parsed, clamped, counted = [], [], source.list_doubtful(kept)
    for name, declared in kept.items():
        kind = source.columns[name]
        parsed.append(f"{parse_column(name, declared, kind, source.reading)} AS {quote(name)}")
        clamped.append(f"{clamp_column(name, declared, kind)} AS {quote(name)}")
        if name in counted:
            parsed.append(note_absent(name, kind))
            clamped += pass_on_parsed(name)
    parsed += [f"{value} AS {quote(name)}" for name, value in further.items()]
    steps = [f"{_write_steps(name, kept[name], grid)} AS {quote(STEPS + name)}" for name, grid in grids.items()]
    outcomes = [f"{value} AS {quote(name)}" for name, value in pack_outcomes(counted).items()]
    names = [quote(name) for name in (*kept, *further)]
    return (
        f"SELECT {', '.join([*names, *steps, *outcomes])} FROM (SELECT "
        f"{', '.join([*clamped, *map(quote, further)])} FROM (SELECT {', '.join(parsed)} FROM {source.relation}))"
    )


def _select_rows(table: Table, source: SourceRelation, unit: str | None, *, weighed: bool) -> str:
    """The query of a pinned table. Rows of no unit are not in it."""
    kept, grids = list_kept(table), find_grids(table)
    if unit is None:
        return select_typed(kept, source, grids, {} if kept else {ROWS_OF_UNIT: "1"})
    typed, column = select_typed(kept, source, grids, {UNIT: unit}), quote(UNIT)
    owned = f"FROM ({typed}) typed"
    if not weighed:
        return f"SELECT typed.* {owned} WHERE typed.{column} IS NOT NULL"  # NULL is nobody
    rows = quote(ROWS_OF_UNIT)
    added = f"COALESCE(over.{rows}, 1) AS {rows}, true AS {quote(MET)}"
    over = f"LEFT JOIN ({_select_over(table)}) over ON typed.{column} = over.{column}"
    return f"SELECT typed.*, {added} {owned} {over} WHERE typed.{column} IS NOT NULL"


def _select_over(table: Table) -> str:
    """The units with more rows than their bound, and how many. Only these have rows that weigh less than 1."""
    unit, rows = quote(UNIT), quote(ROWS_OF_UNIT)
    return f"SELECT {unit}, {rows} FROM {PEOPLE} WHERE {unit} IS NOT NULL AND {rows} > {table.max_rows_per_unit}"


def _write_steps(name: str, declared: ColumnDeclaration, grid: Grid) -> str:
    """A numeric column on its grid, ⌊x/γ + ½⌋. It is within its bounds in steps, because rounding keeps the order."""
    column, kind = quote(name), _choose_step_type(grid)
    if not isinstance(declared, Integer):
        # ROUND is exact, and rounds halves away from zero: of numbers from 0 upwards, as is wanted, and faster
        write = "ROUND({})".format if grid.lower >= 0 else round_half_up
        return f"CAST({write(f'({column} * {write_double(2.0**-grid.exponent)})')} AS {kind})"
    if grid.exponent > 0:
        raise KernelFault("The grid of whole numbers is one, or finer.")
    return f"(CAST({column} AS {kind}) * {1 << -grid.exponent})"


def _choose_step_type(grid: Grid) -> str:
    """A type that holds the steps of a column, and the steps minus the middle of their bounds."""
    return "INTEGER" if max(abs(grid.lower), abs(grid.upper)) < 1 << 30 else "BIGINT"
