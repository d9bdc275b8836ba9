"""The engines that `make audit` covers. One entry here makes an engine join.

DuckDB is replayed and sampled. The others are replayed: an entry says how they load the tables of a pair, for which
accountings, and on how many pairs.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sfumato.lab.auditing.throwaway_desk import Load

ACCOUNTING = ("basic", "zcdp", "gdp")


@dataclass(frozen=True)
class AuditedEngine:
    """`offer` starts what the engine needs, and gives the function that loads tables. The lab has the first two.

    `every`: one of so many pairs is replayed in each accounting, which engines know nothing of.
    """

    every: dict[str, int]
    offer: Callable[[], AbstractContextManager[Load]] | None = None


ENGINES = {
    "duckdb": AuditedEngine({"basic": 1, "zcdp": 3, "gdp": 4}),
    "reference": AuditedEngine({"basic": 2, "zcdp": 3, "gdp": 4}),  # it is also measured beside DuckDB on every pair
}
