"""Register: an owner declares a dataset in five steps. Nothing is public until the last one."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.service.accounts import Accounts
from sfumato.service.callers import check_csrf
from sfumato.service.column_forms import KINDS, suggest_kind
from sfumato.service.dataset_drafts import ROW, STEPS, Draft, Drafts
from sfumato.service.expected_errors import expect_errors
from sfumato.service.page_requests import Form, point_to, read_own_form, require_owner_session, show_page
from sfumato.service.problem_documents import choose_status
from sfumato.service.served_datasets import ServedDatasets
from sfumato.service.sessions import Session


def add_register(app: FastAPI, accounts: Accounts, served: ServedDatasets, drafts: Drafts) -> None:
    """Add the pages."""

    @app.get("/register", include_in_schema=False)
    def show_start(request: Request) -> Response:
        session = require_owner_session(request)
        return show_page("register", session, drafts=drafts.list_drafts(), error=None, dataset="", table="")

    @app.post("/register", include_in_schema=False)
    async def begin(request: Request) -> Response:
        session, form = await read_own_form(request, owner=True)
        try:
            draft = await run_in_threadpool(_begin, drafts, served, form)
        except SfumatoError as error:
            given = {name: form.get(name, "") for name in ("dataset", "table")}
            return show_page(
                "register", session, choose_status(error), drafts=drafts.list_drafts(), error=error, **given
            )
        return RedirectResponse(f"/register/{draft.id}", 303)

    @app.get("/register/{name}", include_in_schema=False)
    def show_step(request: Request, name: str, step: str = "") -> Response:
        session = require_owner_session(request)
        return _show_step(drafts, session, drafts.find(name), step)

    @app.post("/register/{name}/source", include_in_schema=False)
    async def take_source(request: Request, name: str) -> Response:
        session = await run_in_threadpool(require_owner_session, request)  # before anything of a file is read
        draft = await run_in_threadpool(drafts.find, name)
        try:
            async with request.form(max_files=1, max_fields=10) as form:
                check_csrf(session, str(form.get("csrf", "")))
                file = form.get("file")
                if isinstance(file, UploadFile) and file.filename:
                    draft = await run_in_threadpool(drafts.use_upload, draft, file.filename, file.file)
                else:
                    draft = await run_in_threadpool(drafts.use_path, draft, str(form.get("path", "")))
        except SfumatoError as error:
            return _show_step(drafts, session, draft, "source", error)
        except MultiPartException:
            raise InvalidParameter("form", "must be a form of these pages", "something else") from None
        accounts.log(session.user.name, "give source", draft.dataset, "uploaded" if "/" not in draft.source else "path")
        return RedirectResponse(f"/register/{draft.id}?step=people", 303)

    @app.post("/register/{name}/budget:preview", include_in_schema=False)
    async def preview_budget(request: Request, name: str) -> Response:
        session, form = await read_own_form(request, owner=True)
        return await run_in_threadpool(_preview_budget, drafts, session, name, form)

    @app.post("/register/{name}/{step}", include_in_schema=False)
    async def take_step(request: Request, name: str, step: str) -> Response:
        session, form = await read_own_form(request, owner=True)
        return await run_in_threadpool(_take_step, accounts, served, drafts, session, name, step, form)


def _begin(drafts: Drafts, served: ServedDatasets, form: Form) -> Draft:
    if form.get("dataset", "").strip() in served.list_all():
        raise InvalidParameter("name", "must be new", "the name of a dataset that is served", "Choose another name.")
    return drafts.begin(form.get("dataset", ""), form.get("table", ""))


def _take_step(  # noqa: PLR0917 - one caller
    accounts: Accounts, served: ServedDatasets, drafts: Drafts, session: Session, name: str, step: str, form: Form
) -> Response:
    draft = drafts.find(name)
    try:
        match step:
            case "people":
                draft, after = _take_people(drafts, draft, form), "columns"
            case "columns":
                draft = _take_columns(drafts, draft, form)
                after = "columns" if form.get("action") == "check" else "budget"
            case "budget":
                draft, after = drafts.save(_read_budget(draft, form)), "review"
                draft.make_dataset()
            case "review":
                return _finish(served, drafts, session, draft)
            case "discard":
                drafts.discard(draft)
                return RedirectResponse("/register", 303)
            case _:
                raise InvalidParameter("step", f"must be one of {', '.join(STEPS)}", "another")
    except SfumatoError as error:
        return _show_step(drafts, session, drafts.find(name), step, error, form)
    return RedirectResponse(f"/register/{draft.id}?step={after}", 303)


def _take_people(drafts: Drafts, draft: Draft, form: Form) -> Draft:
    unit = form.get("unit", "")
    if unit != ROW and unit not in draft.found:
        raise InvalidParameter("unit", "must be a column of the file, or each row", "another")
    rows, groups = form.get("max_rows", "1"), form.get("max_groups", "1")
    neighbours = form.get("neighbours", "add-remove")
    made = replace(draft, unit=unit, neighbours=neighbours, max_rows=rows, max_groups=groups, report="")
    replace(made, columns={}).make_dataset()
    return drafts.save(made)


def _take_columns(drafts: Drafts, draft: Draft, form: Form) -> Draft:
    parts = ("kind", "lower", "upper", "values", "not_null")
    given = {
        column: {part: form[f"{part}-{place}"] for part in parts if form.get(f"{part}-{place}")}
        for place, column in enumerate(draft.found)
    }
    draft = drafts.save(replace(draft, columns=given, report=""))
    if not any(given_value.get("kind") not in (None, "", "id") for given_value in given.values()):
        raise InvalidParameter("columns", "must have at least one that can be asked about", "none")
    draft.make_dataset()
    return drafts.check_load(draft)


def _read_budget(draft: Draft, form: Form) -> Draft:
    epsilon, delta, accounting = (form.get(name, "").strip() for name in ("epsilon", "delta", "accounting"))
    return replace(draft, epsilon=epsilon, delta=delta, accounting=accounting)


def _finish(served: ServedDatasets, drafts: Drafts, session: Session, draft: Draft) -> Response:
    if draft.count_steps() < len(STEPS) - 1:
        raise InvalidParameter("dataset", "must be declared in full", "a part", "Finish the steps before this one.")
    folder = drafts.finish(draft)
    served.register(draft.dataset, folder, by=session.user.name)
    drafts.forget(draft)
    return point_to(session, f"/datasets/{quote(draft.dataset)}", "Registered. Grant analysts access below.")


def _show_step(  # noqa: PLR0917 - one place for all steps
    drafts: Drafts,
    session: Session,
    draft: Draft,
    step: str,
    error: SfumatoError | None = None,
    form: Form | None = None,
) -> HTMLResponse:
    done = draft.count_steps()
    shown = step if step in STEPS and STEPS.index(step) <= done else STEPS[min(done, len(STEPS) - 1)]
    values: dict[str, Any] = {"draft": draft, "step": shown, "steps": STEPS, "done": done, "error": error}
    if shown == "source":
        values["sources"] = drafts.list_sources()
    if shown == "columns":
        values["kinds"] = KINDS
        values["columns"] = [_describe_column(draft, name, kind) for name, kind in draft.found.items()]
    if shown == "budget":
        now = draft if form is None else _read_budget(draft, form)
        values |= {"draft": now, **expect_errors(now, "")}
    if shown == "review":
        values["catalog"] = draft.write_toml()
    return show_page("register_step", session, choose_status(error) if error else 200, **values)


def _describe_column(draft: Draft, name: str, kind: str) -> dict[str, str]:
    first = "" if draft.columns else suggest_kind(kind)
    return {"name": name, "kind": first, **dict.fromkeys(("lower", "upper", "values", "not_null"), ""),
            **draft.columns.get(name, {})}  # fmt: skip


def _preview_budget(drafts: Drafts, session: Session, name: str, form: Form) -> HTMLResponse:
    draft = _read_budget(drafts.find(name), form)
    return show_page("register_errors", session, **expect_errors(draft, form.get("people", "")))
