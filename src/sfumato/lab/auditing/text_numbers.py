"""Numbers that the search reads from a text or from bytes: numerals, characters by position, packed numbers."""

import re
import struct
from collections.abc import Callable, Iterator
from functools import partial

from sfumato.lab.auditing.canonical_outputs import HEXADECIMAL, to_float

MOST_NUMERALS = 3
FROM_START, FROM_END = 24, 8  # characters
_NUMERAL = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")

Reader = Callable[[str], float | None]  # None: this text has no such number


def list_text_readers(path: str) -> Iterator[tuple[str, Reader]]:
    """What is read from the texts at a path, with a name each."""
    if path.endswith(HEXADECIMAL):
        for kind, name in (("<d", "float"), (">d", "big-endian float"), ("<f", "short float"), ("<q", "integer")):
            yield f"the {name} in the first bytes of", partial(_unpack, kind=kind, start=0)
            yield f"the {name} in the last bytes of", partial(_unpack, kind=kind, start=-struct.calcsize(kind))
    else:
        for place in range(MOST_NUMERALS):
            yield f"numeral {place + 1} in", partial(_read_numeral, place=place)
    for place in (*range(FROM_START), *range(-FROM_END, 0)):
        yield f"character {place} of", partial(_read_character, place=place)


def measure_length(text: str) -> float:
    """How many characters a text has."""
    return float(len(text))


def read_first_numeral(text: str) -> float | None:
    """The first numeral in a text."""
    return _read_numeral(text, 0)


def is_partly_searched(text: str) -> bool:
    """Whether a text has characters that no reader looks at one by one."""
    return len(text) > FROM_START + FROM_END


def _read_numeral(text: str, place: int) -> float | None:
    found = _NUMERAL.findall(text[:1_000])
    return to_float(found[place]) if place < len(found) else None


def _read_character(text: str, place: int) -> float | None:
    return float(ord(text[place])) if -len(text) <= place < len(text) else None


def _unpack(text: str, kind: str, start: int) -> float | None:
    size = struct.calcsize(kind)
    part = bytes.fromhex(text)[start:][:size]
    return float(struct.unpack(kind, part)[0]) if len(part) == size else None
