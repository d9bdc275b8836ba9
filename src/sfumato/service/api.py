"""The HTTP API, version 1. Every question goes through a Curator; the analyst's name comes from the sign-in only."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict

from sfumato.answers.answer import Answer
from sfumato.catalog.catalog_file import write_public_catalog
from sfumato.errors import EngineFailed, KernelFault, LedgerError, SfumatoError
from sfumato.remote.answer_wire import write_answer_wire
from sfumato.remote.preview_wire import write_preview_wire
from sfumato.service.accounts import Accounts, Grant, User, require_owner
from sfumato.service.api_questions import (
    ARROW,
    CSV,
    Amount,
    PreviewQuestion,
    Question,
    ask_question,
    preview_question,
    write_arrow,
    write_csv,
)
from sfumato.service.callers import Caller, NotSignedIn
from sfumato.service.problem_documents import TYPE, choose_status, describe_problem, write_problem
from sfumato.service.served_datasets import ServedDatasets
from sfumato.service.sessions import Sessions
from sfumato.service.site import SignInFirst, add_site, show_error

MOST_BYTES = 1 << 20  # of a request
CLOSED = "charge-closed"


class GrantRequest(BaseModel):
    """A limit for one analyst."""

    model_config = ConfigDict(extra="forbid")
    user: str
    epsilon: str | float | int
    delta: str | float | int = "0"
    per_query: Amount = None


def make_app(folders: Sequence[Path], accounts_path: Path) -> FastAPI:
    """The service of these folders' datasets."""
    accounts = Accounts(accounts_path)
    served = ServedDatasets.find(folders, accounts)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        served.close()
        accounts.close()

    app = FastAPI(title="Sfumato", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.accounts, app.state.served, app.state.sessions = accounts, served, Sessions(accounts)
    add_site(app, accounts, app.state.sessions, served)
    _add_error_handlers(app)
    _add_questions(app, accounts, served)
    _add_owner_routes(app, accounts, served)
    return app


def _add_questions(app: FastAPI, accounts: Accounts, served: ServedDatasets) -> None:
    @app.get("/v1/health")
    def check_health() -> dict[str, str]:
        """Whether the service runs. It needs no token and says nothing about the data."""
        return {"status": "ok"}

    @app.get("/v1/me")
    def show_caller(user: Caller) -> dict[str, Any]:
        """Who the token belongs to, and the datasets that they may ask."""
        return {"name": user.name, "role": user.role, "datasets": served.list_names(user)}

    @app.get("/v1/datasets")
    def list_datasets(user: Caller) -> list[dict[str, Any]]:
        """The datasets that the caller may ask, with what is left of their budgets."""
        return [_describe(served, name, user) for name in served.list_names(user)]

    @app.get("/v1/datasets/{name}")
    def show_dataset(name: str, user: Caller) -> dict[str, Any]:
        """A dataset: its declarations, and what is left of its budget."""
        return _describe(served, name, user)

    @app.post("/v1/datasets/{name}/queries:preview")
    def preview(name: str, asked: PreviewQuestion, user: Caller) -> dict[str, Any]:
        """Cost and margins of a question. It reads no row and costs nothing."""
        with served.using(name, user) as (curator, _):
            return write_preview_wire(preview_question(curator, asked, user))

    @app.post("/v1/datasets/{name}/queries", response_model=None)
    def ask(
        name: str,
        asked: Question,
        user: Caller,
        accept: Annotated[str, Header()] = "application/json",
        idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    ) -> dict[str, Any] | Response:
        """Answer a question. A retry with the same Idempotency-Key never pays twice."""
        if idempotency_key is not None:
            digest = hashlib.sha256(f"{name}\n{asked.model_dump_json()}".encode()).hexdigest()
            failed = accounts.begin_request(user.name, idempotency_key, digest)
            if failed:
                raise LedgerError(CLOSED, failed, "Send a new key to ask again. It is a new charge.")
        with served.using(name, user) as (curator, grant):
            try:
                answer = ask_question(accounts, curator, grant, asked, user)
            except (KernelFault, EngineFailed, LedgerError) as error:
                if idempotency_key is not None and not isinstance(error, EngineFailed):
                    accounts.fail_request(user.name, idempotency_key, error.message)
                raise
        return _write_answer(answer, accept)


def _describe(served: ServedDatasets, name: str, user: User) -> dict[str, Any]:
    with served.using(name, user) as (curator, grant):
        totals = curator.ledger().totals(None if user.role == "owner" else user.name)
        whole = curator.budget
        return {
            "name": name,
            "catalog": write_public_catalog(curator.dataset),
            "versions": dict(curator.versions),
            "budget": {
                "limit": whole.limit.as_text(),
                "spent": whole.spent.as_text(),
                "remaining": whole.remaining.as_text(),
            },
            "own": None if grant is None else {"remaining": str(totals.remaining), "per_query": grant.per_query or None,
                                               "expires": grant.expires or None},
        }  # fmt: skip


def _write_answer(answer: Answer, accept: str) -> dict[str, Any] | Response:
    """The answer as JSON, CSV or an Arrow stream, as the caller prefers."""
    if ARROW in accept:
        return write_arrow(answer)
    return write_csv(answer) if CSV in accept else write_answer_wire(answer)


def _add_owner_routes(app: FastAPI, accounts: Accounts, served: ServedDatasets) -> None:
    @app.get("/v1/datasets/{name}/ledger")
    def list_entries(name: str, user: Caller) -> list[dict[str, Any]]:
        """The entries of the ledger: all for an owner, their own for an analyst. Answers are not in it."""
        with served.using(name, user) as (curator, _):
            return [
                {"number": entry.number, "kind": entry.kind, "analyst": entry.analyst, "time": entry.time,
                 "loss": None if entry.loss is None else str(entry.loss), "hash": entry.hash}
                for entry in curator.ledger().entries()
                if user.role == "owner" or entry.analyst == user.name
            ]  # fmt: skip

    @app.get("/v1/datasets/{name}/grants")
    def list_grants(name: str, user: Caller) -> dict[str, Any]:
        """The grants of a dataset, and what all analysts together can learn: never more than the total."""
        require_owner(user)
        with served.using(name, user) as (curator, _):
            grants = [{part: getattr(grant, part) for part in Grant.__slots__} for grant in accounts.list_grants(name)]
            return {"grants": grants, "all_analysts_together": curator.budget.limit.as_text()}

    @app.put("/v1/datasets/{name}/grants")
    def set_grant(name: str, wanted: GrantRequest, user: Caller) -> dict[str, Any]:
        """Grant an analyst a limit, in place of an earlier one."""
        require_owner(user)
        with served.using(name, user):
            grant = accounts.set_grant(
                wanted.user, name, wanted.epsilon, delta=wanted.delta, per_query=wanted.per_query, by=user.name
            )
        return {part: getattr(grant, part) for part in Grant.__slots__}

    @app.get("/v1/log")
    def list_log(user: Caller, most: int = 1000) -> list[dict[str, Any]]:
        """Who did what, newest first."""
        require_owner(user)
        return [dict(line) for line in accounts.list_log(min(max(most, 1), 10_000))]


def _add_error_handlers(app: FastAPI) -> None:
    @app.middleware("http")
    async def limit_size(request: Request, call_next: Any) -> Any:  # noqa: ANN401 - Starlette's
        declared = request.headers.get("content-length", "0")
        if request.method in ("POST", "PUT") and (not declared.isdigit() or int(declared) > MOST_BYTES):
            return _answer_problem(write_problem(413, "too-large", "The request has more than 1 MiB.", "Shorten it."))
        if request.method in ("POST", "PUT") and "transfer-encoding" in request.headers:
            hint = "Send the length of the request."
            return _answer_problem(write_problem(413, "too-large", "The request's length is not declared.", hint))
        return await call_next(request)

    @app.exception_handler(SfumatoError)
    async def refuse(request: Request, error: SfumatoError) -> Response:
        if not request.url.path.startswith("/v1/"):
            return show_error(request, error)
        return _answer_problem(describe_problem(error), choose_status(error))

    @app.exception_handler(SignInFirst)
    async def ask_to_sign_in(request: Request, _: SignInFirst) -> Response:
        after = request.url.path if request.method == "GET" else "/"
        return RedirectResponse(f"/signin?after={quote(after)}", 303)

    @app.exception_handler(NotSignedIn)
    async def refuse_strangers(_: Request, __: NotSignedIn) -> JSONResponse:
        hint = "Send the header: Authorization: Bearer TOKEN. The owner makes tokens with `sfumato user token NAME`."
        return _answer_problem(write_problem(401, "not-signed-in", "The token is missing, wrong or expired.", hint))

    @app.exception_handler(RequestValidationError)
    async def refuse_forms(_: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted({".".join(str(part) for part in one["loc"][1:]) or "the request" for one in error.errors()})
        detail = f"These parts are missing, unknown or of another type: {', '.join(places)}."
        return _answer_problem(write_problem(400, "invalid-request", detail, "See /openapi.json."))

    @app.exception_handler(Exception)
    async def hide(_: Request, __: Exception) -> JSONResponse:  # its text may hold a value from the data
        return _answer_problem(write_problem(500, "internal", "The service failed.", "The owner's log has the time."))


def _answer_problem(problem: dict[str, Any], status: int | None = None) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if problem["status"] == 401 else None
    return JSONResponse(json.loads(json.dumps(problem)), status or problem["status"], headers, media_type=TYPE)
