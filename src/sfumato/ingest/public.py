"""Public tables: nobody's rows. What is not declared of them may be read off them, and is kept with the snapshot."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import duckdb

from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Integer, Real, Text
from sfumato.catalog.model import Table
from sfumato.ingest.readers import Source
from sfumato.ingest.sql_text import quoted

FACTS = "__sfumato_public"
MOST_VALUES = 10_000
READ_AS = {"BIGINT": Integer, "DOUBLE": Real, "DATE": Date, "TIMESTAMP": DateTime, "BOOLEAN": Boolean}
KINDS = {
    "TINYINT": "BIGINT", "SMALLINT": "BIGINT", "INTEGER": "BIGINT", "BIGINT": "BIGINT", "UTINYINT": "BIGINT",
    "USMALLINT": "BIGINT", "UINTEGER": "BIGINT", "FLOAT": "DOUBLE", "DOUBLE": "DOUBLE", "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "BOOLEAN": "BOOLEAN",
}  # fmt: skip


def described(connection: duckdb.DuckDBPyConnection, table: Table, source: Source) -> Table:
    """The table with a declaration for every column that has none: types, bounds and values as they are."""
    columns = dict(table.columns)
    for name, kind in source.columns.items():
        if name not in columns:
            columns[name] = _declared(connection, source.relation, name, kind)
    return replace(table, columns=columns)


def _declared(connection: duckdb.DuckDBPyConnection, relation: str, name: str, kind: str) -> ColumnDeclaration:
    column = quoted(name)
    for wanted in [KINDS[kind]] if kind in KINDS else ["BIGINT", "DOUBLE", "DATE", "BOOLEAN"]:
        read = f"TRY_CAST({column} AS {wanted})"
        if wanted == "BIGINT":  # which a text of a fraction is rounded to
            read = f"CASE WHEN {read} = TRY_CAST({column} AS DOUBLE) THEN {read} END"
        query = f"SELECT COUNT({column}), COUNT({read}), MIN({read}), MAX({read}) FROM {relation}"
        there, whole, low, high = connection.execute(query).fetchall()[0]
        if there and there == whole and _fits(low, high):
            return Boolean() if wanted == "BOOLEAN" else READ_AS[wanted](low, high)
    query = f"SELECT DISTINCT CAST({column} AS VARCHAR) AS v FROM {relation} WHERE {column} IS NOT NULL ORDER BY v"
    values = [row[0] for row in connection.execute(f"{query} LIMIT {MOST_VALUES + 1}").fetchall()]
    return Category(values) if 0 < len(values) <= MOST_VALUES else Text()


def _fits(low: object, high: object) -> bool:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return abs(low) <= 2**53 and abs(high) <= 2**53
    return True


def keep_facts(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Count, in the pinned table, how often a value stands in each column at most; and keep what was described."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {FACTS} (name VARCHAR, facts VARCHAR)")
    connection.execute(f"DELETE FROM {FACTS} WHERE name = ?", [table.name])
    most = {}
    for name in table.columns:
        counted = (
            f"SELECT COUNT(*) AS n FROM {quoted(table.name)} WHERE {quoted(name)} IS NOT NULL GROUP BY {quoted(name)}"
        )
        most[name] = connection.execute(f"SELECT COALESCE(MAX(n), 1) FROM ({counted})").fetchall()[0][0]
    columns = {name: [type(each).__name__, _parts(each)] for name, each in table.columns.items()}
    facts = json.dumps({"columns": columns, "multiplicities": most})
    connection.execute(f"INSERT INTO {FACTS} VALUES (?, ?)", [table.name, facts])


def _parts(declared: ColumnDeclaration) -> list[object]:
    if isinstance(declared, Category):
        return [list(declared.values)]
    if isinstance(declared, (Integer, Real, Date, DateTime)):
        return [end.isoformat() if isinstance(end, date) else end for end in (declared.lower, declared.upper)]
    return []


def with_facts(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables, the public ones as they were described when they were pinned."""
    if not any(table.public for table in tables.values()):
        return dict(tables)
    kept = dict(connection.execute(f"SELECT name, facts FROM {FACTS}").fetchall())
    kinds = {each.__name__: each for each in (Integer, Real, Category, Boolean, Text, Date, DateTime)}
    found = {}
    for name, table in tables.items():
        if not table.public or name not in kept:
            found[name] = table
            continue
        facts = json.loads(kept[name])
        columns = dict(table.columns)
        for column, (kind, parts) in facts["columns"].items():
            if column not in columns:
                columns[column] = kinds[kind](*parts)
        found[name] = replace(table, columns=columns, multiplicities=tuple(sorted(facts["multiplicities"].items())))
    return found
