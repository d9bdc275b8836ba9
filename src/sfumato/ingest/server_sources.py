"""Sources on a database server. What reads them is loaded only where a catalog names one: it needs an extra."""

from contextlib import ExitStack
from importlib import import_module

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.source_relation import SourceRelation

POSTGRES = "sfumato.ingest.postgres_sources"


def read_server_table(
    connection: duckdb.DuckDBPyConnection, table: Table, source: str, stack: ExitStack, *, whole: bool
) -> SourceRelation:
    """Copy a table of a PostgreSQL database into one that lasts as long as the stack."""
    found: SourceRelation = import_module(POSTGRES).read_postgres_table(connection, table, source, stack, whole=whole)
    return found


def digest_server_table(source: str) -> tuple[str, int, str]:
    """The full name of a table, its number of rows, and a digest of them that does not depend on their order."""
    name, rows, digest = import_module(POSTGRES).digest_rows(source)
    return str(name), int(rows), str(digest)
