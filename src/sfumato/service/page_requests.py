"""What all pages share: templates, sessions and forms."""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs, quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.service.accounts import require_owner
from sfumato.service.callers import NotSignedIn, check_csrf, find_session
from sfumato.service.problem_documents import choose_status
from sfumato.service.request_limits import TooLarge, read_body
from sfumato.service.sessions import Session

PAGES = Path(__file__).with_name("pages")
_CODE, _EXPONENT = re.compile(r"`([^`<>]+)`"), re.compile(r"\b[0-9][0-9.]*e-[0-9]+\b")
MOST_FORM_BYTES, MOST_FIELDS = 1 << 18, 2000
Form = dict[str, str]


class SignInFirst(NotSignedIn):
    """A page was asked for without a session."""


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined)
    environment.filters["sentence"] = write_sentence
    return environment.get_template(f"site_{name}.html")


def write_sentence(text: str) -> Markup:
    """A sentence of ours for a page: escaped, its names of code as code, and its amounts (1e-7) never on two lines."""
    escaped = _CODE.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(_EXPONENT.sub(r'<span class="amount">\g<0></span>', escaped))  # noqa: S704 - it is escaped


def show_page(page: str, session: Session | None, status: int = 200, **values: object) -> HTMLResponse:
    """A page. Every value is escaped."""
    return HTMLResponse(_template(page).render(session=session, **values), status)


def show_error(request: Request, error: SfumatoError) -> HTMLResponse:
    """A refusal as a page."""
    return show_page("error", find_session(request), choose_status(error), error=error)


def require_session(request: Request) -> Session:
    """The session of a page's reader, who is asked to sign in if there is none."""
    session = find_session(request)
    if session is None:
        raise SignInFirst
    return session


def require_owner_session(request: Request) -> Session:
    """The session of an owner."""
    session = require_session(request)
    require_owner(session.user)
    return session


def point_to(session: Session, path: str, done: str) -> RedirectResponse:
    """Go on to a page that shows a notice. The notice is sealed, so that nobody else can write one."""
    return RedirectResponse(f"{path}?done={quote(done)}&seal={session.seal(done)}", 303)


async def read_form(request: Request) -> Form:
    """The fields of a form. Only the forms of these pages are read, in their own encoding."""
    try:
        body = await read_body(request.stream(), MOST_FORM_BYTES)
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, strict_parsing=bool(body))
    except (TooLarge, ValueError):
        raise InvalidParameter("form", "must be a form of these pages", "something else") from None
    return {name: values[-1] for name, values in fields.items()}


async def read_own_form(request: Request, *, owner: bool = False) -> tuple[Session, Form]:
    """The session, and the fields of a form that one of our own pages sent."""
    session = await run_in_threadpool(require_owner_session if owner else require_session, request)
    form = await read_form(request)
    check_csrf(session, form.get("csrf", ""))
    return session, form
