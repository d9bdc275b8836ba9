"""Ids: one canonical text for each. Two spellings with one canonical text are one privacy unit.

The function merges spellings and never splits one, and it looks at one value at a time. In this order:

    NUL is removed, Unicode is composed (NFC), and white space is removed at both ends; nothing left: no id (NULL)
    a UUID in any case, with or without hyphens or braces, or as a URN -> lower case, with hyphens
    a whole number -> its digits, without a plus, leading zeros or a fraction of zeros: 007, +7, 7.0 and 7.00 are 7
    another number -> the text of the nearest double, up to 2**53: 0.50 and 5e-1 are 0.5
    true and false in any case -> lower case
    other texts -> themselves; case matters

Part of the trusted perimeter: claim K-51.
"""

import re

from sfumato.ingest.canonical import EXACT, FLOATS, WHOLE, is_day, spell_column, spell_value
from sfumato.ingest.sql_quoting import quote_text

SPACES = "".join(chr(code) for code in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
                                        0x202F, 0x205F, 0x3000, 0xFEFF))  # fmt: skip
AS_IT_IS = r"0|-?[1-9][0-9]{0,29}|[a-eg-su-zA-EG-SU-Z_][a-zA-Z0-9_]{0,29}"
WHOLE_NUMBER = r"[+-]?[0-9]+(?:[.]0*)?"
DIGITS = r"^(?:[+]|(-))?0*([0-9]+?)(?:[.]0*)?$"
NUMBER = r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?"
UUID = (
    r"^[{]?(?:[uU][rR][nN]:[uU][uU][iI][dD]:)?"
    r"([0-9a-fA-F]{8})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{12})[}]?$"
)
HYPHENS = r"\1-\2-\3-\4-\5"


def write_id(column: str, kind: str) -> str:
    """The canonical text of an id, as SQL, of a source's column of some type.

    Claim: K-51. A function of the value alone; spellings that differ as stated above have one text.
    Requires: a type that is read; no float beyond 2**53 (checked when a source is opened).
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_ids.py::test_ids_are_what_plain_python_makes_of_them
    """
    found = spell_column(column, kind)
    return found if is_canonical_id(kind) else merge_spellings(found)


def is_canonical_id(kind: str) -> bool:
    """Is the canonical text of every value of this type a canonical id already?

    HUGEINT is not such a type: 32 digits are a UUID.

    Claim: K-51. Of the type alone.
    Requires: a type that is read.
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_ids.py::test_a_number_of_32_digits_is_one_person_in_every_type
    """
    return kind in (*WHOLE, *FLOATS, "BOOLEAN") or is_day(kind)


def merge_spellings(found: str) -> str:
    """The canonical text of an id, as SQL, of a column of canonical texts.

    Claim: K-51. A function of the text alone; spellings that differ as stated above have one text.
    Requires: a column of texts.
    Relies on: K-50 (canonical texts).
    Checked by: tests/ingest/test_ids.py::test_ids_are_what_plain_python_makes_of_them
    """
    # DuckDB composes a text as far as its first NUL only
    trimmed = f"trim(nfc_normalize(replace({found}, chr(0), '')), {quote_text(SPACES)})"
    hyphenated = f"lower(regexp_replace({trimmed}, {quote_text(UUID)}, {quote_text(HYPHENS)}))"
    is_uuid = f"strlen({trimmed}) >= 32 AND regexp_matches({trimmed}, {quote_text(UUID)})"
    return (
        f"CASE WHEN regexp_full_match({found}, {quote_text(AS_IT_IS)}) THEN {found} "  # most ids stay as they are
        f"WHEN {trimmed} = '' THEN NULL WHEN {is_uuid} THEN {hyphenated} "
        f"ELSE COALESCE({write_number(trimmed)}, {trimmed}) END"
    )


def write_number(column: str) -> str:
    """The canonical text of a text that is a number or a truth value, as SQL; NULL for others.

    Claim: K-51. A function of the text alone, and equal to `normalise_number`.
    Requires: a column of texts.
    Relies on: K-50 (texts of doubles).
    Checked by: tests/ingest/test_ids.py::test_ids_are_what_plain_python_makes_of_them
    """
    digits = f"regexp_replace({column}, {quote_text(DIGITS)}, {quote_text(chr(92) + '1' + chr(92) + '2')})"
    double = f"TRY_CAST({column} AS DOUBLE)"
    return (
        f"CASE WHEN regexp_full_match({column}, {quote_text(WHOLE_NUMBER)}) "
        f"THEN CASE WHEN {digits} = '-0' THEN '0' ELSE {digits} END "
        f"WHEN regexp_full_match({column}, {quote_text(NUMBER)}) "
        f"THEN CASE WHEN ABS({double}) <= {EXACT} THEN {spell_column(double, 'DOUBLE')} ELSE {column} END "
        f"WHEN lower({column}) IN ('true', 'false') THEN lower({column}) END"
    )


def normalise_number(value: str) -> str | None:
    """The canonical text of a text that is a number or a truth value; None for others.

    Claim: K-51. A function of the text alone, and equal to `write_number`.
    Relies on: K-50 (texts of doubles).
    Checked by: tests/ingest/test_ids.py::test_ids_are_what_plain_python_makes_of_them
    """
    if re.fullmatch(WHOLE_NUMBER, value):
        digits = re.sub(DIGITS, r"\1\2", value)
        return "0" if digits == "-0" else digits
    if re.fullmatch(NUMBER, value):
        return spell_value(float(value)) if abs(float(value)) <= EXACT else value
    return value.lower() if value.lower() in ("true", "false") else None
