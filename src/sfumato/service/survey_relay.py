"""A shuffling relay: it takes reports, waits for a batch of each survey, and passes them on in a random order.

It passes on only the four fields of each report: no addresses, no times, no headers and no order. It must be run by
someone else than the collector; then the epsilon of `bound_shuffling` holds for the batch.
"""

import asyncio
import gzip
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request as Outgoing
from urllib.request import urlopen

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.report_files import refuse_repeated_names, rewrite_line
from sfumato.service.request_limits import NotGzip, RateLimit, TooLarge, decompress, read_body

LINES_AT_ONCE = 20_000
TIMEOUT = 60.0
PAUSE_SECONDS = 30.0  # between attempts to deliver what waits
_NAME = re.compile(r"[0-9a-f]{32}")
_OPEN = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
_PREFLIGHT = {**_OPEN, "Access-Control-Allow-Headers": "Content-Type, Content-Encoding"}
_SCHEMA = """CREATE TABLE IF NOT EXISTS lines
    (id TEXT, survey TEXT, line TEXT NOT NULL, PRIMARY KEY (survey, id)) WITHOUT ROWID"""


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Where reports go, how many of a survey are passed on together, and where they wait."""

    upstream: str
    batch: int
    state: str
    most_bytes: int = 8 << 20
    most_decoded_bytes: int = 32 << 20
    requests_per_second: float = 50.0
    most_waiting: int = 2_000_000  # reports of all surveys: whoever makes surveys up cannot fill the disk


class RelayFull(Exception):
    """As many reports wait as this relay keeps."""


class Relay:
    """The reports that wait, in a SQLite file."""

    def __init__(self, settings: RelaySettings) -> None:
        self.settings = settings
        self.rate = RateLimit(settings.requests_per_second)
        self._sending = asyncio.Lock()
        self._batches = 0  # that were passed on, or are being passed on
        self._is_passing = False
        with closing(self._connect()) as rows:
            rows.execute(_SCHEMA)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(Path(self.settings.state), timeout=60, isolation_level=None)

    def take(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Keep the reports among these lines, on the disk; return their number and the number of the others."""
        read = [rewrite_line(line) for line in lines]
        good = [found for found in read if found is not None]
        with closing(self._connect()) as rows:
            rows.execute("BEGIN IMMEDIATE")
            (waiting,) = rows.execute("SELECT count(*) FROM lines").fetchone()
            if waiting + len(good) > self.settings.most_waiting:
                raise RelayFull
            rows.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)", good)
            rows.execute("COMMIT")
        return len(good), len(read) - len(good)

    def forget(self, survey: str, name: str) -> bool:
        """Remove a report that waits here: it was withdrawn. False if it does not wait here."""
        with closing(self._connect()) as rows:
            return rows.execute("DELETE FROM lines WHERE survey = ? AND id = ?", (survey, name)).rowcount > 0

    def pass_withdrawal(self, survey: str, name: str) -> int:
        """Pass a withdrawal on to the collector, and return its status."""
        body = json.dumps({"survey": survey, "id": name}).encode()
        request = Outgoing(f"{self.settings.upstream}/withdraw", body)  # noqa: S310 - the operator's own address
        try:
            with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - the same
                return int(answer.status)
        except HTTPError as error:
            error.close()
            return error.code
        except (URLError, OSError):
            return 503

    def pass_on(self) -> int:
        """Pass on the reports of every survey that has a whole batch, and forget them. Return their number."""
        try:
            return self._pass_batches()
        finally:
            self._is_passing = False

    def _pass_batches(self) -> int:
        passed = 0
        with closing(self._connect()) as rows:
            ready = rows.execute(
                "SELECT survey FROM lines GROUP BY survey HAVING count(*) >= ?", (self.settings.batch,)
            ).fetchall()
            for (survey,) in ready:
                self._batches, self._is_passing = self._batches + 1, True
                waiting = rows.execute("SELECT id, line FROM lines WHERE survey = ?", (survey,)).fetchall()
                shuffled = [waiting[place] for place in shuffle(len(waiting))]
                for start in range(0, len(shuffled), LINES_AT_ONCE):
                    part = shuffled[start : start + LINES_AT_ONCE]
                    self._post([line for _, line in part])
                    rows.execute("BEGIN IMMEDIATE")
                    rows.executemany("DELETE FROM lines WHERE survey = ? AND id = ?", [(survey, n) for n, _ in part])
                    rows.execute("COMMIT")
                    passed += len(part)
        return passed

    def _post(self, lines: list[str]) -> None:
        body = gzip.compress("\n".join(lines).encode(), 1, mtime=0)
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        request = Outgoing(self.settings.upstream, body, headers)  # noqa: S310 - the operator's own address
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - the same
            answer.read(1 << 16)

    async def withdraw(self, survey: str, name: str) -> int:
        """Take a report back: 200 if it will not be counted, otherwise the collector's refusal.

        A report that waits here is forgotten. If reports were passed on meanwhile, it may be among them, so the
        collector is told as well.
        """
        before = (self._batches, self._is_passing)
        forgotten = await run_in_threadpool(self.forget, survey, name)
        if forgotten and before == (self._batches, False):
            return 200
        return await run_in_threadpool(self.pass_withdrawal, survey, name)

    async def pass_on_alone(self) -> None:
        """Pass on once at a time. What could not be delivered waits for the next attempt."""
        if self._sending.locked():
            return
        async with self._sending:
            try:
                await run_in_threadpool(self.pass_on)
            except (URLError, OSError):
                return


def shuffle(count: int) -> list[int]:
    """A uniform random order: that of random 128-bit keys, which are all different."""
    while True:
        keys = SYSTEM.take(16 * count).view("<u8").reshape(count, 2)
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).all(axis=1).any():
            return [int(place) for place in order]


def make_relay_app(settings: RelaySettings) -> Starlette:
    """The relay as an ASGI app: POST /reports."""
    relay = Relay(settings)

    async def take(request: Request) -> Response:  # noqa: PLR0911 - one return for each refusal
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        if not relay.rate.allows(request.client.host if request.client else ""):
            return JSONResponse({"error": "too-many-requests"}, 429, {**_OPEN, "Retry-After": "5"})
        try:
            body = await read_body(request.stream(), settings.most_bytes)
            if request.headers.get("content-encoding", "").lower() == "gzip":
                body = await run_in_threadpool(decompress, body, settings.most_decoded_bytes)
        except TooLarge:
            return JSONResponse({"error": "too-large"}, 413, _OPEN)
        except NotGzip:
            return JSONResponse({"error": "encoding"}, 400, _OPEN)
        lines = [line for line in body.split(b"\n") if line.strip()]
        try:
            taken, malformed = await run_in_threadpool(relay.take, lines)
        except RelayFull:
            return JSONResponse({"error": "full"}, 503, {**_OPEN, "Retry-After": "60"})
        if not taken:
            return JSONResponse({"error": "malformed"}, 400, _OPEN)
        task = asyncio.create_task(relay.pass_on_alone())
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
        return JSONResponse({"taken": taken, "malformed": malformed}, headers=_OPEN)

    async def withdraw(request: Request) -> Response:
        """A report that waits here is forgotten. Otherwise the collector is told its id, and not who withdrew it."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        if not relay.rate.allows(request.client.host if request.client else ""):
            return JSONResponse({"error": "too-many-requests"}, 429, {**_OPEN, "Retry-After": "5"})
        asked: object = None
        with suppress(TooLarge, ValueError, RecursionError):
            asked = json.loads(await read_body(request.stream(), 4096), object_pairs_hook=refuse_repeated_names)
        match asked:
            case {"survey": str(survey), "id": str(name), **rest} if not rest and _NAME.fullmatch(survey):
                if not _NAME.fullmatch(name):
                    return JSONResponse({"error": "malformed"}, 400, _OPEN)
            case _:
                return JSONResponse({"error": "malformed"}, 400, _OPEN)
        status = await relay.withdraw(survey, name)
        return JSONResponse({"withdrawn": status == 200}, status, _OPEN)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        """What could not be delivered is tried again now and then, also after a restart."""

        async def deliver() -> None:
            while True:
                await relay.pass_on_alone()
                await asyncio.sleep(PAUSE_SECONDS)

        task = asyncio.create_task(deliver())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [
        Route("/reports", take, methods=["POST", "OPTIONS"]),
        Route("/reports/withdraw", withdraw, methods=["POST", "OPTIONS"]),
        Route("/health", health),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


_RUNNING: set[asyncio.Task[None]] = set()  # a task without a reference may be collected before it ends
