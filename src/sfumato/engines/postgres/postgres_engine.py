"""The PostgreSQL engine: it runs plans in the owner's database, over the pinned tables of a side schema."""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from sfumato.catalog.dataset import Table
from sfumato.engines.measured_plan import measure_plan
from sfumato.engines.plan_queries import PlanQueries, Queries
from sfumato.engines.postgres.postgres_sessions import Cursor, Sessions
from sfumato.engines.sql.postgres_dialect import make_dialect
from sfumato.errors import KernelFault
from sfumato.ingest.hidden_names import HIDDEN, UNIT
from sfumato.ingest.load_report import LoadReport
from sfumato.ingest.postgres_server import build_server_error
from sfumato.ingest.sql_quoting import quote
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates


class PostgresEngine:
    """Pinned tables in one schema of a database."""

    def __init__(  # noqa: PLR0917 - two callers
        self,
        sessions: Sessions,
        schema: str,
        declared: Mapping[str, Table],
        pinned: Mapping[str, Table],
        stored: Mapping[str, str],
        versions: Mapping[str, str],
    ) -> None:
        """`pinned`: the tables as they were pinned. `stored`: how they are named in the schema."""
        self._sessions = sessions
        self._queries = PlanQueries(pinned, declared, make_dialect(schema, stored))
        self._places = {name: f"{quote(schema)}.{quote(place)}" for name, place in stored.items()}
        self.tables = dict(pinned)
        self.versions = dict(versions)
        self.load_report: LoadReport | None = None  # only where this process read the sources
        sessions.give_back(sessions.take())  # a server that cannot be used is noticed now

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that PostgreSQL cannot bind, by the definitions of the tables: no data is read.

        PREPARE parses a query and finds its names and types. It does not plan, so it reads no statistics either. A
        server that cannot be reached is noticed here too, before the charge.
        """
        self._queries.check(plan)
        queries = self._queries.find(plan)
        if not self._bind(queries):
            raise KernelFault("The engine cannot run this plan.")

    def _bind(self, queries: Queries) -> bool:
        for _ in range(2):  # a server may have closed an idle connection
            connection = self._sessions.take()
            try:
                with self._sessions.read(connection) as cursor:
                    for query in queries:
                        cursor.execute(f"PREPARE sfumato_bound AS {query}")
                        cursor.execute("DEALLOCATE sfumato_bound")
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self._sessions.discard(connection)
                continue
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                self._sessions.give_back(connection)
                break
            except psycopg.Error:
                self._sessions.give_back(connection)
                return False
            self._sessions.give_back(connection)
            return True
        else:
            raise build_server_error("The PostgreSQL server closes every connection.", "Look at the server's log.")
        hint = "Pin them again: sfumato prepare --all."
        raise build_server_error("The pinned tables are not in the database any more.", hint)

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. Every failure has one constant text: what failed may depend on the data."""
        return measure_plan(self._queries, plan, self._open_reader)

    @contextmanager
    def _open_reader(self) -> Iterator["_CursorReader"]:
        connection = self._sessions.take()
        try:
            with self._sessions.read(connection) as cursor:
                yield _CursorReader(cursor)
        finally:
            if connection.broken:
                self._sessions.discard(connection)
            else:
                self._sessions.give_back(connection)

    def content_digest(self, table: str, key: bytes) -> str:
        """A keyed digest of a pinned table, as duckdb/content_version.py has it: the order of rows does not matter."""
        place = self._places[table]
        secret = hmac.new(key, b"rows", hashlib.sha256).hexdigest()
        connection = self._sessions.take()
        try:
            with self._sessions.read(connection) as cursor:
                cursor.execute(f"SELECT * FROM {place} LIMIT 0")
                described = cursor.description or []
                columns = sorted(
                    column.name for column in described if column.name == UNIT or not column.name.startswith(HIDDEN)
                )
                texts = [f"CAST({_double(quote(name))} AS text)" for name in columns]
                parts = ["%s", *(f"COALESCE(octet_length({text}) || ':' || {text}, '-')" for text in texts)]
                hashed = f"encode(sha256(convert_to({' || '.join(parts)}, 'UTF8')), 'hex')"
                pieces = [
                    f"sum(CAST(CAST('x' || substr(h, {1 + 15 * at}, 15) AS bit(60)) AS bigint))" for at in range(4)
                ]
                query = f"SELECT count(*), {', '.join(pieces)} FROM (SELECT {hashed} AS h FROM {_double(place)}) r"
                found = cursor.execute(query, [secret]).fetchall()
        finally:
            self._sessions.give_back(connection)
        return hmac.new(key, repr((columns, found)).encode(), hashlib.sha256).hexdigest()

    def close(self) -> None:
        """Close the sessions. The tables stay in the database."""
        self._sessions.close()


@dataclass(frozen=True, slots=True)
class _CursorReader:
    """Reads results in one transaction."""

    cursor: Cursor

    def read_rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.cursor.execute(query).fetchall()

    def read_texts(self, queries: Queries) -> tuple[list[str], npt.NDArray[np.int64]]:
        rows = self.read_rows(str(queries.people))
        return [str(row[0]) for row in rows], np.array([row[1] for row in rows], np.int64)

    def read_holders(self, query: str) -> list[tuple[Any, ...]]:
        return self.read_rows(query)


def _double(name: str) -> str:
    """A name beside a %s of psycopg, which reads a single % of its own."""
    return name.replace("%", "%%")
