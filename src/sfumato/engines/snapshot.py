"""Pinning the owner's data: an immutable, typed table that holds what the catalog declares and nothing else."""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from math import floor, isnan
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
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
FLOATS = ("FLOAT", "DOUBLE")


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
            "Check the header line of the file, or the names of the frame's columns.",
        )
    kept = {name: declared for name, declared in table.columns.items() if not isinstance(declared, Id)}
    selected = [f"{_typed(name, declared, there[name])} AS {_name(name)}" for name, declared in kept.items()]
    if table.unit is not ROW:
        source, kind = str(table.unit), there[str(table.unit)]
        unit = _name(source) if kind in WHOLE else _as_text(_name(source), kind)
        selected.append(f"{unit} AS {_name(UNIT)}")
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
    connection.unregister(FRAME)
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
    """A numeric column on its grid: ⌊x/γ + ½⌋, held to its bounds; NULL stays NULL."""
    rounded = _rounded(f"({_name(name)} * {2.0**-each.exponent!r}::DOUBLE)")
    held = f"LEAST(GREATEST(CAST({rounded} AS BIGINT), {each.lower}), {each.upper})"
    return f"CAST(CASE WHEN {_name(name)} IS NULL THEN NULL ELSE {held} END AS {_width(each)})"


def _rounded(value: str) -> str:
    """⌊x + ½⌋ without the sum, which rounds in doubles."""
    return f"(FLOOR({value}) + CASE WHEN {value} - FLOOR({value}) >= 0.5::DOUBLE THEN 1 ELSE 0 END)"


def _as_text(column: str, kind: str) -> str:
    """Text that depends on the row's own value only: a gap elsewhere may have turned whole numbers into floats."""
    if kind not in FLOATS:
        return f"CAST({column} AS VARCHAR)"
    whole = f"CAST(CAST({column} AS BIGINT) AS VARCHAR)"
    exact = f"{column} = FLOOR({column}) AND ABS({column}) <= 9007199254740992"
    other = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {column} IS NULL OR isnan({column}) THEN NULL WHEN {exact} THEN {whole} ELSE {other} END"


def _width(each: Steps) -> str:
    """Small integers are added up faster."""
    return "INTEGER" if max(abs(each.lower), abs(each.upper)) < 1 << 30 else "BIGINT"


def _weighed(steps: str, most: int) -> str:
    """As lowering does it: rows of a unit with n > r rows weigh r/n each, rounded toward zero."""
    rows = f"held.{_name(ROWS_OF_UNIT)}"
    return f"CASE WHEN {rows} <= {most} THEN {steps} ELSE ({steps}::HUGEINT * {most}) // {rows} END"


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
            return _csv(path, "\t" if ending == ".tsv" else ",")
        if ending in (".parquet", ".pq"):
            return f"read_parquet({_text(path)})"
        raise CatalogError(
            "catalog",
            f"tables.{table.name}: the kind of source is not known.",
            "Use a .csv or .parquet file, or a frame.",
        )
    connection.register(FRAME, _each_by_itself(data))
    return FRAME


def _csv(path: str, delimiter: str) -> str:
    """Nothing is sniffed: one odd row must not change how the others are read. Names come from the first line only."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    if not names or len(set(names)) != len(names):
        raise ValueError("a CSV file begins with a line of names, each once")
    columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({_text(path)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {_text(delimiter)}, "
        "quote = '\"', escape = '\"', null_padding = true, strict_mode = false, ignore_errors = true)"
    )


def _each_by_itself(data: object) -> object:
    """A pandas column of mixed objects as texts, value by value: one value must not decide how the others are read."""
    if type(data).__module__.split(".")[0] != "pandas":
        return data
    frame = data.copy(deep=False)  # type: ignore[attr-defined]
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = frame[name].map(_text_or_nothing)
            frame[name] = frame[name].astype("string")
    return frame


def _text_or_nothing(value: object) -> str | None:
    missing = (
        value is None or (isinstance(value, float) and isnan(value)) or type(value).__name__ in ("NAType", "NaTType")
    )
    return None if missing else str(value)


def _typed(name: str, declared: ColumnDeclaration, kind: str) -> str:  # noqa: PLR0911 - one return a type
    column = _name(name)
    match declared:
        case Integer(lower=lower, upper=upper, nullable=nullable):
            held = f"LEAST(GREATEST(CAST({_rounded(_held(column, lower, upper))} AS BIGINT), {lower}), {upper})"
            there = f"CASE WHEN {_held(column, lower, upper)} IS NULL THEN NULL ELSE {held} END"
            return _or_public(there, nullable, str((lower + upper) // 2))
        case Real(lower=lower, upper=upper, nullable=nullable):
            return _or_public(_held(column, lower, upper), nullable, f"{(lower + upper) / 2!r}::DOUBLE")
        case Boolean(nullable=nullable):
            return _or_public(f"TRY_CAST({column} AS BOOLEAN)", nullable, "false")
        case Category(values=values, nullable=nullable):
            return _or_public(_among(column, values, kind), nullable, _constant(values[0]))
        case Text(nullable=nullable):
            return _or_public(_as_text(column, kind), nullable, "''")
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


def _among(column: str, values: Sequence[str | int | bool], source: str) -> str:
    kind = "BOOLEAN" if isinstance(values[0], bool) else "BIGINT" if isinstance(values[0], int) else "VARCHAR"
    value = _as_text(column, source) if kind == "VARCHAR" else f"TRY_CAST({column} AS {kind})"
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
