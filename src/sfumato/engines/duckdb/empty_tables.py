"""Empty tables of the declared columns. Queries are bound here first, before a charge and without data."""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.connections import SEALED
from sfumato.ingest.pinned_rows import list_columns
from sfumato.ingest.sql_quoting import quote

MOST_REMEMBERED = 500
LITERALS = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")|\b\d+\b""")  # texts and whole numbers, but not names


class EmptyTables:
    """Binds queries to empty tables, which are made from declarations alone when they are first needed."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._making = threading.Lock()
        self._bound: OrderedDict[int, None] = OrderedDict()

    def bind(self, query: str) -> None:
        """Raise DuckDB's error for a query that it does not take. One that differs in its literals only is known."""
        shape = hash(LITERALS.sub(r"\1", query))  # an analyst's own numbers are quoted too
        if shape in self._bound:
            return
        self._empty().cursor().sql(query)
        self._bound[shape] = None
        if len(self._bound) > MOST_REMEMBERED:
            self._bound.popitem(last=False)

    def _empty(self) -> duckdb.DuckDBPyConnection:
        with self._making:
            if self._connection is None:
                made = duckdb.connect(":memory:", config=SEALED)
                for table in self._tables.values():
                    columns = ", ".join(f"{quote(name)} {kind}" for name, kind in list_columns(table).items())
                    made.execute(f"CREATE TABLE {quote(table.name)} ({columns})")
                self._connection = made
            return self._connection

    def close(self) -> None:
        """Close the connection."""
        with self._making:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
