"""Fetch a document from an address, with a limit on its size and on the time, and over https at every step."""

import threading
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sfumato.errors import SfumatoError

TIMEOUT = 20.0  # seconds, for all of it


class _InsecureStepError(Exception):
    """A redirect that is not over https."""


class _Redirects(HTTPRedirectHandler):
    """Follow redirects as urllib does, and check every step, not only the last."""

    def __init__(self, secure: bool) -> None:
        self._allowed = ("https://",) if secure else ("https://", "http://")

    def check(self, address: str) -> None:
        if not address.lower().startswith(self._allowed):
            raise _InsecureStepError

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        self.check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(address: str, most_bytes: int, *, secure: bool) -> bytes:
    """Fetch the first bytes of the document at an address. `secure`: refuse every step that is not over https.

    The fetch takes at most TIMEOUT. A socket's own limit starts again with every byte that arrives, so the fetch runs
    in a thread, which is abandoned when the time is over.
    """
    found: list[bytes | Exception] = []

    def work() -> None:
        try:
            found.append(_read_address(address, most_bytes, secure))
        except Exception as error:  # raised again by the caller's thread
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    match found:
        case [bytes() as data]:
            return data
        case [_InsecureStepError()]:
            raise SfumatoError(
                "survey-address",
                "Over http, anyone on the network can replace the survey.",
                "Use https, or pass the public key of the team that asks.",
            )
        case [Exception() as error] if not isinstance(error, OSError | HTTPException | ValueError):
            raise error
    raise SfumatoError("survey-unreachable", "The survey could not be fetched.", "Check the address and the network.")


def _read_address(address: str, most_bytes: int, secure: bool) -> bytes:
    redirects = _Redirects(secure)
    redirects.check(address)
    request = Request(address, headers={"Accept": "application/json"})  # noqa: S310 - checked on the line above
    try:
        with build_opener(redirects).open(request, timeout=TIMEOUT) as answer:
            data: bytes = answer.read(most_bytes)
            return data
    except HTTPError as error:
        error.close()
        raise
