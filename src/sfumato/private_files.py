"""Files and folders that only their owner reads: 0600 and 0700, whatever the umask is."""

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

FOR_THE_OWNER = 0o600
FOLDER_FOR_THE_OWNER = 0o700
OTHERS = 0o077


def make_private_folder(path: Path) -> Path:
    """The folder, made where it is missing; one that others may enter is closed to them."""
    try:
        path.mkdir(parents=True, mode=FOLDER_FOR_THE_OWNER)
        path.chmod(FOLDER_FOR_THE_OWNER)  # a umask may have taken the owner's own rights
    except FileExistsError:
        tighten(path, FOLDER_FOR_THE_OWNER)
    return path


def tighten(path: Path, mode: int = FOR_THE_OWNER) -> None:
    """Take away what others may do with a file or folder, and say so; nothing happens where it is not there."""
    try:
        found = path.stat()
        if not found.st_mode & OTHERS or found.st_uid != os.geteuid():
            return
        path.chmod(mode)
    except OSError:
        return
    logging.getLogger("sfumato").warning("%s could be read by other users; it is now closed to them.", path)


def make_private(path: Path) -> None:
    """An empty file for the owner alone, where there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FOR_THE_OWNER)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, FOR_THE_OWNER)
    finally:
        os.close(descriptor)


@contextmanager
def write_private_file(path: Path) -> Iterator[IO[str]]:
    """A new text file for the owner alone; one that could not be written to its end is removed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FOR_THE_OWNER)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, FOR_THE_OWNER)
            yield file
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a failed write does not say which file it was
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_once(path: Path, content: bytes) -> bytes:
    """The content of the file: this, unless another process wrote it first. A crash leaves all of it or nothing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        if not path.exists():
            write_private(temporary, content)
            os.link(temporary, path)
            sync_folder(path.parent)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)
    return path.read_bytes()


def write_private(path: Path, content: bytes) -> None:
    """Write a new file for the owner alone, on the disk when this returns."""
    path.unlink(missing_ok=True)
    make_private(path)
    with path.open("r+b") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Put the names in a folder on the disk, not only the content of its files."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time in here; the lock ends with the process, however it ends."""
    make_private(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have the file open still
