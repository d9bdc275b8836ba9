"""The survey server: intake of reports, withdrawals, and the pages of respondents and owners.

It is an ASGI app without global state, so that another app can mount it. Requests are not logged, and nothing about
them is stored but the reports themselves.
"""

import hmac
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import InvalidParameter, QueryError, SfumatoError
from sfumato.local.collect.collector import Collector, find_period
from sfumato.local.collect.published_results import publish_results
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import read_lines
from sfumato.local.survey.manifest import Manifest, read_manifest
from sfumato.service.report_queue import ReportQueue
from sfumato.service.request_limits import NotGzip, RateLimit, TooLarge, decompress, read_body
from sfumato.service.survey_pages import show_manifest, show_owner, show_respondent
from sfumato.service.survey_settings import SurveySettings, place_of, read_settings

STATIC = Path(__file__).with_name("static")
SKEW = timedelta(hours=1)  # clocks of devices and servers differ
RETRY_SECONDS = "5"
_SURVEY = re.compile(rb'"survey"\s*:\s*"([0-9a-f]{32})"')
_OPEN = {"Access-Control-Allow-Origin": "*"}
_PREFLIGHT = {
    **_OPEN,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, Content-Encoding",
    "Access-Control-Max-Age": "86400",
}
_STATUS = {"malformed": 400, "foreign": 404, "untimely": 409, "conflict": 409, "withdrawn": 410}
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class SurveyBoard:
    """The surveys of one server, each with its collector."""

    def __init__(self, settings: SurveySettings) -> None:
        self.settings = settings
        self.rate = RateLimit(settings.requests_per_second)
        if "://" not in settings.state:
            Path(settings.state).mkdir(parents=True, exist_ok=True)
        manifests = [read_manifest(Path(name).read_bytes()) for name in settings.surveys]
        self.queues = {
            manifest.id: ReportQueue(
                Collector(manifest, place_of(settings.state, manifest.id), accepted_periods=self._accept_recent)
            )
            for manifest in manifests
        }

    def _accept_recent(self, manifest: Manifest) -> range:
        """The present period, and some before it: a report for another period is not from an honest device."""
        now = datetime.now(UTC)
        first = find_period(manifest, now - SKEW) - self.settings.late_periods
        return range(max(first, 0), find_period(manifest, now + SKEW) + 1)

    def collector(self, survey: str) -> Collector | None:
        queue = self.queues.get(survey)
        return None if queue is None else queue.collector


def make_survey_app(settings: SurveySettings) -> Starlette:
    """The app for these surveys."""
    board = SurveyBoard(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield

    app = Starlette(
        routes=[
            Route("/", _show_first),
            Route("/health", _show_health),
            Route("/metrics", _show_metrics),
            Route("/reports", _take_reports, methods=["POST", "OPTIONS"]),
            Route("/reports/withdraw", _withdraw, methods=["POST", "OPTIONS"]),
            Route("/s/{survey}", _show_page),
            Route("/s/{survey}/survey.json", _show_document),
            Route("/s/{survey}/manifest", _show_manifest_page),
            Route("/s/{survey}/period.json", _show_announcement),
            Route("/keys.json", _show_keys),
            Route("/owner", _show_owner_page),
            Route("/owner/results.json", _show_results),
            Route("/owner/publish", _publish, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(_SecurityHeaders)],
        exception_handlers={SfumatoError: _refuse},
        lifespan=lifespan,
    )
    app.state.board = board
    return app


def make_app_from_environment() -> Starlette:
    """The app of one of several workers."""
    return make_survey_app(read_settings())


class _SecurityHeaders:
    """Adds the headers that keep a page from loading or leaking anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                extra = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]
                message["headers"] = [*message["headers"], *((n, v) for n, v in extra if n not in given)]
            await send(message)

        await self._app(scope, receive, sending)


def _board(request: Request) -> SurveyBoard:
    board: SurveyBoard = request.app.state.board
    return board


async def _refuse(request: Request, error: Exception) -> Response:
    """A refusal in constant words. A ledger that cannot be written is tried again later."""
    code = getattr(error, "code", "error")
    later = code == "collector-file"
    words = {"error": code, "message": "The reports cannot be stored now." if later else str(error)}
    return JSONResponse(words, 503 if later else 400, {**_OPEN, **({"Retry-After": RETRY_SECONDS} if later else {})})


def _say(status: int, code: str, message: str, **headers: str) -> Response:
    return JSONResponse({"error": code, "message": message}, status, {**_OPEN, **headers})


async def _read_request(request: Request) -> bytes | Response:
    """The body of a request within the limits, or the refusal."""
    board = _board(request)
    limits = board.settings
    if not board.rate.allows(request.client.host if request.client else ""):
        headers = {"Retry-After": RETRY_SECONDS, "Access-Control-Expose-Headers": "Retry-After"}
        return _say(429, "too-many-requests", "Too many requests from this address. Send again later.", **headers)
    try:
        body = await read_body(request.stream(), limits.most_bytes)
        match request.headers.get("content-encoding", "identity").lower():
            case "identity":
                return body
            case "gzip":
                return await run_in_threadpool(decompress, body, limits.most_decoded_bytes)
            case _:
                return _say(415, "encoding", "The body may be compressed with gzip only.")
    except TooLarge:
        return _say(413, "too-large", "The request is larger than this server accepts. Send fewer reports at once.")
    except NotGzip:
        return _say(400, "encoding", "The body is not gzip.")


async def _take_reports(request: Request) -> Response:
    """Take one report, or a batch with one report on each line."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=_PREFLIGHT)
    body = await _read_request(request)
    if isinstance(body, Response):
        return body
    board = _board(request)
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not lines:
        return _say(400, "empty", "The body has no report.")
    if len(lines) > board.settings.most_reports:
        return _say(413, "too-large", "Too many reports in one request. Send fewer at once.")
    received = ReceivedCounts()
    for survey, own in _sort_by_survey(lines, board).items():
        queue = board.queues[survey]
        batch = await run_in_threadpool(read_lines, queue.collector.manifest, own)
        received += await queue.add(batch)
    counts = received.to_dict()
    if len(lines) == 1 and not (received.accepted or received.duplicate):
        (fate,) = (name for name, count in counts.items() if count)
        return _say(_STATUS[fate], fate, "The report was not counted.")
    return JSONResponse(counts, headers=_OPEN)


def _sort_by_survey(lines: list[bytes], board: SurveyBoard) -> dict[str, list[bytes]]:
    """The lines of each survey. A line that names no survey of this server goes to the first, which counts it."""
    first = next(iter(board.queues))
    if len(board.queues) == 1:
        return {first: lines}
    sorted_lines: dict[str, list[bytes]] = {}
    for line in lines:
        found = _SURVEY.search(line)
        name = found[1].decode() if found else first
        sorted_lines.setdefault(name if name in board.queues else first, []).append(line)
    return sorted_lines


async def _withdraw(request: Request) -> Response:  # noqa: PLR0911 - one return for each refusal
    """Take a report back by its id, which only its device and the collector know."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=_PREFLIGHT)
    body = await _read_request(request)
    if isinstance(body, Response):
        return body
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    match asked:
        case {"survey": str(survey), "id": str(name), **rest} if not rest and survey in _board(request).queues:
            collector = _board(request).queues[survey].collector
        case _:
            return _say(400, "malformed", "A withdrawal has the survey and the id of a report.")
    try:
        done = await run_in_threadpool(collector.withdraw, name)
    except InvalidParameter:
        return _say(400, "malformed", "A withdrawal has the survey and the id of a report.")
    except QueryError:
        later = {"Retry-After": RETRY_SECONDS}
        return _say(
            503, "too-many-withdrawals", "Too many unknown reports were withdrawn. Send it again later.", **later
        )
    if not done:
        return _say(409, "published", "The batch that contains the report is published.")
    return JSONResponse({"withdrawn": True}, headers=_OPEN)


async def _show_first(request: Request) -> Response:
    return RedirectResponse(f"s/{next(iter(_board(request).queues))}")


async def _show_health(request: Request) -> Response:
    for queue in _board(request).queues.values():
        await run_in_threadpool(queue.collector.count_received)
    return JSONResponse({"status": "ok"})


async def _show_metrics(request: Request) -> Response:
    """Counts for monitoring, without answers: how many reports arrived and what became of them."""
    if not _may_monitor(request):
        return PlainTextResponse(_NO_METRICS, 403)
    lines = [
        "# HELP sfumato_reports_total Reports by what became of them.",
        "# TYPE sfumato_reports_total counter",
    ]
    for survey, queue in _board(request).queues.items():
        counts = await run_in_threadpool(queue.collector.count_received)
        lines += [
            f'sfumato_reports_total{{survey="{survey}",fate="{name}"}} {count}'
            for name, count in counts.to_dict().items()
        ]
    return PlainTextResponse("\n".join(lines) + "\n")


def _find(request: Request) -> Collector | Response:
    found = _board(request).collector(request.path_params["survey"])
    return found or _say(404, "unknown", "There is no such survey here.")


async def _show_page(request: Request) -> Response:
    found = _find(request)
    if isinstance(found, Response):
        return found
    return show_respondent(found.manifest, _board(request).settings)


async def _show_document(request: Request) -> Response:
    found = _find(request)
    if isinstance(found, Response):
        return found
    return Response(found.manifest.to_bytes(), media_type="application/json", headers=_OPEN)


async def _show_manifest_page(request: Request) -> Response:
    found = _find(request)
    return found if isinstance(found, Response) else show_manifest(found.manifest, _board(request).settings)


async def _show_announcement(request: Request) -> Response:
    found, folder = _find(request), _board(request).settings.announcements
    if isinstance(found, Response):
        return found
    place = Path(folder) / f"{found.manifest.id}.json"
    if not folder or not place.is_file():
        return _say(404, "unknown", "No period was announced.")
    return Response(place.read_bytes(), media_type="application/json", headers=_OPEN)


async def _show_keys(request: Request) -> Response:
    """The team's signed list of trusted keys."""
    place = _board(request).settings.keys
    if not place:
        return _say(404, "unknown", "The team has published no list of keys here.")
    return Response(Path(place).read_bytes(), media_type="application/json", headers=_OPEN)


_NO_METRICS = (
    "The counts are for operators. Send the owner's token, or the one in SFUMATO_METRICS_TOKEN, as Authorization: "
    "Bearer, or start the server with --open-metrics and ask from the same machine."
)
_LOOPBACK = ("127.0.0.1", "::1")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def _may_monitor(request: Request) -> bool:
    """Counts tell how many people answered and when, so they are not for everyone.

    A request that another server passed on also comes from this machine, so its headers must not say so.
    """
    settings = _board(request).settings
    given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    if settings.metrics_token and hmac.compare_digest(given, settings.metrics_token.encode()):
        return True
    local = request.client is not None and request.client.host in _LOOPBACK
    direct = not any(name in request.headers for name in _FORWARDED)
    return _is_owner(request) or (settings.open_metrics and local and direct)


def _is_owner(request: Request) -> bool:
    token = _board(request).settings.owner_token
    given = request.cookies.get("sfumato_owner") or request.headers.get("authorization", "").removeprefix("Bearer ")
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


_CLOSED = "This page is for the owner of the survey. Open the address that the server printed at its start."


async def _show_owner_page(request: Request) -> Response:
    board = _board(request)
    token = request.query_params.get("token", "")
    if (
        token
        and board.settings.owner_token
        and hmac.compare_digest(token.encode(), board.settings.owner_token.encode())
    ):
        response = RedirectResponse(request.url.path, 303)  # the token does not stay in the address
        secure = request.url.scheme == "https"
        response.set_cookie("sfumato_owner", token, httponly=True, samesite="strict", secure=secure)
        return response
    if not _is_owner(request):
        return PlainTextResponse(_CLOSED, 403)
    collectors = [queue.collector for queue in board.queues.values()]
    return await run_in_threadpool(show_owner, collectors)


async def _show_results(request: Request) -> Response:
    """The published results of a survey, as JSON."""
    if not _is_owner(request):
        return PlainTextResponse(_CLOSED, 403)
    survey = request.query_params.get("survey") or next(iter(_board(request).queues))
    found = _board(request).collector(survey)
    if found is None:
        return _say(404, "unknown", "There is no such survey here.")

    def make() -> dict[str, Any]:
        return publish_results(found, publish=False).to_dict()

    try:
        return JSONResponse(await run_in_threadpool(make))
    except QueryError as error:
        return JSONResponse({"error": error.code, "message": error.message}, 404)


async def _publish(request: Request) -> Response:
    """Publish the reports that wait, if they are a whole batch."""
    if not _is_owner(request):
        return PlainTextResponse(_CLOSED, 403)
    body = (await read_body(request.stream(), 4096)).decode(errors="replace")
    survey = body.partition("survey=")[2][:32]
    found = _board(request).collector(survey)
    if found is None:
        return _say(404, "unknown", "There is no such survey here.")

    def publish() -> None:
        for period in found.periods():
            try:
                found.select_tally(period)
            except QueryError:
                continue  # this period has no whole batch yet

    await run_in_threadpool(publish)
    return RedirectResponse("../owner", 303)
