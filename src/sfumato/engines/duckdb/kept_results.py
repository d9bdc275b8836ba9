"""Results of queries over a snapshot, kept in memory. A snapshot never changes, so the same text has the same result.

Many questions need the same sums: those that differ in their loss, their ORDER BY, HAVING or LIMIT, and AVG beside SUM.
What is kept is exact. Like the rows themselves it stays in the engine, and an answer adds noise to it each time.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

MOST_RESULTS = 64
MOST_ROWS = 10_000  # of one result: larger ones would take much memory

Rows = list[tuple[Any, ...]]


class KeptResults:
    """The results of the last queries, by their whole texts."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Rows] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, query: str, run: Callable[[str], Rows]) -> Rows:
        """The rows of a query: kept ones, or those that running it gives."""
        with self._lock:
            if query in self._kept:
                self._kept.move_to_end(query)
                return self._kept[query]
        rows = run(query)
        if len(rows) <= MOST_ROWS:
            with self._lock:
                self._kept[query] = rows
                if len(self._kept) > MOST_RESULTS:
                    self._kept.popitem(last=False)
        return rows

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._kept.clear()
