"""Names of analysts: which names mean the same analyst, and who may ask.

Whoever asks types a name, so a name proves nothing. Nobody may escape a limit by another spelling of a name. So names
are the same if they differ only in case, in the encoding of accents, in spaces, punctuation or invisible characters, or
in look-alike letters (Unicode Technical Standard 39).
"""

import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files

from sfumato.catalog.catalog_errors import build_catalog_error, show_value
from sfumato.errors import InvalidParameter, PermissionDenied, describe_kind

DEFAULT = "default"  # in [analysts]: the limit of every name that is not listed
MOST_LETTERS = 200
LETTERS_MARKS_DIGITS = "LMN"  # these distinguish names; a name without any of them is compared as it is
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # invisible, although they count as letters
SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def read_analyst(name: object) -> str:
    """A name that can be recorded, without its invisible characters."""
    if not isinstance(name, str):
        raise InvalidParameter("analyst", "must be a name", describe_kind(name), 'For example: analyst="ann".')
    return _read_text(name)


@lru_cache(maxsize=4096)
def _read_text(name: str) -> str:
    if len(name) > MOST_LETTERS:
        hint = "Use a shorter name."
        raise InvalidParameter("analyst", f"must have at most {MOST_LETTERS} characters", str(len(name)), hint)
    seen = " ".join("".join(letter for letter in name if not _is_invisible(letter)).split())
    if not seen or not seen.isprintable():
        raise InvalidParameter("analyst", "must be a name in printable characters", describe_kind(name))
    return seen


@lru_cache(maxsize=4096)
def list_readings(name: str) -> frozenset[str]:
    """How a name may be read. Two names mean the same analyst if they share a reading.

    There are two readings, because letters may look alike only in upper or only in lower case: I is read as i and as l.
    """
    decomposed = unicodedata.normalize("NFKD", name)
    as_lower = unicodedata.normalize("NFKD", decomposed.casefold())
    return frozenset((_read_letters(decomposed), _read_letters(as_lower)))


def find_analyst(name: str, among: Iterable[str]) -> str | None:
    """The first of these names that means the same analyst."""
    readings = list_readings(name)
    return next((analyst for analyst in among if readings & list_readings(analyst)), None)


def check_analysts(names: Iterable[str]) -> None:
    """Refuse a catalog in which two names mean the same analyst."""
    seen: dict[str, str] = {}
    for name in names:
        if name != DEFAULT and find_analyst(name, [DEFAULT]):
            raise build_catalog_error(
                f"analysts: {show_value(name)} looks like {DEFAULT}.", f"Write {DEFAULT}, or another name."
            )
        twin = next((seen[reading] for reading in list_readings(name) if reading in seen), None)
        if twin is not None:
            message = f"analysts: {show_value(twin)} and {show_value(name)} are the same name, or look alike."
            raise build_catalog_error(
                message, "Rename one of them, by more than case, punctuation or look-alike letters."
            )
        seen |= dict.fromkeys(list_readings(name), name)


def admit_analyst(name: object, listed: Iterable[str]) -> str:
    """The listed spelling of a name. If the catalog lists analysts and has no default, other names are refused."""
    asked, names = read_analyst(name), tuple(listed)
    found = find_analyst(asked, (listed_name for listed_name in names if listed_name != DEFAULT))
    if found is None and names and DEFAULT not in names:
        hint = (
            "Say who asks (analyst=, --analyst) by a name that the owner listed. "
            f"The owner can add [analysts.NAME], or [analysts.{DEFAULT}] for everybody else, to the catalog."
        )
        raise PermissionDenied(
            "unknown-analyst", f"The analyst {show_value(asked)} is not listed in the catalog.", hint
        )
    return found or asked


def _read_letters(decomposed: str) -> str:
    table = _list_look_alikes()
    read = "".join(table.get(letter, letter) for letter in decomposed if not _is_invisible(letter)).casefold()
    counted = "".join(letter for letter in read if unicodedata.category(letter)[0] in LETTERS_MARKS_DIGITS)
    return unicodedata.normalize("NFC", counted or "".join(read.split()))


def _is_invisible(letter: str) -> bool:
    hidden = unicodedata.category(letter) == "Cf" or letter in FILLERS
    return hidden or any(ord(letter) in block for block in SELECTORS)


@cache
def _list_look_alikes() -> dict[str, str]:
    text = files("sfumato.catalog").joinpath("look_alikes.txt").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.split("\n") if "\t" in line)
    return {letter: seen_as for seen_as, letters in rows for letter in letters}
