"""Where a ledger is kept: SQLite or PostgreSQL, and what a transaction is on each."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from sfumato.errors import LedgerError
from sfumato.ledger.books import Books

WAIT_SECONDS = 30
IsolationLevel = Literal["REPEATABLE READ", "READ COMMITTED"]


class Store:
    """A database that holds one ledger. Threads share it; a forked child of the process gets connections of its own."""

    def __init__(self, url: str | None, *, must_exist: bool) -> None:
        address = _address(url)
        self._on_sqlite = address.get_backend_name() == "sqlite"
        self._in_memory = self._on_sqlite and not address.database
        if must_exist and (self._in_memory or (self._on_sqlite and not os.path.isfile(address.database or ""))):
            hint = "Name the file that the ledger was made in. A new one is made only where no ledger_id is declared."
            raise LedgerError("ledger-missing", "There is no ledger at this address.", hint)
        self._process = os.getpid()
        self._lock = threading.RLock() if self._in_memory else nullcontext()  # threads share its one connection
        if self._on_sqlite:
            pool = {"poolclass": StaticPool} if self._in_memory else {}
            connect_args = {"isolation_level": None, "check_same_thread": False, "timeout": WAIT_SECONDS}
            self._engine = sa.create_engine(address, connect_args=connect_args, hide_parameters=True, **pool)
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
        else:
            self._engine = sa.create_engine(address, hide_parameters=True)

    @contextmanager
    def read(self) -> Iterator[Books]:
        """One consistent view of the ledger."""
        with self._transaction("BEGIN", "REPEATABLE READ") as books:
            yield books

    @contextmanager
    def write(self) -> Iterator[Books]:
        """One transaction that excludes other writers; on leaving it without an error, it is on the disk.

        SQLite takes the write lock before anything is read. PostgreSQL reads what others wrote while it waited.
        """
        with self._transaction("BEGIN IMMEDIATE", "READ COMMITTED") as books:
            yield books

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, begin: str, isolation: IsolationLevel) -> Iterator[Books]:
        self._stay_in_one_process()
        try:
            with self._lock, self._engine.connect() as connection:
                if not self._on_sqlite:
                    connection.execution_options(isolation_level=isolation)
                with connection.begin():
                    if self._on_sqlite:  # whose driver leaves this to us
                        connection.exec_driver_sql(begin)
                    yield Books(connection)
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            hint = "Check its address, its permissions and its disk. Nothing is answered without it."
            raise LedgerError("ledger-unreachable", "The ledger cannot be read or written.", hint) from error

    def _stay_in_one_process(self) -> None:
        if self._process == os.getpid():
            return
        if self._in_memory:  # a child's copy would be a second budget
            hint = "Keep the ledger in a file or a database, and open it in each process."
            raise LedgerError("ledger-foreign", "A ledger in memory belongs to the process that made it.", hint)
        self._engine.dispose(close=False)
        self._process = os.getpid()


def _address(url: str | None) -> sa.URL:
    if url is None:
        return sa.URL.create("sqlite")
    if "://" not in url:
        return sa.URL.create("sqlite", database=os.path.abspath(url))
    try:
        address = sa.make_url(url)
        backend = address.get_backend_name()
        if backend in ("sqlite", "postgresql"):
            address.get_dialect()
            in_file = backend == "sqlite" and address.database not in (None, "", ":memory:")
            database = os.path.abspath(address.database or "") if in_file else None
            return address if backend == "postgresql" else address.set(database=database)
    except (ArgumentError, NoSuchModuleError, ImportError):
        pass
    hint = "Give a file path, or a URL such as postgresql+psycopg://user@host/database."
    raise LedgerError("ledger-unreachable", "A ledger lives in SQLite or PostgreSQL.", hint)


def _set_up_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401
    for pragma in (f"busy_timeout = {1000 * WAIT_SECONDS}", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}").close()
