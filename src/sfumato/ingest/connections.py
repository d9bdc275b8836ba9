"""Connections to DuckDB: without extensions, and without a progress bar of its own."""

from collections.abc import Iterable

import duckdb

from sfumato.ingest.sql_quoting import quote

Settings = dict[str, str | bool | int | float | list[str]]  # as DuckDB takes them
WITHOUT_EXTENSIONS: Settings = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a missing table is not looked for among Python's variables
}
SEALED: Settings = WITHOUT_EXTENSIONS | {"enable_external_access": "false", "lock_configuration": "true"}
ONE_THREAD: Settings = {"threads": 1}
ROWS_AT_ONCE = 122_880  # rows that DuckDB reads in one piece, by one thread


def has_small_tables(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> bool:
    """Whether one thread reads each table. Then others would only be woken, which takes a tenth of a small query.

    Rows are counted: to list the tables of a new database takes DuckDB longer than to pin a small one.
    """
    sizes = (connection.execute(f"SELECT COUNT(*) FROM {quote(name)}").fetchall() for name in names)
    return all(rows <= ROWS_AT_ONCE for ((rows,),) in sizes)


def connect_to_pin(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A connection that can read sources. At a terminal, DuckDB would show a progress bar beside ours."""
    connection = duckdb.connect(path, config=WITHOUT_EXTENSIONS)
    ((shown,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if shown:  # in a notebook without ipywidgets it is off, and DuckDB refuses every change of it
        connection.execute("SET enable_progress_bar = false")
    return connection
