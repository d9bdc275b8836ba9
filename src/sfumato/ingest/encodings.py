"""A text file in its declared encoding, as a copy in UTF-8. Part of the trusted perimeter: claim K-52."""

import codecs
from pathlib import Path

import numpy as np

from sfumato.ingest.record_messages import NO_MARK
from sfumato.ingest.records import Malformed
from sfumato.ingest.undecodable_lines import explain_shift, explain_undecodable

BLOCK = 1 << 20  # an even number of bytes
MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
UNITS = {"utf-16-le": "<u2", "utf-16-be": ">u2"}  # encodings whose characters are units of two bytes


def copy_in_utf8(path: Path, encoding: str, copy: Path, *, whole: bool) -> None:
    """Decode a file strictly, and write it in UTF-8 without a byte order mark. Not `whole`: the first block alone.

    Claim: K-52. Returns only if every line of others is decoded from its own bytes; otherwise raises Malformed.
    Requires: the encoding is one of catalog.reading.ENCODINGS: no state but the alignment of units of two bytes.
    Relies on: K-52.
    Checked by: tests/ingest/test_lines_of_others.py::test_stray_bytes_of_utf16_leave_the_lines_of_others
    """
    units = _find_byte_order(path) if encoding == "utf-16" else encoding
    if units in UNITS and whole:
        _refuse_shifted(path, units)
    with path.open(encoding=units, newline="") as source, copy.open("x", encoding="utf-8", newline="") as target:
        try:
            target.write(source.read(BLOCK).removeprefix("\ufeff"))
            while whole and (block := source.read(BLOCK)):
                target.write(block)
        except UnicodeDecodeError:
            raise explain_undecodable(path, units, encoding) from None


def _find_byte_order(path: Path) -> str:
    with path.open("rb") as file:
        mark = file.read(2)
    if mark not in MARKS:
        raise Malformed(1, "the file does not begin with a byte order mark", NO_MARK)
    return MARKS[mark]


def _refuse_shifted(path: Path, units: str) -> None:
    """Refuse a line feed at an odd offset: a stray byte shifts all units up to the next one, and their line ends."""
    with path.open("rb") as file:
        file.seek(1)
        while block := file.read(BLOCK):
            if ord("\n") in np.frombuffer(block, UNITS[units], len(block) // 2):
                raise explain_shift(path, units)
