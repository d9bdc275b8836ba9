"""The survey server: intake of reports, withdrawals, and the pages of respondents and owners.

It is an ASGI app without global state, so that another app can mount it. Requests are not logged, and nothing about
them is stored but the reports themselves.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import SfumatoError
from sfumato.local.collect.collector import Collector
from sfumato.service.survey_board import OPEN, RETRY_SECONDS, SurveyBoard, get_board, refuse
from sfumato.service.survey_intake import take_reports, withdraw_report
from sfumato.service.survey_owner import publish_batches, show_metrics, show_owner_page, show_results
from sfumato.service.survey_pages import show_manifest, show_respondent
from sfumato.service.survey_settings import SurveySettings, read_settings

STATIC = Path(__file__).with_name("static")
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


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
            Route("/metrics", show_metrics),
            Route("/reports", take_reports, methods=["POST", "OPTIONS"]),
            Route("/reports/withdraw", withdraw_report, methods=["POST", "OPTIONS"]),
            Route("/s/{survey}", _show_page),
            Route("/s/{survey}/survey.json", _show_document),
            Route("/s/{survey}/manifest", _show_manifest_page),
            Route("/s/{survey}/period.json", _show_announcement),
            Route("/keys.json", _show_keys),
            Route("/owner", show_owner_page),
            Route("/owner/results.json", show_results),
            Route("/owner/publish", publish_batches, methods=["POST"]),
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


async def _refuse(request: Request, error: Exception) -> Response:
    """A refusal in constant words. A ledger that cannot be written is tried again later."""
    code = getattr(error, "code", "error")
    later = code == "collector-file"
    words = {"error": code, "message": "The reports cannot be stored now." if later else str(error)}
    return JSONResponse(words, 503 if later else 400, {**OPEN, **({"Retry-After": RETRY_SECONDS} if later else {})})


async def _show_first(request: Request) -> Response:
    return RedirectResponse(f"s/{next(iter(get_board(request).queues))}")


async def _show_health(request: Request) -> Response:
    for queue in get_board(request).queues.values():
        await run_in_threadpool(queue.collector.count_received)
    return JSONResponse({"status": "ok"})


def _find(request: Request) -> Collector | Response:
    found = get_board(request).collector(request.path_params["survey"])
    return found or refuse(404, "unknown", "There is no such survey here.")


async def _show_page(request: Request) -> Response:
    found = _find(request)
    if isinstance(found, Response):
        return found
    return show_respondent(found.manifest, get_board(request).settings)


async def _show_document(request: Request) -> Response:
    found = _find(request)
    if isinstance(found, Response):
        return found
    return Response(found.manifest.to_bytes(), media_type="application/json", headers=OPEN)


async def _show_manifest_page(request: Request) -> Response:
    found = _find(request)
    return found if isinstance(found, Response) else show_manifest(found.manifest, get_board(request).settings)


async def _show_announcement(request: Request) -> Response:
    found, folder = _find(request), get_board(request).settings.announcements
    if isinstance(found, Response):
        return found
    place = Path(folder) / f"{found.manifest.id}.json"
    if not folder or not place.is_file():
        return refuse(404, "unknown", "No period was announced.")
    return Response(place.read_bytes(), media_type="application/json", headers=OPEN)


async def _show_keys(request: Request) -> Response:
    """The team's signed list of trusted keys."""
    place = get_board(request).settings.keys
    if not place:
        return refuse(404, "unknown", "The team has published no list of keys here.")
    return Response(Path(place).read_bytes(), media_type="application/json", headers=OPEN)
