"""Why a file could not be written: the disk is full, it may not be written, or its folder is missing."""

import errno
import os

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
ROOM = 1 << 18  # bytes that SQLite needs beside a ledger to open it: the journal and its index


def has_room(path: str) -> bool:
    """Is there room on the disk of this file to open it for writing?"""
    try:
        found = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError:
        return True  # the folder itself is the problem
    return found.f_blocks == 0 or found.f_bavail * found.f_frsize >= ROOM  # a file system without blocks tells nothing


def is_writable(path: str) -> bool:
    """May this user write the file, or make it in its folder?"""
    folder = os.path.dirname(os.path.abspath(path))
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def explain_failure(error: BaseException, path: str | None) -> tuple[str, str] | None:
    """What is wrong and what to do, or None if neither the error nor the file tells.

    `error` comes from the operating system or from SQLite, which has an error name but no errno.
    """
    number = getattr(error, "errno", None)
    name = str(getattr(error, "sqlite_errorname", ""))
    folder = None if path is None else os.path.dirname(os.path.abspath(path))
    if folder is not None and not os.path.isdir(folder):
        return f"there is no folder {folder}", "Check the path, or make the folder."
    if number in NO_ROOM or name == "SQLITE_FULL" or (path is not None and not has_room(path)):
        where = "" if folder is None else f" that holds {folder}"
        return "the disk is full", f"Make room on the disk{where}, and try again."
    if number in NOT_ALLOWED or name.startswith("SQLITE_READONLY") or (path is not None and not is_writable(path)):
        where = "it" if folder is None else f"{path} and its folder"
        return "it may not be written", f"Check the permissions of {where}, or choose another place."
    return None
