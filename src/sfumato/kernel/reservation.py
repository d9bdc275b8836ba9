"""A charge that was committed: what `release` needs before it draws noise."""

import os
import threading

from sfumato.errors import KernelFault
from sfumato.kernel.certify import Certificate
from sfumato.kernel.sealed import seal


@seal
class Reservation:
    """A certificate that the ledger has charged. Only the ledger makes one, after the charge is committed.

    It pays for one release, in the process that it was made in. For a charge that was never answered the ledger makes
    another one.
    """

    __slots__ = ("_lock", "_process", "_taken_by", "certificate", "entry_number")

    entry_number: int
    certificate: Certificate
    _lock: threading.Lock
    _process: int
    _taken_by: object | None

    def __init__(self, entry_number: int, certificate: Certificate) -> None:
        values = (threading.Lock(), os.getpid(), None, certificate, entry_number)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def take(self, user: object) -> None:
        """Let `user` have it. The user that has it may take it again; no other can.

        Claim: K-28. Of all callers, in all threads and forks, with all their users, one user at most gets past this.
        Requires: `user` is kept alive by the caller for as long as it draws noise.
        Relies on: threading.Lock.
        Checked by: tests/kernel/test_release.py::test_a_reservation_is_released_once
        """
        if os.getpid() != self._process:  # a fork copies it: each process would release
            raise KernelFault("A reservation belongs to the process that made it.")
        with self._lock:
            if self._taken_by is None:
                object.__setattr__(self, "_taken_by", user)
        if self._taken_by is not user:
            raise KernelFault("This reservation was used: a charge pays for one release.")

    def __repr__(self) -> str:
        return f"Reservation(entry_number={self.entry_number}, taken={self._taken_by is not None})"
