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

MOST_BYTES = 1_900_000  # of one record: DuckDB's reader takes 2,000,000
WINDOW = 1 << 23
QUOTE, CR, LF = b'"', b"\r", b"\n"
MOST_LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Dialect:
    """What separates fields, how many there are, how a record ends, and whether quoted fields may hold line breaks.

    `records_in_quotes`: may a line that begins inside quotes be a well-formed record by itself?
    """

    delimiter: bytes
    columns: int
    crlf: bool
    quoted_newlines: bool
    records_in_quotes: bool


@dataclass(frozen=True, slots=True)
class Records:
    """What was found in a file: how many records; which byte ranges are malformed lines, and the first line numbers."""

    number: int
    malformed: tuple[tuple[int, int], ...] = ()
    lines: tuple[int, ...] = ()
    newlines_in_quotes: bool = False


class Malformed(Exception):
    """A record that cannot be separated from its neighbours: where it begins, why, what to do. It quotes nothing."""

    def __init__(self, line: int, why: str, advice: str = "") -> None:
        super().__init__(line, why, advice)
        self.line, self.why, self.advice = line, why, advice


@dataclass(frozen=True, slots=True)
class _Sound:
    """Whole records at the beginning of a window: their bytes, number and lines."""

    size: int
    records: int
    lines: int
    newlines_in_quotes: bool


def separate(path: Path, begin: int, dialect: Dialect, *, skip: bool) -> Records:
    """Check every record of a file from the byte `begin` (after the header line, on line 2) to its end.

    Claim: K-52. Returns only if the bytes are a sequence of records of the grammar, but for the malformed lines that
        are returned where `skip`; otherwise raises Malformed with the line on which the first such record begins.
    Requires: `begin` is the beginning of a record; `skip` only without quoted newlines (checked by Reading).
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    bad: list[tuple[int, int]] = []
    lines: list[int] = []
    found, line, in_quotes = 0, 1, False
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        line += os.pread(file.fileno(), begin, 0).count(LF)
        at = begin
        while at < size:
            window = os.pread(file.fileno(), WINDOW, at)
            if not window:
                break  # the file became shorter: its state is compared after reading
            last = at + len(window) >= size
            sound = _all_sound(window, dialect, last=last)
            if sound is not None:
                if sound.newlines_in_quotes:
                    refuse_records_in_quotes(window[: sound.size], line, dialect)
                found, at, line = found + sound.records, at + sound.size, line + sound.lines
                in_quotes = in_quotes or sound.newlines_in_quotes
            elif skip and LF not in window and not last:  # a line that is longer than the window
                end = _end_of_line(file.fileno(), at, size)
                bad.append((at, end))
                lines += [line] if len(lines) < MOST_LINES_SHOWN else []
                at, line = end, line + 1
            elif skip:
                there, after, strange = _lines(window, dialect, last=last)
                found, at = found + there, at + after
                bad += [(at - after + one, at - after + two) for one, two, _ in strange]
                lines += [line + number for _, _, number in strange[: MOST_LINES_SHOWN - len(lines)]]
                line += window[:after].count(LF)
            else:
                there, after, broken = _up_to_malformed(window, dialect, last=last)
                refuse_records_in_quotes(window[:after], line, dialect)
                line += window[:after].count(LF)
                if broken:
                    raise Malformed(line, _why(window[after:], dialect))
                in_quotes = in_quotes or window[:after].count(LF) > there
                found, at = found + there, at + after
    return Records(found, tuple(bad), tuple(lines), in_quotes)


def _end_of_line(file: int, at: int, size: int) -> int:
    while at < size:
        window = os.pread(file, WINDOW, at)
        stop = window.find(LF)
        if stop >= 0 or not window:
            return at + stop + 1
        at += len(window)
    return size


def header(start: bytes, delimiter: bytes, *, quoted_newlines: bool) -> tuple[list[bytes], int, bool]:
    """The fields of the first record, where it ends, and whether its end is CR LF. The header is nobody's data.

    Claim: K-52. By the grammar of records; raises Malformed.
    Requires: the file begins at `start`.
    Relies on: K-52.
    Checked by: tests/ingest/test_records.py::test_records_are_separated_as_the_grammar_says
    """
    quoted = rb'"(?:[^"\0]|"")*+"' if quoted_newlines else rb'"(?:[^"\0\r\n]|"")*+"'
    field = re.compile(b"(" + quoted + rb"|[^" + re.escape(delimiter) + rb'"\r\n\0]*+)')
    fields, at = [], 0
    while True:
        one = field.match(start, at)
        if one is None:
            raise Malformed(1, "the header line is not well-formed")
        text, at = one[0], one.end()
        fields.append(text[1:-1].replace(b'""', b'"') if text.startswith(QUOTE) else text)
        if start.startswith(delimiter, at):
            at += 1
        elif start.startswith(b"\r\n", at):
            return fields, at + 2, True
        elif start.startswith(LF, at) or at == len(start):
            return fields, min(at + 1, len(start)), False
        else:
            raise Malformed(1, "the header line is not well-formed")


def without(path: Path, records: Records, to: Path) -> None:
    """A copy of the file that lacks the malformed lines, and nothing else.

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


def _positions(data: npt.NDArray[np.uint8], byte: bytes) -> npt.NDArray[np.intp]:
    return np.flatnonzero(data == byte[0])


def _all_sound(window: bytes, dialect: Dialect, *, last: bool) -> _Sound | None:
    """The whole records of a window, if all of them are well-formed: no loop over bytes. None: look closer."""
    data = np.frombuffer(window, np.uint8)
    ends, quotes = _positions(data, LF), _positions(data, QUOTE) if QUOTE in window else None
    breaks = len(ends)
    if quotes is not None:  # a quote opens or closes: what follows an even number of them is outside
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    if not last:
        if not len(ends):
            return None
        size = int(ends[-1]) + 1
        window, data = window[:size], data[:size]
        if quotes is not None:
            quotes = quotes[quotes < size]
            breaks = window.count(LF)
    inner = breaks - len(ends)
    if b"\0" in window or not _is_utf8(window) or (inner and not dialect.quoted_newlines):
        return None
    places = _positions(data, dialect.delimiter)
    returns = _positions(data, CR) if CR in window else np.empty(0, np.intp)
    if quotes is not None:
        if not _quotes_stand_well(data, quotes, dialect):
            return None
        places = places[np.searchsorted(quotes, places) % 2 == 0]
        if dialect.quoted_newlines:
            returns = returns[np.searchsorted(quotes, returns) % 2 == 0]
    if not np.array_equal(returns, ends - 1 if dialect.crlf else ends[:0]):
        return None
    if window and (not len(ends) or ends[-1] != len(window) - 1):
        ends = np.append(ends, len(window))  # the last record, without an end
    records = _records(places, ends, len(returns), dialect)
    return None if records is None else _Sound(len(window), records, breaks, inner > 0)


def _records(places: npt.NDArray[np.intp], ends: npt.NDArray[np.intp], returns: int, dialect: Dialect) -> int | None:
    """How many records there are, if each has its fields; None otherwise."""
    starts = np.concatenate((np.zeros(1, np.intp), ends[:-1] + 1))
    sizes = ends - starts
    if len(sizes) and sizes.max() > MOST_BYTES:
        return None
    between = dialect.columns - 1
    if not between:
        return None if len(places) else len(ends)
    sizes[:returns] -= dialect.crlf  # those that end in CR LF; CR is no content
    if sizes.all():
        if len(places) != between * len(ends):
            return None
        by_record = places.reshape(-1, between)
        whole = bool((by_record[:, 0] >= starts).all() and (by_record[:, -1] < ends).all())
        return len(ends) if whole else None
    there = np.diff(np.searchsorted(places, ends), prepend=0)
    return int(np.count_nonzero(sizes)) if bool((there == np.where(sizes > 0, between, 0)).all()) else None


def refuse_records_in_quotes(window: bytes, line: int, dialect: Dialect) -> None:
    """Refuse a line that begins inside quotes and is a record by itself, unless the dialect allows it.

    Claim: K-52. No line of the window is a well-formed record and not a record of the file, unless `records_in_quotes`.
    Requires: the window is a sequence of whole records, the first of which begins on `line`.
    Relies on: K-52.
    Checked by: tests/ingest/test_lines_of_others.py::test_records_in_several_places_leave_the_lines_of_others
    """
    if dialect.records_in_quotes:
        return
    data = np.frombuffer(window, np.uint8)
    ends, quotes = _positions(data, LF), _positions(data, QUOTE)
    before = np.searchsorted(quotes, ends)
    inside = np.flatnonzero(before[:-1] % 2)  # a line break inside quotes, and not the last one: a line follows
    starts, stops = ends[inside] + 1, ends[inside + 1]
    inner = before[inside + 1] - before[inside]
    places, between = _positions(data, dialect.delimiter), dialect.columns - 1
    separators = np.searchsorted(places, stops) - np.searchsorted(places, starts)
    likely = (inner % 2 == 0) & np.where(inner, separators >= between, separators == between)
    if dialect.crlf:
        likely &= data[stops - 1] == CR[0]
    record = _record(dialect)
    for start, stop in zip(starts[likely].tolist(), stops[likely].tolist(), strict=True):
        if record.fullmatch(window, start, stop - dialect.crlf):
            outside = ends[(before % 2 == 0) & (ends < start)]
            begin = int(outside[-1]) + 1 if len(outside) else 0
            number = line + window.count(LF, 0, start)
            raise Malformed(line + window.count(LF, 0, begin), IN_QUOTES.format(number), DECLARE)


def _quotes_stand_well(data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.intp], dialect: Dialect) -> bool:
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


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _record(dialect: Dialect) -> re.Pattern[bytes]:
    """One record, without its end."""
    breaks = b"" if dialect.quoted_newlines else rb"\r\n"
    plain = b"[^" + re.escape(dialect.delimiter) + rb'"\r\n\0]*+'
    field = rb'(?:"(?:[^"\0' + breaks + rb']|"")*+"|' + plain + b")"
    return re.compile(field + b"(?:" + re.escape(dialect.delimiter) + field + b"){%d}" % (dialect.columns - 1))


def _lines(window: bytes, dialect: Dialect, *, last: bool) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Line by line: the records, the bytes that were looked at, and the malformed lines with their numbers from 0."""
    record, end = _record(dialect), b"\r\n" if dialect.crlf else LF
    found, at, number, strange = 0, 0, 0, []
    while at < len(window):
        stop = window.find(LF, at)
        if stop < 0 and not last:
            break  # the rest of this line is in the next window
        stop = len(window) if stop < 0 else stop + 1
        line = window[at:stop]
        body = line[: -len(end)] if line.endswith(end) else line
        if not body and dialect.columns > 1:
            pass
        elif len(body) <= MOST_BYTES and record.fullmatch(body) and _is_utf8(body):
            found += 1
        else:
            strange.append((at, stop, number))
        at, number = stop, number + 1
    return found, at, strange


def _up_to_malformed(window: bytes, dialect: Dialect, *, last: bool) -> tuple[int, int, bool]:
    """Record by record: how many are well-formed, where they end, and whether a malformed one follows."""
    record, end = _record(dialect), b"\r\n" if dialect.crlf else LF
    found, at = 0, 0
    while at < len(window):
        if dialect.columns > 1 and window.startswith(end, at):
            at += len(end)
            continue
        one = record.match(window, at)
        stop = at if one is None else one.end()
        ended = one is not None and (window.startswith(end, stop) or (last and stop == len(window)))
        if not ended or stop - at > MOST_BYTES or not _is_utf8(window[at:stop]):
            whole = last or at == 0 or len(window) - at > MOST_BYTES + 2
            return found, at, whole
        found, at = found + 1, min(stop + len(end), len(window))
    return found, at, False


def _why(rest: bytes, dialect: Dialect) -> str:  # noqa: PLR0911 - one return a rule
    """What is wrong with the record at the beginning, in words that quote nothing of it."""
    fields, at, delimiter = 1, 0, dialect.delimiter
    plain = re.compile(b"[^" + re.escape(delimiter) + rb'"\r\n\0]*+')
    quoted = re.compile(rb'"(?:[^"\0]|"")*+"')
    while True:
        one = (quoted if rest.startswith(QUOTE, at) else plain).match(rest, at)
        if one is None:
            nul = rest.find(b"\0", at, at + MOST_BYTES) >= 0
            return "it has a NUL byte" if nul else "a quote is opened and not closed"
        if not dialect.quoted_newlines and re.search(rb"[\r\n]", one[0]):
            return "a quoted field holds a line break"
        if not _is_utf8(one[0]):
            return UTF8
        was_quoted, at = one[0].startswith(QUOTE), one.end()
        if at > MOST_BYTES:
            return f"it is longer than {MOST_BYTES:,} bytes"
        if not rest.startswith(delimiter, at):
            break
        fields, at = fields + 1, at + 1
    ends = at == len(rest) or rest.startswith(b"\r\n" if dialect.crlf else LF, at)
    if rest.startswith(b"\0", at):
        return "it has a NUL byte"
    if rest.startswith((CR, LF), at) and not ends:
        return "it has a line end unlike the header's"
    if not ends:
        return "text follows a closing quote" if was_quoted else "a quote stands inside a field that is not quoted"
    return f"it has {fields:,} fields instead of {dialect.columns:,}"


UTF8 = "it is not UTF-8 text"
IN_QUOTES = "a quoted field holds line {:,}, which is a record by itself"
DECLARE = (
    "Repair the unclosed quote, or declare quoted_newlines = true (--quoted-newlines) if a field holds such lines."
)
