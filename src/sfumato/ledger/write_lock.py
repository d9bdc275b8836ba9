"""Let processes write to a SQLite file in turns. SQLite itself sleeps far longer than a transaction takes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

STEP_SECONDS = 0.0003  # a transaction takes about a millisecond
GROWTH, LONGEST_SECONDS = 1.5, 0.002  # of the steps: to look takes processor time, which the other may need
MOST_SECONDS = 2.0  # after that, SQLite waits in its own way, and refuses when its time is over
SUFFIX = "-turn"  # of an empty file beside the database. If it is removed, only this waiting is lost


@contextmanager
def take_turns(path: str) -> Iterator[None]:
    """Begin soon after the last process that writes in here, too. The transaction inside takes the lock itself.

    So nothing rests on this: a process that cannot make the file, or that has waited for too long, just goes on. The
    system frees the turn of a process that ends.
    """
    try:
        descriptor = os.open(path + SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        _wait(descriptor)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int) -> None:
    end, step = time.monotonic() + MOST_SECONDS, STEP_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return
            time.sleep(step)
            step = min(GROWTH * step, LONGEST_SECONDS)
        except OSError:  # a file system without such locks
            return
        else:
            return
