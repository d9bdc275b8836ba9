"""What several threads write to a ledger, in one durable transaction: to wait for the disk takes longer than to write.

Part of the trusted perimeter. The thread that comes first does the work of all who wait. Each of them goes on after the
commit, and not before: `results` is filled when the transaction was left without an error, and nowhere else. If
anything fails, the whole transaction is undone, and each thread does its own work in a transaction of its own: so
nobody is refused because of what somebody else did in vain.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sfumato.ledger.entries import Head
from sfumato.ledger.fork_gate import GATE
from sfumato.ledger.ledger_rows import LedgerRows

Result = TypeVar("Result")


@dataclass(eq=False, slots=True)
class _Work:
    """What one thread writes: after this head. It returns the new head and a result."""

    write: Callable[[LedgerRows, Head], tuple[Head, Any]]
    results: list[Any] = field(default_factory=list)  # empty until the transaction is on the disk


class SharedTransactions:
    """Does the work of threads in transactions that they share."""

    def __init__(
        self, begin: Callable[[], AbstractContextManager[tuple[LedgerRows, Head]]], remember: Callable[[Head], None]
    ) -> None:
        """`begin` opens a transaction, which is on the disk when it is left without an error. Then, `remember` runs."""
        self._begin, self._remember = begin, remember
        self._waiting: list[_Work] = []
        self._list, self._turn = threading.Lock(), threading.Lock()

    def run(self, write: Callable[[LedgerRows, Head], tuple[Head, Result]]) -> Result:
        """Write, and return the result when it is on the disk. If it raises, nothing of it was written."""
        mine = _Work(write)
        with GATE:  # so that a forked child finds both locks free
            with self._list:
                self._waiting.append(mine)
            with self._turn:
                if not mine.results and not self._commit(mine):
                    self._commit(mine)
        result: Result = mine.results[0]
        return result

    def _commit(self, mine: _Work) -> bool:
        """Do this work, and that of all who wait. False: it failed with others in it, and nobody's was done."""
        taken = [mine]  # if an earlier transaction with it has failed, it waits no more
        try:
            with self._begin() as (rows, before):
                with self._list:
                    if mine in self._waiting:
                        taken, self._waiting = self._waiting, []
                head, made = before, []
                for one in taken:
                    head, result = one.write(rows, head)
                    made.append(result)
            self._remember(head)
        except BaseException as error:
            with self._list:
                self._waiting = [one for one in self._waiting if one is not mine]
            if len(taken) > 1 and isinstance(error, Exception):
                return False
            raise
        for one, result in zip(taken, made, strict=True):
            one.results.append(result)
        return True
