"""What the owner and the operators of a survey server see: counts, results, and the button that publishes."""

import hmac
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from sfumato.errors import QueryError
from sfumato.local.collect.published_results import publish_results
from sfumato.service.request_limits import TooLarge, read_body
from sfumato.service.survey_board import get_board, refuse
from sfumato.service.survey_pages import show_owner

_NO_METRICS = (
    "The counts are for operators. Send the owner's token, or the one in SFUMATO_METRICS_TOKEN, as Authorization: "
    "Bearer, or start the server with --open-metrics and ask from the same machine."
)
_LOOPBACK = ("127.0.0.1", "::1")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


async def show_metrics(request: Request) -> Response:
    """Counts for monitoring, without answers: how many reports arrived and what became of them."""
    if not _may_monitor(request):
        return PlainTextResponse(_NO_METRICS, 403)
    lines = [
        "# HELP sfumato_reports_total Reports by what became of them.",
        "# TYPE sfumato_reports_total counter",
    ]
    for survey, queue in get_board(request).queues.items():
        counts = await run_in_threadpool(queue.collector.count_received)
        lines += [
            f'sfumato_reports_total{{survey="{survey}",fate="{name}"}} {count}'
            for name, count in counts.to_dict().items()
        ]
    return PlainTextResponse("\n".join(lines) + "\n")


def _may_monitor(request: Request) -> bool:
    """Counts tell how many people answered and when, so they are not for everyone.

    A request that another server passed on also comes from this machine, so its headers must not say so.
    """
    settings = get_board(request).settings
    given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    if settings.metrics_token and hmac.compare_digest(given, settings.metrics_token.encode()):
        return True
    local = request.client is not None and request.client.host in _LOOPBACK
    direct = not any(name in request.headers for name in _FORWARDED)
    return _is_owner(request) or (settings.open_metrics and local and direct)


def _is_owner(request: Request) -> bool:
    token = get_board(request).settings.owner_token
    given = request.cookies.get("sfumato_owner") or request.headers.get("authorization", "").removeprefix("Bearer ")
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


_CLOSED = "This page is for the owner of the survey. Open the address that the server printed at its start."


async def show_owner_page(request: Request) -> Response:
    board = get_board(request)
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


async def show_results(request: Request) -> Response:
    """The published results of a survey, as JSON."""
    if not _is_owner(request):
        return PlainTextResponse(_CLOSED, 403)
    survey = request.query_params.get("survey") or next(iter(get_board(request).queues))
    found = get_board(request).collector(survey)
    if found is None:
        return refuse(404, "unknown", "There is no such survey here.")

    def make() -> dict[str, Any]:
        return publish_results(found, publish=False).to_dict()

    try:
        return JSONResponse(await run_in_threadpool(make))
    except QueryError as error:
        return JSONResponse({"error": error.code, "message": error.message}, 404)


async def publish_batches(request: Request) -> Response:
    """Publish the reports that wait, if they are a whole batch."""
    if not _is_owner(request):
        return PlainTextResponse(_CLOSED, 403)
    try:
        body = (await read_body(request.stream(), 4096)).decode(errors="replace")
    except TooLarge:
        return refuse(413, "too-large", "The request is larger than this server accepts.")
    survey = body.partition("survey=")[2][:32]
    found = get_board(request).collector(survey)
    if found is None:
        return refuse(404, "unknown", "There is no such survey here.")

    def publish() -> None:
        for period in found.periods():
            try:
                found.select_tally(period)
            except QueryError:
                continue  # this period has no whole batch yet

    await run_in_threadpool(publish)
    return RedirectResponse("../owner", 303)
