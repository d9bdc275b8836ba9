"""Canonical JSON (RFC 8785), for documents whose numbers are whole: one document, one text, in every language."""

import json
from collections.abc import Mapping

MOST_WHOLE = (1 << 53) - 1  # beyond this, a reader that keeps numbers as doubles would see another one
MOST_DEPTH = 16


class NotCanonical(ValueError):
    """A value that has no canonical text here; or a text that is not the canonical one of what it says."""


def canonical(value: object) -> bytes:
    """The one text of a value, in UTF-8: names in the order of their UTF-16 units, no spaces, whole numbers only."""
    try:
        return _text(value, 0).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        raise NotCanonical from None


def parse_canonical(data: bytes) -> object:
    """The value of a canonical text; a text that says the same in another way is refused.

    So nothing is left to how a parser reads repeated names, 1.0, 1e0, -0 or numbers beyond 2**53.
    """
    try:
        value = json.loads(data.decode(), parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError):  # of which bad UTF-8 and bad JSON are kinds
        raise NotCanonical from None
    if canonical(value) != data:
        raise NotCanonical
    return value


def _text(value: object, depth: int) -> str:
    if depth > MOST_DEPTH:
        raise NotCanonical
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            if abs(value) > MOST_WHOLE:
                raise NotCanonical
            return str(value)
        case list() | tuple():
            return f"[{','.join(_text(each, depth + 1) for each in value)}]"
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise NotCanonical
            names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            pairs = (f"{json.dumps(name, ensure_ascii=False)}:{_text(value[name], depth + 1)}" for name in names)
            return f"{{{','.join(pairs)}}}"
        case _:
            raise NotCanonical


def _refuse(_: str) -> object:
    raise NotCanonical
