"""Canonical JSON (RFC 8785) for documents with whole numbers only: every client computes the same text.

`sfumato.canonical_text` is another encoding: it serves digests inside one ledger. This one is part of the public
format of surveys, which the JavaScript client reads too.
"""

import json
from collections.abc import Mapping

MOST_WHOLE = (1 << 53) - 1  # a reader that stores numbers as doubles would change a larger one
MOST_DEPTH = 16


class NotCanonical(ValueError):
    """The value has no canonical text, or the text is not the canonical one of its value."""


def write_canonical(value: object) -> bytes:
    """Write a value as UTF-8: names sorted by their UTF-16 units, no spaces, whole numbers only."""
    try:
        return _write(value, 0).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        raise NotCanonical from None


def parse_canonical(data: bytes) -> object:
    """Read the value of a canonical text. Any other text of the same value is refused.

    So the result does not depend on how a parser reads repeated names, 1.0, 1e0, -0 or numbers beyond 2**53.
    """
    try:
        value = json.loads(data.decode(), parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError):  # bad UTF-8 and bad JSON are ValueErrors
        raise NotCanonical from None
    if write_canonical(value) != data:
        raise NotCanonical
    return value


def _write(value: object, depth: int) -> str:
    if depth > MOST_DEPTH:
        raise NotCanonical
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            if abs(value) > MOST_WHOLE:
                raise NotCanonical
            return str(value)
        case list() if all(type(item) is str for item in value) and depth < MOST_DEPTH:  # long lists of labels: faster
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case list() | tuple():
            return f"[{','.join(_write(item, depth + 1) for item in value)}]"
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise NotCanonical
            names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            pairs = (f"{json.dumps(name, ensure_ascii=False)}:{_write(value[name], depth + 1)}" for name in names)
            return f"{{{','.join(pairs)}}}"
        case _:
            raise NotCanonical


def _refuse(_: str) -> object:
    raise NotCanonical
