"""Writes of several threads in one transaction: a disk commits far fewer times than requests arrive."""

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from sfumato.ledger.write_lock import STEP_SECONDS

WAIT_SECONDS = 30
Written = TypeVar("Written")


class GroupCommit:
    """Collects what threads want to write. Whoever comes first commits for all who wait; then the next one does.

    Work that fails is undone by itself, and the others in the same transaction are not affected.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: sa.Connection | None = None  # of the thread that has the turn; it stays open
        self._waiting: list[_Work] = []
        self._list, self._turn = threading.Lock(), threading.Lock()

    def run(self, work: Callable[[sa.Connection], Written]) -> Written:
        """Do the work. It is durable when this returns. If it raises, nothing of it is written."""
        mine = _Work(work)
        with self._list:
            self._waiting.append(mine)
        with self._turn:
            if not mine.done:
                self._commit()
        if mine.error is not None:
            raise mine.error
        result: Written = mine.result
        return result

    def _commit(self) -> None:
        with self._list:
            taken, self._waiting = self._waiting, []
        try:
            connection = self._connect()
            _begin_alone(find_driver(connection))
            for request in taken:
                request.run(connection, among_others=len(taken) > 1)
            if connection.in_transaction():  # as SQLAlchemy sees it: some work used its statements
                connection.commit()
            else:
                find_driver(connection).commit()
        except BaseException as error:
            self.close()  # what a connection is left with after an error is not used again
            for request in taken:  # nothing was committed, for nobody
                request.error = request.error or error
            raise
        finally:
            for request in taken:
                request.done = True

    def close(self) -> None:
        """Close the connection. The next write opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> sa.Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.detach()  # no other use of the accounts gets it
            find_driver(self._connection).execute("PRAGMA busy_timeout = 0")  # `_begin_alone` waits in shorter steps
        return self._connection


class _Work:
    """What one thread wants to write, and what became of it."""

    def __init__(self, work: Callable[[sa.Connection], Any]) -> None:
        self._work = work
        self.done, self.result, self.error = False, None, None  # type: bool, Any, BaseException | None

    def run(self, connection: sa.Connection, *, among_others: bool) -> None:
        if not among_others:  # if it fails, the whole transaction is undone
            self.result = self._work(connection)
            return
        driver = find_driver(connection)
        driver.execute("SAVEPOINT own")
        try:
            self.result = self._work(connection)
        except Exception as error:
            self.error = error
            driver.execute("ROLLBACK TO own")
        driver.execute("RELEASE own")


def begin_writing(connection: sa.Connection) -> None:
    """Exclude other writers from the first statement on. SQLite's driver leaves this to us."""
    driver = find_driver(connection)
    driver.execute("PRAGMA busy_timeout = 0").close()
    try:
        _begin_alone(driver)
    finally:
        driver.execute(f"PRAGMA busy_timeout = {1000 * WAIT_SECONDS}").close()


def _begin_alone(driver: sqlite3.Connection) -> None:
    """`begin_writing` on a connection that does not wait for locks by itself: it begins as soon as nobody writes."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(STEP_SECONDS)
        else:
            return


def find_driver(connection: sa.Connection) -> sqlite3.Connection:
    """SQLite's own connection."""
    driver: Any = connection.connection.dbapi_connection
    found: sqlite3.Connection = driver
    return found
