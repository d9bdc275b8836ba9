"""The engines that `make audit` covers. One entry here makes an engine join.

DuckDB is replayed and sampled. The others are replayed: an entry says how they load the tables of a pair, for which
accountings, and on how many pairs.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from postgres_server import run_server
from spark_session import LEAST_JAVA, find_java, start_spark

from sfumato.engines.postgres.postgres_backend import PostgresBackend
from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.lab.auditing.throwaway_desk import Load

ACCOUNTING = ("basic", "zcdp", "gdp")


@dataclass(frozen=True)
class AuditedEngine:
    """`offer` starts what the engine needs, and gives the function that loads tables. The lab has the first two.

    `every`: one of so many pairs is replayed in each accounting, which engines know nothing of.
    """

    every: dict[str, int]
    offer: Callable[[], AbstractContextManager[Load]] | None = None
    rotates: bool = False  # each question under one accounting only, another one for the next question


@contextmanager
def offer_postgres() -> Iterator[Load]:
    """A server of this process. Each dataset has a schema of its own."""
    with run_server() as server:
        yield lambda tables: PostgresBackend(server.url, f"pinned_{uuid.uuid4().hex}", 60).of_tables(tables)


@contextmanager
def offer_spark() -> Iterator[Load]:
    """The session of this process. Columns of texts are read on Spark as they are from files."""
    session = start_spark()

    def load(tables):
        frames = {name: (table, session.createDataFrame(rows)) for name, (table, rows) in tables.items()}
        return SparkEngine.of_tables(session, frames)

    yield load


ONCE = 10_000  # the first pair of a declaration, and the first of a question
ENGINES = {
    "duckdb": AuditedEngine({"basic": 1, "zcdp": 6, "gdp": 8}),
    "reference": AuditedEngine({"basic": 4, "zcdp": 8, "gdp": 8}),  # it is also measured beside DuckDB on every pair
    "postgres": AuditedEngine({"basic": 8, "zcdp": ONCE, "gdp": ONCE}, offer_postgres),
    "spark": AuditedEngine(dict.fromkeys(ACCOUNTING, ONCE), offer_spark, rotates=True),
}
MISSING = (
    "" if (find_java() or 0) >= LEAST_JAVA else f"Java {LEAST_JAVA} is missing, so the engine on Spark is NOT AUDITED."
)
if MISSING:
    del ENGINES["spark"]
