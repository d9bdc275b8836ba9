"""The database file that holds the pinned tables: replaced whole or not at all, while others read the one before."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from sfumato.catalog.model import Table
from sfumato.engines.snapshot import in_order, pin
from sfumato.errors import CatalogError
from sfumato.ingest.readers import WITHOUT_EXTENSIONS, Settings, connected, refused

LITTLE = "80MB"
SEALED: Settings = WITHOUT_EXTENSIONS | {"enable_external_access": "false", "lock_configuration": "true"}


def prepare(path: Path, tables: Mapping[str, Table], folder: Path) -> None:
    """Pin every table: the data becomes a new version."""
    with _in_place_of(path) as connection:
        for table in in_order(tables):
            _pin(connection, table, folder)


def add(path: Path, tables: Mapping[str, Table], newest: str, folder: Path) -> None:
    """Pin one more table, and any that is not there; the others stay as they are pinned."""
    with _in_place_of(path, copy=True) as connection:
        there = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        for table in in_order(tables):
            if table.name == newest or table.name not in there:  # one of that name is of an addition that was cut off
                _pin(connection, table, folder)


def open_to_read(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that can read this file and nothing else; sealed from the start, so that it may be opened twice."""
    return duckdb.connect(str(path), read_only=True, config=SEALED)


def _pin(connection: duckdb.DuckDBPyConnection, table: Table, folder: Path) -> None:
    if table.source is None:
        raise refused(table.name, "it has no source.", 'For example: source = "visits.csv".')
    connection.execute(f"SET memory_limit = '{LITTLE}'")  # the rest is put beside the new file, for a while
    pinned = False
    with suppress(CatalogError):  # perhaps for want of memory: DuckDB's error is not kept, since it may quote rows
        pin(connection, table, table.source, folder)
        pinned = True
    connection.execute("RESET memory_limit")
    if not pinned:
        pin(connection, table, table.source, folder)


@contextmanager
def _in_place_of(path: Path, *, copy: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new file beside the old one, which takes its place when all went well. Readers keep the file they opened."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as scratch:
        new = Path(scratch) / path.name
        if copy and path.exists():
            shutil.copyfile(path, new)
        with connected(str(new)) as connection:
            yield connection
        if path.exists():
            shutil.copymode(path, new)
        os.replace(new, path)
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(parent)  # the name too, not only the content
    finally:
        os.close(parent)
