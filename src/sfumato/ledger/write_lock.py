"""Wait for other processes that write to a SQLite file. SQLite itself sleeps far longer than a transaction takes."""

import sqlite3
import time
from typing import Any

STEP_SECONDS = 0.0003  # a transaction takes about a millisecond
MOST_SECONDS = 2.0  # after that, SQLite waits in its own way, and refuses when its time is over


def wait_for_writers(connection: Any, usual_seconds: int) -> None:  # noqa: ANN401 - of the driver
    """Return as soon as nobody writes; the transaction that follows takes the lock itself. It changes nothing.

    `usual_seconds` is how long the connection waits for a lock in other cases.
    """
    end = time.monotonic() + MOST_SECONDS
    try:
        connection.execute("PRAGMA busy_timeout = 0").close()
        while time.monotonic() < end:
            try:
                connection.execute("BEGIN IMMEDIATE").close()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    return  # the transaction meets it too, and explains it
                time.sleep(STEP_SECONDS)
            else:
                connection.rollback()
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * usual_seconds}").close()
