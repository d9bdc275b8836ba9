"""Requests that arrive together are written in one transaction: a disk commits far fewer times than requests arrive."""

import asyncio

from starlette.concurrency import run_in_threadpool

from sfumato.local.collect.collector import Collector
from sfumato.local.collect.received_counts import ReceivedCounts
from sfumato.local.collect.report_files import Batch

MOST_TOGETHER = 512


class ReportQueue:
    """The batches of reports that wait for the next transaction of one collector."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._waiting: list[tuple[Batch, asyncio.Future[ReceivedCounts]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, batch: Batch) -> ReceivedCounts:
        """Count a batch. It is on the disk when this returns."""
        future: asyncio.Future[ReceivedCounts] = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
            try:
                counts = await run_in_threadpool(self.collector.add_all, [batch for batch, _ in taken])
            except Exception as error:  # each request answers with the refusal
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), count in zip(taken, counts, strict=True):
                if not future.done():  # the sender may have gone
                    future.set_result(count)
