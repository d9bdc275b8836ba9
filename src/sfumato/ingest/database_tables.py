"""A table of another DuckDB file. Part of the trusted perimeter: claim K-50.

Views are refused, and so are generated columns of random numbers: a source must give the same rows when it is read
again, and no row may be computed from the rows of others.
"""

import re

import duckdb

from sfumato.ingest.hidden_names import ATTACHED
from sfumato.ingest.source_refusals import build_missing_table_error, build_volatile_error
from sfumato.ingest.sql_quoting import quote


def find_stored_table(connection: duckdb.DuckDBPyConnection, table: str, schema: str, name: str) -> str:
    """The full name, in quotes, of a table of the attached file. Names match in any case."""
    found = connection.execute(
        f"SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = '{ATTACHED}' "
        "AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)",
        [schema, name],
    ).fetchone()
    if found is None:
        raise build_missing_table_error(connection, table, schema, name)
    _, _, generated = str(found[2]).partition("GENERATED ALWAYS AS")
    query = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'"
    volatile = {str(row[0]) for row in connection.execute(query).fetchall()}
    if volatile & {called.lower() for called in re.findall(r'(\w+)"?\s*\(', generated)}:
        raise build_volatile_error(table)
    return f"{ATTACHED}.{quote(found[0])}.{quote(found[1])}"
