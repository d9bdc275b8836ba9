"""What surrounds every request: limits, the headers of an answer, counters, and times in fixed steps.

It is plain ASGI, without a task and a queue for each request. It reads a body before the application does, so that a
request that is too large, too deep or too late costs little.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.service.jobs import count_to_step
from sfumato.service.metrics import Metrics
from sfumato.service.problem_documents import TYPE, write_problem
from sfumato.service.request_limits import MOST_ADDRESSES, RateLimit
from sfumato.service.service_settings import ServiceSettings

MOST_BYTES = 1 << 20  # of a request that is no upload
MOST_DEPTH = 20  # of arrays and objects in each other
READ_SECONDS = 60.0  # for the body of a request
UPLOADS = re.compile(r"/register/[0-9a-f]+/source")  # a folder of files is one of them
REPORTS = "/surveys/collect/"  # a collector has its own limits
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with no-referrer, a browser hides where our own forms come from
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FAILED = write_problem(500, "internal", "The service failed.", "The log of the service says where.")
_PADDED = re.compile(r"/v1/datasets/[^/]+/(queries|workloads)|/datasets/[^/]+/ask")
_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY.items()]


class Refused(Exception):
    """A request over a limit."""

    def __init__(self, status: int, code: str, detail: str, hint: str = "") -> None:
        super().__init__(code)
        self.status, self.problem = status, write_problem(status, code, detail, hint)


class ServiceShell:
    """Surrounds an application."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._rate = RateLimit(settings.requests_per_second)
        self._users: dict[int, str] = {}  # by the hashes of the tokens and sessions that were found valid

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, path = time.monotonic(), scope["path"]
        status, headers = 0, dict(scope["headers"])

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(header for header in _HEADERS if header[0] not in given)]
                await self._pad(path, began)
            await send(message)

        try:
            body = await self._admit(scope, headers, receive)
            await self._app(scope, receive if body is None else _replay(body, receive), sending)
        except Refused as refused:
            await _answer(refused.status, refused.problem, sending)
        except Exception as error:  # a server would write its text to its log, and that may hold a value from the data
            logging.getLogger("sfumato").error("A request failed: %s", describe_failure(error))
            if not status:
                await _answer(500, FAILED, sending)
        finally:
            self._remember_caller(scope, headers)
            self._metrics.count(path, scope["method"], status or 500, time.monotonic() - began)

    def _name_caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
        """Whose requests are counted together: of a user, or of an address.

        Nobody has more requests for making up tokens: those count for the address until one is found valid. Nor for
        having several, or for sending the same one in another spelling.
        """
        user = self._users.get(_hash_credentials(headers))
        return ("address", str((scope.get("client") or ("", 0))[0])) if user is None else ("user", user)

    def _remember_caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Remember whose token or session it was, if it was valid: `callers` notes it with the request."""
        user = scope.get("state", {}).get("signed_in")
        if user is None:  # nobody looked
            return
        if len(self._users) >= MOST_ADDRESSES:
            self._users.clear()
        if user:
            self._users[_hash_credentials(headers)] = user
        else:
            self._users.pop(_hash_credentials(headers), None)

    async def _admit(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> bytes | None:
        """The body of a request within the limits; None if the application reads it itself."""
        path = scope["path"]
        free = path.startswith(("/static/", REPORTS))
        if not free and not self._rate.allows(self._name_caller(scope, headers)):
            raise Refused(429, "too-many-requests", "There are too many requests.", "Send it again in a second.")
        if scope["method"] not in ("POST", "PUT", "PATCH", "DELETE") or path.startswith(REPORTS):
            return None
        declared, most = headers.get(b"content-length", b"0"), MOST_BYTES
        if UPLOADS.fullmatch(path):
            most = self._settings.most_upload_bytes
        if b"transfer-encoding" in headers or not declared.isdigit():
            raise Refused(411, "no-length", "The request's length is not declared.", "Send the length of the request.")
        if int(declared) > most:
            raise Refused(413, "too-large", f"The request has more than {most >> 20} MiB.", "Shorten it.")
        if most != MOST_BYTES:
            return None
        try:
            async with asyncio.timeout(READ_SECONDS):
                body = await _read(receive, int(declared))
        except TimeoutError:
            raise Refused(408, "too-slow", "The request did not arrive in time.", "Send it again.") from None
        if measure_depth(body) > MOST_DEPTH:
            raise Refused(400, "too-deep", f"The request has more than {MOST_DEPTH} levels.", "Make it flatter.")
        return body

    async def _pad(self, path: str, began: float) -> None:
        """Wait until the next step. How long an answer took then says little about the data."""
        if self._settings.pad_seconds and _PADDED.match(path):
            await asyncio.sleep(count_to_step(time.monotonic() - began, self._settings.pad_seconds))


def measure_depth(body: bytes) -> int:
    """How deep arrays and objects of a JSON text are in each other. Other texts count their brackets too."""
    if body.count(b"[") + body.count(b"{") <= MOST_DEPTH:
        return 0
    depth = deepest = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _hash_credentials(headers: Mapping[bytes, bytes]) -> int:
    """A number for the token or the session of a request; 0 if it has none. Python chooses the hash for a process."""
    known = headers.get(b"authorization") or headers.get(b"cookie")
    return hash(known) if known else 0


async def _read(receive: Receive, length: int) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > length or message["type"] == "http.disconnect":
            raise Refused(400, "another-length", "The request has another length than it declares.")
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _answer(status: int, problem: Mapping[str, object], send: Send) -> None:
    text = json.dumps(problem).encode()
    headers = [(b"content-type", TYPE.encode()), (b"content-length", str(len(text)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def describe_failure(error: BaseException) -> str:
    """The kind of an error, and the lines of code that it came through; never its text."""
    places, at = [], error.__traceback__
    while at is not None:
        places.append(f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}")
        at = at.tb_next
    return f"{type(error).__name__} at {' > '.join(places[-6:])}"
