"""The HTTP API, version 1. Every question goes through a Curator; the analyst's name comes from the sign-in only."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Response
from fastapi.responses import JSONResponse

from sfumato.answers.answer import Cost
from sfumato.catalog.catalog_file import write_public_catalog
from sfumato.json_values import write_json
from sfumato.remote.answer_wire import read_answer_wire
from sfumato.remote.preview_wire import write_preview_wire
from sfumato.service.accounts import Accounts, User
from sfumato.service.api_errors import add_error_handlers, describe_refusals
from sfumato.service.api_owner import add_owner_routes
from sfumato.service.api_questions import (
    ARROW,
    CSV,
    PreviewQuestion,
    Question,
    WorkloadQuestion,
    preview_question,
    write_arrow,
    write_csv,
)
from sfumato.service.api_tokens import Tokens
from sfumato.service.asking import Asking, Written, price_workload
from sfumato.service.callers import Caller
from sfumato.service.dataset_drafts import Drafts
from sfumato.service.grant_limits import is_single_allowed
from sfumato.service.idempotent_requests import IdempotentRequests
from sfumato.service.jobs import Job, Jobs
from sfumato.service.metrics import Metrics
from sfumato.service.mounted_surveys import MountedSurveys
from sfumato.service.quick_route import QuickRoute
from sfumato.service.served_datasets import ServedDatasets
from sfumato.service.service_settings import ServiceSettings
from sfumato.service.service_shell import ServiceShell
from sfumato.service.sessions import Sessions
from sfumato.service.shared_threads import SharedThreads
from sfumato.service.site import add_site
from sfumato.service.site_asking import add_asking
from sfumato.service.site_lab import add_lab
from sfumato.service.site_register import add_register
from sfumato.service.site_surveys import add_surveys

Key = Annotated[str | None, Header(max_length=200, min_length=1)]
Prefer = Annotated[str, Header(description="`respond-async`: begin a job at once (RFC 7240).", max_length=200)]
Accept = Annotated[str, Header(description=f"JSON, `{CSV}` or `{ARROW}`.")]


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service."""

    settings: ServiceSettings
    accounts: Accounts
    sessions: Sessions
    served: ServedDatasets
    asking: Asking
    jobs: Jobs
    metrics: Metrics
    threads: SharedThreads

    @classmethod
    def open(cls, settings: ServiceSettings) -> "Service":
        accounts = Accounts(Path(settings.accounts))
        served = ServedDatasets.find([Path(folder) for folder in settings.folders], accounts)
        asking = Asking(accounts, served, IdempotentRequests(accounts, Path(f"{settings.accounts}.requests")))
        metrics = Metrics(Path(f"{settings.accounts}.metrics"))
        return cls(settings, accounts, Sessions(accounts), served, asking,
                   Jobs(accounts, asking, settings.most_running, settings.pad_seconds), metrics,
                   SharedThreads())  # fmt: skip

    def close(self) -> None:
        self.jobs.close()
        self.threads.close()
        self.served.close()
        self.accounts.close()
        self.metrics.close()


def make_app(folders: Sequence[Path], accounts_path: Path, settings: ServiceSettings | None = None) -> FastAPI:
    """The service of these folders' datasets."""
    given = settings or ServiceSettings((), "")
    return make_service_app(replace(given, folders=tuple(map(str, folders)), accounts=str(accounts_path)))


def make_service_app(settings: ServiceSettings) -> FastAPI:
    """The service with these settings."""
    service = Service.open(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Sfumato", version="1", lifespan=lifespan, docs_url=None, redoc_url=None, responses=describe_refusals()
    )
    app.state.service = service
    app.state.accounts, app.state.served, app.state.sessions = service.accounts, service.served, service.sessions
    app.state.tokens = Tokens(service.accounts)
    _add_questions(app, service)  # first: a request is compared with one route after the other
    _add_datasets(app, service)
    _add_jobs(app, service)
    add_owner_routes(app, service.accounts, service.served, service.metrics, settings.metrics_token)
    add_site(app, service.accounts, service.sessions, service.served)
    add_asking(app, service.accounts, service.served, service.jobs, service.threads, settings.wait_seconds)
    drafts = Drafts(settings.place("registered"), settings.sources, settings.most_upload_bytes)
    add_register(app, service.accounts, service.served, drafts)
    add_surveys(app, service.accounts, MountedSurveys(settings.place("surveys")))
    add_lab(app, service.threads)
    add_error_handlers(app)
    app.add_middleware(ServiceShell, settings=settings, metrics=service.metrics)
    return app


def _add_datasets(app: FastAPI, service: Service) -> None:
    served = service.served

    @app.get("/v1/health")
    def check_health() -> dict[str, str]:
        """Whether the service runs. It needs no token and says nothing about the data."""
        service.accounts.read_version()
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


def _add_questions(app: FastAPI, service: Service) -> None:
    routes = APIRouter(route_class=QuickRoute)
    served, jobs, wait, threads = service.served, service.jobs, service.settings.wait_seconds, service.threads

    def write_preview(name: str, asked: PreviewQuestion, user: User) -> Response:
        with served.using(name, user) as (curator, grant):
            found = preview_question(curator, asked, user)
            allowed = is_single_allowed(curator.dataset.budget, grant, found.cost)
            return _send(write_json(write_preview_wire(found) | ({} if allowed else {"fits": False})))

    @routes.post("/v1/datasets/{name}/queries:preview", response_model=dict[str, Any])
    async def preview(name: str, asked: PreviewQuestion, user: Caller) -> Response:
        """Cost and margins of a question. It reads no row and costs nothing."""
        return await threads.run(user.name, lambda: write_preview(name, asked, user))

    @routes.post("/v1/datasets/{name}/queries", response_model=None)
    async def ask(  # noqa: PLR0917 - FastAPI names what it passes
        name: str, asked: Question, user: Caller, accept: Accept = "application/json", idempotency_key: Key = None,
        prefer: Prefer = "",
    ) -> Response:  # fmt: skip
        """Answer a question. A retry with the same Idempotency-Key never pays twice. A long one becomes a job (202)."""
        found = await jobs.run(name, asked, user, idempotency_key, 0 if _is_asynchronous(prefer) else wait)
        return _point_to(found) if isinstance(found, Job) else _write_answer(found, accept)

    def write_plan(name: str, asked: WorkloadQuestion, user: User) -> Response:
        with served.using(name, user) as (curator, _):
            made = curator.plan(asked.write_wanted(), asked.confidence, epsilon=asked.epsilon, rho=asked.rho)
            cost = price_workload(made, curator.dataset.budget.loss)
            return JSONResponse({"cost": cost.as_text(), "plan": str(made)})

    @routes.post("/v1/datasets/{name}/workloads:preview", response_model=dict[str, Any])
    async def plan(name: str, asked: WorkloadQuestion, user: Caller) -> Response:
        """What a workload costs, and how its loss is split. It reads no row and costs nothing."""
        return await threads.run(user.name, lambda: write_plan(name, asked, user))

    @routes.post("/v1/datasets/{name}/workloads", response_model=None)
    async def ask_workload(
        name: str, asked: WorkloadQuestion, user: Caller, idempotency_key: Key = None, prefer: Prefer = ""
    ) -> Response:
        """Answer several questions for one charge: all are paid, or none. Retries and jobs are as for one question."""
        found = await jobs.run(name, asked, user, idempotency_key, 0 if _is_asynchronous(prefer) else wait)
        return _point_to(found) if isinstance(found, Job) else _send(f'{{"answers":{found.write_list()}}}')

    app.include_router(routes)


def _add_jobs(app: FastAPI, service: Service) -> None:
    jobs = service.jobs

    @app.get("/v1/jobs")
    def list_jobs(user: Caller) -> list[dict[str, Any]]:
        """The caller's newest jobs."""
        return [job.to_dict() for job in jobs.list(user)]

    @app.get("/v1/jobs/{job}")
    def show_job(job: str, user: Caller) -> dict[str, Any]:
        """A job: its stage, and its answers once it is done. It says nothing about how far the data was read."""
        return jobs.find(user, job).to_dict()

    @app.delete("/v1/jobs/{job}")
    def cancel_job(job: str, user: Caller) -> dict[str, Any]:
        """Cancel a job. That does not undo its charge; `note` says what became of it."""
        found, note = jobs.cancel(user, job)
        return {**found.to_dict(), "note": note}


def _is_asynchronous(prefer: str) -> bool:
    return "respond-async" in prefer.lower()


def _send(text: str) -> Response:
    return Response(text, media_type="application/json")


def _point_to(job: Job) -> Response:
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"}
    return JSONResponse(job.to_dict(), 202, headers)


def _describe(served: ServedDatasets, name: str, user: User) -> dict[str, Any]:
    with served.using(name, user) as (curator, grant):
        totals = curator.ledger().totals(None if user.role == "owner" else user.name)
        whole = curator.budget
        own = None
        if grant is not None:
            own = {"remaining": Cost.from_loss(totals.remaining).as_text(), "per_query": grant.per_query or None,
                   "per_query_delta": grant.per_query_delta or None, "expires": grant.expires or None}  # fmt: skip
        return {
            "name": name,
            "catalog": write_public_catalog(curator.dataset),
            "versions": dict(curator.versions),
            "budget": {
                "limit": whole.limit.as_text(),
                "spent": whole.spent.as_text(),
                "remaining": whole.remaining.as_text(),
            },
            "own": own,
        }


def _write_answer(found: Written, accept: str) -> Response:
    """The answer as JSON, CSV or an Arrow stream, as the caller prefers."""
    if ARROW in accept:
        return write_arrow(read_answer_wire(*found.read()))
    if CSV in accept:
        return write_csv(read_answer_wire(*found.read()))
    return _send(*found.texts)  # also for another kind: the answer is paid for
