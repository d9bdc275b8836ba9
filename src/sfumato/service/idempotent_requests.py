"""Requests with an Idempotency-Key: a retry never pays twice.

Every attempt of a request holds the lock of its key, so that two attempts never run at the same time, in any worker. A
process that is killed loses its locks. The charge of a request carries the request's mark, in the same entry of the
ledger. So the next attempt knows what became of the one before: it was not charged, or its charge is open and is
resumed, or it is answered, or it was closed without an answer. Only in the first case may something be charged.
"""

import errno
import fcntl
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stored_answers import VOID_HASH
from sfumato.service.account_tables import REQUESTS
from sfumato.service.accounts import Accounts, write_line, write_now, write_time
from sfumato.service.group_commit import find_driver

PAGE = 200  # entries of the ledger that are read at a time
CLOSED = "charge-closed"
KEPT = timedelta(days=30)  # how long a key is remembered
# as texts: every question runs them, and to compile them takes longer than to run them
_FIND = 'SELECT digest, failure, since, state, answer FROM service_requests WHERE "user" = ? AND "key" = ?'
_ADD = (
    'INSERT INTO service_requests ("user", "key", digest, failure, time, since, state, answer) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ANSWER = 'UPDATE service_requests SET answer = ? WHERE "user" = ? AND "key" = ?'


class StillRunning(SfumatoError):
    """An earlier attempt of the same request has not ended."""

    def __init__(self) -> None:
        hint = "Send it again in a moment. It is not charged twice."
        super().__init__("request-running", "An earlier attempt of this request is still running.", hint)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a request. `answer` or `failure` is set if an earlier attempt has ended."""

    user: str
    key: str
    mark: str  # what its charge carries in the ledger
    since: int  # the ledger's last entry when the first attempt began
    state: str  # the declarations and the data at that time
    first: bool
    answer: Any = None
    failure: str = ""


class IdempotentRequests:
    """The requests of a service by user and key, shared by its workers."""

    def __init__(self, accounts: Accounts, locks: Path) -> None:
        self._accounts = accounts
        self._locks = locks
        old = write_time(datetime.now(UTC) - KEPT)
        accounts.write(lambda connection: connection.execute(REQUESTS.delete().where(REQUESTS.c.time < old)))

    @contextmanager
    def attempt(self, user: str, key: str, request: str, last_entry: int, state: str) -> Iterator[Attempt]:
        """Begin an attempt of a request, or read what an earlier one ended with.

        A key that came with another request is refused. So is an attempt while another one runs.
        """
        digest, mark = sha256(request.encode()).hexdigest(), sha256(f"{user}\n{key}".encode()).hexdigest()[:32]
        with self._hold(int(mark[:15], 16)):
            new = (user, key, digest, "", write_now(), last_entry, state, "")

            def begin(connection: sa.Connection) -> tuple[str, str, int, str, str] | None:
                driver = find_driver(connection)
                found: list[tuple[str, str, int, str, str]] = driver.execute(_FIND, (user, key)).fetchall()
                if not found:
                    driver.execute(_ADD, new).close()
                return found[0] if found else None

            found = self._accounts.write(begin)
            if found is None:
                yield Attempt(user, key, mark, last_entry, state, True)
                return
            known, failure, since, before, text = found
            if known != digest:
                hint = "Send a new key with a new request."
                raise InvalidParameter("Idempotency-Key", "must belong to this request", "one of another request", hint)
            answer = json.loads(text) if text else None
            yield Attempt(user, key, mark, since, before, False, answer, failure)

    def finish(self, attempt: Attempt | None, user: str, dataset: str, detail: str, answer: str) -> None:
        """Keep the answer, which is JSON for retries, and write the line of the log: both, or none.

        The ledger has the charge and the answer already, on the disk. If a power failure undoes this, a retry finds
        the charge by its mark, and gets the stored answer.
        """

        def end(connection: sa.Connection) -> None:
            write_line(connection, user, "ask", dataset, detail)
            if attempt is not None:
                find_driver(connection).execute(_ANSWER, (answer, attempt.user, attempt.key)).close()

        self._accounts.write_quickly(end)

    def fail(self, attempt: Attempt, failure: str) -> None:
        """Note that the charge of a request was closed without an answer: a retry must not be charged again."""
        same = (REQUESTS.c.user == attempt.user, REQUESTS.c.key == attempt.key)
        update = REQUESTS.update().where(*same).values(failure=failure)
        self._accounts.write(lambda connection: connection.execute(update))

    @contextmanager
    def _hold(self, place: int) -> Iterator[None]:
        """Hold the lock of a key, or refuse. The system frees it when the process ends, however it ends."""
        descriptor = os.open(self._locks, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock_byte(descriptor, place)
            yield
        finally:
            os.close(descriptor)


def _lock_byte(descriptor: int, place: int) -> None:
    """Lock one byte of a file for this opening of it, which no other thread or process shares."""
    wanted = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise StillRunning from None


@dataclass(frozen=True, slots=True)
class MarkedCharge:
    """The charge of an earlier attempt. `closed`: without an answer."""

    number: int
    closed: bool


def find_marked(ledger: Ledger, attempt: Attempt) -> MarkedCharge | None:
    """The charge that an earlier attempt made; None if it made none."""
    closed: set[int] = set()
    before: int | None = None
    while True:
        page = ledger.entries(PAGE, analyst=attempt.user, before=before)
        for entry in reversed(page):
            if entry.number <= attempt.since:
                return None
            if entry.kind == "answer" and entry.payload_hash == VOID_HASH and entry.about is not None:
                closed.add(entry.about)
            if entry.kind == "charge" and entry.question and json.loads(entry.question).get("request") == attempt.mark:
                return MarkedCharge(entry.number, entry.number in closed)
        if len(page) < PAGE:
            return None
        before = page[0].number
