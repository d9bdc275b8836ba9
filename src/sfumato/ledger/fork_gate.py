"""Delays a fork while a thread uses the database.

A fork copies locks in their current state. A lock that another thread holds (in SQLite, in the connection pool, on a
file) would stay locked in the child for ever. So a fork waits until every thread has left, and new ones wait for it.
"""

import os
import threading
from types import TracebackType


class ForkGate:
    """Counts the threads that use the database. A fork waits for all of them but its own."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._own = threading.local()
        self._inside = 0
        self._forking = False

    def __enter__(self) -> None:
        """Begin work that a fork must not interrupt. A thread that is inside may enter again."""
        depth = getattr(self._own, "depth", 0)
        with self._changed:
            while self._forking and not depth:
                self._changed.wait()
            self._inside += 1
        self._own.depth = depth + 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._own.depth -= 1
        with self._changed:
            self._inside -= 1
            if self._forking:
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread is inside."""
        own = getattr(self._own, "depth", 0)
        with self._changed:
            while self._forking:
                self._changed.wait()
            self._forking = True
            while self._inside > own:
                self._changed.wait()

    def after_in_parent(self) -> None:
        """Let other threads enter again."""
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def after_in_child(self) -> None:
        """Start again: the child has only this thread."""
        self._changed = threading.Condition()
        self._inside = getattr(self._own, "depth", 0)
        self._forking = False


GATE = ForkGate()
os.register_at_fork(before=GATE.before_fork, after_in_parent=GATE.after_in_parent, after_in_child=GATE.after_in_child)
