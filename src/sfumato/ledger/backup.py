"""Backups of a ledger's file, and their return.

A restore fences running processes: the entry that it appends is an anchor, and a process that opened the ledger under
another anchor refuses to charge (see `Ledger`). Entries that the backup lacks are counted, and what they cost stays
charged.
"""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato.errors import LedgerError
from sfumato.ledger.adoption import Adoption, continued, mark_of
from sfumato.ledger.anchor import place_of, read_anchor
from sfumato.ledger.founding import Identity
from sfumato.ledger.keyring import Mark
from sfumato.ledger.store import SUFFIXES, Store
from sfumato.private_files import make_private, sync_folder


def back_up(url: str, target: Path) -> None:
    """Write the ledger as it is now into a new file, while others may use it."""
    source = _file_of(Store(url, must_exist=True))
    if target.exists():
        raise LedgerError("backup-exists", f"There is a file {target} already.", "Choose another name.")
    try:
        make_private(target)
        _copy(source, str(target))
        sync_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        hint = "Check the ledger, the folder and its disk."
        raise LedgerError("ledger-unreachable", "The backup could not be written.", hint) from error


def restore(url: str, ledger_id: str, population: str, backup: Path, *, accept_missing: bool = False) -> Adoption:
    """Put a backup in the place of the ledger. Its chain, sums and signatures must hold.

    Where the ledger, or the newest entry that this user has seen, is newer than the backup, that is refused unless the
    owner accepts it; the entry that says so counts what is missing and carries what it cost.
    """
    store = Store(url, must_exist=False)
    path, seen = _file_of(store), _seen_at(url)
    if not backup.is_file():
        raise LedgerError("backup-missing", f"There is no file {backup}.", "Check its path.")
    with TemporaryDirectory(dir=os.path.dirname(path), prefix=".restore-") as scratch:
        new = os.path.join(scratch, "ledger.db")
        make_private(Path(new))
        try:
            _copy(str(backup), new)
        except sqlite3.Error as error:
            raise LedgerError("backup-damaged", f"{backup} is not a whole ledger.", "Try an older one.") from error
        in_place = _is_database(path)
        place = place_of(path) if in_place else {**place_of(new), "path": path}
        copy = Store(new, must_exist=True)
        try:
            done = continued(
                copy, Identity(ledger_id, population), "restore", accept_missing=accept_missing, seen=seen, place=place
            )
        finally:
            copy.close()
        if in_place:
            _copy(new, path)  # one transaction of SQLite: running processes see the ledger before it or after it
        else:
            _replace(new, path)
    done.keep_mark(path)
    return done


def _seen_at(url: str) -> Mark | None:
    """The head of the ledger that is to be replaced, where it can be read."""
    with suppress(LedgerError):
        store = Store(url, must_exist=True, read_only=True)
        try:
            with store.read() as books:
                head = books.head(lock=False)
                return mark_of(head, read_anchor(books, head).hash, store.path or "")
        finally:
            store.close()
    return None


def _file_of(store: Store) -> str:
    store.close()
    if store.path is None:
        hint = "Use the server's own tools (pg_dump, pg_restore), and `sfumato ledger adopt` after a restore."
        raise LedgerError("ledger-on-a-server", "Only a ledger in a file is copied here.", hint)
    return store.path


def _copy(source: str, target: str) -> None:
    """SQLite's own copy of a database that may be in use, into a file that may be in use."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()


def _is_database(path: str) -> bool:
    """Whether a database is at the path that SQLite can write to; a damaged one is put aside instead."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True)) as connection:
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            return bool(state == "ok")
    except sqlite3.Error:
        return False


def _replace(new: str, path: str) -> None:
    """Put the new file at the path; what is there is kept under another name."""
    aside = f"{path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    for suffix in SUFFIXES:
        if os.path.exists(path + suffix):
            shutil.move(path + suffix, aside + suffix)
    os.replace(new, path)
    sync_folder(Path(path).parent)
