"""The pages: sign in, the datasets, an answer, and what an owner sees and grants. They work without scripts."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_file import write_public_catalog
from sfumato.errors import InvalidParameter, PermissionDenied, SfumatoError
from sfumato.service.accounts import Accounts, User, require_owner
from sfumato.service.api_questions import write_arrow, write_csv
from sfumato.service.callers import COOKIE
from sfumato.service.grant_limits import check_grant
from sfumato.service.page_requests import Form, point_to, read_form, read_own_form, require_session, show_page
from sfumato.service.page_views import (
    MOST_ENTRIES,
    count_more,
    list_entries,
    list_tables,
    make_gauge,
    show_answer,
)
from sfumato.service.problem_documents import choose_status
from sfumato.service.saved_answers import find_answer, list_answers
from sfumato.service.served_datasets import ServedDatasets
from sfumato.service.sessions import Session, Sessions

STATIC = Path(__file__).with_name("static")
MOST_NUMBER = 2**31 - 1  # of an entry of the ledger
MOST_CHECKS = 2  # of passwords at the same time in a worker: each takes 64 MiB. Others wait for their turn


def add_site(app: FastAPI, accounts: Accounts, sessions: Sessions, served: ServedDatasets) -> None:
    """Add the pages to the service."""
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_route("/favicon.ico", lambda _: RedirectResponse("/static/icon.svg", 308))
    _add_sign_in(app, sessions)
    _add_datasets(app, accounts, served)
    _add_answers(app, accounts)
    _add_grants(app, accounts, served)


def _is_own_path(path: str) -> bool:
    """Is it a page of this service? Another address is never opened after a sign-in."""
    return path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()


def _add_sign_in(app: FastAPI, sessions: Sessions) -> None:
    checking = asyncio.Semaphore(MOST_CHECKS)

    @app.get("/signin", include_in_schema=False)
    def show_sign_in(after: str = "/") -> HTMLResponse:
        return show_page("signin", None, after=after, error=None, name="", link="")

    @app.post("/signin", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        form = await read_form(request)
        _check_origin(request)
        name, after = form.get("name", ""), form.get("after", "/")
        try:
            async with checking:
                address = request.client.host if request.client else ""
                secret = await run_in_threadpool(sessions.sign_in, name, form.get("password", ""), address)
        except PermissionDenied as error:
            status = 429 if error.code == "too-many-attempts" else 403
            return show_page("signin", None, status, after=after, error=error, name=name, link="")
        return _begin(request, secret, after)

    @app.get("/signin/{link}", include_in_schema=False)
    def show_link(link: str) -> HTMLResponse:
        # opening a link does not use it up: a mail program may open links before their reader does
        return show_page("signin", None, after="/", error=None, name="", link=link)

    @app.post("/signin/{link}", include_in_schema=False)
    async def use_link(request: Request, link: str) -> Response:
        _check_origin(request)
        try:
            secret = await run_in_threadpool(sessions.use_link, link)
        except PermissionDenied as error:
            return show_page("signin", None, 403, after="/", error=error, name="", link="")
        return _begin(request, secret, "/")

    @app.post("/signout", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        await read_own_form(request)
        await run_in_threadpool(sessions.end, request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/signin", 303)
        answer.delete_cookie(COOKIE)
        return answer


def _check_origin(request: Request) -> None:
    """A sign-in has no session yet. Its form must come from this service, so that nobody is signed in unawares."""
    origin = request.headers.get("origin")
    if origin is not None and origin.split("://")[-1] != request.headers.get("host", ""):
        raise PermissionDenied("csrf", "The form was sent by another site.", "Open the sign-in page of this service.")


def _begin(request: Request, secret: str, after: str) -> Response:
    answer = RedirectResponse(after if _is_own_path(after) else "/", 303)
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(COOKIE, secret, httponly=True, secure=secure, samesite="lax", path="/", max_age=12 * 3600)
    return answer


def _add_datasets(app: FastAPI, accounts: Accounts, served: ServedDatasets) -> None:
    @app.get("/", include_in_schema=False)
    def show_home(request: Request) -> Response:
        session = require_session(request)
        datasets = []
        for name in served.list_names(session.user):
            with served.using(name, session.user) as (curator, grant):
                answers = list_answers(accounts, session.user, name)
                datasets.append(
                    {
                        "name": name,
                        "gauge": make_gauge(curator, session.user, grant),
                        "more": count_more(answers, curator, session.user, grant),
                        "answers": [
                            {"id": answer.id, "sql": answer.asked["sql"], "time": answer.time} for answer in answers[:5]
                        ],
                    }
                )
        return show_page("home", session, datasets=datasets)

    @app.get("/datasets/{name}", include_in_schema=False)
    def show_dataset(
        request: Request, name: str, done: str = "", seal: str = "", before: int | None = None
    ) -> Response:
        session = require_session(request)
        before = before if before is not None and 0 < before <= MOST_NUMBER else None
        return _show_dataset(accounts, served, session, name, done=session.read_sealed(done, seal), before=before)


def _show_dataset(
    accounts: Accounts, served: ServedDatasets, session: Session, name: str, *, done: str = "",
    error: SfumatoError | None = None, before: int | None = None,
) -> HTMLResponse:  # fmt: skip
    user = session.user
    with served.using(name, user) as (curator, grant):
        ledger = curator.ledger()
        checked = ledger.verify(full=False) if user.role == "owner" else None
        report = curator.load_report if user.role == "owner" else None
        return show_page(
            "dataset", session, choose_status(error) if error else 200, name=name, tables=list_tables(curator.dataset),
            gauge=make_gauge(curator, user, grant), entries=list_entries(curator, user, before), checked=checked,
            grants=accounts.list_grants(name) if user.role == "owner" else [],
            users=[known["name"] for known in accounts.list_users() if known["active"] and known["role"] == "analyst"],
            report=None if report is None else str(report), catalog=write_public_catalog(curator.dataset),
            limit=curator.budget.limit, done=done, error=error, most=MOST_ENTRIES,
        )  # fmt: skip


def _add_answers(app: FastAPI, accounts: Accounts) -> None:
    @app.get("/answers/{name}", include_in_schema=False)
    def show_saved(request: Request, name: str) -> Response:
        session = require_session(request)
        saved = find_answer(accounts, session.user, name)
        again = f"/datasets/{quote(saved.dataset)}/ask?sql={quote(str(saved.asked['sql']))}"
        again += f"&epsilon={quote(str(saved.asked.get('epsilon', '')))}"
        return show_page("answer", session, saved=saved, again=again, **show_answer(saved, saved.read()))

    @app.get("/answers/{name}/chart.svg", include_in_schema=False)
    def draw(request: Request, name: str, column: str | None = None, theme: str = "light") -> Response:
        session = require_session(request)
        answer = find_answer(accounts, session.user, name).read()
        first = next((name for name in answer.columns if name not in answer.keys), None)
        return Response(draw_svg(answer.plot(column or first), dark=theme == "dark"), media_type="image/svg+xml")

    @app.get("/answers/{name}/answer.{form}", include_in_schema=False)
    def download(request: Request, name: str, form: str) -> Response:
        session = require_session(request)
        saved = find_answer(accounts, session.user, name)
        written = {"csv": write_csv, "arrow": write_arrow}.get(form)
        answer = Response(_write_json(saved.wire), media_type="application/json") if written is None else written(
            saved.read())  # fmt: skip
        answer.headers["Content-Disposition"] = f'attachment; filename="answer.{form if written else "json"}"'
        return answer


def _write_json(wire: Any) -> str:  # noqa: ANN401 - JSON
    import json  # noqa: PLC0415 - for downloads only

    return json.dumps(wire, indent=2, ensure_ascii=False)


def draw_svg(chart: Any, *, dark: bool) -> str:  # noqa: ANN401 - altair's
    """A chart as SVG, in the colours of the page."""
    import vl_convert  # noqa: PLC0415 - heavy

    drawn = chart.to_dict()
    drawn["title"] = {"text": drawn["title"]["text"], "anchor": "start"}  # the page itself has the notes
    ink, line = ("#e8ebee", "#38414a") if dark else ("#1d2733", "#d5d9dd")
    text = {"labelColor": ink, "titleColor": ink, "gridColor": line, "domainColor": line, "tickColor": line}
    drawn["config"] = {"background": None, "axis": text, "title": {"color": ink, "subtitleColor": ink},
                       "view": {"stroke": line}, "rule": {"color": ink},
                       "legend": {"labelColor": ink, "titleColor": ink}}  # fmt: skip
    for layer in drawn.get("layer", []):
        if layer["mark"]["type"] == "rule":
            layer["mark"]["color"] = ink
    return str(vl_convert.vegalite_to_svg(drawn))


def _add_grants(app: FastAPI, accounts: Accounts, served: ServedDatasets) -> None:
    @app.post("/datasets/{name}/grants", include_in_schema=False)
    async def set_grant(request: Request, name: str) -> Response:
        session, form = await read_own_form(request)
        return await run_in_threadpool(change_grant, session, name, form)

    def change_grant(session: Session, name: str, form: Form) -> Response:
        require_owner(session.user)
        with served.using(name, session.user) as (curator, _):  # an unknown dataset is refused
            budget = curator.dataset.budget
        try:
            done = _change_grant(accounts, session.user, name, form, budget)
        except SfumatoError as error:
            return _show_dataset(accounts, served, session, name, error=error)
        return point_to(session, f"/datasets/{quote(name)}", done)


def _change_grant(accounts: Accounts, owner: User, name: str, form: Form, budget: Budget) -> str:
    if form.get("action") == "remove":
        accounts.remove_grant(form.get("user", ""), name, by=owner.name)
        return f"{form.get('user', '')} may no longer ask {name}."
    try:
        ends = datetime.fromisoformat(form["until"]) if form.get("until") else None
    except ValueError:
        raise InvalidParameter("until", "must be a date such as 2027-06-30", "something else") from None
    grant = accounts.set_grant(
        form.get("user", ""), name, form.get("epsilon", ""), delta=form.get("delta") or 0,
        per_query=form.get("per_query") or None, per_query_delta=form.get("per_query_delta") or None, expires=ends,
        by=owner.name, check=lambda grant: check_grant(grant, budget),
    )  # fmt: skip
    return f"{grant.user} may spend epsilon = {grant.epsilon}."
