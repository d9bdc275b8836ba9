"""Many clients that send requests over HTTP at the same time, each on a connection that it keeps."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Load:
    """What clients saw: the answers by status, how long each took, and how long all took."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.times)[min(int(share * len(self.times)), len(self.times) - 1)]


class Client:
    """One connection to a server on loopback."""

    def __init__(self, port: int, token: str = "") -> None:
        self._port, self._token = port, token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes, headers: str = "") -> tuple[int, bytes]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(body)}\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        reader = self._reader
        assert reader is not None  # noqa: S101 - opened with the writer
        status = int((await reader.readline()).split()[1])
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, await reader.readexactly(length)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def send_all(
    port: int, tokens: Iterable[str], count: int, write: Callable[[int], tuple[str, bytes, str]], *, keep: bool = False
) -> Load:
    """Send `count` requests from one client for each token. `write` makes the path, the body and more headers."""
    load = Load()
    numbers = iter(range(count))

    async def work(token: str) -> None:
        client = Client(port, token)
        for number in numbers:
            path, body, headers = write(number)
            before = time.perf_counter()
            status, content = await client.post(path, body, headers)
            load.times.append(time.perf_counter() - before)
            load.statuses[status] = load.statuses.get(status, 0) + 1
            if keep:
                load.answers.append(json.loads(content))
        client.close()

    async def run() -> None:
        await asyncio.gather(*(work(token) for token in tokens))

    before = time.perf_counter()
    asyncio.run(run())
    load.seconds = time.perf_counter() - before
    return load
