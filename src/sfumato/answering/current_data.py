"""The data that a curator reads. Newly prepared data replaces the old data between questions, never during one."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.errors import CatalogError


def read_stamp(path: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file is replaced; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class CurrentData:
    """Counts the questions that are being answered. If there are none, it opens a file that has changed."""

    def __init__(self, path: Path, opened: tuple[int, int, int] | None, reopen: Callable[[], None]) -> None:
        """`opened` is the stamp of the file, read before the file was opened."""
        self._path = path
        self._opened = opened
        self._reopen = reopen
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._free = threading.Condition()
        self._asking = 0
        self._own = threading.local()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Answer a question on the data as it is prepared now. The data stays the same until that is done."""
        if self._process != os.getpid():  # a forked child has none of the threads that ask
            self._reset()
        if getattr(self._own, "inside", False):  # a question within a question
            yield
            return
        with self._free:
            while self._asking and read_stamp(self._path) != self._opened:
                self._free.wait()
            self._renew()
            self._asking += 1
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            with self._free:
                self._asking -= 1
                self._free.notify_all()

    def _renew(self) -> None:
        found = read_stamp(self._path)
        if found == self._opened:
            return
        if found is None:
            raise build_catalog_error("The prepared data was deleted.", "Run `sfumato prepare`.")
        try:
            self._reopen()
        except CatalogError as error:
            hint = "Open the folder again."
            raise build_catalog_error(
                f"The data was prepared again, with another catalog than the one that is open here. {error.message}",
                hint,
            ) from None
        self._opened = found
