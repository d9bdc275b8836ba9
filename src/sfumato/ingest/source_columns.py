"""The names and types of a source's columns, for the owner's commands. No row is read."""

from pathlib import Path

from sfumato.catalog.dataset import Table
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.ingest.connections import connect_to_pin
from sfumato.ingest.readers import open_source
from sfumato.ingest.source_refusals import hide_errors


def list_source_columns(
    table: str, data: object, folder: Path | None = None, reading: TextFormat = PLAIN_TEXT
) -> dict[str, str]:
    """The columns of a source and their types, by its header line or its schema."""

    declared = Table(table, None, None, {}, public=True, reading=reading)

    def read() -> dict[str, str]:
        with (
            connect_to_pin() as connection,
            open_source(connection, declared, data, folder, whole=False) as source,
        ):
            return dict(source.columns)

    return hide_errors(table, read)
