"""Refusals as problem documents, or as pages. What fails unexpectedly is answered by `service_shell`."""

import json
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from sfumato.errors import PermissionDenied, SfumatoError
from sfumato.service.callers import NotSignedIn, find_session
from sfumato.service.page_requests import SignInFirst, show_error, show_page
from sfumato.service.problem_documents import TITLES, TYPE, choose_status, describe_problem, write_problem

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "hint"],
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
        "code": {"type": "string"}, "detail": {"type": "string"}, "hint": {"type": "string"},
    },
}  # fmt: skip


def describe_refusals() -> dict[int | str, dict[str, Any]]:
    """The refusals in the OpenAPI document: RFC 9457 problem documents."""
    content = {TYPE: {"schema": _PROBLEM}}
    return {status: {"description": title, "content": content} for status, title in TITLES.items() if status != 500}


def add_error_handlers(app: FastAPI) -> None:
    """Add the handlers of refusals and failures."""

    @app.exception_handler(SfumatoError)
    async def refuse(request: Request, error: SfumatoError) -> Response:
        if not request.url.path.startswith("/v1/"):
            return show_error(request, error)
        return answer_problem(describe_problem(error), choose_status(error))

    @app.exception_handler(SignInFirst)
    async def ask_to_sign_in(request: Request, _: SignInFirst) -> Response:
        after = request.url.path if request.method == "GET" else "/"
        return RedirectResponse(f"/signin?after={quote(after)}", 303)

    @app.exception_handler(NotSignedIn)
    async def refuse_strangers(_: Request, __: NotSignedIn) -> JSONResponse:
        hint = "Send the header: Authorization: Bearer TOKEN. The owner makes tokens with `sfumato user token NAME`."
        return answer_problem(write_problem(401, "not-signed-in", "The token is missing, wrong or expired.", hint))

    @app.exception_handler(RequestValidationError)
    async def refuse_forms(_: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted(
            {".".join(str(part) for part in problem["loc"][1:]) or "the request" for problem in error.errors()}
        )
        detail = f"These parts are missing, unknown or of another type: {', '.join(places)[:500]}."
        return answer_problem(write_problem(400, "invalid-request", detail, "See /openapi.json."))

    @app.exception_handler(HTTPException)
    async def refuse_address(request: Request, error: HTTPException) -> Response:
        words = {404: "There is nothing at this address.", 405: "This address does not take such a request."}
        detail = words.get(error.status_code, "The request cannot be read.")
        if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/"):
            lost = PermissionDenied("no-such-address", detail, "Go to your datasets, and choose from there.")
            return show_page("error", find_session(request), error.status_code, error=lost)
        problem = write_problem(error.status_code, "no-such-address", detail, "See /openapi.json.")
        answered = answer_problem(problem, error.status_code)
        answered.headers.update(error.headers or {})
        return answered


def answer_problem(problem: dict[str, Any], status: int | None = None) -> JSONResponse:
    """A problem document as an answer."""
    headers = {"WWW-Authenticate": "Bearer"} if problem["status"] == 401 else None
    return JSONResponse(json.loads(json.dumps(problem)), status or problem["status"], headers, media_type=TYPE)
