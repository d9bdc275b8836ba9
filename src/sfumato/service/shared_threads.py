"""A few threads for work that only computes: more would wait for each other, and make every request slower."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS, MOST_OF_ONE = 4, 2
Result = TypeVar("Result")


class SharedThreads:
    """Runs work of many users on a few threads of this worker. One user never has all of them."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="previewing")
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._waiting: dict[str, int] = {}  # work of a user that runs or waits

    async def run(self, user: str, work: Callable[[], Result]) -> Result:
        """Do the work on a thread. It is called on the event loop only, so the counts need no lock."""
        turns = self._turns.setdefault(user, asyncio.Semaphore(MOST_OF_ONE))
        self._waiting[user] = self._waiting.get(user, 0) + 1
        try:
            async with turns:
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting[user] -= 1
            if not self._waiting[user]:
                del self._waiting[user], self._turns[user]

    def close(self) -> None:
        """End, after the work that has begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)
