"""Two files that are stored apart from a ledger: the key that signs its entries, and its high-water mark.

The mark names the newest entry that any process of this user has seen. Both files are in a folder of the user
(`SFUMATO_HOME`, or `~/.local/state/sfumato`), one folder per ledger id. So two datasets of one user that share a ledger
share its key, and a copy of a dataset's folder is compared with the same mark.
"""

import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import LedgerError
from sfumato.private_files import make_private, make_private_folder, sync_folder, tighten, write_once, write_private
from sfumato.signing import make_secret, public_key_of, read_key, sign, verify_signature

SLOT = 4096  # bytes: a mark is written to one of two slots, so that an interrupted write leaves the other intact
_MOST = 16 * SLOT  # bytes that are read of the mark's file: all of it
_WITHOUT = "Until this is repaired, Sfumato may not notice that a ledger was put back to an older state."


def find_home() -> Path:
    """The folder of this user's keys and marks."""
    given = os.environ.get("SFUMATO_HOME")
    if given:
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "sfumato"


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest entry that any process of this user has seen, the amount spent by then, and the ledger's file."""

    number: int
    hash: str
    spent: str
    anchor: str  # the hash of the entry that anchored the ledger then
    place: str
    generation: int = 0  # how often the owner has adopted or restored a copy


class Keyring:
    """The key and the mark of one ledger."""

    def __init__(self, folder: Path, key: Ed25519PrivateKey) -> None:
        self._folder = folder
        self._mark_path = str(folder / "mark")
        self._key = key
        self._newest: tuple[bytes, Mark | None] = (b"", None)  # the mark's file as it was last read, and what it says
        self.public_key = public_key_of(key)

    @classmethod
    def make(cls, ledger_id: str) -> "Keyring":
        """The keyring of this ledger. Its key is made if there is none."""
        try:
            make_private_folder(find_home())
            make_private_folder(find_home() / "ledgers")
            folder = make_private_folder(find_home() / "ledgers" / _name_folder(ledger_id))
            write_once(folder / "key", make_secret().encode())
        except OSError as error:
            hint = "Set SFUMATO_HOME to a folder of yours that can be written, apart from the data."
            message = f"The ledger's key cannot be stored in {find_home()}: {error.strerror}."
            raise LedgerError("ledger-key", message, hint) from None
        return cls(folder, _read_key(folder / "key"))

    @classmethod
    def find(cls, ledger_id: str) -> "Keyring | None":
        """The keyring of this ledger; None if this user does not have its key, or may not read it."""
        folder = find_home() / "ledgers" / _name_folder(ledger_id)
        if not os.access(folder / "key", os.R_OK):
            return None
        tighten(folder / "key")
        return cls(folder, _read_key(folder / "key"))

    def sign(self, text: str) -> str:
        """The signature of an entry's hash."""
        return sign(self._key, _write_signed_bytes(text))

    def read_mark(self) -> Mark | None:
        """The high-water mark; None before the first one. None, with a warning, if it cannot be read."""
        try:
            file = os.open(self._mark_path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return self._find_newest(os.read(file, _MOST))
            finally:
                os.close(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn_once(f"The ledger's mark {self._mark_path} cannot be read ({error.strerror}). {_WITHOUT}")
            return None

    def raise_mark(self, mark: Mark) -> bool:
        """Raise the mark to this one; it never falls. False: the owner has adopted or restored another copy since.

        If the file cannot be written, the mark stays, with a warning: the ledger itself is already on the disk.
        """
        try:
            with self._open_mark() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                content = os.pread(file, _MOST, 0)
                found = self._find_newest(content)
                current = found is None or found.generation <= mark.generation
                if current and (found is None or found.number < mark.number):
                    slot, start = _write_slot(mark), SLOT * (mark.number % 2)
                    os.pwrite(file, slot, start)
                    self._newest = (content[:start].ljust(start, b"\0") + slot + content[start + SLOT :], mark)
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may still have the file open
                return current
        except OSError as error:
            _warn_once(f"The ledger's mark {self._mark_path} cannot be written ({error.strerror}). {_WITHOUT}")
            return True

    def replace_mark(self, mark: Mark, seen: Mark | None) -> None:
        """Put this mark in place of the one that was seen: the owner has adopted or restored a ledger."""
        try:
            with self._open_mark() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                found = _find_newest_mark(os.pread(file, _MOST, 0))
                continued = found is not None and found.anchor == mark.anchor  # it was charged here since
                unchanged = found == seen or continued
                if unchanged:
                    newest = found if found is not None and continued else mark
                    generation = found.generation + 1 if found else 1
                    os.pwrite(file, _write_slot(replace(newest, generation=generation)) * 2, 0)
                    os.fsync(file)
                fcntl.flock(file, fcntl.LOCK_UN)
        except OSError as error:
            raise self._write_error("mark", error) from None
        if not unchanged:
            message = "Another copy of the ledger was charged meanwhile."
            hint = "Run `sfumato ledger adopt` with --accept-missing: what was charged there is then counted here too."
            raise LedgerError("ledger-older", message, hint)

    def demand_writable(self) -> None:
        """Refuse before anything is committed, if the mark could not be replaced afterwards."""
        try:
            with self._open_mark():
                pass
        except OSError as error:
            raise self._write_error("mark", error) from None

    def store_note(self, name: str, text: str) -> None:
        """Write a text to a file of this name, all of it or nothing. Refuse if the folder cannot be written."""
        path = self._folder / name
        temporary = path.with_name(f".{name}.{os.getpid()}-{threading.get_ident()}")
        try:
            write_private(temporary, text.encode())
            os.replace(temporary, path)
            sync_folder(self._folder)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise self._write_error(name, error) from None

    @contextmanager
    def _open_mark(self) -> Iterator[int]:
        """The file of the mark; it is made if there is none. Python's own file objects take twice as long."""
        how = os.O_RDWR | os.O_CLOEXEC
        try:
            file = os.open(self._mark_path, how)
        except FileNotFoundError:
            make_private(Path(self._mark_path))
            file = os.open(self._mark_path, how)
        try:
            yield file
        finally:
            os.close(file)

    def _find_newest(self, content: bytes) -> Mark | None:
        read, found = self._newest
        if read != content:
            found = _find_newest_mark(content)
            self._newest = (content, found)
        if found is None and content:
            _warn_once(f"The ledger's mark {self._mark_path} is damaged. {_WITHOUT}")
        return found

    def _write_error(self, name: str, error: OSError) -> LedgerError:
        hint = "The ledger cannot continue without it. Check the folder's permissions and its disk, and try again."
        return LedgerError("ledger-key", f"{self._folder / name} cannot be written: {error.strerror}.", hint)

    def read_note(self, name: str) -> str | None:
        """The text that `store_note` wrote under this name, or None."""
        try:
            return (self._folder / name).read_text()
        except (OSError, ValueError):
            return None

    def try_store_note(self, name: str, text: str) -> None:
        """`store_note`, if the folder can be written."""
        with suppress(LedgerError):
            self.store_note(name, text)


@lru_cache(maxsize=64)  # each warning appears once per process
def _warn_once(message: str) -> None:
    logging.getLogger("sfumato").warning(message)


def is_signed(text: str, signature: str, public_key: str) -> bool:
    """Whether the holder of this key signed this hash."""
    return verify_signature(_write_signed_bytes(text), signature, public_key)


def _write_signed_bytes(text: str) -> bytes:
    return f"sfumato ledger entry {text}".encode()


def _name_folder(ledger_id: str) -> str:
    """The name of a ledger's folder. An id that the owner wrote may hold any character."""
    return ledger_id if ledger_id.isalnum() and ledger_id.isascii() else sha256(ledger_id.encode()).hexdigest()


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        return read_key(path.read_text())
    except (OSError, ValueError):
        hint = "Restore the key from a copy. Or remove it, and run `sfumato ledger adopt`, which makes a new one."
        raise LedgerError("ledger-key", f"The ledger's key cannot be read: {path}.", hint) from None


def _write_slot(mark: Mark) -> bytes:
    body = json.dumps({part.name: getattr(mark, part.name) for part in fields(Mark)}).encode()
    return (sha256(body).hexdigest().encode() + body).ljust(SLOT, b"\n")


@lru_cache(maxsize=64)  # a slot is read far more often than it is written
def _read_slot(content: bytes) -> Mark | None:
    digest, body = content[:64], content[64:].rstrip(b"\n")
    return Mark(**json.loads(body)) if digest == sha256(body).hexdigest().encode() else None


def _find_newest_mark(content: bytes) -> Mark | None:
    slots = (_read_slot(content[start : start + SLOT]) for start in range(0, len(content), SLOT))
    return max((mark for mark in slots if mark is not None), key=lambda mark: mark.number, default=None)
