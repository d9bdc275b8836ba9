"""The engines that must equal the reference engine, bit for bit. One entry here makes an engine join the whole suite.

An entry is a context manager over pytest's `request` (for servers and sessions that tests share). It gives two
functions: `load` pins tables and returns an Engine, and `evaluate` computes row-level functions.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from spark_session import start_spark, to_spark
from sqlglot import exp

from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.engines.postgres.postgres_backend import PostgresBackend
from sfumato.engines.postgres.postgres_sessions import Sessions
from sfumato.engines.spark.spark_columns import write_spark_schema
from sfumato.engines.spark.spark_engine import SparkEngine
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.postgres_dialect import make_dialect
from sfumato.engines.sql.scalars import lower_expression
from sfumato.engines.sql.spark_dialect import SPARK
from sfumato.kernel.expressions import Expression

Tables = Mapping[str, tuple[Table, Any]]
TYPES = {
    "x": pa.float64(), "y": pa.float64(), "t": pa.string(), "u": pa.string(), "d": pa.date32(),
    "m": pa.timestamp("us"), "b": pa.bool_(),
}  # fmt: skip

SPARK_TYPES = {
    "x": "DOUBLE", "y": "DOUBLE", "t": "VARCHAR", "u": "VARCHAR", "d": "DATE", "m": "TIMESTAMP", "b": "BOOLEAN",
}  # fmt: skip


@dataclass(frozen=True)
class EngineUnderTest:
    """`evaluate(rows, functions)`: the value of each function in each row; rows map the names of TYPES to values.

    `every`: fast tests ask one question in so many; slow tests ask all of them.
    """

    load: Callable[[Tables], Engine]
    evaluate: Callable[[Sequence[Mapping[str, Any]], Sequence[Expression]], list[tuple[Any, ...]]]
    every: int = 1


@contextmanager
def offer_duckdb(request) -> Iterator[EngineUnderTest]:
    def evaluate(rows, functions):
        data = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        with duckdb.connect() as connection:
            connection.register("data", data)
            written = [DUCKDB.write(lower_expression(function)) for function in functions]
            return connection.execute(f"SELECT {', '.join(written)} FROM data").fetchall()

    yield EngineUnderTest(DuckDBEngine.of_tables, evaluate)


@contextmanager
def offer_postgres(request) -> Iterator[EngineUnderTest]:
    backend = PostgresBackend(request.getfixturevalue("postgres_server").url, f"pinned_{uuid.uuid4().hex}", 60)
    session = Sessions(backend.url, 60).open()
    kinds = 'place int, x float8, y float8, t text COLLATE "C", u text COLLATE "C", d date, m timestamp, b boolean'
    session.execute(f"CREATE TEMP TABLE data ({kinds})")

    def evaluate(rows, functions):
        session.execute("TRUNCATE data")
        with session.cursor() as cursor, cursor.copy("COPY data FROM STDIN") as copy:
            for place, row in enumerate(rows):
                copy.write_row((place, *(row[name] for name in TYPES)))
        tree = exp.select(*map(lower_expression, functions)).from_("data").order_by("place")
        return session.execute(make_dialect("pg_temp", {}).write(tree)).fetchall()

    with session:
        yield EngineUnderTest(backend.of_tables, evaluate)


@contextmanager
def offer_spark(request) -> Iterator[EngineUnderTest]:
    session = start_spark()

    def load(tables):
        frames = {name: (table, session.createDataFrame(*to_spark(rows))) for name, (table, rows) in tables.items()}
        return SparkEngine.of_tables(session, frames)

    def evaluate(rows, functions):
        data = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        session.createDataFrame(data, write_spark_schema(SPARK_TYPES)).createOrReplaceTempView("data")
        written = [f"{SPARK.write(lower_expression(function))} AS c{place}" for place, function in enumerate(functions)]
        found = session.sql(f"SELECT {', '.join(written)} FROM data").toArrow()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    yield EngineUnderTest(load, evaluate, every=6)


ENGINES = {"duckdb": offer_duckdb, "postgres": offer_postgres, "spark": offer_spark}
