"""Which declaration and which rules a pinned table was made by. A table that was made by others is not opened.

Part of the trusted perimeter: claim K-35. Bounds, weights and grids of a snapshot are those of the declaration.
"""

import hashlib
from collections.abc import Mapping

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import KEYS as READING_KEYS
from sfumato.ingest.hidden_names import PINNED
from sfumato.ingest.source_refusals import build_unpinned_error
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.plan import LOWERING_VERSION

LAYOUT = 9  # of a snapshot's columns and values: a snapshot of another layout is made anew


def hash_declaration(table: Table) -> str:
    """A digest of everything that a snapshot is made from, or that an answer takes as true of it."""
    columns = sorted((name, repr(declared)) for name, declared in table.columns.items())
    reading = [(key, getattr(table.reading, key)) for key in READING_KEYS]
    parts: tuple[object, ...] = (
        LOWERING_VERSION, table.name, table.source, str(table.unit), table.unit_through, table.max_rows_per_unit,
        table.rows, table.people, table.public, reading, columns,
    )  # fmt: skip
    if table.count_column is not None:
        parts += ("counts", table.count_column, table.most_count)
    if table.unique:
        parts += ("unique", table.unique)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def describe_origin(table: Table) -> str:
    """The layout and the declaration that a table's pinned data follows from."""
    return f"{LAYOUT}:{hash_declaration(table)}"


def keep_version(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Note that a table was pinned now, and by which declaration. Each time the data becomes a new version."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {PINNED} (name VARCHAR, declared VARCHAR, version VARCHAR)")
    connection.execute(f"DELETE FROM {PINNED} WHERE name = ?", [table.name])
    version = SYSTEM.take(8).tobytes().hex()
    connection.execute(f"INSERT INTO {PINNED} VALUES (?, ?, ?)", [table.name, describe_origin(table), version])


def read_versions(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, str]:
    """The version of each pinned table. A table whose declaration has changed since it was pinned is refused."""
    pinned = {row[0]: row[1:] for row in connection.execute(f"SELECT * FROM {PINNED}").fetchall()}
    for name, table in tables.items():
        if name not in pinned or pinned[name][0] != describe_origin(table):
            older = name in pinned and str(pinned[name][0]).partition(":")[0] != str(LAYOUT)
            raise build_unpinned_error(name, by_other_version=older)
    return {name: str(pinned[name][1]) for name in tables}
