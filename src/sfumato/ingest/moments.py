"""Days and moments of texts: year, month, day, perhaps a time, perhaps a zone; or a declared format.

    2024-12-31   2024/12/31   2024-12-31T23:59   2024-12-31 23:59:59.123456789   2024-12-31T23:59:59+02:00

The zone is Z, UTC, GMT or an offset: +02, +0200, +02:00. A text with a zone is its moment in UTC, and its day is the
day in UTC, as for columns that have a zone. Zones with other names are not read: what they mean changes. Fractions of
a second are cut after six digits. infinity and -infinity are beyond every bound.

Part of the trusted perimeter: claim K-50.
"""

from sfumato.ingest.canonical import FOREVER, NEVER
from sfumato.ingest.sql_quoting import quote_text

TYPED = "\x1f"  # begins a day or moment that was no text among objects: it does not have the format of texts
DAY = r"[0-9]{4,5}(?:-[0-9]{1,2}-|/[0-9]{1,2}/)[0-9]{1,2}"
TIME = r"[T ](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]+)?)?"
OFFSET = r"([+-])([01][0-9]|2[0-3]):?([0-5][0-9])?"
ZONE = rf" ?(?:Z|z|UTC|GMT|{OFFSET})"


def parse_moment(column: str, date_format: str | None) -> str:
    """The moment of a text, as SQL; NULL for a text that is none.

    Claim: K-50. A function of the text and the declared format alone.
    Requires: a column of texts.
    Relies on: K-50.
    Checked by: tests/ingest/test_parsing.py::test_moments_of_texts
    """
    if date_format is None:
        return _parse_iso(f"trim({column})")
    typed = f"WHEN starts_with({column}, {quote_text(TYPED)}) THEN {_parse_iso(f'{column}[2:]')}"
    return f"CASE {typed} ELSE try_strptime(trim({column}), {quote_text(date_format)}) END"


def _parse_iso(column: str) -> str:
    local = f"TRY_CAST(regexp_extract({column}, {quote_text('^' + DAY + TIME)}) AS TIMESTAMP)"
    sign, hours, minutes = (f"regexp_extract({column}, {quote_text(OFFSET + '$')}, {group})" for group in (1, 2, 3))
    ahead = f"COALESCE(TRY_CAST({hours} AS INTEGER), 0) * 60 + COALESCE(TRY_CAST({minutes} AS INTEGER), 0)"
    signed = f"CASE WHEN {sign} = '-' THEN -({ahead}) ELSE {ahead} END"
    return (
        f"CASE WHEN regexp_full_match({column}, {quote_text(DAY)}) THEN CAST(TRY_CAST({column} AS DATE) AS TIMESTAMP) "
        f"WHEN regexp_full_match({column}, {quote_text(DAY + TIME)}) THEN TRY_CAST({column} AS TIMESTAMP) "
        f"WHEN regexp_full_match({column}, {quote_text(DAY + TIME + ZONE)}) THEN {local} - to_minutes({signed}) "
        f"WHEN lower({column}) = 'infinity' THEN {FOREVER} WHEN lower({column}) = '-infinity' THEN {NEVER} END"
    )
