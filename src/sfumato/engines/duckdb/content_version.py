"""The version of pinned data: a keyed digest of its content. Without the key, the digest reveals nothing."""

import hashlib
import hmac

import duckdb

from sfumato.ingest.hidden_names import HIDDEN, UNIT
from sfumato.ingest.sql_quoting import quote

DIGITS, PIECES = 15, 4  # hexadecimal digits that fit a BIGINT, and how many such pieces of each row's digest count


def compute_content_digest(connection: duckdb.DuckDBPyConnection, table: str, key: bytes) -> str:
    """An HMAC of the rows of a pinned table. The order of the rows does not matter; how often each is there does.

    Each row has a digest with a secret prefix, and these are added up: to find other rows with the same sums, or to try
    out guesses, takes the key.
    """
    described = connection.execute(f"DESCRIBE {quote(table)}").fetchall()
    columns = sorted((str(row[0]), str(row[1])) for row in described if row[0] == UNIT or not row[0].startswith(HIDDEN))
    texts = [f"CAST({quote(name)} AS VARCHAR)" for name, _ in columns]
    parts = ["?", *(f"COALESCE(strlen({text}) || ':' || {text}, '-')" for text in texts)]
    sums = [
        f"SUM(CAST('0x' || digest[{DIGITS * piece + 1}:{DIGITS * (piece + 1)}] AS BIGINT))" for piece in range(PIECES)
    ]
    digests = f"SELECT sha256({' || '.join(parts)}) AS digest FROM {quote(table)}"
    secret = hmac.new(key, b"rows", hashlib.sha256).hexdigest()
    found = connection.execute(f"SELECT COUNT(*), {', '.join(sums)} FROM ({digests})", [secret]).fetchall()
    return hmac.new(key, repr((columns, found)).encode(), hashlib.sha256).hexdigest()
