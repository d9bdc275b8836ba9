"""Who sends a request: by an API token, or by the session of a page."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from sfumato.errors import PermissionDenied
from sfumato.service.accounts import User
from sfumato.service.sessions import Session

COOKIE = "sfumato_session"
CSRF_HEADER = "x-csrf-token"
READING = ("GET", "HEAD")
bearer = HTTPBearer(auto_error=False, description="An API token: `sfumato user token NAME`.")


class NotSignedIn(Exception):
    """The request has no valid token and no session."""


def find_session(request: Request) -> Session | None:
    """The session of the request's cookie."""
    secret = request.cookies.get(COOKIE)
    found: Session | None = None if secret is None else request.app.state.sessions.find(secret)
    _note(request, None if found is None else found.user)
    return found


async def find_caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> User:
    """Whose token or session came with the request. A session that changes something must send its CSRF token."""
    if credentials is not None:  # most are remembered, so a thread would take longer than the look
        return find_by_token(request, credentials.credentials)
    session = await run_in_threadpool(find_session, request)
    if session is None:
        raise NotSignedIn
    if request.method not in READING:
        check_csrf(session, request.headers.get(CSRF_HEADER, ""))
    return session.user


def find_any_caller(request: Request) -> User:
    """Whose token or session came with a request that reads something."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return find_by_token(request, token)
    session = find_session(request)
    if session is None:
        raise NotSignedIn
    return session.user


def find_by_token(request: Request, token: str) -> User:
    """Whose token this is."""
    user: User | None = request.app.state.tokens.find_user(token)
    _note(request, user)
    if user is None:
        raise NotSignedIn
    return user


def _note(request: Request, user: User | None) -> None:
    """Note whose token or session came with the request; nobody's, if it is not valid. Then it counts for them."""
    request.state.signed_in = "" if user is None else user.name


def check_csrf(session: Session, sent: str) -> None:
    """Refuse a request that was not made by one of our own pages."""
    if not session.allows(sent):
        hint = "Load the page again, and send the form once more."
        raise PermissionDenied("csrf", "The request did not come from a page of this service.", hint)


Caller = Annotated[User, Depends(find_caller)]
