"""CSV files: what the owner declares or the header line says, and nothing that is guessed from records.

Part of the trusted perimeter: claim K-52.
"""

import codecs
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sfumato.catalog.text_format import TextFormat
from sfumato.ingest.encodings import copy_in_utf8
from sfumato.ingest.malformed_records import explain_refusal
from sfumato.ingest.record_messages import NOT_UTF8
from sfumato.ingest.records import (
    MOST_BYTES,
    CsvDialect,
    Malformed,
    Records,
    copy_well_formed_lines,
    read_header,
    refuse_records_in_quotes,
    separate,
)
from sfumato.ingest.source_refusals import build_header_error, build_names_error
from sfumato.ingest.source_relation import SourceRelation
from sfumato.ingest.sql_quoting import quote_text, write_file_list

BOM = codecs.BOM_UTF8
BUFFER = 8_000_000  # bytes that DuckDB's reader holds at once, a few times; four of its longest lines


@dataclass(frozen=True, slots=True)
class _CheckedFile:
    """A file whose records were checked: itself, or a copy in UTF-8 or without its malformed lines."""

    content: Path
    names: tuple[str, ...]
    dialect: CsvDialect
    records: Records
    malformed: Sequence[int] = ()


def read_csv_files(
    table: str, files: Sequence[Path], reading: TextFormat, stack: ExitStack, *, whole: bool = True
) -> SourceRelation:
    """The relation of CSV files whose records were all checked; a malformed record refuses the load.

    Not `whole`: for the names of the columns alone, no record is looked at.
    """
    checked: list[_CheckedFile] = []
    for path in files:
        check = partial(_check_file, table, path, reading, stack, whole=whole)
        checked.append(explain_refusal(table, path, reading, check))
        if (checked[-1].names, checked[-1].dialect) != (checked[0].names, checked[0].dialect):
            raise build_header_error(table, path, files[0])
    return SourceRelation(
        _write_reader(checked),
        dict.fromkeys(checked[0].names, "VARCHAR"),
        sum(file.records.number for file in checked) if whole else None,
        {path.name: file.malformed for path, file in zip(files, checked, strict=True)},
        untyped=True,
    )


def _check_file(table: str, path: Path, reading: TextFormat, stack: ExitStack, *, whole: bool) -> _CheckedFile:
    content = path
    if reading.encoding != "utf-8":
        content = _make_folder(stack) / path.name
        copy_in_utf8(path, reading.encoding, content, whole=whole)
    names, dialect, begin = _read_header(table, path, content, reading)
    if not whole:
        return _CheckedFile(content, names, dialect, Records(0))
    try:
        return _CheckedFile(content, names, dialect, separate(content, begin, dialect))
    except Malformed:
        if reading.on_error != "skip":
            raise
    kept = _make_folder(stack) / path.name
    malformed = copy_well_formed_lines(content, begin, dialect, kept)
    return _CheckedFile(kept, names, dialect, separate(kept, begin, dialect), malformed)


def _write_reader(checked: Sequence[_CheckedFile]) -> str:
    """DuckDB's reader in its strictest form. What it makes of a record is tested beside a plain reader of the grammar.

    It is not given the end of lines: where it is given, version 2.0.0 reads no row of a file with CR LF. It guesses
    where records begin when it reads in parallel, which is certain only without line breaks in quotes.
    """
    delimiter = quote_text(checked[0].dialect.delimiter.decode())
    parallel = not any(file.records.newlines_in_quotes for file in checked)
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in checked[0].names)
    return (
        f"read_csv({write_file_list([file.content for file in checked])}, auto_detect = false, header = true, "
        f"columns = {{{columns}}}, delim = {delimiter}, quote = '\"', escape = '\"', "
        "hive_partitioning = false, compression = 'none', null_padding = false, strict_mode = true, "
        f"ignore_errors = false, max_line_size = 2000000, buffer_size = {BUFFER}, parallel = {str(parallel).lower()})"
    )


def _read_header(table: str, path: Path, content: Path, reading: TextFormat) -> tuple[tuple[str, ...], CsvDialect, int]:
    """The names of the columns, the dialect, and the byte behind the header line.

    A delimiter that is not declared is guessed from this line alone.
    """
    with content.open("rb") as file:
        start = file.read(MOST_BYTES)
    mark = len(BOM) if start.startswith(BOM) else 0
    line = start[mark:].partition(b"\n")[0].decode("utf-8", "replace")
    guessed = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
    delimiter, newlines = (reading.delimiter or guessed).encode(), reading.quoted_newlines is not False
    fields, length, end = read_header(start[mark:], delimiter, quoted_newlines=newlines)
    dialect = CsvDialect(delimiter, len(fields), end, newlines, records_in_quotes=reading.quoted_newlines is True)
    # Before any message lists the names: an unclosed quote of the header would make names of people's lines.
    refuse_records_in_quotes(start[: mark + length], 1, dialect)
    try:
        names = tuple(field.decode("utf-8") for field in fields)
    except UnicodeDecodeError:
        raise Malformed(1, NOT_UTF8) from None
    if not all(names) or len({name.lower() for name in names}) != len(names):
        raise build_names_error(table, path)
    return names, dialect, mark + length


def _make_folder(stack: ExitStack) -> Path:
    """A folder that is removed after reading."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-")))
