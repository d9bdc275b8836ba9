"""A text file in its declared encoding, as a copy in UTF-8. Part of the trusted perimeter: claim K-52."""

import codecs
from pathlib import Path

import numpy as np

from sfumato.ingest.record_messages import NO_MARK, OTHER_ENCODING, TO_UTF8
from sfumato.ingest.records import Malformed

BLOCK = 1 << 20
MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
UNITS = {"utf-16-le": "<u2", "utf-16-be": ">u2"}  # encodings whose characters are units of two bytes


def copy_in_utf8(path: Path, encoding: str, copy: Path, *, whole: bool) -> None:
    """Decode a file strictly, and write it in UTF-8 without a byte order mark. Not `whole`: the first block alone.

    Claim: K-52. Returns only if every line of others is decoded from its own bytes; otherwise raises Malformed.
    Requires: the encoding is one of catalog.reading.ENCODINGS: no state but the alignment of units of two bytes.
    Relies on: K-52.
    Checked by: tests/ingest/test_lines_of_others.py::test_stray_bytes_of_utf16_leave_the_lines_of_others
    """
    with path.open("rb") as source, copy.open("x", encoding="utf-8", newline="") as target:
        units = _with_byte_order(encoding, source.read(2))
        source.seek(0)
        decoder = codecs.getincrementaldecoder(units)("strict")
        lines, first, before = 1, True, b""
        while True:
            block = source.read(BLOCK)
            if units in UNITS:
                _refuse_shifted(before, block, units, lines)
            try:
                decoded = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                sound = bytes(error.object[: error.start]).decode(units, "ignore")
                raise Malformed(lines + sound.count("\n"), f"it is not {encoding} text", OTHER_ENCODING) from None
            target.write(decoded.removeprefix("\ufeff") if first else decoded)
            lines, first, before = lines + decoded.count("\n"), first and not decoded, block[-1:]
            if not block or not whole:
                return


def _with_byte_order(encoding: str, start: bytes) -> str:
    if encoding != "utf-16":
        return encoding
    if start not in MARKS:
        raise Malformed(1, "the file does not begin with a byte order mark", NO_MARK)
    return MARKS[start]


def _refuse_shifted(before: bytes, block: bytes, units: str, lines: int) -> None:
    """Refuse a line feed at an odd offset: a stray byte shifts all units up to the next one, and their line ends.

    `before`: the byte before the block, which is at an odd offset; nothing at the beginning of the file.
    """
    shifted = before + block if before else block[1:]
    at = np.flatnonzero(np.frombuffer(shifted, UNITS[units], len(shifted) // 2) == ord("\n"))
    if len(at):
        aligned = np.frombuffer(block, UNITS[units], min(2 * int(at[0]) + 1, len(block)) // 2)
        line = lines + int(np.count_nonzero(aligned == ord("\n")))
        raise Malformed(line, "a byte is missing or too many, so that its line end is not at a character", TO_UTF8)
