"""CSV files: what the owner declares or the header line says, and nothing that is guessed from records.

Part of the trusted perimeter: claim K-52.
"""

import codecs
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sfumato.catalog.catalog_errors import catalog_error
from sfumato.catalog.text_format import TextFormat
from sfumato.errors import CatalogError
from sfumato.ingest.encodings import OTHER_ENCODING, copy_in_utf8
from sfumato.ingest.records import (
    MOST_BYTES,
    UTF8,
    Dialect,
    Malformed,
    Records,
    header,
    refuse_records_in_quotes,
    separate,
    without,
)
from sfumato.ingest.sql_quoting import listed, text

BOM = codecs.BOM_UTF8
BUFFER = 8_000_000  # bytes that DuckDB's reader holds at once, a few times; four of its longest lines
REPAIR = (
    "Repair the record: a field that holds a delimiter, a double quote or a line break stands in double quotes, and "
    "each double quote inside it is doubled."
)
SKIP = (
    'If no field holds a line break, quoted_newlines = false and on_error = "skip" (command line: '
    "--no-quoted-newlines --on-error skip) drop such records and count them."
)


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


def csv_files(
    table: str, files: Sequence[Path], reading: TextFormat, stack: ExitStack, *, whole: bool = True
) -> CsvFiles:
    """The relation of CSV files whose records were all checked; one that is malformed refuses the load.

    Not `whole`: for the names of the columns alone, no record is looked at.
    """
    heads: list[_Head] = []
    read: list[Path] = []
    found: list[tuple[Path, Records]] = []
    for path in files:
        wrong: Malformed | None = None
        try:
            kept, head, records = _checked(table, path, reading, stack, whole=whole)
        except Malformed as error:
            wrong = error
        if wrong is not None:
            raise _malformed(table, path, wrong, reading)
        if heads and head != heads[0]:
            hint = "Files that are read together begin with the same line, and end their lines alike."
            raise _refused(table, f"the first line of {path.name} differs from that of {files[0].name}.", hint)
        heads.append(head)
        read.append(kept)
        found.append((path, records))
    return CsvFiles(
        _relation(read, heads[0], parallel=not any(each.newlines_in_quotes for _, each in found)),
        sum(each.number for _, each in found) if whole else None,
        sum(len(each.malformed) for _, each in found),
        tuple((path.name, line) for path, each in found for line in each.lines),
    )


def _checked(
    table: str, path: Path, reading: TextFormat, stack: ExitStack, *, whole: bool
) -> tuple[Path, _Head, Records]:
    """The file to read instead of a file: itself, or a copy in UTF-8 without malformed lines."""
    content = _in_utf8(path, reading, stack, whole=whole)
    head, begin = _head(table, path, content, reading)
    if not whole:
        return content, head, Records(0)
    records = separate(
        content, begin, _dialect(head.delimiter, len(head.names), head.crlf, reading), skip=reading.on_error == "skip"
    )
    if not records.malformed:
        return content, head, records
    kept = _scratch(stack) / path.name
    without(content, records, kept)
    return kept, head, records


def _relation(files: Sequence[Path], head: _Head, *, parallel: bool) -> str:
    """DuckDB's reader in its strictest form. What it makes of a record is tested beside a plain reader of the grammar.

    It is not told the end of lines: where it is told, version 2.0.0 reads no row of a file with CR LF. It guesses where
    records begin when it reads in parallel, which is certain only without line breaks in quotes.
    """
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in head.names)
    return (
        f"read_csv({listed(files)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {text(head.delimiter)}, quote = '\"', escape = '\"', hive_partitioning = false, "
        f"compression = 'none', null_padding = false, strict_mode = true, ignore_errors = false, "
        f"max_line_size = 2000000, buffer_size = {BUFFER}, parallel = {str(parallel).lower()})"
    )


def _dialect(delimiter: str, columns: int, crlf: bool, reading: TextFormat) -> Dialect:
    newlines, records = reading.quoted_newlines is not False, reading.quoted_newlines is True
    return Dialect(delimiter.encode(), columns, crlf, quoted_newlines=newlines, records_in_quotes=records)


def _head(table: str, path: Path, content: Path, reading: TextFormat) -> tuple[_Head, int]:
    with content.open("rb") as file:
        start = file.read(MOST_BYTES)
    mark = len(BOM) if start.startswith(BOM) else 0
    line = start[mark:].partition(b"\n")[0].decode("utf-8", "replace")
    guessed = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)
    delimiter = reading.delimiter or guessed
    fields, begin, crlf = header(start[mark:], delimiter.encode(), quoted_newlines=reading.quoted_newlines is not False)
    # Before any message lists the names: an unclosed quote of the header would make names of people's lines.
    refuse_records_in_quotes(start[: mark + begin], 1, _dialect(delimiter, len(fields), crlf, reading))
    try:
        names = tuple(each.decode("utf-8") for each in fields)
    except UnicodeDecodeError:
        raise Malformed(1, UTF8) from None
    if not all(names) or len({name.lower() for name in names}) != len(names):
        hint = "Give it a header line, with another name for each column. delimiter says what separates them."
        raise _refused(table, f"the first line of {path.name} must name the columns, each once.", hint)
    return _Head(names, delimiter, crlf), mark + begin


def _in_utf8(path: Path, reading: TextFormat, stack: ExitStack, *, whole: bool) -> Path:
    """The file itself, or a copy in UTF-8 that is removed after reading."""
    if reading.encoding == "utf-8":
        return path
    copy = _scratch(stack) / path.name
    copy_in_utf8(path, reading.encoding, copy, whole=whole)
    return copy


def _scratch(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-")))


def _malformed(table: str, path: Path, wrong: Malformed, reading: TextFormat) -> CatalogError:
    """Where a record cannot be separated from its neighbours, and what to do. No value is quoted."""
    hints = [wrong.advice]
    if not wrong.advice:
        encoding, repair = wrong.why == UTF8 or "NUL" in wrong.why or "header" in wrong.why, wrong.why != UTF8
        skip = reading.on_error != "skip" and "header" not in wrong.why
        hints = [OTHER_ENCODING if encoding else "", REPAIR if repair else "", SKIP if skip else ""]
    return _refused(table, f"{path.name}, line {wrong.line:,}: {wrong.why}.", " ".join(filter(None, hints)))


def _refused(table: str, message: str, hint: str) -> CatalogError:
    return catalog_error(f"tables.{table}: {message}", hint)
