"""The HTTP API, version 1. Every question goes through a Curator; the analyst's name comes from the token only."""

import hashlib
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from sfumato.answers.answer import Answer
from sfumato.catalog.catalog_file import write_public_catalog
from sfumato.curator import Curator
from sfumato.errors import EngineFailed, KernelFault, LedgerError, PermissionDenied, SfumatoError
from sfumato.number_arguments import read_positive_decimal
from sfumato.query.tokens import MOST_LETTERS
from sfumato.remote.answer_wire import write_answer_wire
from sfumato.remote.preview_wire import write_preview_wire
from sfumato.service.accounts import Accounts, Grant, User, require_owner
from sfumato.service.problem_documents import TYPE, choose_status, describe_problem, write_problem
from sfumato.service.served_datasets import ServedDatasets

MOST_BYTES = 1 << 20  # of a request
ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
CLOSED = "charge-closed"

Amount = Annotated[str | float | int | None, Field(description="An exact decimal. A text keeps every digit.")]


class Asked(BaseModel):
    """A question and its price."""

    model_config = ConfigDict(extra="forbid")
    sql: str = Field(max_length=MOST_LETTERS, examples=["SELECT COUNT(*) AS n FROM people"])
    epsilon: Amount = None
    rho: Amount = None
    delta: Amount = None
    confidence: str | float = "0.95"


class Question(Asked):
    """A question to be answered. `margin` asks for the smallest epsilon that gives these margins."""

    margin: dict[str, float] | None = None


class PreviewQuestion(Asked):
    """A question to be previewed. `assume`: the number of rows, for margins that depend on it."""

    assume: dict[str, float] | None = None


class GrantRequest(BaseModel):
    """A limit for one analyst."""

    model_config = ConfigDict(extra="forbid")
    user: str
    epsilon: str | float | int
    delta: str | float | int = "0"
    per_query: Amount = None


bearer = HTTPBearer(auto_error=False, description="An API token: `sfumato user token NAME`.")


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
    app.state.accounts, app.state.served = accounts, served
    _add_error_handlers(app)
    _add_questions(app, accounts, served)
    _add_owner_routes(app, accounts, served)
    return app


def find_caller(request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> User:
    """Whose token came with the request."""
    accounts: Accounts = request.app.state.accounts
    user = None if credentials is None else accounts.find_user(credentials.credentials)
    if user is None:
        raise NotSignedIn
    return user


Caller = Annotated[User, Depends(find_caller)]


class NotSignedIn(Exception):
    """The request has no valid token."""


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
            found = curator.preview(
                asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, assume=asked.assume,
                confidence=asked.confidence, analyst=user.name,
            )  # fmt: skip
            return write_preview_wire(found)

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
            _check_single_limit(curator, grant, asked, user)
            try:
                answer = curator.ask(
                    asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, margin=asked.margin,
                    confidence=asked.confidence, analyst=user.name,
                )  # fmt: skip
            except (KernelFault, EngineFailed, LedgerError) as error:
                if idempotency_key is not None and not isinstance(error, EngineFailed):
                    accounts.fail_request(user.name, idempotency_key, error.message)
                raise
        accounts.log(user.name, "ask", name, f"entry {answer.entry}, cost {answer.cost}")
        return _write_answer(answer, accept)


def _check_single_limit(curator: Curator, grant: Grant | None, asked: Question, user: User) -> None:
    """Refuse a question above the limit for a single question, before anything is charged."""
    if grant is None or not grant.per_query:
        return
    most = read_positive_decimal(grant.per_query, "per_query")
    hint = f"Ask with epsilon={grant.per_query} or less."
    if asked.margin is not None:
        message = "With a limit for each question, ask with an epsilon instead of a margin."
        raise PermissionDenied("per-query-limit", message, hint)
    found = curator.preview(
        asked.sql, asked.epsilon, rho=asked.rho, delta=asked.delta, confidence=asked.confidence, analyst=user.name
    )
    loss = found.cost.epsilon
    if loss is None or loss > most:
        raise PermissionDenied("per-query-limit", f"A single question may cost at most {grant.per_query}.", hint)


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
        import pyarrow  # noqa: PLC0415 - where it is wanted

        table, sink = answer.to_arrow(intervals=True), io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return Response(sink.getvalue(), media_type=ARROW)
    if CSV in accept:
        import pyarrow.csv  # noqa: PLC0415 - where it is wanted

        sink = io.BytesIO()
        pyarrow.csv.write_csv(answer.to_arrow(intervals=True), sink)
        return Response(sink.getvalue(), media_type=CSV)
    return write_answer_wire(answer)


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
    async def refuse(_: Request, error: SfumatoError) -> JSONResponse:
        return _answer_problem(describe_problem(error), choose_status(error))

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
