"""Ask: the editor with its preview, and a question that takes longer than its request.

The pages are rendered here, so that they work without scripts. A script adds the live preview and the editor's colours.
"""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.curator import Curator
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.query.tokens import MOST_LETTERS
from sfumato.service.accounts import Accounts, Grant, User
from sfumato.service.api_questions import PreviewQuestion, Question, preview_question
from sfumato.service.grant_limits import refuse_single
from sfumato.service.jobs import Job, Jobs
from sfumato.service.page_requests import Form, read_own_form, require_session, show_page
from sfumato.service.page_views import (
    list_tables,
    make_gauge,
    show_preview,
    suggest_question,
    write_builder,
    write_completions,
)
from sfumato.service.problem_documents import choose_status
from sfumato.service.saved_answers import save_answer
from sfumato.service.served_datasets import ServedDatasets
from sfumato.service.sessions import Session
from sfumato.service.shared_threads import SharedThreads

EPSILON = "0.1"  # what a new question costs, until the reader changes it


def add_asking(  # noqa: PLR0917 - one caller
    app: FastAPI, accounts: Accounts, served: ServedDatasets, jobs: Jobs, threads: SharedThreads, wait_seconds: float
) -> None:
    """Add the pages. Questions run as those of the API do: a few at a time, and none on the threads of other pages."""

    async def compute(session: Session, work: Callable[[], HTMLResponse]) -> HTMLResponse:
        return await threads.run(session.user.name, work)

    @app.get("/datasets/{name}/ask", include_in_schema=False)
    async def show_editor(request: Request, name: str, sql: str = "", epsilon: str = EPSILON) -> Response:
        session = await run_in_threadpool(require_session, request)
        form = {"sql": sql, "epsilon": epsilon}
        return await compute(session, lambda: _show_editor(served, session, name, form))

    @app.post("/datasets/{name}/ask", include_in_schema=False)
    async def ask(request: Request, name: str) -> Response:
        session, form = await read_own_form(request)
        if form.get("action") == "preview":
            return await compute(session, lambda: _show_editor(served, session, name, form))
        try:
            asked = _read_question(form)
            found = await jobs.run(name, asked, session.user, None, wait_seconds)
        except SfumatoError as error:
            refused = error
            return await compute(session, lambda: _show_editor(served, session, name, form, refused))
        if isinstance(found, Job):
            return RedirectResponse(f"/jobs/{found.id}", 303)
        made = await run_in_threadpool(save_answer, accounts, session.user.name, name, _keep(asked), found.read()[0])
        return RedirectResponse(f"/answers/{made}", 303)

    @app.post("/datasets/{name}/ask:preview", include_in_schema=False)
    async def preview(request: Request, name: str) -> Response:
        session, form = await read_own_form(request)
        return await compute(session, lambda: _preview_form(served, session, name, form))

    @app.get("/jobs/{job}", include_in_schema=False)
    def show_job(request: Request, job: str) -> Response:
        session = require_session(request)
        return _show_job(accounts, session, jobs.find(session.user, job))

    @app.post("/jobs/{job}/cancel", include_in_schema=False)
    async def cancel(request: Request, job: str) -> Response:
        session, _ = await read_own_form(request)
        await run_in_threadpool(jobs.cancel, session.user, job)
        return RedirectResponse(f"/jobs/{job}", 303)


def _show_job(accounts: Accounts, session: Session, job: Job) -> Response:
    """A question that runs; or, once it is answered, its answer."""
    asked = json.loads(job.asked)
    if job.stage == "done" and asked["kind"] == "question":
        kept, (wire,) = _keep(Question(**asked)), job.outcome["answers"]
        return RedirectResponse(f"/answers/{save_answer(accounts, job.user, job.dataset, kept, wire, job.id)}", 303)
    refused = None
    if job.stage == "failed":
        refused = SfumatoError(job.outcome["code"], job.outcome["detail"], job.outcome["hint"])
    questions = [asked["sql"]] if "sql" in asked else [question["sql"] for question in asked["questions"]]
    note = job.outcome["note"] if job.stage == "cancelled" else ""
    return show_page("job", session, job=job, questions=questions, error=refused, note=note)


def _keep(asked: Question) -> dict[str, str]:
    """What the page of an answer says about its question."""
    prices = {name: str(value) for name in ("epsilon", "rho", "delta") if (value := getattr(asked, name)) is not None}
    return {"sql": asked.sql, **prices}


def _read_question(form: Form) -> Question:
    return Question(sql=form.get("sql", "")[:MOST_LETTERS], epsilon=form.get("epsilon", "").strip() or EPSILON)


def _read_preview(form: Form) -> PreviewQuestion:
    asked, guess = _read_question(form), form.get("assume", "").strip().replace(",", "")
    try:
        assumed = {"n": float(guess)} if guess else None
    except ValueError:
        raise InvalidParameter("the number of rows", "must be a number", "something else") from None
    return PreviewQuestion(sql=asked.sql, epsilon=asked.epsilon, assume=assumed)


def _preview(curator: Curator, grant: Grant | None, user: User, form: Form) -> dict[str, Any]:
    """A preview for its page. It refuses a question above the reader's limit for one question, as asking it does."""
    found = preview_question(curator, _read_preview(form), user)
    refuse_single(curator.dataset.budget, grant, found.cost)
    return show_preview(found)


def _preview_form(served: ServedDatasets, session: Session, name: str, form: Form) -> HTMLResponse:
    """The part of the page beside the editor, for the script that shows it while the reader types."""
    with served.using(name, session.user) as (curator, grant):
        try:
            found, error = _preview(curator, grant, session.user, form), None
        except SfumatoError as refused:
            found, error = None, refused
    return show_page("preview", session, preview=found, error=error)


def _show_editor(
    served: ServedDatasets, session: Session, name: str, form: Form, error: SfumatoError | None = None
) -> HTMLResponse:
    with served.using(name, session.user) as (curator, grant):
        sent = "csrf" in form
        if not form.get("sql") and not sent:
            form = {**form, "sql": suggest_question(curator.dataset)}
        found = None
        try:
            found = _preview(curator, grant, session.user, form)
        except SfumatoError as refused:
            error = error or refused
        return show_page(
            "ask", session, choose_status(error) if error and sent else 200, name=name,
            sql=form.get("sql", ""), epsilon=form.get("epsilon", EPSILON), assume=form.get("assume", ""),
            preview=found, error=error,
            tables=list_tables(curator.dataset), builder=write_builder(curator.dataset),
            words=write_completions(curator.dataset),
            gauge=make_gauge(curator, session.user, grant),
        )  # fmt: skip
