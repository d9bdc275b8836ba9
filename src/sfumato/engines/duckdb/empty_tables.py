"""Empty tables of the declared columns. Queries are bound here first, before a charge and without data.

The tables are in a catalog of their own, in the same DuckDB: to start another DuckDB takes longer than most questions.
A connection that uses this catalog finds no table of any other by its name.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import count

import duckdb

from sfumato.catalog.dataset import Table
from sfumato.ingest.connections import SEALED
from sfumato.ingest.hidden_names import EMPTY
from sfumato.ingest.pinned_rows import list_columns
from sfumato.ingest.sql_quoting import quote

MOST_REMEMBERED = 500
NUMBERS = count()
LITERALS = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")|\b\d+\b""")  # texts and whole numbers, but not names


class EmptyTables:
    """Binds queries to empty tables, which are made from declarations alone when they are first needed."""

    def __init__(self, tables: Mapping[str, Table], beside: duckdb.DuckDBPyConnection) -> None:
        """`beside`: the connection in whose DuckDB the tables are made, if it is still open."""
        self._tables = tables
        self._beside = beside
        self._catalog = f"{EMPTY}{next(NUMBERS)}"  # engines of one file may be in one DuckDB
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._making = threading.Lock()
        self._bound: OrderedDict[int, None] = OrderedDict()

    def bind(self, query: str) -> None:
        """Raise DuckDB's error for a query that it does not take. One that differs in its literals only is known."""
        shape = hash(LITERALS.sub(r"\1", query))  # an analyst's own numbers are quoted too
        if shape in self._bound:
            return
        with self._empty().cursor() as cursor:
            cursor.execute(f"USE {self._catalog}")
            cursor.sql(query)
        self._bound[shape] = None
        if len(self._bound) > MOST_REMEMBERED:
            self._bound.popitem(last=False)

    def _empty(self) -> duckdb.DuckDBPyConnection:
        with self._making:
            if self._connection is None:
                try:
                    made = self._beside.cursor()
                except duckdb.ConnectionException:  # it was closed
                    made = duckdb.connect(":memory:", config=SEALED)
                made.execute(f"ATTACH ':memory:' AS {self._catalog} (READ_WRITE)")
                for table in self._tables.values():
                    columns = ", ".join(f"{quote(name)} {kind}" for name, kind in list_columns(table).items())
                    made.execute(f"CREATE TABLE {self._catalog}.main.{quote(table.name)} ({columns})")
                self._connection = made
            return self._connection

    def close(self) -> None:
        """Close the connection."""
        with self._making:
            if self._connection is not None:
                self._connection.execute(f"DETACH {self._catalog}")
                self._connection.close()
                self._connection = None
