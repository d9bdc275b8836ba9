"""Empty views of the declared columns. Queries are analysed here first, before a charge and without data."""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping

from sfumato.engines.spark.own_session import Session
from sfumato.engines.spark.preparing import PreparedTable
from sfumato.engines.spark.spark_columns import list_pinned, write_spark_schema
from sfumato.engines.spark.stored_tables import make_random_name

MOST_REMEMBERED = 500
LITERALS = re.compile(r"""[xX]?'(?:[^'\\]|''|\\.)*'|(`(?:[^`]|``)*`)|\b\d+\b""")  # texts and numbers, but not names


class BoundQueries:
    """Analyses queries over empty views, which are made from declarations alone when they are first needed."""

    def __init__(self, own: Session, views: Mapping[str, PreparedTable]) -> None:
        self._own = own
        self._views = views
        self._names = {view: f"sfumato_{make_random_name()}" for view in views}
        self._making = threading.Lock()
        self._made = False
        self._bound: OrderedDict[int, None] = OrderedDict()

    def bind(self, query: str) -> None:
        """Raise Spark's error for a query that it does not take. One that differs in its literals only is known."""
        shape = hash(LITERALS.sub(r"\1", query))
        if shape in self._bound:
            return
        self._make()
        for view, empty in self._names.items():
            query = re.sub(rf"\b{view}\b", empty, query)
        _ = self._own.sql(query).schema  # Connect analyses only when the schema is wanted
        self._bound[shape] = None
        if len(self._bound) > MOST_REMEMBERED:
            self._bound.popitem(last=False)

    def _make(self) -> None:
        with self._making:
            if self._made:
                return
            for view, bound in self._views.items():
                schema = write_spark_schema(list_pinned(bound.table, bound.unit_kind))
                self._own.createDataFrame([], schema).createOrReplaceTempView(self._names[view])
            self._made = True

    def close(self) -> None:
        """Drop the views."""
        for empty in self._names.values() if self._made else ():
            self._own.catalog.dropTempView(empty)
