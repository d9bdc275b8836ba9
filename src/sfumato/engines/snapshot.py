"""Pinning the owner's data: an immutable, typed table that holds what the catalog declares and nothing else."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import duckdb

from sfumato.catalog.model import Boolean, Category, ColumnDeclaration, Date, Id, Integer, Real, Table, Text
from sfumato.engines.engine import ROWS_OF_UNIT, UNIT
from sfumato.engines.lowering import CENTRED, STEPS, WEIGHT, Steps
from sfumato.errors import CatalogError
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.neighbours import ROW
from sfumato.kernel.plan import LOWERING_VERSION, ROW_WEIGHT_EXPONENT, grid_exponent

FRAME = "__sfumato_frame"
PINNED = "__sfumato_pinned"


def pin(connection: duckdb.DuckDBPyConnection, table: Table, data: object) -> None:
    """Read the source once, on the owner's path, into a table of the declared names and types.

    Values are clamped to their bounds; NaN, failed casts and undeclared categories are NULL, or the public midpoint
    where a column is declared not nullable; rows without a unit are dropped; numbers are stored on their grid too.
    """
    if table.unit is None:
        raise CatalogError(
            "catalog",
            f"tables.{table.name}: a unit that is reached through another table needs a join, which comes later.",
            "Give the table its own unit_column.",
        )
    relation = _relation(connection, table, data)
    there = {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
    missing = [name for name in table.columns if name not in there]
    if missing:
        raise CatalogError(
            "catalog",
            f"tables.{table.name}: the source has no column {', '.join(map(repr, missing))}.",
            f"It has: {', '.join(map(repr, there))}.",
        )
    kept = {name: declared for name, declared in table.columns.items() if not isinstance(declared, Id)}
    selected = [f"{_typed(name, declared)} AS {_name(name)}" for name, declared in kept.items()]
    if table.unit is not ROW:
        unit = _name(str(table.unit))
        whole = there[str(table.unit)].endswith("INT") or there[str(table.unit)].endswith("INTEGER")
        selected.append(f"{unit if whole else f'CAST({unit} AS VARCHAR)'} AS {_name(UNIT)}")
    connection.execute(f"CREATE TEMP VIEW __sfumato_typed AS SELECT {', '.join(selected)} FROM {relation}")
    if table.unit is ROW:
        ready = [f"{_steps(name, each)} AS {_name(STEPS + name)}" for name, each in stored_steps(table).items()]
        query = f"SELECT {', '.join(['typed.*', *ready])} FROM __sfumato_typed typed"
    else:
        unit, rows, most = _name(UNIT), _name(ROWS_OF_UNIT), table.max_rows_per_unit
        ready = [f"CAST({_weighed(str(1 << -ROW_WEIGHT_EXPONENT), most)} AS INTEGER) AS {_name(WEIGHT)}"]
        for name, each in stored_steps(table).items():
            steps = _steps(name, each)
            ready.append(f"CAST({_weighed(steps, most)} AS {_width(each)}) AS {_name(STEPS + name)}")
            centred = f"({steps} - {each.middle}::BIGINT)"
            ready.append(f"CAST({_weighed(centred, most)} AS {_width(each)}) AS {_name(CENTRED + name)}")
        query = (
            f"SELECT typed.*, held.{rows}, {', '.join(ready)} FROM __sfumato_typed typed JOIN ("
            f"SELECT {unit}, COUNT(*) AS {rows} FROM __sfumato_typed GROUP BY {unit}"
            f") held ON typed.{unit} = held.{unit}"
        )
    connection.execute(f"CREATE TABLE {_name(table.name)} AS {query}")
    connection.execute("DROP VIEW __sfumato_typed")
    connection.execute(f"CREATE TABLE IF NOT EXISTS {PINNED} (name VARCHAR, declared VARCHAR, version VARCHAR)")
    connection.execute(f"DELETE FROM {PINNED} WHERE name = ?", [table.name])
    version = SYSTEM.take(8).tobytes().hex()
    connection.execute(f"INSERT INTO {PINNED} VALUES (?, ?, ?)", [table.name, declared_digest(table), version])


def declared_digest(table: Table) -> str:
    """What a snapshot was made from. It holds clamped and weighed values: under another declaration they are wrong."""
    columns = sorted((name, repr(declared)) for name, declared in table.columns.items())
    parts = (LOWERING_VERSION, table.name, str(table.unit), table.max_rows_per_unit, columns)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def versions_of(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, str]:
    """The version of each pinned table; a declaration that has changed since it was pinned is refused."""
    there = {row[0]: row[1:] for row in connection.execute(f"SELECT * FROM {PINNED}").fetchall()}
    for name, table in tables.items():
        if name not in there or there[name][0] != declared_digest(table):
            raise CatalogError(
                "catalog",
                f"tables.{name}: it is not pinned as it is declared now; its bounds, unit or columns have changed.",
                "Remove .sfumato/snapshot.duckdb, and open the folder again: the data becomes a new version.",
            )
    return {name: str(there[name][1]) for name in tables}


def _steps(name: str, each: Steps) -> str:
    """A numeric column on its grid: ⌊x/γ + ½⌋ in doubles; it is within its bounds already."""
    rounded = f"FLOOR({_name(name)} * {2.0**-each.exponent!r}::DOUBLE + 0.5::DOUBLE)"
    return f"CAST({rounded} AS {_width(each)})"


def _width(each: Steps) -> str:
    """Small integers are added up faster."""
    return "INTEGER" if max(abs(each.lower), abs(each.upper)) < 1 << 30 else "BIGINT"


def _weighed(steps: str, most: int) -> str:
    """As lowering does it: rows of a unit with n > r rows weigh r/n each, rounded toward zero."""
    rows = f"held.{_name(ROWS_OF_UNIT)}"
    return f"CASE WHEN {rows} <= {most} THEN {steps} ELSE ({steps}::BIGINT * {most}) // {rows} END"


def stored_steps(table: Table) -> dict[str, Steps]:
    """What a plan may rely on of each numeric column: its grid, and its declared bounds in steps."""
    stored = {}
    for name, exponent in grids_of(table).items():
        declared = table.columns[name]
        if isinstance(declared, (Integer, Real)):
            ends = (
                floor(Fraction(end) / Fraction(2) ** exponent + Fraction(1, 2))
                for end in (declared.lower, declared.upper)
            )
            stored[name] = Steps(exponent, *ends)
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


def _relation(connection: duckdb.DuckDBPyConnection, table: Table, data: object) -> str:
    """What to select from: a file by its ending, or a frame that is registered for the moment."""
    if isinstance(data, (str, Path)):
        path = str(data)
        ending = Path(path).suffix.lower()
        if ending in (".csv", ".tsv", ".txt"):
            return f"read_csv({_text(path)}, all_varchar = true, header = true)"
        if ending in (".parquet", ".pq"):
            return f"read_parquet({_text(path)})"
        raise CatalogError(
            "catalog",
            f"tables.{table.name}: the kind of source is not known.",
            "Use a .csv or .parquet file, or a frame.",
        )
    connection.register(FRAME, data)
    return FRAME


def _typed(name: str, declared: ColumnDeclaration) -> str:  # noqa: PLR0911 - one return a type
    column = _name(name)
    match declared:
        case Integer(lower=lower, upper=upper, nullable=nullable):
            rounded = f"FLOOR({_held(column, lower, upper)} + 0.5::DOUBLE)"
            return _or_public(f"CAST({rounded} AS BIGINT)", nullable, str((lower + upper) // 2))
        case Real(lower=lower, upper=upper, nullable=nullable):
            return _or_public(_held(column, lower, upper), nullable, f"{(lower + upper) / 2!r}::DOUBLE")
        case Boolean(nullable=nullable):
            return _or_public(f"TRY_CAST({column} AS BOOLEAN)", nullable, "false")
        case Category(values=values, nullable=nullable):
            return _or_public(_among(column, values), nullable, _constant(values[0]))
        case Text(nullable=nullable):
            return _or_public(f"CAST({column} AS VARCHAR)", nullable, "''")
        case Date(lower=lower, upper=upper, nullable=nullable):
            value = f"TRY_CAST({column} AS DATE)"
            middle = date.fromordinal((lower.toordinal() + upper.toordinal()) // 2)
            held = f"LEAST(GREATEST({value}, {_constant(lower)}), {_constant(upper)})"
            return _or_public(f"CASE WHEN {value} IS NULL THEN NULL ELSE {held} END", nullable, _constant(middle))
        case Id():
            return column  # never read by a plan


def _held(column: str, lower: float, upper: float) -> str:
    """The column as a double within its bounds; what is no number, and NaN, is NULL."""
    value = f"TRY_CAST({column} AS DOUBLE)"
    low, high = f"{float(lower)!r}::DOUBLE", f"{float(upper)!r}::DOUBLE"
    return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


def _among(column: str, values: Sequence[str | int | bool]) -> str:
    kind = "BOOLEAN" if isinstance(values[0], bool) else "BIGINT" if isinstance(values[0], int) else "VARCHAR"
    value = f"TRY_CAST({column} AS {kind})"
    listed = ", ".join(map(_constant, values))
    among = f"CASE WHEN {value} IN ({listed}) THEN {value} END"
    # as an enumeration, grouping is by small numbers: three times as fast as by text
    return f"CAST({among} AS ENUM({listed}))" if kind == "VARCHAR" else among


def _or_public(value: str, nullable: bool, public: str) -> str:
    return value if nullable else f"COALESCE({value}, {public})"


def _constant(value: Any) -> str:  # noqa: ANN401 - any declared value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return f"DATE {_text(value.isoformat())}"
    return str(value) if isinstance(value, int) else _text(value)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
