"""Errors as problem documents (RFC 9457): what is wrong, where, and what to do."""

from typing import Any

from sfumato.answers.answer import Cost
from sfumato.errors import (
    BudgetExceeded,
    CatalogError,
    InvalidParameter,
    LedgerError,
    PermissionDenied,
    QueryError,
    SfumatoError,
)
from sfumato.kernel.losses import PrivacyLoss

TYPE = "application/problem+json"
TITLES = {
    400: "The request is invalid",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed here",
    408: "The request did not arrive in time",
    409: "The budget is not enough, or an earlier attempt is in the way",
    411: "The request's length is missing",
    413: "The request is too large",
    422: "The question cannot be answered in this form",
    429: "Too many requests",
    500: "The service failed",
    503: "The ledger cannot be reached",
}


STATUSES: tuple[tuple[type[SfumatoError], int], ...] = (
    (BudgetExceeded, 409),
    (PermissionDenied, 403),
    (QueryError, 422),
    (InvalidParameter, 400),
    (CatalogError, 400),
    (LedgerError, 503),
)


CODES = {
    "no-grant": 404,
    "no-job": 404,
    "no-survey": 404,
    "request-running": 409,
    "charge-closed": 409,  # for good: sending it again does not help, so it must not look like a short failure
    "cancelled": 409,
    "too-many-questions": 429,
}


def choose_status(error: SfumatoError) -> int:
    """The HTTP status of an error."""
    if error.code in CODES:
        return CODES[error.code]
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def describe_problem(error: SfumatoError) -> dict[str, Any]:
    """The problem document of an error. Its text never contains a value from the data."""
    status = choose_status(error)
    return write_problem(status, error.code, error.message, error.hint, requested=_show(error, "requested"),
                         remaining=_show(error, "remaining"))  # fmt: skip


def write_problem(status: int, code: str, detail: str, hint: str = "", **more: object) -> dict[str, Any]:
    """A problem document."""
    known = {name: value for name, value in more.items() if value is not None}
    title = TITLES.get(status, "The request failed")
    return {"type": f"urn:sfumato:{code}", "title": title, "status": status, "code": code, "detail": detail,
            "hint": hint, **known}  # fmt: skip


def _show(error: SfumatoError, name: str) -> dict[str, str] | str | None:
    """An amount as answers write it; something else as a text."""
    found = getattr(error, name, None)
    if isinstance(found, PrivacyLoss):
        return Cost.from_loss(found).as_text()
    return None if found is None else str(found)
