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
WINDOW = 1 << 23
QUOTE, CR, LF, CRLF = b'"', b"\r", b"\n", b"\r\n"
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """What separates fields, how many there are, how a record ends, and whether quoted fields may hold line breaks.

    `records_in_quotes`: may a line that begins inside quotes be a well-formed record by itself?
    """

    delimiter: bytes
    columns: int
    crlf: bool
    quoted_newlines: bool
    records_in_quotes: bool

    @property
    def end(self) -> bytes:
        return CRLF if self.crlf else LF


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a file: how many; the byte ranges and the numbers of malformed lines; line breaks in quotes."""

    number: int
    malformed: tuple[tuple[int, int], ...] = ()
    lines: tuple[int, ...] = ()
    newlines_in_quotes: bool = False


class Malformed(Exception):
    """A record that cannot be separated from its neighbours: its line, why, what to do. It quotes nothing.

    `after`: the record is at or behind this byte, which begins a record on this line. None: it is on this line.
    """

    def __init__(self, line: int, why: str, advice: str = "", after: int | None = None) -> None:
        super().__init__(line, why, advice)
        self.line, self.why, self.advice, self.after = line, why, advice, after


def separate(path: Path, begin: int, dialect: CsvDialect, *, skip: bool) -> Records:
    """Check every record of a file from the byte `begin`, after the header line, to its end.

    Claim: K-52. Returns only if the bytes are a sequence of records of the grammar, but for the malformed lines that
        are returned where `skip`; otherwise raises Malformed.
    Requires: `begin` is the beginning of a record; `skip` only without quoted newlines (checked by TextFormat).
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    malformed: list[tuple[int, int]] = []
    lines: list[int] = []
    number, at, in_quotes = 0, begin, False
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        line = 1 + file.read(begin).count(LF)
        while window := os.pread(file.fileno(), WINDOW, at):
            whole = window if at + len(window) >= size else _cut_whole_records(window, by_line=skip)
            records = _count_records(whole, dialect) if whole else None
            if records is None and not skip:
                raise Malformed(line, NOT_WELL_FORMED, after=at)
            if not whole:  # a line that is longer than the window
                file.seek(at)
                while (part := file.readline(WINDOW)) and not part.endswith(LF):
                    pass
                malformed.append((at, file.tell()))
                lines.append(line)
                at, line = file.tell(), line + 1
                continue
            if records is None:
                records = _check_lines(whole, dialect)
                malformed += [(at + start, at + stop) for start, stop in records.malformed]
                lines += [line + place for place in records.lines]
            elif records.newlines_in_quotes:
                refuse_records_in_quotes(whole, line, dialect)
                in_quotes = True
            number, at, line = number + records.number, at + len(whole), line + whole.count(LF)
    return Records(number, tuple(malformed), tuple(lines), in_quotes)


def read_header(start: bytes, delimiter: bytes, *, quoted_newlines: bool) -> tuple[list[bytes], int, bool]:
    """The fields of the first record, where it ends, and whether its end is CR LF. The header is nobody's data.

    Claim: K-52. By the grammar of records; raises Malformed.
    Requires: the file begins at `start`.
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    field = re.compile(_write_field(delimiter, quoted_newlines=quoted_newlines))
    fields, at = [], 0
    while match := field.match(start, at):
        text, at = match[0], match.end()
        fields.append(text[1:-1].replace(b'""', b'"') if text.startswith(QUOTE) else text)
        if start.startswith(CRLF, at):
            return fields, at + 2, True
        if start.startswith(LF, at) or at == len(start):
            return fields, min(at + 1, len(start)), False
        if not start.startswith(delimiter, at):
            break
        at += 1
    raise Malformed(1, BAD_HEADER)


def copy_without_malformed(path: Path, records: Records, to: Path) -> None:
    """Copy the file without its malformed lines.

    Claim: K-52. Byte for byte what is outside the malformed lines.
    Requires: the records are those of this file.
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_skip_drops_exactly_the_malformed_records
    """
    with path.open("rb") as source, to.open("xb") as target:
        at = 0
        for begin, end in (*records.malformed, (os.fstat(source.fileno()).st_size, 0)):
            while at < begin and (block := source.read(min(begin - at, 1 << 20))):
                target.write(block)
                at += len(block)
            at = end
            source.seek(end)


def _cut_whole_records(window: bytes, *, by_line: bool) -> bytes:
    """The window up to its last end of a record: a line feed with an even number of quotes before it."""
    stop, odd = len(window), window.count(QUOTE) % 2
    while (end := window.rfind(LF, 0, stop)) >= 0:
        odd = (odd + window.count(QUOTE, end, stop)) % 2
        if by_line or not odd:
            return window[: end + 1]
        stop = end
    return b""


def _count_records(window: bytes, dialect: CsvDialect) -> Records | None:
    """The number of records, if the window is a sequence of well-formed records; None otherwise. No loop over bytes."""
    data = np.frombuffer(window, np.uint8)
    quotes = _find(data, QUOTE) if QUOTE in window else np.empty(0, np.intp)
    if b"\0" in window or not is_utf8(window) or not quotes_stand_well(data, quotes, dialect):
        return None
    ends, places = _find_outside(data, LF, quotes), _find_outside(data, dialect.delimiter, quotes)
    returns = _find_outside(data, CR, quotes) if CR in window else ends[:0]
    inner = window.count(LF) - len(ends)
    if not dialect.quoted_newlines and (inner or window.count(CR) != len(returns)):
        return None
    if not np.array_equal(returns, ends - 1 if dialect.crlf else ends[:0]):
        return None
    if not window.endswith(LF):
        ends = np.append(ends, len(window))  # the last record, without an end
    sizes = np.diff(ends, prepend=-1) - 1
    if sizes.max() > MOST_BYTES:
        return None
    sizes[: len(returns)] -= dialect.crlf  # CR is no content
    needed = np.where(sizes > 0, dialect.columns - 1, 0)
    if not np.array_equal(np.diff(np.searchsorted(places, ends), prepend=0), needed):
        return None
    records = len(ends) if dialect.columns == 1 else int(np.count_nonzero(sizes))
    return Records(records, newlines_in_quotes=inner > 0)


def _check_lines(window: bytes, dialect: CsvDialect) -> Records:
    """Check line by line: the records, and the malformed lines, by byte and by line from the window's beginning."""
    record, number, at = compile_record(dialect), 0, 0
    malformed, lines = [], []
    for place, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+", window)):
        body = line.removesuffix(dialect.end)
        if body or dialect.columns == 1:
            if len(body) <= MOST_BYTES and record.fullmatch(body) and is_utf8(body):
                number += 1
            else:
                malformed.append((at, at + len(line)))
                lines.append(place)
        at += len(line)
    return Records(number, tuple(malformed), tuple(lines))


def refuse_records_in_quotes(window: bytes, line: int, dialect: CsvDialect) -> None:
    """Refuse a line that begins inside quotes and is a record by itself, unless the dialect allows it.

    Claim: K-52. No line of the window is a well-formed record and not a record of the file, unless `records_in_quotes`.
    Requires: the window is a sequence of whole records, the first of which begins on `line`.
    Relies on: K-52.
    Checked by: tests/ingest/test_lines_of_others.py::test_records_in_several_places_leave_the_lines_of_others
    """
    if dialect.records_in_quotes:
        return
    data = np.frombuffer(window, np.uint8)
    ends, quotes = _find(data, LF), _find(data, QUOTE)
    before = np.searchsorted(quotes, ends)
    inside = np.flatnonzero(before[:-1] % 2)  # a line break inside quotes, and not the last one: a line follows
    starts, stops = ends[inside] + 1, ends[inside + 1]
    inner = before[inside + 1] - before[inside]
    places, between = _find(data, dialect.delimiter), dialect.columns - 1
    separators = np.searchsorted(places, stops) - np.searchsorted(places, starts)
    likely = (inner % 2 == 0) & np.where(inner, separators >= between, separators == between)
    if dialect.crlf:
        likely &= data[stops - 1] == CR[0]
    record = compile_record(dialect)
    for start, stop in zip(starts[likely].tolist(), stops[likely].tolist(), strict=True):
        if record.fullmatch(window, start, stop - dialect.crlf):
            outside = ends[(before % 2 == 0) & (ends < start)]
            begin = int(outside[-1]) + 1 if len(outside) else 0
            number = line + window.count(LF, 0, start)
            raise Malformed(line + window.count(LF, 0, begin), IN_QUOTES.format(number), DECLARE_NEWLINES)


def quotes_stand_well(data: Bytes, quotes: Positions, dialect: CsvDialect) -> bool:
    """Does each opening quote begin a field, and each closing one end it, but for two that stand for one?"""
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    doubled = opening[1:] == closing[:-1] + 1
    before = data[np.maximum(opening - 1, 0)]
    begins = (opening == 0) | (before == dialect.delimiter[0]) | (before == LF[0])
    begins[1:] |= doubled
    after = data[np.minimum(closing + 1, len(data) - 1)]
    finishes = (closing == len(data) - 1) | (after == dialect.delimiter[0]) | (after == LF[0]) | (after == CR[0])
    finishes[:-1] |= doubled
    return bool(begins.all() and finishes.all())


def _find(data: Bytes, byte: bytes) -> Positions:
    return np.flatnonzero(data == byte[0])


def _find_outside(data: Bytes, byte: bytes, quotes: Positions) -> Positions:
    """Where a byte stands outside quotes: behind an even number of them."""
    found = _find(data, byte)
    return found[np.searchsorted(quotes, found) % 2 == 0] if len(quotes) else found


def is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def compile_record(dialect: CsvDialect) -> re.Pattern[bytes]:
    """One record, without its end."""
    field = _write_field(dialect.delimiter, quoted_newlines=dialect.quoted_newlines)
    return re.compile(field + b"(?:" + re.escape(dialect.delimiter) + field + b"){%d}" % (dialect.columns - 1))


def _write_field(delimiter: bytes, *, quoted_newlines: bool) -> bytes:
    breaks = b"" if quoted_newlines else rb"\r\n"
    return rb'(?:"(?:[^"\0' + breaks + rb']|"")*+"|[^' + re.escape(delimiter) + rb'"\r\n\0]*+)'
