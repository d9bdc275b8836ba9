"""Long questions as jobs: they run on after their request was answered, and can be looked up and cancelled.

A job is a request with an Idempotency-Key. If the process that runs it ends, the next look at the job starts it again
under the same key: a charge that has no answer is resumed. What a job shows while it runs is its stage and its time.
Neither says anything about the data.
"""

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from sfumato.errors import PermissionDenied, SfumatoError
from sfumato.kernel.entropy import SYSTEM
from sfumato.service.account_tables import JOBS
from sfumato.service.accounts import Accounts, User, write_line, write_now
from sfumato.service.asking import Asked, Asking, Written
from sfumato.service.idempotent_requests import StillRunning
from sfumato.service.problem_documents import describe_problem, write_problem

UNKNOWN = PermissionDenied("no-job", "There is no job at this address that you may see.", "Ask the question again.")
NOT_CHARGED = "The job had not begun. Nothing was charged."
CHARGED = (
    "The job is stopped and gives no answer now. Cancelling does not undo a charge: if the job was charged, that stays "
    "spent. Ask the same question again to get its answer at no further cost."
)
POLL_SECONDS = 0.5
MOST_OF_ONE = 16  # questions of one user that run or wait in a worker
TOO_MANY = PermissionDenied(
    "too-many-questions", f"More than {MOST_OF_ONE} of your questions are running.", "Wait for one of them."
)
ENDED = "The job has ended already. Cancelling changes nothing."
_READ: TypeAdapter[Asked] = TypeAdapter(Asked)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is shown."""

    id: str
    user: str
    dataset: str
    stage: str  # waiting, running, done, failed or cancelled
    time: str
    outcome: Any
    asked: str = ""  # as JSON

    def to_dict(self) -> dict[str, Any]:
        shown = {"id": self.id, "dataset": self.dataset, "stage": self.stage, "begun": self.time}
        return shown | ({} if self.outcome is None else {"outcome": self.outcome})


class Jobs:
    """Runs questions on some threads of this worker."""

    def __init__(self, accounts: Accounts, asking: Asking, most_running: int, pad_seconds: float = 0.0) -> None:
        self._accounts, self._asking, self._pad_seconds = accounts, asking, pad_seconds
        self._pool = ThreadPoolExecutor(most_running, thread_name_prefix="asking")
        self._running: dict[str, _Running] = {}
        self._counts: dict[str, int] = {}  # of questions, by user
        self._guard = threading.Lock()

    def close(self) -> None:
        """End. Questions that run are finished first, since their charges are made."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def run(self, name: str, asked: Asked, user: User, key: str | None, seconds: float) -> Written | Job:
        """The answers, if they are there within so many seconds; otherwise the job that makes them.

        A request without a key of its own is noted under the id of its job. No thread waits for the answers, and a
        caller who goes away does not stop them.
        """
        made, future = self._begin(_Running(name), asked, user, key)
        if seconds > 0:
            awaited = asyncio.wrap_future(future)
            awaited.add_done_callback(_take_error)
            await asyncio.wait([awaited], timeout=seconds)
            if future.done():
                return future.result()
        return await asyncio.to_thread(self._keep, made, future, asked, user, key)

    def _begin(
        self, made: "_Running", asked: Asked, user: User, key: str | None
    ) -> tuple["_Running", "Future[Written]"]:
        """Let a thread answer a question, unless too many of this user's questions are waiting for one."""
        with self._guard:
            if self._counts.get(user.name, 0) >= MOST_OF_ONE:
                raise TOO_MANY
            self._counts[user.name] = self._counts.get(user.name, 0) + 1
        future = self._pool.submit(made.run, lambda: self._asking.answer(made.dataset, asked, user, key or made.id))
        future.add_done_callback(lambda _: self._count_down(user.name))
        return made, future

    def _count_down(self, user: str) -> None:
        with self._guard:
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    def find(self, user: User, name: str) -> Job:
        """A job: one's own, or anybody's for an owner. If its worker ended, it is started again here."""
        row = self._read(user, name)
        if row.stage in ("waiting", "running"):
            with self._guard:
                here = self._running.get(name)
            if here is not None:
                return _show(row, "running" if here.begun else "waiting")
            self._resume(row)
            row = self._read(user, name)
        return _show(row, row.stage)

    def list(self, user: User) -> list[Job]:
        """Somebody's newest jobs."""
        wanted = sa.select(JOBS).where(JOBS.c.user == user.name).order_by(JOBS.c.time.desc(), JOBS.c.id).limit(100)
        with self._accounts.reading() as connection:
            return [_show(row, row.stage) for row in connection.execute(wanted)]

    def cancel(self, user: User, name: str) -> tuple[Job, str]:
        """Stop a job, and say what became of its charge."""
        row = self._read(user, name)
        if row.stage not in ("waiting", "running"):
            return _show(row, row.stage), ENDED
        with self._guard:
            here = self._running.get(name)
        untouched = here is not None and here.cancel()
        if here is not None and not untouched:
            here.interrupt(self._asking.served.interrupt)
        note = NOT_CHARGED if untouched else CHARGED
        self._end(name, "cancelled", {"note": note}, user.name)
        found = self.find(user, name)
        return found, note if found.stage == "cancelled" else ENDED  # it may have ended meanwhile

    def _keep(self, made: "_Running", future: "Future[Written]", asked: Asked, user: User, key: str | None) -> Job:
        name = made.dataset
        row = {"id": made.id, "user": user.name, "dataset": name, "stage": "running", "key": key or made.id,
               "asked": asked.model_dump_json(), "outcome": "", "time": write_now()}  # fmt: skip
        with self._guard:
            self._running[made.id] = made

        def begin(connection: sa.Connection) -> None:
            connection.execute(JOBS.insert().values(row))
            write_line(connection, user.name, "begin job", name, made.id)

        self._accounts.write(begin)
        self._watch(made, future)
        return Job(made.id, user.name, name, "running" if made.begun else "waiting", str(row["time"]), None)

    def _resume(self, row: Any) -> None:  # noqa: ANN401 - a row of the table
        """Start a job again whose worker has ended. While that worker lives, its lock on the key refuses this."""
        made = _Running(row.dataset, row.id)
        asked, user = _READ.validate_json(row.asked), self._accounts.find_active(row.user)
        if user is None:
            self._end(row.id, "failed", write_problem(403, "no-grant", "The user has no access any more."), row.user)
            return
        with self._guard:
            if row.id in self._running:
                return
            self._running[row.id] = made
        try:
            self._watch(*self._begin(made, asked, user, row.key))
        except PermissionDenied:  # too many: the next look tries again
            with self._guard:
                self._running.pop(row.id, None)

    def _watch(self, made: "_Running", future: "Future[Written]") -> None:
        """Write the outcome of a job when it has one, and stop the job if another worker was told to cancel it."""
        future.add_done_callback(lambda done: self._finish_in_step(made, done))

        def look() -> None:
            while not future.done():
                with self._accounts.reading() as connection:
                    stage = connection.execute(sa.select(JOBS.c.stage).where(JOBS.c.id == made.id)).scalar()
                if stage == "cancelled" and not made.cancel():
                    made.interrupt(self._asking.served.interrupt)
                    return
                time.sleep(POLL_SECONDS)

        threading.Thread(target=look, name="watching a job", daemon=True).start()

    def _finish_in_step(self, made: "_Running", done: "Future[Written]") -> None:
        """Show the outcome from the next step on, as answers to requests leave at fixed steps."""
        wait = count_to_step(time.monotonic() - made.began, self._pad_seconds)
        if not wait:
            self._finish(made.id, done)
            return
        later = threading.Timer(wait, self._finish, (made.id, done))
        later.daemon = True  # if the service ends before, the next look at the job starts it again under its key
        later.start()

    def _finish(self, name: str, done: "Future[Written]") -> None:
        with self._guard:
            self._running.pop(name, None)
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, StillRunning):  # it runs in another worker, which will write its outcome
            return
        if error is None:
            self._end(name, "done", {"answers": done.result().read()})
        elif isinstance(error, SfumatoError):
            self._end(name, "failed", describe_problem(error))
        else:  # its text may hold a value from the data
            self._end(name, "failed", write_problem(500, "internal", "The service failed."))

    def _end(self, name: str, stage: str, outcome: object, by: str = "") -> None:
        """Write down how a job ended, unless it has ended before."""
        open_job = (JOBS.c.id == name, JOBS.c.stage.in_(("waiting", "running")))

        def end(connection: sa.Connection) -> None:
            changed = connection.execute(
                JOBS.update().where(*open_job).values(stage=stage, outcome=json.dumps(outcome))
            )
            if changed.rowcount:
                write_line(connection, by, f"job {stage}", "", name)

        self._accounts.write(end)

    def _read(self, user: User, name: str) -> Any:  # noqa: ANN401 - a row of the table
        with self._accounts.reading() as connection:
            row = connection.execute(sa.select(JOBS).where(JOBS.c.id == name)).first()
        if row is None or (user.role != "owner" and row.user != user.name):
            raise UNKNOWN
        return row


class _Running:
    """A question in this process: whether it has begun, and which thread answers it."""

    def __init__(self, dataset: str, name: str = "") -> None:
        self.dataset = dataset
        self.id = name or SYSTEM.take(12).tobytes().hex()
        self.begun = False
        self.began = time.monotonic()
        self._cancelled = False
        self._guard = threading.Lock()
        self._thread: int | None = None

    def run(self, work: Callable[[], Written]) -> Written:
        with self._guard:
            if self._cancelled:
                raise PermissionDenied("cancelled", "The job was cancelled before it began.", NOT_CHARGED)
            self.begun, self._thread = True, threading.get_ident()
        try:
            return work()
        finally:
            with self._guard:
                self._thread = None

    def interrupt(self, stop: Callable[[int], None]) -> None:
        """Stop what its thread measures. While this runs, the thread does not begin another question."""
        with self._guard:
            if self._thread is not None:
                stop(self._thread)

    def cancel(self) -> bool:
        """Keep it from beginning. False: it has begun."""
        with self._guard:
            self._cancelled = not self.begun
            return self._cancelled


def count_to_step(taken: float, step: float) -> float:
    """The seconds until the next multiple of a step, if so many have passed; 0 without steps."""
    return max(math.ceil(taken / step), 1) * step - taken if step else 0.0


def _take_error(done: "asyncio.Future[Written]") -> None:
    """Look at an error, which asyncio would otherwise write to the log. Its text may hold a value from the data."""
    if not done.cancelled():
        done.exception()


def _show(row: Any, stage: str) -> Job:  # noqa: ANN401 - a row of the table
    outcome = json.loads(row.outcome) if row.outcome else None
    return Job(row.id, row.user, row.dataset, stage, row.time, outcome, row.asked)
