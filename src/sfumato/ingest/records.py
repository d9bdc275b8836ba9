r"""The records of a CSV file: an exact grammar, checked over every byte before anything is read.

    record = field *(delimiter field) end        as many fields as the header line names
    field  = plain | '"' *(any byte but '"' and NUL | '""') '"'
    plain  = *(any byte but the delimiter, '"', CR, LF and NUL)
    end    = the header line's own: LF, or CR LF; the last record may go without

Bytes are UTF-8. With quoted_newlines = false, quoted fields hold no CR or LF either, so that every line is a record.
Where quoted_newlines is not declared, a line that begins inside quotes must not be a record by itself: it may be
another person's, between two unclosed quotes. A line without a byte is no record, unless there is one column: then it
is one empty field. A record has at most MOST_BYTES. Part of the trusted perimeter: claim K-52.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.ingest.record_messages import BAD_HEADER, DECLARE_NEWLINES, IN_QUOTES, NOT_WELL_FORMED

MOST_BYTES = 1_900_000  # of one record: DuckDB's reader takes 2,000,000
WINDOW = MOST_BYTES + 2  # a record and its end: a longer record is in no window, and is refused
QUOTE, LF, CRLF = b'"', b"\n", b"\r\n"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """What separates fields, how many there are, how a record ends, and whether quoted fields may hold line breaks.

    `records_in_quotes`: may a line that begins inside quotes be a well-formed record by itself?
    """

    delimiter: bytes
    columns: int
    end: bytes  # LF or CRLF
    quoted_newlines: bool
    records_in_quotes: bool


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a file: how many there are, and whether quoted fields hold line breaks."""

    number: int
    newlines_in_quotes: bool = False


@dataclass(eq=False)
class Malformed(Exception):
    """A record that cannot be separated from its neighbours: its line, why, what to do. It quotes nothing.

    `place`: a file, a byte and the dialect. The record is at that byte, or behind well-formed records that begin there.
    """

    line: int
    why: str
    advice: str = ""
    place: tuple[Path, int, CsvDialect] | None = None


def separate(path: Path, begin: int, dialect: CsvDialect) -> Records:
    """Check every record of a file from the byte `begin`, after the header line, to its end.

    Claim: K-52. Returns only if the bytes are a sequence of records of the grammar; otherwise raises Malformed.
    Requires: `begin` is the beginning of a record.
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    lines, number, at, newlines_in_quotes = compile_lines(dialect), 0, begin, False
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        line = 1 + file.read(begin).count(LF)
        while at < size:
            window = os.pread(file.fileno(), WINDOW, at)
            if at + len(window) >= size and not window.endswith(LF):
                window += dialect.end  # the last record may go without
            found = lines.match(window)
            sound = b"" if found is None else found[0]
            if not sound or not is_utf8(sound):
                raise Malformed(line, NOT_WELL_FORMED, place=(path, at, dialect))
            breaks, inside = _find_line_breaks(sound)
            if inside.any():
                refuse_records_in_quotes(sound, line, dialect)
                newlines_in_quotes = True
            sizes = np.diff(breaks[~inside], prepend=-1)
            number += len(sizes) if dialect.columns == 1 else int(np.count_nonzero(sizes > len(dialect.end)))
            at, line = at + len(sound), line + len(breaks)
    return Records(number, newlines_in_quotes)


def copy_well_formed_lines(path: Path, begin: int, dialect: CsvDialect, to: Path) -> list[int]:
    """Copy the bytes before `begin`, and after them every line but the malformed ones. Returns the malformed lines.

    Claim: K-52. Exactly the lines that are no records by themselves are left out. The last line gets an end.
    Requires: `begin` is the beginning of a record; quoted fields hold no line breaks (checked by TextFormat).
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_skip_drops_exactly_the_malformed_records
    """
    lines, malformed = compile_lines(dialect), []
    with path.open("rb") as source, to.open("xb") as target:
        head = source.read(begin)
        target.write(head)
        number = 1 + head.count(LF)
        while line := source.readline(WINDOW):
            if len(line) < WINDOW and not line.endswith(LF):
                line += dialect.end  # the last record may go without
            if lines.fullmatch(line) and is_utf8(line):
                target.write(line)
            else:
                malformed.append(number)
                while line and not line.endswith(LF):
                    line = source.readline(WINDOW)
            number += 1
    return malformed


def read_header(start: bytes, delimiter: bytes, *, quoted_newlines: bool) -> tuple[list[bytes], int, bytes]:
    """The fields of the first record, where it ends, and its end: LF or CR LF. The header is nobody's data.

    Claim: K-52. By the grammar of records; raises Malformed.
    Requires: the file begins at `start`.
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    field = re.compile(write_field(delimiter, quoted_newlines=quoted_newlines))
    fields, at = [], 0
    while match := field.match(start, at):
        text, at = match[0], match.end()
        fields.append(text[1:-1].replace(b'""', b'"') if text.startswith(QUOTE) else text)
        if start.startswith(CRLF, at):
            return fields, at + 2, CRLF
        if start.startswith(LF, at) or at == len(start):
            return fields, min(at + 1, len(start)), LF
        if not start.startswith(delimiter, at):
            break
        at += 1
    raise Malformed(1, BAD_HEADER)


def refuse_records_in_quotes(window: bytes, line: int, dialect: CsvDialect) -> None:
    """Refuse a line that begins inside quotes and is a record by itself, unless the dialect allows it.

    Claim: K-52. No line of the window is a well-formed record and not a record of the file, unless `records_in_quotes`.
    Requires: the window is a sequence of whole records, the first of which begins on `line`.
    Relies on: K-52.
    Checked by: tests/ingest/test_lines_of_others.py::test_records_in_several_places_leave_the_lines_of_others
    """
    if dialect.records_in_quotes:
        return
    record = compile_record(dialect)
    breaks, inside = _find_line_breaks(window)
    for place in np.flatnonzero(inside[:-1]).tolist():  # a line follows
        inner = window[breaks[place] + 1 : breaks[place + 1] + 1]
        if inner.endswith(dialect.end) and record.fullmatch(inner.removesuffix(dialect.end)):
            begins = line + 1 + max(np.flatnonzero(~inside[:place]).tolist(), default=-1)
            raise Malformed(begins, IN_QUOTES.format(line + place + 1), DECLARE_NEWLINES)


def _find_line_breaks(window: bytes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Where each LF stands, and whether it is inside quotes: behind an odd number of them."""
    data = np.frombuffer(window, np.uint8)
    breaks = np.flatnonzero(data == LF[0])
    return breaks, np.searchsorted(np.flatnonzero(data == QUOTE[0]), breaks) % 2 == 1


def is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def compile_lines(dialect: CsvDialect) -> re.Pattern[bytes]:
    """Records with their ends and lines without a byte, as many as follow one another."""
    return re.compile(b"(?:(?:" + compile_record(dialect).pattern + b")?" + dialect.end + b")*+")


def compile_record(dialect: CsvDialect) -> re.Pattern[bytes]:
    """One record, without its end."""
    field = write_field(dialect.delimiter, quoted_newlines=dialect.quoted_newlines)
    return re.compile(field + b"(?:" + re.escape(dialect.delimiter) + field + b"){%d}" % (dialect.columns - 1))


def write_field(delimiter: bytes, *, quoted_newlines: bool) -> bytes:
    """One field. A possessive quantifier (*+) takes all that it can, as the grammar says: there is no second way."""
    inner = b'[^"\\0' + (b"" if quoted_newlines else rb"\r\n") + b"]*+"
    return b'(?:"' + inner + b'(?:""' + inner + b')*+"|[^' + re.escape(delimiter) + rb'"\r\n\0]*+)'
