"""Explain a file that was refused: the line of its first malformed record, what is wrong, and what to do.

The refusal is certain before this code runs (records.py). Nothing here decides whether a file is read.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sfumato.catalog.text_format import TextFormat
from sfumato.errors import CatalogError
from sfumato.ingest.record_messages import NOT_UTF8, NOT_WELL_FORMED, OTHER_ENCODING, REPAIR, SKIP
from sfumato.ingest.records import (
    LF,
    MOST_BYTES,
    QUOTE,
    WINDOW,
    CsvDialect,
    Malformed,
    compile_record,
    is_utf8,
)
from sfumato.ingest.source_refusals import build_source_error

Found = TypeVar("Found")


def explain_refusal(table: str, path: Path, reading: TextFormat, check: Callable[[], Found]) -> Found:
    """Check a file. Of one that is malformed, find the line and the reason, and refuse it."""
    wrong: Malformed
    try:
        return check()
    except Malformed as error:
        wrong = error
    raise _refuse_file(
        table, path, wrong if wrong.place is None else _find_malformed(wrong.line, *wrong.place), reading
    )


def _refuse_file(table: str, path: Path, wrong: Malformed, reading: TextFormat) -> CatalogError:
    """The refusal of a file, by its first malformed record."""
    hints = [wrong.advice]
    if not wrong.advice:
        encoding, repair = wrong.why == NOT_UTF8 or "NUL" in wrong.why or "header" in wrong.why, wrong.why != NOT_UTF8
        skip = reading.on_error != "skip" and "header" not in wrong.why
        hints = [OTHER_ENCODING if encoding else "", REPAIR if repair else "", SKIP if skip else ""]
    return build_source_error(table, f"{path.name}, line {wrong.line:,}: {wrong.why}.", " ".join(filter(None, hints)))


def _find_malformed(line: int, path: Path, at: int, dialect: CsvDialect) -> Malformed:
    """Find the first malformed record behind the sound ones that `separate` passed."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while window := os.pread(file.fileno(), WINDOW, at):
            end, is_broken = _read_up_to_malformed(window, dialect, last=at + len(window) >= size)
            line, at = line + window[:end].count(LF), at + end
            if is_broken:
                return Malformed(line, _describe_fault(window[end:], dialect))
    return Malformed(line, NOT_WELL_FORMED)


def _read_up_to_malformed(window: bytes, dialect: CsvDialect, *, last: bool) -> tuple[int, bool]:
    """Read record by record: where the well-formed ones end, and whether a malformed one follows."""
    record, end, at = compile_record(dialect), dialect.end, 0
    while at < len(window):
        if dialect.columns > 1 and window.startswith(end, at):
            at += len(end)
            continue
        match = record.match(window, at)
        stop = at if match is None else match.end()
        ended = match is not None and (window.startswith(end, stop) or (last and stop == len(window)))
        if not ended or stop - at > MOST_BYTES or not is_utf8(window[at:stop]):
            is_whole = last or at == 0 or len(window) - at > MOST_BYTES + 2
            return at, is_whole
        at = min(stop + len(end), len(window))
    return at, False


def _describe_fault(rest: bytes, dialect: CsvDialect) -> str:  # noqa: PLR0911 - one return a rule
    """What is wrong with the record at the beginning."""
    fields, at, delimiter = 1, 0, dialect.delimiter
    plain = re.compile(b"[^" + re.escape(delimiter) + rb'"\r\n\0]*+')
    quoted = re.compile(rb'"(?:[^"\0]|"")*+"')
    while True:
        match = (quoted if rest.startswith(QUOTE, at) else plain).match(rest, at)
        if match is None:
            nul = rest.find(b"\0", at, at + MOST_BYTES) >= 0
            return "it has a NUL byte" if nul else "a quote is opened and not closed"
        if not dialect.quoted_newlines and re.search(rb"[\r\n]", match[0]):
            return "a quoted field holds a line break"
        if not is_utf8(match[0]):
            return NOT_UTF8
        was_quoted, at = match[0].startswith(QUOTE), match.end()
        if at > MOST_BYTES:
            return f"it is longer than {MOST_BYTES:,} bytes"
        if not rest.startswith(delimiter, at):
            break
        fields, at = fields + 1, at + 1
    ends = at == len(rest) or rest.startswith(dialect.end, at)
    if rest.startswith(b"\0", at):
        return "it has a NUL byte"
    if rest.startswith((b"\r", LF), at) and not ends:
        return "it has a line end unlike the header's"
    if not ends:
        return "text follows a closing quote" if was_quoted else "a quote stands inside a field that is not quoted"
    return f"it has {fields:,} fields instead of {dialect.columns:,}"
