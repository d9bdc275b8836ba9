"""Sessions of the PostgreSQL engine: connections, and read-only transactions on them."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.adapt import Loader

from sfumato.engines.sql.postgres_functions import list_functions
from sfumato.ingest.postgres_server import build_server_error, connect

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
FAST = ("SET jit = off",)  # it compiles for longer than most questions run


class WholeNumbers(Loader):
    """Sums are whole numbers. Any other number is an error."""

    def load(self, data: "bytes | bytearray | memoryview") -> int:
        return int(bytes(data))


class Sessions:
    """Connections to one database, each with our functions. A connection is used by one thread at a time.

    Where a single connection holds the data, in temporary tables, questions take turns.
    """

    def __init__(self, url: str, timeout_seconds: int, *, single: bool = False) -> None:
        self._url, self._timeout, self._single = url, timeout_seconds, single
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._process = os.getpid()

    def take(self) -> Connection:
        """A connection that nobody else uses."""
        if self._single:
            self._turn.acquire()
        with self._lock:
            if self._process != os.getpid():  # a forked child must not speak on its parent's connections
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        if self._single:
            self._turn.release()
            raise build_server_error("The connection that held the data was lost.", "Open or protect the data again.")
        return self.open()

    def give_back(self, connection: Connection) -> None:
        """Make a connection ready for others."""
        with self._lock:
            self._idle.append(connection)
        if self._single and self._turn.locked():
            self._turn.release()

    def discard(self, connection: Connection) -> None:
        """Close a connection that failed."""
        connection.close()
        if self._single:
            self._turn.release()

    @contextmanager
    def read(self, connection: Connection) -> Iterator[Cursor]:
        """A read-only transaction that sees one state of the database, with a limit on the time of a statement."""
        with connection.cursor() as cursor:
            cursor.execute(READ_ONLY)
            try:
                cursor.execute(f"SET LOCAL statement_timeout = {1_000 * self._timeout}")
                yield cursor
            finally:
                with suppress(psycopg.Error):
                    cursor.execute("ROLLBACK")

    def open(self) -> Connection:
        """A new connection, with our functions."""
        connection, allowed = connect(self._url), False
        try:
            connection.adapters.register_loader("numeric", WholeNumbers)
            with suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
                self._set_up(connection)
                allowed = True
        except BaseException:
            connection.close()
            raise
        if not allowed:
            connection.close()
            hint = "The owner of the server can allow it: GRANT TEMPORARY ON DATABASE … TO …. A standby cannot be used."
            raise build_server_error("This user may not make temporary functions and tables.", hint)
        return connection

    def _set_up(self, connection: Connection) -> None:
        with connection.transaction():
            for statement in (*FAST, *list_functions()):
                connection.execute(statement)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()
