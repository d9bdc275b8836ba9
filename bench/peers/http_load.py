"""Many clients that send requests over HTTP at the same time, each on a connection that it keeps."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass
class Load:
    """What clients saw: the answers by status, how long each took, and how long all took."""

    seconds: float = 0.0
    processor_seconds: float = 0.0  # of the clients themselves
    statuses: dict[int, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.times)[min(int(share * len(self.times)), len(self.times) - 1)]


class Client(asyncio.Protocol):
    """One connection to a server on loopback.

    The clients share the processors with the server that they measure. So a client does little: it sends bytes, looks
    for the length in the head of an answer, and keeps the rest. What is in the answers is read after the measurement.
    """

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._received = bytearray()
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0 or self._waiting is None:
            return
        at = self._received.lower().find(b"content-length:", 0, head)
        length = int(self._received[at + 15 : self._received.find(b"\r\n", at)])
        if len(self._received) >= head + 4 + length:
            answer = (int(self._received[9:12]), bytes(self._received[head + 4 : head + 4 + length]))
            self._received.clear()
            self._waiting.set_result(answer)

    def post(self, path: str, body: bytes, headers: str = "") -> "asyncio.Future[tuple[int, bytes]]":
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(body)}\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        )
        self._waiting = asyncio.get_running_loop().create_future()
        if self._transport is not None:
            self._transport.write(head.encode() + body)
        return self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def send_all(
    port: int, tokens: Iterable[str], count: int, write: Callable[[int], tuple[str, bytes, str]], *, keep: bool = False
) -> Load:
    """Send `count` requests from one client for each token. `write` makes the path, the body and more headers."""
    load = Load()
    requests = iter([write(number) for number in range(count)])
    contents: list[bytes] = []

    async def work(token: str) -> None:
        _, client = await asyncio.get_running_loop().create_connection(lambda: Client(token), "127.0.0.1", port)
        for path, body, headers in requests:
            before = time.perf_counter()
            status, content = await client.post(path, body, headers)
            load.times.append(time.perf_counter() - before)
            load.statuses[status] = load.statuses.get(status, 0) + 1
            contents.append(content)
        client.close()

    async def run() -> None:
        await asyncio.gather(*(work(token) for token in tokens))

    before, processor = time.perf_counter(), time.process_time()
    asyncio.run(run())
    load.seconds, load.processor_seconds = time.perf_counter() - before, time.process_time() - processor
    load.answers = [json.loads(content) for content in contents] if keep else []
    return load
