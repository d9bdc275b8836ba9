"""The version of pinned data: a keyed digest of its content. Without the key, the digest reveals nothing."""

import hashlib
import hmac
from collections.abc import Sequence

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
    columns = sorted((str(row[0]), str(row[1])) for row in described if is_content(row[0]))
    query = select_sums([name for name, _ in columns], quote(table))
    found = connection.execute(query, [make_row_secret(key)]).fetchall()
    return finish_digest(columns, found, key)


def is_content(column: str) -> bool:
    """Is a column of a pinned table part of its content? Others follow from these."""
    return column == UNIT or not column.startswith(HIDDEN)


def select_sums(columns: Sequence[str], relation: str) -> str:
    """The query of the number of rows and of the sums of the pieces of their digests; its parameter is the secret."""
    texts = [f"CAST({quote(name)} AS VARCHAR)" for name in columns]
    parts = ["?", *(f"COALESCE(strlen({text}) || ':' || {text}, '-')" for text in texts)]
    sums = [
        f"SUM(CAST('0x' || digest[{DIGITS * piece + 1}:{DIGITS * (piece + 1)}] AS BIGINT))" for piece in range(PIECES)
    ]
    digests = f"SELECT sha256({' || '.join(parts)}) AS digest FROM {relation}"
    return f"SELECT COUNT(*), {', '.join(sums)} FROM ({digests})"


def make_row_secret(key: bytes) -> str:
    """What the digest of each row begins with."""
    return hmac.new(key, b"rows", hashlib.sha256).hexdigest()


def finish_digest(columns: Sequence[tuple[str, str]], found: object, key: bytes) -> str:
    """The digest of the columns and of the sums over all rows."""
    return hmac.new(key, repr((columns, found)).encode(), hashlib.sha256).hexdigest()
