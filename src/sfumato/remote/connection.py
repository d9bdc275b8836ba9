"""Requests to a service: the token, JSON, retries that never pay twice, and problem documents as errors."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from sfumato.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerError,
    PermissionDenied,
    QueryError,
    SfumatoError,
)
from sfumato.kernel.entropy import SYSTEM

TRIES = 4
FIRST_PAUSE, MOST_PAUSE = 0.2, 5.0  # seconds; each later one is twice as long
RUNNING = "request-running"  # an earlier attempt of this request runs, and will have the answer
ENDED = ("done", "failed", "cancelled")  # stages of a job
LOOPBACK = ("localhost", "127.0.0.1", "::1")
KINDS: dict[int, type[SfumatoError]] = {
    401: PermissionDenied,
    403: PermissionDenied,
    404: PermissionDenied,
    422: QueryError,
    503: LedgerError,
}
OF_409: dict[str, type[SfumatoError]] = {"charge-closed": LedgerError, "cancelled": PermissionDenied}


class RemoteRefusal(SfumatoError):
    """The service refused or failed. `status` is the HTTP status, or 0 if there was no answer."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Connection:
    """A service and the caller's token. The token is never shown."""

    url: str
    token: str = field(repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidParameter("url", "must be the address of a service", "another", "For example https://host.")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            hint = "Use https://. Without it, everybody on the way can read the token and the answers."
            raise InvalidParameter(
                "url", "must begin with https:// unless the service is on this machine", "http", hint
            )

    def get(self, *path: str) -> Any:  # noqa: ANN401 - JSON
        """GET a resource."""
        return self._send("GET", path, None, {})

    def post(self, *path: str, body: dict[str, Any], once: bool = False) -> Any:  # noqa: ANN401 - JSON
        """POST a request. With `once`, retries carry one Idempotency-Key, so that none is paid for twice."""
        return self._send("POST", path, body, {"Idempotency-Key": SYSTEM.take(16).tobytes().hex()} if once else {})

    def ask(self, *path: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """POST a question, and wait for its answer: a long one is a job, which is looked up until it has ended."""
        found = self.post(*path, body=body, once=True)
        if "stage" not in found:
            return found
        pause = FIRST_PAUSE
        while found["stage"] not in ENDED:
            time.sleep(pause)
            pause = min(2 * pause, MOST_PAUSE)
            found = self.get("jobs", found["id"])
        outcome = found["outcome"]
        if found["stage"] == "done":
            return outcome["answers"][0]
        if found["stage"] == "cancelled":
            raise PermissionDenied("cancelled", "The question was cancelled.", outcome["note"])
        raise _build_error(outcome["status"], outcome)

    def _send(self, method: str, path: tuple[str, ...], body: dict[str, Any] | None, more: dict[str, str]) -> Any:  # noqa: ANN401
        address = "/".join([self.url.rstrip("/"), "v1", *(quote(part, safe=":") for part in path)])
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **more}
        pause, attempt = FIRST_PAUSE, 0
        while True:
            attempt += 1
            request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - http(s), checked
            try:
                with _OPENER.open(request, timeout=self.timeout) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                refused = _read_problem(error)
                passes = error.code in (429, 502, 503, 504) and attempt < TRIES
                if not passes and refused.code != RUNNING:  # an attempt that runs ends at some time
                    raise refused from None
            except (urllib.error.URLError, OSError) as error:
                if attempt >= TRIES:
                    hint = "Check the address and that the service runs. A question that was paid for is free again."
                    raise RemoteRefusal(0, "unreachable", "The service does not answer.", hint) from error
            time.sleep(pause)
            pause = min(2 * pause, MOST_PAUSE)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _read_problem(error: urllib.error.HTTPError) -> SfumatoError:
    """The error that a problem document stands for, of the class that a local Curator would raise."""
    try:
        return _build_error(error.code, json.load(error))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return RemoteRefusal(error.code, "not-a-service", f"The answer has status {error.code} and no explanation.")


def _build_error(status: int, problem: Mapping[str, Any]) -> SfumatoError:
    code, detail, hint = str(problem["code"]), str(problem["detail"]), str(problem.get("hint", ""))
    if code == "budget-exceeded":
        return _build_budget_error(code, detail, hint)
    kind = OF_409.get(code) if status == 409 else KINDS.get(status)
    return RemoteRefusal(status, code, detail, hint) if kind is None else kind(code, detail, hint)


def _build_budget_error(code: str, detail: str, hint: str) -> SfumatoError:
    refused = BudgetExceeded.__new__(BudgetExceeded)
    SfumatoError.__init__(refused, code, detail, hint)
    return refused
