"""Writes of several threads in one transaction: a disk commits far fewer times than requests arrive."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from sfumato.ledger.write_lock import wait_for_writers

WAIT_SECONDS = 30
Written = TypeVar("Written")


class GroupCommit:
    """Collects what threads want to write. Whoever comes first commits for all who wait; then the next one does.

    Work that fails is undone by itself, and the others in the same transaction are not affected.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
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
            with self._engine.begin() as connection:
                begin_writing(connection)
                for one in taken:
                    one.run(connection)
        except BaseException as error:
            for one in taken:  # nothing was committed, for nobody
                one.error = one.error or error
            raise
        finally:
            for one in taken:
                one.done = True


class _Work:
    """What one thread wants to write, and what became of it."""

    def __init__(self, work: Callable[[sa.Connection], Any]) -> None:
        self._work = work
        self.done, self.result, self.error = False, None, None  # type: bool, Any, BaseException | None

    def run(self, connection: sa.Connection) -> None:
        _execute(connection, "SAVEPOINT own")
        try:
            self.result = self._work(connection)
        except Exception as error:
            self.error = error
            _execute(connection, "ROLLBACK TO own")
        _execute(connection, "RELEASE own")


def begin_writing(connection: sa.Connection) -> None:
    """Exclude other writers from the first statement on. SQLite's driver leaves this to us."""
    wait_for_writers(connection.connection.dbapi_connection, WAIT_SECONDS)
    _execute(connection, "BEGIN IMMEDIATE")


def _execute(connection: sa.Connection, statement: str) -> None:
    connection.connection.cursor().execute(statement)
