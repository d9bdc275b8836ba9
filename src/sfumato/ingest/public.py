"""Public tables: their rows belong to nobody. Undeclared types, bounds and values are read from the data."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime

import duckdb

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Integer, Real, Text
from sfumato.catalog.dataset import Table
from sfumato.ingest.canonical import EXACT, FLOATS, WHOLE, WIDE, has_rule, is_day, is_decimal, is_moment, spell_column
from sfumato.ingest.hidden_names import FACTS
from sfumato.ingest.multiplicities import read_multiplicities
from sfumato.ingest.parsing import parse_column
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote, quote_text
from sfumato.kernel.expressions import Scalar

MOST_VALUES = 10_000
WHOLE_TEXT = r"0|-?[1-9][0-9]*"
REAL_TEXT = r"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?"
MINUS_ZERO = r"-0(?:[.]0*)?"
MOST_DIGITS = 15  # of a decimal that can be written back from a double
DAY_TEXT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TRUTHS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))
WHOLE_BOUNDS, REAL_BOUNDS = Integer(-EXACT, EXACT), Real(-EXACT, EXACT)
ANY_DAY, ANY_MOMENT = Date(date.min, date.max), DateTime(datetime.min, datetime.max)


def describe_public(connection: duckdb.DuckDBPyConnection, table: Table, source: SourceRelation) -> Table:
    """The table with a declaration for every column that has none: types, bounds and values as they are."""
    columns = dict(table.columns)
    for name, kind in source.columns.items():
        if name not in columns:
            columns[name] = _describe_column(connection, source, name, kind)
    return replace(table, columns=columns)


def _describe_column(
    connection: duckdb.DuckDBPyConnection, source: SourceRelation, name: str, kind: str
) -> ColumnDeclaration:
    """By the type that the source declares. A text stays a text: 00059 is no number.

    A CSV file declares no types. Its column has numbers, days or truth values if every field can be written back from
    the value as it stands: no leading zeros, plus or -0, at most 15 digits, and as many decimals in all fields, or none
    that end in 0.
    """
    for wanted in _guess_by_text(connection, source, name) if source.untyped else _choose_by_type(kind):
        if isinstance(wanted, Boolean):
            return wanted
        value = f"SELECT {parse_column(name, wanted, kind, source.reading)} AS v FROM {source.relation}"
        there, low, high = connection.execute(_select_ends(value, wanted)).fetchall()[0]
        if there and _fits(low, high):
            return type(wanted)(int(low), int(high)) if isinstance(wanted, Integer) else type(wanted)(low, high)
    text = spell_column(quote(name), kind) if has_rule(kind) else f"CAST({quote(name)} AS VARCHAR)"
    query = f"SELECT DISTINCT v FROM (SELECT {text} AS v FROM {source.relation}) WHERE v IS NOT NULL ORDER BY v"
    values = [row[0] for row in connection.execute(f"{query} LIMIT {MOST_VALUES + 1}").fetchall()]
    return Category(values) if 0 < len(values) <= MOST_VALUES else Text()


def _select_ends(value: str, wanted: Integer | Real | Date | DateTime) -> str:
    """How many values there are, the least and the greatest: of finite ones, and of days in years 1 to 9999."""
    if isinstance(wanted, Integer):
        return f"SELECT COUNT(v), MIN(v), MAX(v) FROM ({value})"
    if isinstance(wanted, Real):
        return f"SELECT COUNT(v), MIN(v), MAX(v) FROM ({value}) WHERE isfinite(v)"
    kind = "TIMESTAMP" if isinstance(wanted, DateTime) else "DATE"
    low, high = (
        f"GREATEST(LEAST({end}(v), {kind} '{wanted.upper}'), {kind} '{wanted.lower}')" for end in ("MIN", "MAX")
    )
    return f"SELECT COUNT(v), {low}, {high} FROM ({value}) WHERE isfinite(v)"


def _choose_by_type(kind: str) -> list[Integer | Real | Date | DateTime | Boolean]:
    if kind in (*WHOLE, *WIDE) or (is_decimal(kind) and kind.endswith(",0)")):
        return [WHOLE_BOUNDS]
    if kind in FLOATS or is_decimal(kind):
        return [REAL_BOUNDS]
    if is_day(kind):
        return [ANY_DAY]
    return [ANY_MOMENT] if is_moment(kind) else [Boolean()] if kind == "BOOLEAN" else []


def _guess_by_text(
    connection: duckdb.DuckDBPyConnection, source: SourceRelation, name: str
) -> list[Integer | Real | Date | DateTime | Boolean]:
    column = quote(name)
    decimals = f"strlen(split_part({column}, '.', 2))"
    tests = [
        f"COUNT({column})",
        f"bool_and(regexp_full_match({column}, {quote_text(WHOLE_TEXT)}))",
        f"bool_and(regexp_full_match({column}, {quote_text(REAL_TEXT)}) AND strlen({column}) <= {MOST_DIGITS} AND "
        f"NOT regexp_full_match({column}, {quote_text(MINUS_ZERO)}))",
        f"MIN({decimals}) = MAX({decimals})",
        f"bool_and(NOT (contains({column}, '.') AND ends_with({column}, '0')))",
        f"bool_and(regexp_full_match({column}, {quote_text(DAY_TEXT)}) AND TRY_CAST({column} AS DATE) IS NOT NULL)",
        *(f"bool_and({column} IN ({', '.join(map(quote_text, words))}))" for words in TRUTHS),
    ]
    found = connection.execute(f"SELECT {', '.join(tests)} FROM {source.relation}").fetchall()[0]
    there, whole, real, alike, short, day, *truths = found
    if not there:
        return []
    if whole:
        return [WHOLE_BOUNDS]
    if real and (alike or short):
        return [REAL_BOUNDS]
    return [ANY_DAY] if day else [Boolean()] if any(truths) else []


def _fits(low: object, high: object) -> bool:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return abs(low) <= EXACT and abs(high) <= EXACT
    return True


def keep_facts(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Keep what was described."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {FACTS} (name VARCHAR, facts VARCHAR)")
    connection.execute(f"DELETE FROM {FACTS} WHERE name = ?", [table.name])
    connection.execute(f"INSERT INTO {FACTS} VALUES (?, ?)", [table.name, write_facts(table)])


def write_facts(table: Table) -> str:
    """The declarations of all columns, as a text."""
    columns = {name: [type(declared).__name__, _list_parameters(declared)] for name, declared in table.columns.items()}
    return json.dumps(columns)


def apply_facts(table: Table, facts: str, multiplicities: tuple[tuple[str, int], ...]) -> Table:
    """A public table with the declarations that it was described with."""
    kinds = {kind.__name__: kind for kind in (Integer, Real, Category, Boolean, Text, Date, DateTime)}
    described = json.loads(facts).items()
    found = {name: kinds[kind](*parts) for name, (kind, parts) in described if name not in table.columns}
    return replace(table, columns={**table.columns, **found}, multiplicities=multiplicities)


def _list_parameters(declared: ColumnDeclaration) -> list[object]:
    if isinstance(declared, Category):
        return [list(declared.values)]
    if isinstance(declared, (Integer, Real, Date, DateTime)):
        return [end.isoformat() if isinstance(end, date) else end for end in (declared.lower, declared.upper)]
    return []


def add_facts(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables, the public ones as they were described when they were pinned."""
    if not any(table.public for table in tables.values()):
        return dict(tables)
    kept = dict(connection.execute(f"SELECT name, facts FROM {FACTS}").fetchall())
    found = {}
    for name, table in tables.items():
        known = table
        if table.public and name in kept:
            known = apply_facts(table, kept[name], read_multiplicities(connection, name))
            known = replace(known, public_rows=_read_rows(connection, name, known.columns))
        found[name] = known
    return found


def _read_rows(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, ColumnDeclaration]
) -> tuple[tuple[Scalar, ...], ...] | None:
    """The rows of a public table, from which (SELECT AVG(x) FROM it) is computed; None if there are many."""
    query = f"SELECT {', '.join(map(quote, columns))} FROM {quote(name)} LIMIT {MOST_VALUES + 1}"
    rows = connection.execute(query).fetchall() if columns else []
    return tuple(rows) if len(rows) <= MOST_VALUES else None
