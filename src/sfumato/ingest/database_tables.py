"""A table of another DuckDB file, attached to be read. Part of the trusted perimeter: claim K-50.

Views are refused, and so are generated columns of random numbers: a source must give the same rows when it is read
again, and no row may be computed from the rows of others.
"""

import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import duckdb

from sfumato.ingest.hidden_names import ATTACHED
from sfumato.ingest.source_refusals import no_such_table, not_a_table_name, not_attached, volatile_column
from sfumato.ingest.sql_quoting import quote, text

NAMES = re.compile(r'(?:(?P<schema>[^."]+|"(?:[^"]|"")+")\.)?(?P<table>[^."]+|"(?:[^"]|"")+")')


def attach_table(connection: duckdb.DuckDBPyConnection, table: str, path: Path, name: str, stack: ExitStack) -> str:
    """Attach the file until the stack is closed. Returns the table's full name, in quotes."""
    names = NAMES.fullmatch(name)
    if names is None:
        raise not_a_table_name(table, path)
    attached = False
    with suppress(duckdb.Error):
        connection.execute(f"ATTACH {text(str(path))} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
        attached = True
    if not attached:
        raise not_attached(table, path)
    stack.callback(connection.execute, f"DETACH {ATTACHED}")
    wanted = [_unquote(names["schema"] or "main"), _unquote(names["table"])]
    found = find_in_file(connection, "table", wanted)
    if found is None:
        raise no_such_table(table, path, wanted, is_view=find_in_file(connection, "view", wanted) is not None)
    _refuse_volatile(connection, table, found)
    return f"{ATTACHED}.{quote(found[0])}.{quote(found[1])}"


def find_in_file(connection: duckdb.DuckDBPyConnection, kind: str, names: Sequence[str]) -> tuple[str, str] | None:
    """The schema and the name of a table or a view of the attached file, as the file spells them."""
    found: tuple[str, str] | None = connection.execute(
        f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE database_name = '{ATTACHED}' "
        f"AND lower(schema_name) = lower(?) AND lower({kind}_name) = lower(?)",
        list(names),
    ).fetchone()
    return found


def _refuse_volatile(connection: duckdb.DuckDBPyConnection, table: str, names: Sequence[str]) -> None:
    query = f"SELECT sql FROM duckdb_tables() WHERE database_name = '{ATTACHED}' AND schema_name = ? AND table_name = ?"
    _, generated, rest = str(connection.execute(query, list(names)).fetchall()[0][0]).partition("GENERATED ALWAYS AS")
    if generated:
        query = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'"
        volatile = {str(row[0]) for row in connection.execute(query).fetchall()}
        if volatile & {name.lower() for name in re.findall(r'(\w+)"?\s*\(', rest)}:
            raise volatile_column(table)


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
