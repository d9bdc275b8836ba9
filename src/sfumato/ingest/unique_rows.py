"""Unique keys are made true when a table is pinned: of a person's rows with one key, one stays.

Part of the trusted perimeter: claim K-78.
"""

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.hidden_names import CONTENT, MET, PLACE, ROWS_OF_UNIT, UNIT
from sfumato.ingest.join_cap import mark_met, order_contents, replace_rows
from sfumato.ingest.sql_quoting import quote


def drop_repeats(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Drop the rows that repeat a unique key of their unit, count the rows of these units again, and mark MET again.

    Claim: K-78. No two rows of one unit share a unique key without NULLs. What stays of a unit depends on it alone.
    Requires: the table was written (`write_rows`).
    Relies on: K-35 (the order of a unit's rows).
    Checked by: tests/ingest/test_unique_rows.py::test_what_stays_is_what_plain_python_keeps
    """
    name, unit, rows = quote(table.name), quote(UNIT), quote(ROWS_OF_UNIT)
    content, order = order_contents(table)
    for key in table.unique:
        columns = ", ".join(map(quote, key))
        present = " AND ".join(f"{quote(column)} IS NOT NULL" for column in key)
        repeated = f"SELECT {unit} FROM {name} WHERE {present} GROUP BY {unit}, {columns} HAVING COUNT(*) > 1"
        of_repeated = f"{unit} IN ({repeated})"
        theirs = f"SELECT *, {content} AS {CONTENT} FROM {name} WHERE {of_repeated}"
        place = f"row_number() OVER (PARTITION BY {unit}, {columns} ORDER BY {order})"
        placed = f"SELECT * EXCLUDE ({CONTENT}), {place} AS {PLACE} FROM ({theirs})"
        kept = f"SELECT * EXCLUDE ({PLACE}) FROM ({placed}) WHERE {PLACE} = 1 OR NOT ({present})"
        held = f"CAST(COUNT(*) OVER (PARTITION BY {unit}) AS INTEGER)"
        count = f"CASE WHEN {held} > {table.max_rows_per_unit} THEN {held} ELSE 1 END AS {rows}"
        counted = f"SELECT * REPLACE ({count}, true AS {quote(MET)}) FROM ({kept})"
        replace_rows(connection, name, of_repeated, counted)
    if table.unique:
        mark_met(connection, table)
