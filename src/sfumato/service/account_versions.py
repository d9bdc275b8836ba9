"""Numbers that rise when the accounts change, and what a worker remembers until one of them does."""

import sqlite3
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

MOST_KNOWN = 10_000  # values that are remembered at a time
_READ = "SELECT grants_version, access_version FROM service_state"
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Versions(NamedTuple):
    """`grants` rises when a grant, a dataset or an owner changes; `access` when a user or a token does."""

    grants: int
    access: int


class VersionReader:
    """Reads the versions from the accounts, for every request: so a change holds from the next request on."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._lock = threading.Lock()

    def read(self) -> Versions:
        """The versions now. A reader waits for no writer."""
        with self._lock:
            (found,) = self._connection.execute(_READ).fetchall()  # all: an open cursor would keep an old view
        return Versions(*found)

    def close(self) -> None:
        self._connection.close()


class Remembered(Generic[Key, Value]):
    """Values by key, as of one version. What was read for an earlier version is never found under a later one."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[Key, Value]] = (0, {})

    def find(self, version: int, key: Key, read: Callable[[], Value | None]) -> Value | None:
        """The value that is remembered, or the one that `read` finds now. The caller has read the version before."""
        known = self._known  # this pair, also if another thread replaces it meanwhile
        if known[0] != version or len(known[1]) >= MOST_KNOWN:
            known = self._known = (version, {})
        found = known[1].get(key)
        if found is None:
            found = read()
            if found is not None:
                known[1][key] = found
        return found
