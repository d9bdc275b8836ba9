"""The names and types of a source's columns, for the owner's commands. No row is read."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import duckdb

from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.readers import open_source
from sfumato.ingest.source_refusals import unreadable


def list_source_columns(
    table: str, data: object, folder: Path | None = None, reading: TextFormat = PLAIN_TEXT
) -> dict[str, str]:
    """The columns of a source and their types, by its header line or its schema."""
    columns: Mapping[str, str] | None = None
    with (
        suppress(duckdb.Error, RuntimeError, ValueError, OSError),
        connect_to_pin() as connection,
        open_source(connection, table, data, folder, reading, whole=False) as source,
    ):
        columns = source.columns
    if columns is None:
        raise unreadable(table)
    return dict(columns)
