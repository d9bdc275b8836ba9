"""Connections to DuckDB: without extensions, and without a progress bar of its own."""

import duckdb

Settings = dict[str, str | bool | int | float | list[str]]  # as DuckDB takes them
WITHOUT_EXTENSIONS: Settings = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a missing table is not looked for among Python's variables
}
SEALED: Settings = WITHOUT_EXTENSIONS | {"enable_external_access": "false", "lock_configuration": "true"}


def connect_to_pin(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A connection that can read sources. At a terminal, DuckDB would show a progress bar beside ours."""
    connection = duckdb.connect(path, config=WITHOUT_EXTENSIONS)
    ((shown,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if shown:  # in a notebook without ipywidgets it is off, and DuckDB refuses every change of it
        connection.execute("SET enable_progress_bar = false")
    return connection
