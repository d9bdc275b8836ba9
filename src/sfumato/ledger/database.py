"""The database of a ledger: SQLite or PostgreSQL, its connections, and its files."""

import errno
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import Pool, QueuePool, StaticPool

from sfumato.errors import LedgerError, SfumatoError
from sfumato.ledger.file_errors import explain_failure, has_room, is_writable
from sfumato.ledger.fork_gate import GATE
from sfumato.ledger.ledger_rows import DURABLE, LedgerRows, run_transaction
from sfumato.ledger.server_address import ServerAddress, is_server, read_server_address
from sfumato.ledger.signatures import Signatures
from sfumato.ledger.write_lock import take_turns
from sfumato.private_files import make_private, tighten

WAIT_SECONDS = 30
SUFFIXES = ("", "-wal", "-shm")  # of the files that are one SQLite database
# bytes that are not UTF-8 become text that fails its hash, so that the damaged entry is named
TEXT = partial(str, encoding="utf-8", errors="surrogateescape")
DAMAGED = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError)
# connections of the parent process: a child that closed them would close the parent's files
_INHERITED: list[Pool | list[sa.Connection]] = []


class Database:
    """A database that holds one ledger. Threads share it. A forked child process gets connections of its own."""

    def __init__(self, url: str | None, *, must_exist: bool, read_only: bool = False) -> None:
        address = _read_address(url)
        self._on_sqlite = isinstance(address, sa.URL)
        self.in_memory = isinstance(address, sa.URL) and not address.database
        self.path = address.database if isinstance(address, sa.URL) and not self.in_memory else None
        self.schema = address.schema if isinstance(address, ServerAddress) else None
        self.signatures: Signatures | None = None
        self._file: tuple[int, int] | None = None  # the database file that this process opened
        self._size = 0
        self.others_write = False  # whether another process was seen to write
        self._idle: list[sa.Connection] = []  # to take one from the pool again would take longer than to read with it
        if must_exist and (self.in_memory or (self._on_sqlite and not os.path.isfile(self.path or ""))):
            hint = (
                "Put the ledger's file back, or restore the newest backup with `sfumato ledger restore`. "
                "No new ledger is made here, because it would forget what was spent."
            )
            raise LedgerError("ledger-missing", f"There is no ledger at {self.path or 'this address'}.", hint)
        self._process = os.getpid()
        self._lock = threading.RLock() if self.in_memory else nullcontext()  # threads share its one connection
        self._turn = threading.Lock()
        self._may_be_new = not must_exist
        # SQLite writes beside a ledger even to read it; where that is not possible, it is read as it is
        self._read_only = read_only and self.path is not None and not (is_writable(self.path) and has_room(self.path))
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(address, ServerAddress):
            self._engine = address.make_engine()
        else:
            pool = StaticPool if self.in_memory else QueuePool
            self._engine = sa.create_engine(  # every transaction ends itself: nothing is left to roll back
                "sqlite://", creator=self._connect, poolclass=pool, hide_parameters=True, pool_reset_on_return=None
            )
            sa.event.listen(self._engine, "connect", self._set_up_sqlite)

    @contextmanager
    def read(self) -> Iterator[LedgerRows]:
        """One consistent view of the ledger."""
        with self._connection() as connection, run_transaction(connection, write=False):
            self._refuse_other_files(connection)
            yield LedgerRows(connection, self.signatures)

    @contextmanager
    def glance(self) -> Iterator[LedgerRows]:
        """For one statement whose result decides nothing that is not checked again: SQLite needs no transaction."""
        if not self._on_sqlite:
            with self.read() as rows:
                yield rows
            return
        with self._connection() as connection:
            yield LedgerRows(connection, self.signatures)

    @contextmanager
    def write(self) -> Iterator[LedgerRows]:
        """One transaction that excludes other writers. When it is left without an error, it is on the disk."""
        with self._connection() as connection, self._take_turn():
            with run_transaction(connection, write=True):
                self._refuse_other_files(connection)
                yield LedgerRows(connection, self.signatures)
            self._refuse_other_files(connection)  # what was committed to a file that is gone is not committed

    def check_room(self) -> None:
        """Refuse if the disk is nearly full. To be called inside a transaction, which explains the error."""
        if self.path is not None and not has_room(self.path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the connections."""
        with GATE:
            if self._process == os.getpid():
                while self._idle:
                    self._idle.pop().close()
            self._engine.dispose(close=self._process == os.getpid())
            if self._scratch is not None:
                self._scratch.cleanup()

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        self._stay_in_one_process()
        damage = _raise_ledger_errors(self._engine.dialect.loaded_dbapi.Error, self.path)
        with GATE, damage, self._lock, self._take_connection() as connection:
            yield connection

    @contextmanager
    def _take_connection(self) -> Iterator[sa.Connection]:
        """The idle connection, or one from the pool. After an error, it goes back to the pool."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._engine.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._on_sqlite and not self._idle:
            self._idle.append(connection)
        else:
            connection.close()

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Let threads and processes write in turns: SQLite excludes others too, but they would sleep far longer."""
        taken = self.path is not None and self._turn.acquire(timeout=WAIT_SECONDS)
        try:
            with take_turns(self.path) if self.path is not None and self.others_write else nullcontext():
                yield
        finally:
            if taken:
                self._turn.release()

    def _refuse_other_files(self, connection: sa.Connection) -> None:
        """Refuse to go on if the files at the path are not the ones that are open, or were cut short."""
        if self.path is None or self._read_only:
            return
        known = self._size  # read first: another thread may see the file grow, and say so, meanwhile
        found, size = _identify_files(self.path)
        if found != connection.info["files"] or size < known:
            raise _build_replaced_error()
        self._size = size

    def _connect(self) -> sqlite3.Connection:
        where = "file::memory:"
        if self.path is not None and self._read_only:
            where = self._write_reading_address(self.path)
        elif self.path is not None:
            if self._may_be_new and self._file is None:
                make_private(Path(self.path))
            if self._file is not None and self._file != _identify_files(self.path)[0][0]:
                raise _build_replaced_error()
            where = f"file:{quote(self.path)}?mode=rw"  # SQLite itself never makes a file here
        return sqlite3.connect(where, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=True)

    def _write_reading_address(self, path: str) -> str:
        """The address with which SQLite reads a file that this user cannot write.

        Entries may still be in the journal, which only a writer can merge into the file. Then a copy of both is read.
        """
        if not os.path.exists(path + "-wal") or not os.stat(path + "-wal").st_size:
            return f"file:{quote(path)}?mode=ro&immutable=1"
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="sfumato-")
            for suffix in ("-wal", ""):  # the journal first: what is folded in meanwhile is then in the file
                shutil.copyfile(path + suffix, os.path.join(self._scratch.name, "ledger.db") + suffix)
        return f"file:{quote(os.path.join(self._scratch.name, 'ledger.db'))}?mode=rw"

    def _set_up_sqlite(self, connection: Any, record: Any) -> None:  # noqa: ANN401 - of sqlite3 and SQLAlchemy
        connection.text_factory = TEXT
        if self._read_only:
            return
        for pragma in (f"busy_timeout = {1000 * WAIT_SECONDS}", *DURABLE):
            connection.execute(f"PRAGMA {pragma}").close()
        if self.path is None:
            return
        connection.execute("SELECT COUNT(*) FROM sqlite_master").close()  # opens the journal
        record.info["files"] = files = _identify_files(self.path)[0]
        if self._file is not None and files[0] != self._file:
            raise _build_replaced_error()
        self._file = files[0]
        for suffix in SUFFIXES:
            tighten(Path(self.path + suffix))

    def _stay_in_one_process(self) -> None:
        if self._process == os.getpid():
            return
        if self.in_memory:  # a child's copy would be a second budget
            hint = "Keep the ledger in a file or a database, and open it in each process."
            raise LedgerError("ledger-foreign", "A ledger in memory belongs to the process that made it.", hint)
        with GATE:
            _INHERITED.extend((self._engine.pool, self._idle))
            self._idle, self._turn = [], threading.Lock()
            self._engine.dispose(close=False)
            self._process = os.getpid()


@contextmanager
def _raise_ledger_errors(driver: type[Exception], path: str | None) -> Iterator[None]:
    """Raise what a database, its file at `path`, or damaged bytes in it raise, as a LedgerError."""
    try:
        yield
    except SfumatoError:
        raise
    except (SQLAlchemyError, driver, OSError) as error:
        cause = getattr(error, "orig", None) or error
        name = getattr(cause, "sqlite_errorname", "")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            hint = "Restore it from the newest backup: `sfumato ledger restore`. Nothing is answered without it."
            raise LedgerError(
                "ledger-unreachable", "The ledger cannot be read or written: its file is damaged.", hint
            ) from error
        why = explain_failure(cause, path)
        if why is not None:
            message = f"The ledger cannot be written: {why[0]}."
            raise LedgerError("ledger-unreachable", message, f"{why[1]} Nothing is answered without it.") from error
        hint = "Check its address, its permissions and its disk. Nothing is answered without it."
        raise LedgerError("ledger-unreachable", "The ledger cannot be read or written.", hint) from error
    except DAMAGED as error:
        hint = "Restore the newest intact backup: `sfumato ledger restore`."
        raise LedgerError("ledger-altered", "The ledger holds something that it never wrote.", hint) from error


def _identify_files(path: str) -> tuple[tuple[tuple[int, int], ...], int]:
    """The files at the path now (the database, its journal and the journal's index), and the database's size."""
    found, size = [], 0
    for suffix in SUFFIXES:
        try:
            status = os.stat(path + suffix)
            found.append((status.st_dev, status.st_ino))
            size = size if suffix else status.st_size
        except FileNotFoundError:
            found.append((0, 0))
    return tuple(found), size


def _build_replaced_error() -> LedgerError:
    hint = "Put the newest ledger back at its path, and open the dataset again. Nothing is answered without it."
    return LedgerError("ledger-replaced", "The ledger was deleted, moved or replaced while it was open.", hint)


def _read_address(url: str | None) -> sa.URL | ServerAddress:
    """Where the ledger is: a file or memory (SQLite), or a server."""
    if url is None:
        return sa.URL.create("sqlite")
    if "://" not in url:
        return sa.URL.create("sqlite", database=os.path.abspath(url))
    try:
        if is_server(url):
            return read_server_address(url)
        address = sa.make_url(url)
        if address.get_backend_name() == "sqlite":
            address.get_dialect()
            in_file = address.database not in (None, "", ":memory:")
            return address.set(database=os.path.abspath(address.database or "") if in_file else None)
    except (ArgumentError, NoSuchModuleError, ValueError):
        pass
    hint = "Give a file path, or a URL such as postgresql://user@host/database?schema=clinic."
    raise LedgerError("ledger-unreachable", "A ledger lives in SQLite or PostgreSQL.", hint)
