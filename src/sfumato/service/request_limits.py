"""Limits of a request: its size, also after decompression, and how often one address may ask."""

import time
import zlib
from collections.abc import AsyncIterable, Hashable

MOST_ADDRESSES = 100_000
BURST_SECONDS = 4.0


class TooLarge(Exception):
    """The body of a request is over a limit."""


class NotGzip(Exception):
    """A compressed body is not gzip."""


async def read_body(parts: AsyncIterable[bytes], most_bytes: int) -> bytes:
    """Read a body, and stop at the limit."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > most_bytes:
            raise TooLarge
    return bytes(body)


def decompress(body: bytes, most_bytes: int) -> bytes:
    """Decompress gzip, and stop at the limit: a small body can stand for gigabytes."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        found = stream.decompress(body, most_bytes + 1)
    except zlib.error:
        raise NotGzip from None
    if len(found) > most_bytes or stream.unconsumed_tail:
        raise TooLarge
    if not stream.eof or stream.unused_data:
        raise NotGzip
    return found


class RateLimit:
    """A token bucket for each caller: a user, or an address. In memory, for some seconds."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._known: dict[Hashable, tuple[float, float]] = {}

    def allows(self, caller: Hashable) -> bool:
        if not self._rate:
            return True
        now, most = time.monotonic(), self._rate * BURST_SECONDS
        if len(self._known) >= MOST_ADDRESSES:
            self._known = {key: value for key, value in self._known.items() if now - value[1] < BURST_SECONDS}
        tokens, before = self._known.get(caller, (most, now))
        tokens = min(tokens + (now - before) * self._rate, most)
        self._known[caller] = (max(tokens - 1, 0.0), now)
        return tokens >= 1
