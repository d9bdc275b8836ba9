"""Functions of texts in plain Python: characters are code points, and every function is total."""

import re
from datetime import date

from sfumato.kernel.expressions import MOST_MADE, count_read

SHARP_S = {"ß": "ẞ"}
DOTTED_I = {"İ": "i"}
WHOLE_TEXT = r"[+-]?[0-9]{1,15}"
REAL_TEXT = r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?"
YEAR_TEXT = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"  # there is no year 0
DAY_TEXT = YEAR_TEXT + "-[0-9]{2}-[0-9]{2}"


def raise_case(text: str) -> str:
    """UPPER: each character becomes one character, by Unicode's simple mapping."""
    return text.upper() if text.isascii() else "".join(map(_raise_letter, text))


def lower_case(text: str) -> str:
    """LOWER: each character becomes one character, by Unicode's simple mapping."""
    return text.lower() if text.isascii() else "".join(map(_lower_letter, text))


def _raise_letter(letter: str) -> str:
    for made in (SHARP_S.get(letter, ""), letter.upper(), letter.title()):
        if len(made) == 1:
            return made
    return letter


def _lower_letter(letter: str) -> str:
    made = DOTTED_I.get(letter, letter.lower())
    return made if len(made) == 1 else letter


def trim_text(text: str, side: str, letters: str) -> str:
    """TRIM of the given characters, at both sides, at the beginning or at the end."""
    match side:
        case "leading":
            return text.lstrip(letters)
        case "trailing":
            return text.rstrip(letters)
        case _:
            return text.strip(letters)


def replace_text(text: str, old: str, new: str) -> str:
    """REPLACE. If it makes texts longer, only so many characters are read that at most MOST_MADE are made."""
    return text[: count_read(old, new)].replace(old, new)


def join_texts(one: str, two: str) -> str:
    """One text after the other, of each at most half of MOST_MADE characters."""
    return one[: MOST_MADE // 2] + two[: MOST_MADE // 2]


def pad_text(text: str, side: str, length: int, fill: str) -> str:
    """LPAD and RPAD: exactly `length` characters. A longer text loses its end."""
    missing = max(length - len(text), 0)
    padding = (fill * missing)[:missing]
    return (padding + text if side == "left" else text + padding)[:length]


def read_whole_text(text: str) -> float | None:
    """CAST of a text AS INTEGER: digits with a sign, at most 15. NULL of anything else."""
    return float(int(text)) if re.fullmatch(WHOLE_TEXT, text) else None


def read_real_text(text: str) -> float | None:
    """CAST of a text AS DOUBLE: digits, a sign and a point. NULL of anything else."""
    return float(text) if re.fullmatch(REAL_TEXT, text) else None


def read_date_text(text: str) -> date | None:
    """CAST of a text AS DATE: year-month-day. NULL of anything else."""
    try:
        return date.fromisoformat(text) if re.fullmatch(DAY_TEXT, text, re.ASCII) else None
    except ValueError:
        return None


def split_text(text: str, mark: str, place: float) -> str:
    """The part of a text between two marks, from 1, or from -1 at its end; empty if there are not so many parts."""
    parts, number = text.split(mark), int(place)
    return parts[number - 1 if number > 0 else number] if abs(number) <= len(parts) else ""
