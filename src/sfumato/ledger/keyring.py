"""What is kept apart from a ledger: the key that signs its entries, and the high-water mark of what was seen of it.

Both are in a folder of the user (`SFUMATO_HOME`, or `~/.local/state/sfumato`), one folder for each ledger's id. So two
datasets of one user that share a ledger share its key, and a copy of a dataset's folder meets the same mark.
"""

import fcntl
import json
import logging
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import LedgerError
from sfumato.private_files import make_private, private_folder, sync_folder, tighten, write_private, written_once
from sfumato.signing import make_secret, public_key_of, read_key, sign, verify_signature

SLOT = 4096  # bytes: a mark is written to one of two slots, so that a torn write leaves the other
_WITHOUT = "Until it is mended, a ledger that is put back to an older state may not be noticed."


def find_home() -> Path:
    """The folder of this user's keys and marks."""
    given = os.environ.get("SFUMATO_HOME")
    if given:
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "sfumato"


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest entry that any process of this user has seen: what was spent by then, its anchor, and where it was."""

    number: int
    hash: str
    spent: str
    anchor: str  # the hash of the entry that anchored the ledger then
    place: str
    generation: int = 0  # how often the owner said here which ledger continues


class Keyring:
    """The key and the mark of one ledger."""

    def __init__(self, folder: Path, key: Ed25519PrivateKey) -> None:
        self._folder = folder
        self._key = key
        self.public_key = public_key_of(key)

    @classmethod
    def make(cls, ledger_id: str) -> "Keyring":
        """The keyring of this ledger; its key is made where there is none."""
        try:
            private_folder(find_home())
            private_folder(find_home() / "ledgers")
            folder = private_folder(find_home() / "ledgers" / _name_folder(ledger_id))
            written_once(folder / "key", make_secret().encode())
        except OSError as error:
            hint = "Set SFUMATO_HOME to a folder of yours that can be written, apart from the data."
            message = f"The ledger's key cannot be kept in {find_home()}: {error.strerror}."
            raise LedgerError("ledger-key", message, hint) from None
        return cls(folder, _read_key(folder / "key"))

    @classmethod
    def find(cls, ledger_id: str) -> "Keyring | None":
        """The keyring of this ledger, or None where this user has no key of it (or may not read it)."""
        folder = find_home() / "ledgers" / _name_folder(ledger_id)
        if not os.access(folder / "key", os.R_OK):
            return None
        tighten(folder / "key")
        return cls(folder, _read_key(folder / "key"))

    def sign(self, text: str) -> str:
        """The signature of an entry's hash."""
        return sign(self._key, _signed_bytes(text))

    def read_mark(self) -> Mark | None:
        """The high-water mark; None before the first, and where none can be read, which is said."""
        try:
            with open(self._folder / "mark", "rb") as file:
                return self._newest(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            _say_once(f"The ledger's mark {self._folder / 'mark'} cannot be read ({error.strerror}). {_WITHOUT}")
            return None

    def raise_mark(self, mark: Mark) -> bool:
        """Raise the mark to this one; it never falls. False: the owner has said since that another ledger continues.

        A folder that cannot be written leaves the mark as it is, which is said: the ledger is already on the disk.
        """
        try:
            make_private(self._folder / "mark")
            with open(self._folder / "mark", "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                found = self._newest(file.read())
                current = found is None or found.generation <= mark.generation
                if current and (found is None or found.number < mark.number):
                    file.seek(SLOT * (mark.number % 2))
                    file.write(_write_slot(mark))
                    file.flush()
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have the file open still
                return current
        except OSError as error:
            _say_once(f"The ledger's mark {self._folder / 'mark'} cannot be written ({error.strerror}). {_WITHOUT}")
            return True

    def replace_mark(self, mark: Mark, seen: Mark | None) -> None:
        """Put this mark in place of the one that was seen: the owner has said which ledger continues."""
        try:
            make_private(self._folder / "mark")
            with open(self._folder / "mark", "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                found = _newest_mark(file.read())
                continued = found is not None and found.anchor == mark.anchor  # it was charged here since
                unchanged = found == seen or continued
                if unchanged:
                    newest = found if found is not None and continued else mark
                    file.seek(0)
                    file.write(_write_slot(replace(newest, generation=found.generation + 1 if found else 1)) * 2)
                    file.flush()
                    os.fsync(file.fileno())
                fcntl.flock(file, fcntl.LOCK_UN)
        except OSError as error:
            raise self._not_kept("mark", error) from None
        if not unchanged:
            message = "Something was charged in another copy of the ledger meanwhile."
            hint = "Run `sfumato ledger adopt` with --accept-missing: what was charged there is then counted here."
            raise LedgerError("ledger-older", message, hint)

    def demand_writable(self) -> None:
        """Refuse, before anything is committed, where the mark could not be replaced afterwards."""
        try:
            make_private(self._folder / "mark")
            with open(self._folder / "mark", "r+b"):
                pass
        except OSError as error:
            raise self._not_kept("mark", error) from None

    def store_note(self, name: str, text: str) -> None:
        """Keep a text here, all of it or nothing, on the disk; refuse where the folder cannot be written."""
        path = self._folder / name
        temporary = path.with_name(f".{name}.{os.getpid()}-{threading.get_ident()}")
        try:
            write_private(temporary, text.encode())
            os.replace(temporary, path)
            sync_folder(self._folder)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise self._not_kept(name, error) from None

    def _newest(self, content: bytes) -> Mark | None:
        found = _newest_mark(content)
        if found is None and content:
            _say_once(f"The ledger's mark {self._folder / 'mark'} is damaged. {_WITHOUT}")
        return found

    def _not_kept(self, name: str, error: OSError) -> LedgerError:
        hint = "Nothing may continue without it. Check that the folder is yours and its disk has room, and try again."
        return LedgerError("ledger-key", f"{self._folder / name} cannot be written: {error.strerror}.", hint)

    def read_note(self, name: str) -> str | None:
        """A text of ours that is kept here, or None."""
        try:
            return (self._folder / name).read_text()
        except (OSError, ValueError):
            return None

    def try_store_note(self, name: str, text: str) -> None:
        """Keep a text here, all of it or nothing; not where the folder cannot be written."""
        with suppress(LedgerError):
            self.store_note(name, text)


@lru_cache(maxsize=64)  # so that each is said once in a process
def _say_once(message: str) -> None:
    logging.getLogger("sfumato").warning(message)


def is_signed(text: str, signature: str, public_key: str) -> bool:
    """Whether the holder of this key signed this hash."""
    return verify_signature(_signed_bytes(text), signature, public_key)


def _signed_bytes(text: str) -> bytes:
    return f"sfumato ledger entry {text}".encode()


def _name_folder(ledger_id: str) -> str:
    """A folder's name: an id that the owner wrote may hold anything."""
    return ledger_id if ledger_id.isalnum() and ledger_id.isascii() else sha256(ledger_id.encode()).hexdigest()


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        return read_key(path.read_text())
    except (OSError, ValueError):
        hint = "Restore it from a copy; or remove it, and let `sfumato ledger adopt` make a new one."
        raise LedgerError("ledger-key", f"The ledger's key cannot be read: {path}.", hint) from None


def _write_slot(mark: Mark) -> bytes:
    body = json.dumps(asdict(mark)).encode()
    return (sha256(body).hexdigest().encode() + body).ljust(SLOT, b"\n")


def _newest_mark(content: bytes) -> Mark | None:
    found = []
    for start in range(0, len(content), SLOT):
        digest, body = content[start : start + 64], content[start + 64 : start + SLOT].rstrip(b"\n")
        if digest == sha256(body).hexdigest().encode():
            found.append(Mark(**json.loads(body)))
    return max(found, key=lambda mark: mark.number, default=None)
