"""The line on which a file cannot be decoded. The refusal is certain before this code runs (encodings.py)."""

import codecs
from collections.abc import Iterator
from pathlib import Path

from sfumato.ingest.record_messages import OTHER_ENCODING, SHIFTED, TO_UTF8
from sfumato.ingest.records import Malformed

BLOCK = 1 << 20


def explain_undecodable(path: Path, units: str, encoding: str) -> Malformed:
    """The refusal of a file with bytes that its encoding lacks, by their line."""
    decoder, line = codecs.getincrementaldecoder(units)("strict"), 1
    for block, is_last in _read_blocks(path):
        try:
            line += decoder.decode(block, final=is_last).count("\n")
        except UnicodeDecodeError as error:
            line += bytes(error.object[: error.start]).decode(units, "ignore").count("\n")
            break
    return Malformed(line, f"it is not {encoding} text", OTHER_ENCODING)


def explain_shift(path: Path, units: str) -> Malformed:
    """The refusal of a file with a line feed at an odd offset, by the line on which that is."""
    feed, before, line = "\n".encode(units), b"", 1
    for block, _ in _read_blocks(path):
        for place in _find_all(before + block, feed):
            if (place - len(before)) % 2:  # blocks begin at even offsets
                return Malformed(line, SHIFTED, TO_UTF8)
            line += 1
        before = block[-1:]
    return Malformed(line, SHIFTED, TO_UTF8)


def _find_all(data: bytes, part: bytes) -> Iterator[int]:
    at = data.find(part)
    while at >= 0:
        yield at
        at = data.find(part, at + 1)


def _read_blocks(path: Path) -> Iterator[tuple[bytes, bool]]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block, False
    yield b"", True
