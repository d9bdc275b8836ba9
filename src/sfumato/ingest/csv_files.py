"""CSV files: what the owner declares or the header line says, and nothing that is guessed from records.

Part of the trusted perimeter: claim K-52.
"""

import codecs
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sfumato.catalog.text_format import TextFormat
from sfumato.ingest.encodings import copy_in_utf8
from sfumato.ingest.malformed_records import explain_malformed, refuse_file
from sfumato.ingest.record_messages import NOT_UTF8
from sfumato.ingest.records import (
    MOST_BYTES,
    CsvDialect,
    Malformed,
    Records,
    copy_without_malformed,
    read_header,
    refuse_records_in_quotes,
    separate,
)
from sfumato.ingest.source_refusals import first_lines_differ, names_unclear
from sfumato.ingest.sql_quoting import text, write_file_list

BOM = codecs.BOM_UTF8
BUFFER = 8_000_000  # bytes that DuckDB's reader holds at once, a few times; four of its longest lines
MOST_LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """What follows FROM, and the records: how many there are, how many were dropped, and the lines of the first."""

    relation: str
    records: int | None
    dropped: int
    dropped_lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Head:
    names: tuple[str, ...]
    delimiter: str
    crlf: bool


def read_csv_files(
    table: str, files: Sequence[Path], reading: TextFormat, stack: ExitStack, *, whole: bool = True
) -> CsvFiles:
    """The relation of CSV files whose records were all checked; a malformed record refuses the load.

    Not `whole`: for the names of the columns alone, no record is looked at.
    """
    heads: list[_Head] = []
    checked: list[Path] = []
    found: list[Records] = []
    for path in files:
        wrong: Malformed | None = None
        try:
            readable, head, records = _check_file(table, path, reading, stack, whole=whole)
        except Malformed as error:
            wrong = error
        if wrong is not None:
            raise refuse_file(table, path, wrong, reading)
        if heads and head != heads[0]:
            raise first_lines_differ(table, path, files[0])
        heads.append(head)
        checked.append(readable)
        found.append(records)
    return CsvFiles(
        _write_reader(checked, heads[0], parallel=not any(records.newlines_in_quotes for records in found)),
        sum(records.number for records in found) if whole else None,
        sum(len(records.malformed) for records in found),
        tuple(
            (path.name, line)
            for path, records in zip(files, found, strict=True)
            for line in records.lines[:MOST_LINES_SHOWN]
        ),
    )


def _check_file(
    table: str, path: Path, reading: TextFormat, stack: ExitStack, *, whole: bool
) -> tuple[Path, _Head, Records]:
    """The file to read instead of a file: itself, or a copy in UTF-8 or without malformed lines."""
    content = path
    if reading.encoding != "utf-8":
        content = _make_folder(stack) / path.name
        copy_in_utf8(path, reading.encoding, content, whole=whole)
    head, begin = _read_head(table, path, content, reading)
    if not whole:
        return content, head, Records(0)
    dialect = _make_dialect(head.delimiter, len(head.names), head.crlf, reading)
    try:
        records = separate(content, begin, dialect, skip=reading.on_error == "skip")
    except Malformed as error:
        raise explain_malformed(content, error, dialect) from None
    if not records.malformed:
        return content, head, records
    kept = _make_folder(stack) / path.name
    copy_without_malformed(content, records, kept)
    return kept, head, records


def _write_reader(files: Sequence[Path], head: _Head, *, parallel: bool) -> str:
    """DuckDB's reader in its strictest form. What it makes of a record is tested beside a plain reader of the grammar.

    It is not given the end of lines: where it is given, version 2.0.0 reads no row of a file with CR LF. It guesses
    where records begin when it reads in parallel, which is certain only without line breaks in quotes.
    """
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in head.names)
    return (
        f"read_csv({write_file_list(files)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {text(head.delimiter)}, quote = '\"', escape = '\"', hive_partitioning = false, "
        f"compression = 'none', null_padding = false, strict_mode = true, ignore_errors = false, "
        f"max_line_size = 2000000, buffer_size = {BUFFER}, parallel = {str(parallel).lower()})"
    )


def _make_dialect(delimiter: str, columns: int, crlf: bool, reading: TextFormat) -> CsvDialect:
    newlines, records = reading.quoted_newlines is not False, reading.quoted_newlines is True
    return CsvDialect(delimiter.encode(), columns, crlf, quoted_newlines=newlines, records_in_quotes=records)


def _read_head(table: str, path: Path, content: Path, reading: TextFormat) -> tuple[_Head, int]:
    """The header line, and the byte behind it. A delimiter that is not declared is guessed from this line alone."""
    with content.open("rb") as file:
        start = file.read(MOST_BYTES)
    mark = len(BOM) if start.startswith(BOM) else 0
    line = start[mark:].partition(b"\n")[0].decode("utf-8", "replace")
    guessed = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
    delimiter, newlines = reading.delimiter or guessed, reading.quoted_newlines is not False
    fields, end, crlf = read_header(start[mark:], delimiter.encode(), quoted_newlines=newlines)
    # Before any message lists the names: an unclosed quote of the header would make names of people's lines.
    refuse_records_in_quotes(start[: mark + end], 1, _make_dialect(delimiter, len(fields), crlf, reading))
    try:
        names = tuple(field.decode("utf-8") for field in fields)
    except UnicodeDecodeError:
        raise Malformed(1, NOT_UTF8) from None
    if not all(names) or len({name.lower() for name in names}) != len(names):
        raise names_unclear(table, path)
    return _Head(names, delimiter, crlf), mark + end


def _make_folder(stack: ExitStack) -> Path:
    """A folder that is removed after reading."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-")))
