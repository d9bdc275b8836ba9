"""The engines that must equal the reference engine, bit for bit. One entry here makes an engine join the whole suite.

An entry is a context manager over pytest's `request` (for servers and sessions that tests share). It gives two
functions: `load` pins tables and returns an Engine, and `evaluate` computes row-level functions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from sfumato.catalog.dataset import Table
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.engines.sql.dialect import DUCKDB
from sfumato.engines.sql.scalars import lower_expression
from sfumato.kernel.expressions import Expression

Tables = Mapping[str, tuple[Table, Any]]
TYPES = {
    "x": pa.float64(), "y": pa.float64(), "t": pa.string(), "u": pa.string(), "d": pa.date32(),
    "m": pa.timestamp("us"), "b": pa.bool_(),
}  # fmt: skip


@dataclass(frozen=True)
class EngineUnderTest:
    """`evaluate(rows, functions)`: the value of each function in each row; rows map the names of TYPES to values."""

    load: Callable[[Tables], Engine]
    evaluate: Callable[[Sequence[Mapping[str, Any]], Sequence[Expression]], list[tuple[Any, ...]]]


@contextmanager
def offer_duckdb(request) -> Iterator[EngineUnderTest]:
    def evaluate(rows, functions):
        data = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        with duckdb.connect() as connection:
            connection.register("data", data)
            written = [DUCKDB.write(lower_expression(function)) for function in functions]
            return connection.execute(f"SELECT {', '.join(written)} FROM data").fetchall()

    yield EngineUnderTest(DuckDBEngine.of_tables, evaluate)


ENGINES = {"duckdb": offer_duckdb}
