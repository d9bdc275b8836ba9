"""One exclusive transaction on a SQLite file: all of it is written, or nothing."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sfumato.errors import LedgerError


@contextmanager
def run_sqlite_transaction(
    path: Path, settings: Sequence[str], wait_seconds: float, failure: LedgerError, *, attached: Path | None = None
) -> Iterator[sqlite3.Connection]:
    """Run one transaction on the file, with these PRAGMAs. Raise `failure` if the file cannot be read or written.

    The tables of the file `attached`, if there is one, are in the schema `other`.
    """
    try:
        with closing(sqlite3.connect(path, timeout=wait_seconds, isolation_level=None)) as connection:
            for setting in settings:
                connection.execute(f"PRAGMA {setting}")
            if attached is not None:
                connection.execute("ATTACH DATABASE ? AS other", (str(attached),))
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
    except (sqlite3.Error, UnicodeDecodeError):  # UnicodeDecodeError: sqlite3 quotes a damaged file in its message
        raise failure from None
