"""A document from an address: so many bytes of it at most, in so much time at most, and over https all the way."""

import threading
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sfumato.errors import SfumatoError

TIMEOUT = 20.0  # seconds, for all of it


class _NotSafe(Exception):
    """A step that is not over https."""


class _Redirects(HTTPRedirectHandler):
    """Follows where an answer leads, as urllib does; every step is looked at, not only the last."""

    def __init__(self, secure: bool) -> None:
        self._allowed = ("https://",) if secure else ("https://", "http://")

    def check(self, address: str) -> None:
        if not address.lower().startswith(self._allowed):
            raise _NotSafe

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        self.check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(address: str, most_bytes: int, *, secure: bool) -> bytes:
    """The first bytes of what is at an http or https address. `secure`: refuse every step that is not over https.

    The whole takes TIMEOUT at most, whatever the other side does: a socket's own limit would begin again with each
    byte that arrives. What has not come by then is left to a thread that nobody waits for.
    """
    found: list[bytes | Exception] = []

    def work() -> None:
        try:
            found.append(_answer(address, most_bytes, secure))
        except Exception as error:  # told to whoever waits
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    match found:
        case [bytes() as data]:
            return data
        case [_NotSafe()]:
            raise SfumatoError(
                "survey-address",
                "Over http anyone on the way can put another survey in its place.",
                "Use https, or pass the public key of whoever asks.",
            )
        case [Exception() as error] if not isinstance(error, OSError | HTTPException | ValueError):
            raise error
    raise SfumatoError("survey-unreachable", "The survey could not be fetched.", "Check the address and the network.")


def _answer(address: str, most_bytes: int, secure: bool) -> bytes:
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
