"""How many rows of a public table share one value of a column, at most: so many rows a join makes of one private row.

Part of the trusted perimeter: claim K-35.
"""

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.hidden_names import MULTIPLICITIES, TIMES
from sfumato.ingest.sql_quoting import quote


def keep_multiplicities(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Count the rows with the most frequent value of each column of a pinned table, and store the numbers."""
    stored = f"{MULTIPLICITIES} (name VARCHAR, column_name VARCHAR, most BIGINT)"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {stored}")
    connection.execute(f"DELETE FROM {MULTIPLICITIES} WHERE name = ?", [table.name])
    for name in table.columns:
        column = quote(name)
        counted = f"SELECT COUNT(*) AS {TIMES} FROM {quote(table.name)} WHERE {column} IS NOT NULL GROUP BY {column}"
        most = f"SELECT ?, ?, COALESCE(MAX({TIMES}), 1) FROM ({counted})"
        connection.execute(f"INSERT INTO {MULTIPLICITIES} {most}", [table.name, name])


def read_multiplicities(connection: duckdb.DuckDBPyConnection, table: str) -> tuple[tuple[str, int], ...]:
    """The numbers that were stored, by column."""
    query = f"SELECT column_name, most FROM {MULTIPLICITIES} WHERE name = ? ORDER BY column_name"
    return tuple((str(name), int(most)) for name, most in connection.execute(query, [table]).fetchall())
