"""Surveys: an owner makes one, sees its signed document, what was collected, and the estimates."""

from textwrap import wrap
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.errors import InvalidParameter, QueryError, SfumatoError
from sfumato.kernel.exact import write_plain
from sfumato.local.collect.collector import Collector
from sfumato.local.collect.published_results import publish_results
from sfumato.local.randomisers.category_choice import choose
from sfumato.local.randomisers.mean_choice import choose_mean
from sfumato.local.randomisers.questions import compare_questions
from sfumato.local.survey.domains import YesNo
from sfumato.local.survey.manifest import Manifest
from sfumato.local.survey.survey_words import format_epsilon
from sfumato.number_arguments import read_whole_number
from sfumato.service.accounts import Accounts, require_owner
from sfumato.service.callers import Caller
from sfumato.service.mounted_surveys import PLACE, MountedSurveys
from sfumato.service.page_requests import Form, point_to, read_own_form, require_owner_session, show_page
from sfumato.service.page_views import bound_belief_of
from sfumato.service.problem_documents import choose_status
from sfumato.service.sessions import Session
from sfumato.service.survey_pages import write_sentence

MOST_LINES = 200
MOST_WIDE = 80  # letters in a line of the table of mechanisms
KINDS = {"labels": "one of several answers", "number": "a number", "questions": "yes or no to several questions"}
EMPTY = {
    "question": "", "kind": "labels", "labels": "", "lower": "", "upper": "", "questions": "", "epsilon": "1",
    "minimum": "1000", "days": "90", "people": "10000",
}  # fmt: skip


def add_surveys(app: FastAPI, accounts: Accounts, surveys: MountedSurveys) -> None:
    """Add the pages, the API and the collector."""
    app.mount(PLACE, surveys)
    _add_survey_api(app, surveys)

    @app.get("/surveys", include_in_schema=False)
    def show_surveys(request: Request) -> Response:
        session = require_owner_session(request)
        listed = [
            {"manifest": survey, "counts": surveys.find(survey.id).count_received().to_dict()}
            for survey in surveys.list()
        ]
        return show_page("surveys", session, surveys=listed)

    @app.get("/surveys/new", include_in_schema=False)
    def show_new(request: Request) -> Response:
        return _show_new(require_owner_session(request), EMPTY)

    @app.post("/surveys/new", include_in_schema=False)
    async def make(request: Request) -> Response:
        session, form = await read_own_form(request, owner=True)
        return await run_in_threadpool(_make, accounts, surveys, session, form)

    @app.get("/surveys/{survey}", include_in_schema=False)
    def show_survey(request: Request, survey: str, done: str = "", seal: str = "") -> Response:
        session = require_owner_session(request)
        done = session.read_sealed(done, seal)
        found = surveys.find(survey)
        address = f"{str(request.base_url).rstrip('/')}{PLACE}/s/{survey}"
        return show_page("survey", session, done=done, address=address, place=PLACE, **describe_survey(found))

    @app.post("/surveys/{survey}/publish", include_in_schema=False)
    async def publish(request: Request, survey: str) -> Response:
        session, _ = await read_own_form(request, owner=True)
        done = await run_in_threadpool(_publish, surveys.find(survey))
        accounts.log(session.user.name, "publish survey", "", survey)
        return point_to(session, f"/surveys/{survey}", done)


def _add_survey_api(app: FastAPI, surveys: MountedSurveys) -> None:
    @app.get("/v1/surveys")
    def list_surveys(user: Caller) -> list[dict[str, Any]]:
        """The surveys, with the addresses of their documents and pages (owner)."""
        require_owner(user)
        return [_point_to(manifest) for manifest in surveys.list()]

    @app.get("/v1/surveys/{survey}")
    def show_survey(survey: str, user: Caller) -> dict[str, Any]:
        """A survey: its addresses, and how many reports arrived (owner). Reports go to `reports`, without a token."""
        require_owner(user)
        found = surveys.find(survey)
        return {**_point_to(found.manifest), "received": found.count_received().to_dict()}

    @app.get("/v1/surveys/{survey}/results")
    def show_results(survey: str, user: Caller) -> dict[str, Any]:
        """The estimates of the published batches, with intervals (owner)."""
        require_owner(user)
        return dict(publish_results(surveys.find(survey), publish=False).to_dict())


def _point_to(manifest: Manifest) -> dict[str, Any]:
    page = f"{PLACE}/s/{manifest.id}"
    return {"id": manifest.id, "question": manifest.question, "epsilon": write_plain(manifest.price), "page": page,
            "manifest": f"{page}/survey.json", "reports": f"{PLACE}/reports"}  # fmt: skip


def _make(accounts: Accounts, surveys: MountedSurveys, session: Session, form: Form) -> Response:
    form = {**EMPTY, **{name: form[name].strip() for name in EMPTY if name in form}, "action": form.get("action", "")}
    try:
        table = compare_mechanisms(form)
        if form["action"] != "make":
            return _show_new(session, form, table=table)
        made = surveys.make(form["question"], **_read_survey(form))
    except SfumatoError as error:
        return _show_new(session, form, error=error)
    accounts.log(session.user.name, "make survey", "", made.id)
    return point_to(session, f"/surveys/{made.id}", "The survey is open.")


def _show_new(session: Session, form: Form, *, table: str = "", error: SfumatoError | None = None) -> HTMLResponse:
    status = choose_status(error) if error else 200
    meaning = bound_belief_of(form.get("epsilon", ""))
    return show_page("survey_new", session, status, form=form, kinds=KINDS, table=table, error=error, meaning=meaning)


def compare_mechanisms(form: Form) -> str:
    """The table of mechanisms for a survey: bits, variance and margin of each, and the one that is chosen."""
    lines = _write_mechanisms(form).splitlines()
    return "\n".join(part for line in lines for part in (wrap(line, MOST_WIDE) if len(line) > MOST_WIDE else [line]))


def _write_mechanisms(form: Form) -> str:
    people = _read_number(form["people"], "people")
    match form["kind"]:
        case "labels":
            return str(choose(len(_split(form["labels"])), form["epsilon"], people=people))
        case "number":
            return str(choose_mean(form["lower"], form["upper"], form["epsilon"], people=people))
        case "questions":
            return str(compare_questions(len(_split(form["questions"])), form["epsilon"], people=people))
    raise InvalidParameter("kind", f"must be one of {', '.join(KINDS)}", "another")


def _read_survey(form: Form) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "epsilon": form["epsilon"], "days": _read_number(form["days"], "days"),
        "minimum_batch": _read_number(form["minimum"], "the smallest number of reports"),
    }  # fmt: skip
    match form["kind"]:
        case "labels":
            return {**asked, "labels": _split(form["labels"])}
        case "number":
            return {**asked, "bounds": (form["lower"], form["upper"])}
        case _:
            return {**asked, "questions": _split(form["questions"])}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\r", "").split("\n") if part.strip()]


def _read_number(text: str, name: str) -> int:
    try:
        return read_whole_number(int(text.replace(",", "")), name, 1)
    except ValueError:
        raise InvalidParameter(name, "must be a whole number of at least 1", "something else") from None


def describe_survey(collector: Collector) -> dict[str, Any]:
    """A survey for its page: the document's facts, the counts, and the estimates of each period in sentences."""
    manifest, published = collector.manifest, collector.published_periods()
    facts = [
        ("What one answer costs", f"ε = {format_epsilon(manifest.price)}"),
        ("Runs", f"{manifest.created:%Y-%m-%d} to {manifest.expires:%Y-%m-%d}"),
        ("Results from", f"{manifest.minimum_batch:,} report{'' if manifest.minimum_batch == 1 else 's'} on"),
        ("Hash of the document", manifest.digest),
        ("Signed with the key", manifest.public_key),
    ]
    periods = [
        {"number": number, "received": count, "published": published.get(number, 0),
         "sentences": _write_sentences(collector, number)}
        for number, count in sorted(collector.periods().items(), reverse=True)
    ]  # fmt: skip
    return {"manifest": manifest, "facts": facts, "counts": collector.count_received().to_dict(), "periods": periods}


def _write_sentences(collector: Collector, period: int) -> list[str]:
    try:
        found = publish_results(collector, period, publish=False)
    except QueryError:  # no whole batch is published yet
        return []
    several = isinstance(collector.manifest.domain, YesNo)
    return [write_sentence(line, found, questions=several) for line in found.lines[:MOST_LINES]]


def _publish(collector: Collector) -> str:
    count = 0
    for period in collector.periods():
        try:
            collector.select_tally(period)
            count += 1
        except QueryError:
            continue  # this period has no whole batch yet
    return "Published." if count else "There is no whole batch of reports yet."
