"""Attach another DuckDB file, to be read. Which of its tables may be read: `database_tables.py`."""

import re
from contextlib import ExitStack, suppress
from pathlib import Path

import duckdb

from sfumato.ingest.hidden_names import ATTACHED
from sfumato.ingest.source_refusals import build_attach_error, build_table_name_error
from sfumato.ingest.sql_quoting import quote_text

NAMES = re.compile(r'(?:(?P<schema>[^."]+|"(?:[^"]|"")+")\.)?(?P<table>[^."]+|"(?:[^"]|"")+")')


def attach_file(
    connection: duckdb.DuckDBPyConnection, table: str, path: Path, name: str, stack: ExitStack
) -> tuple[str, str]:
    """Attach the file until the stack is closed. Returns the schema and the name of the table that the owner wrote."""
    names = NAMES.fullmatch(name)
    if names is None:
        raise build_table_name_error(table, path)
    attached = False
    with suppress(duckdb.Error):
        connection.execute(f"ATTACH {quote_text(str(path))} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
        attached = True
    if not attached:
        raise build_attach_error(table, path)
    stack.callback(connection.execute, f"DETACH {ATTACHED}")
    return unquote(names["schema"] or "main"), unquote(names["table"])


def unquote(name: str) -> str:
    """A name that may be in double quotes, without them."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
