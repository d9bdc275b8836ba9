"""Backing up a ledger's file, and restoring it.

A restore stops running processes from charging: it appends an anchor, and a process that opened the ledger under
another anchor refuses to charge (see `GuardedDatabase`). The rows are replaced in one transaction on the ledger's own
file, so that no charge can be made between counting and replacing. Entries that the backup lacks are counted, and what
they cost stays charged.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato.errors import LedgerError
from sfumato.ledger.adoption import Accepted, Adoption, continue_ledger
from sfumato.ledger.anchor import locate_file
from sfumato.ledger.database import SUFFIXES, Database
from sfumato.ledger.entries import SCHEMA_VERSION
from sfumato.ledger.file_errors import explain_failure
from sfumato.ledger.ledger_opening import Identity, refuse_foreign
from sfumato.ledger.schema import alter_tables
from sfumato.private_files import locked, make_private, sync_folder

SCRATCH = ".restore-"


def back_up(url: str, target: Path) -> None:
    """Copy the ledger into a new file. Others can use the ledger meanwhile."""
    source = _find_file(Database(url, must_exist=True))
    if target.exists():
        raise LedgerError("backup-exists", f"The file {target} exists already.", "Choose another name.")
    try:
        make_private(target)
        _copy(source, str(target))
        sync_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        why = explain_failure(error, str(target))
        with suppress(OSError):
            target.unlink(missing_ok=True)
        raise _refuse_writing("The backup", why) from error


def restore(
    url: str,
    ledger_id: str,
    population: str,
    backup: Path,
    *,
    accept_missing: bool = False,
    accept_key: bool = False,
) -> Adoption:
    """Replace the ledger with a backup. The backup's chain, sums and signatures must be correct.

    If the ledger, or any copy of it that this user has seen, has entries that the backup lacks, the restore is refused
    unless the owner accepts it. The new entry records how many entries are missing and what they cost.
    """
    path = _find_file(Database(url, must_exist=False))
    identity, accepted = Identity(ledger_id, population), Accepted(accept_missing, accept_key)
    if not backup.is_file():
        raise LedgerError("backup-missing", f"There is no file {backup}.", "Check its path.")
    _clear_scratch(os.path.dirname(path))
    with (
        _explain_failures(path),
        TemporaryDirectory(dir=os.path.dirname(path), prefix=SCRATCH) as scratch,
        _hold_lock(Path(scratch)),
    ):
        new = os.path.join(scratch, "ledger.db")
        make_private(Path(new))
        try:
            _copy(str(backup), new)
        except sqlite3.Error as error:
            why = explain_failure(error, path)
            if why is not None:
                raise _refuse_writing("The ledger", why) from error
            raise LedgerError("backup-damaged", f"{backup} is not a whole ledger.", "Try an older one.") from error
        with closing(Database(new, must_exist=True)) as copy:
            _bring_up_to_date(copy, identity)
            if _is_database(path):
                with closing(Database(path, must_exist=True)) as live:
                    done = continue_ledger(live, identity, "restore", accepted, backup=copy)
            else:
                place = {**locate_file(new), "path": path}
                done = continue_ledger(copy, identity, "restore", accepted, place=place)
                copy.close()
                _replace(new, path)
    done.keep_mark(path)
    return done


@contextmanager
def _explain_failures(path: str) -> Iterator[None]:
    """Turn errors of the operating system into a LedgerError while a ledger's file is replaced."""
    try:
        yield
    except OSError as error:
        raise _refuse_writing("The ledger", explain_failure(error, path)) from error


def _refuse_writing(what: str, why: tuple[str, str] | None) -> LedgerError:
    wrong, hint = why or ("", "Check the ledger, the folder and its disk.")
    message = f"{what} could not be written{': ' if wrong else ''}{wrong}."
    return LedgerError("ledger-unreachable", message, hint)


def _bring_up_to_date(copy: Database, identity: Identity) -> None:
    """Bring the tables of a backup's copy up to date."""
    with copy.write() as rows:
        version = refuse_foreign(rows, identity)
        if version < SCHEMA_VERSION:
            alter_tables(rows, version)


@contextmanager
def _hold_lock(scratch: Path) -> Iterator[None]:
    """Hold a lock while a restore works in this folder. The system releases it when the process ends."""
    with locked(scratch / "lock"):
        yield


def _clear_scratch(folder: str) -> None:
    """Remove folders that killed restores left here: those whose lock is free."""
    for left in Path(folder).glob(f"{SCRATCH}*"):
        try:
            with (left / "lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # another restore works in it, or has only begun


def _find_file(database: Database) -> str:
    database.close()
    if database.path is None:
        hint = "Use the server's own tools (pg_dump, pg_restore), and `sfumato ledger adopt` after a restore."
        raise LedgerError("ledger-on-a-server", "This command copies only a ledger in a file.", hint)
    return database.path


def _copy(source: str, target: str) -> None:
    """Copy a database with SQLite's own backup. Both files may be in use."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()


def _is_database(path: str) -> bool:
    """Whether the file is a database that SQLite can write to. A damaged one is renamed instead."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True)) as connection:
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            return bool(state == "ok")
    except sqlite3.Error:
        return False


def _replace(new: str, path: str) -> None:
    """Put the new file at the path. An existing file is renamed."""
    aside = f"{path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    for suffix in SUFFIXES:
        if os.path.exists(path + suffix):
            shutil.move(path + suffix, aside + suffix)
    os.replace(new, path)
    sync_folder(Path(path).parent)
