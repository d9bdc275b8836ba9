"""Names of tables, columns and analysts: which names are allowed, and which are the same."""

import difflib
import unicodedata
from collections.abc import Iterable

from sfumato.catalog.catalog_errors import MOST_CHARACTERS, build_catalog_error, show_value
from sfumato.errors import UnknownName, describe_kind

MOST_SHOWN = 30


def read_name(value: object, what: str, most_characters: int = MOST_CHARACTERS) -> str:
    name = read_text(value, what, most_characters)
    if fold(name).startswith("__sfumato"):
        raise build_catalog_error(
            f"{what} must not start with __sfumato: {show_value(name)}.", "Names with this prefix are reserved."
        )
    return name


def read_text(value: object, what: str, most_characters: int) -> str:
    if not isinstance(value, str):
        raise build_catalog_error(f"{what} must be text; got {describe_kind(value)}.")
    if not value.strip() or len(value) > most_characters:
        raise build_catalog_error(
            f"{what} must have 1 to {most_characters} characters, not all blank; got {len(value)}."
        )
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in value):
        raise build_catalog_error(
            f"{what} must not hold control characters: {show_value(value)}.", "Remove line ends, tabs and the like."
        )
    return str.__str__(value)


def is_encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def fold(name: str) -> str:
    """A form that is equal for names that differ only in case or in the encoding of accents."""
    if name.isascii():  # the common case, and twenty times as fast
        return name.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def find_name(name: object, declared: Iterable[str]) -> str | None:
    """The declared spelling of a name; None if there is none. Case does not matter."""
    if not isinstance(name, str):
        return None
    wanted = fold(name)
    return next((spelling for spelling in declared if fold(spelling) == wanted), None)


def refuse_twins(names: Iterable[str], where: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.get(fold(name))
        if twin is not None:
            raise build_catalog_error(
                f"{where}: {show_value(twin)} and {show_value(name)} are the same name.", "Rename one of them."
            )
        seen[fold(name)] = name


def suggest_names(name: object, declared: Iterable[str]) -> str:
    """A hint with the declared names, and the one that was probably meant."""
    by_name = {fold(spelling): spelling for spelling in declared}
    close = difflib.get_close_matches(fold(name), by_name, 1) if isinstance(name, str) else []
    listed = ", ".join(list(by_name.values())[:MOST_SHOWN]) + (", ..." if len(by_name) > MOST_SHOWN else "")
    return (f"Did you mean {by_name[close[0]]}? " if close else "") + f"Declared: {listed or 'none'}."


def build_unknown_name(kind: str, name: object, declared: Iterable[str], where: str) -> UnknownName:
    return UnknownName("unknown-name", f"There is no {kind} {show_value(name)}{where}.", suggest_names(name, declared))


def is_like(text: str, pattern: str, escape: str = "") -> bool:
    """Whether LIKE matches. A % takes as few letters as possible, so the time is at most the product of the lengths."""
    parts = split_pattern(pattern, escape)
    at = begin = 0
    last = -1  # the last %, which may take more letters
    while at < len(text):
        wanted = parts[begin] if begin < len(parts) else ""
        if wanted == "%":
            last, again = begin, at
            begin += 1
        elif wanted == "_" or wanted[1:] == text[at]:
            at, begin = at + 1, begin + 1
        elif last >= 0:
            again += 1
            at, begin = again, last + 1
        else:
            return False
    return set(parts[begin:]) <= {"%"}


def split_pattern(pattern: str, escape: str = "") -> list[str]:
    """The parts of a pattern of LIKE: the wildcards % and _, and "=" before each letter that means itself."""
    parts: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            parts.append("=" + next(letters, ""))
        else:
            parts.append(letter if letter in "%_" else "=" + letter)
    return parts
