"""Which rows of a unit with too many are read by joins and by groups of undeclared keys: those least by a hash.

Marked once, when a table is pinned. Part of the trusted perimeter: claim K-35.
"""

import duckdb

from sfumato.catalog.columns import ColumnDeclaration, Real
from sfumato.catalog.dataset import Table
from sfumato.ingest.hidden_names import ANEW, CONTENT, MET, PLACE, ROWS_OF_UNIT, UNIT
from sfumato.ingest.sql_quoting import quote
from sfumato.kernel.row_sources import TIMES_MET

FAR = float(1 << 62)
FINE = float(1 << 53)


def mark_met(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Mark the rows that joins leave out. Only units with too many rows are put in order, and written anew.

    Every name but the table's own columns begins as no declared one may; there is no row number, which one may take.
    """
    name, unit, most = quote(table.name), quote(UNIT), TIMES_MET * table.max_rows_per_unit
    content, order = order_contents(table)
    of_many = f"{quote(ROWS_OF_UNIT)} > {most}"
    many = f"SELECT *, {content} AS {CONTENT} FROM {name} WHERE {of_many}"
    place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {order})"
    placed = f"SELECT * EXCLUDE ({CONTENT}), {place} AS {PLACE} FROM ({many})"
    marked = f"SELECT * EXCLUDE ({PLACE}) REPLACE ({PLACE} <= {most} AS {quote(MET)}) FROM ({placed})"
    replace_rows(connection, name, of_many, marked)


def replace_rows(connection: duckdb.DuckDBPyConnection, name: str, condition: str, rows: str) -> None:
    """Write the rows of a pinned table that meet a condition anew, as the result of a query on the table."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {ANEW} AS {rows}")
    connection.execute(f"DELETE FROM {name} WHERE {condition}")
    connection.execute(f"INSERT INTO {name} BY NAME FROM {ANEW}")
    connection.execute(f"DROP TABLE {ANEW}")


def order_contents(table: Table) -> tuple[str, str]:
    """The text of a row's content, and the order of rows by it: by its hash, by itself, by what is left of reals."""
    kept = {name: declared for name, declared in sorted(table.columns.items()) if name != table.unit}
    content = " || ".join(_write_content(name, declared) for name, declared in kept.items()) or "''"
    # rows of equal content are equal but for what is left of their reals
    last = "".join(f", {quote(name)}" for name, declared in kept.items() if isinstance(declared, Real))
    return content, f"md5({CONTENT}), {CONTENT}{last}"


def _write_content(name: str, declared: ColumnDeclaration) -> str:
    """A value as text, with its length: NULL and '' differ, and no two lists of values have one text."""
    column = quote(name)
    value = _write_real(column) if isinstance(declared, Real) else f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {column} IS NULL THEN '-' ELSE strlen({value}) || ':' || {value} END"


def _write_real(column: str) -> str:
    """A double as two whole numbers: engines write doubles in different ways."""
    rest = f"FLOOR(({column} - FLOOR({column})) * {FINE!r}::DOUBLE)"
    both = f"TRY_CAST(FLOOR({column}) AS BIGINT) || '/' || TRY_CAST({rest} AS BIGINT)"
    return f"CASE WHEN ABS({column}) < {FAR!r}::DOUBLE THEN {both} ELSE 'far' END"
