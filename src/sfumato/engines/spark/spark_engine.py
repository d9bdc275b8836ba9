"""The distributed engine: it runs plans as Spark SQL over prepared tables, and fetches nothing but the aggregates."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from sfumato.catalog.dataset import Table
from sfumato.engines.measured_plan import check_binding, measure_plan
from sfumato.engines.plan_queries import PlanQueries, Queries
from sfumato.engines.spark.bound_queries import BoundQueries
from sfumato.engines.spark.own_session import Session, check_session, open_own_session
from sfumato.engines.spark.preparing import PreparedTable, Workplace, prepare_table
from sfumato.engines.spark.row_digests import compute_content_digest
from sfumato.engines.spark.spark_columns import list_pinned, quote_name
from sfumato.engines.spark.stored_tables import make_random_name
from sfumato.engines.sql.dialect import Dialect
from sfumato.engines.sql.spark_dialect import REPLACEMENTS
from sfumato.ingest.load_report import AS_USUAL, Loading, LoadReport, combine_reports
from sfumato.ingest.snapshot import order_tables
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates


class SparkEngine:
    """Prepared tables on a cluster, which a session of our own reads."""

    def __init__(self, own: Session, prepared: Mapping[str, PreparedTable], versions: Mapping[str, str]) -> None:
        self._own = own
        self._prepared = dict(prepared)
        self.load_report: LoadReport | None = None  # only where this process read the sources
        self.versions = dict(versions)
        self.tables = {name: prepared_table.table for name, prepared_table in prepared.items()}
        self._views = views = {name: f"sfumato_{make_random_name()}" for name in prepared}
        for name, prepared_table in self._prepared.items():
            columns = map(quote_name, list_pinned(prepared_table.table, prepared_table.unit_kind))
            prepared_table.stored.open(own).selectExpr(*columns).createOrReplaceTempView(views[name])
        self._queries = PlanQueries(self.tables, self.tables, _name_views(views))
        self._bound = BoundQueries(
            own, {views[name]: prepared_table for name, prepared_table in self._prepared.items()}
        )

    @classmethod
    def of_data(
        cls, session: Session, table: Table, data: object, loading: Loading = AS_USUAL, path: str | None = None
    ) -> "SparkEngine":
        """Prepare one table: from a DataFrame, the name of a table, or a path of Parquet files."""
        return cls.of_tables(session, {table.name: (table, data)}, loading, path)

    @classmethod
    def of_tables(
        cls,
        session: Session,
        tables: Mapping[str, tuple[Table, object]],
        loading: Loading = AS_USUAL,
        path: str | None = None,
        folder: Path | None = None,
    ) -> "SparkEngine":
        """Prepare tables, in the cluster's memory or below `path`; `load_report` says what that did to their values."""
        own = open_own_session(check_session(session))
        place = Workplace(session, own, path, folder)
        prepared: dict[str, PreparedTable] = {}
        reports = []
        try:
            for table in order_tables({name: table for name, (table, _) in tables.items()}):
                prepared[table.name], report = prepare_table(place, table, tables[table.name][1], prepared)
                reports.append(report)
            combined = combine_reports(reports, loading)
            versions = {name: SYSTEM.take(8).tobytes().hex() for name in prepared}
            engine = cls(own, {name: prepared[name] for name in tables}, versions)
        except BaseException:
            for prepared_table in prepared.values():
                prepared_table.stored.drop(own)
            raise
        engine.load_report = combined
        return engine

    @property
    def prepared(self) -> Mapping[str, PreparedTable]:
        """The prepared tables, by name."""
        return self._prepared

    def content_digest(self, table: str, key: bytes) -> str:
        """A keyed digest of a prepared table: the version of data that has no other. It is that of a snapshot."""
        one = self._prepared[table]
        return compute_content_digest(self._own.table(self._views[table]), list_pinned(one.table, one.unit_kind), key)

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that Spark cannot bind, by the declared columns alone: no data is read.

        A plan that does not agree with the prepared tables is refused too.
        """
        check_binding(self._queries, plan, self._bound.bind)

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. Every failure has one constant text: what failed may depend on the data."""
        return measure_plan(self._queries, plan, lambda: nullcontext(_FrameReader(self._own)))

    def close(self) -> None:
        """Free what is cached. Files below a path stay."""
        with suppress(Exception):  # the owner may have stopped Spark
            self._bound.close()
            for view in self._views.values():
                self._own.catalog.dropTempView(view)
            for prepared_table in self._prepared.values():
                prepared_table.stored.drop(self._own)


def _name_views(views: Mapping[str, str]) -> Dialect:
    """Spark's dialect, in which tables are read by the names of their views: other engines may share the session."""

    def rename(node: exp.Expression) -> exp.Expression:
        view = views.get(node.name)
        return node if view is None else exp.Table(this=exp.to_identifier(view), alias=node.args.get("alias"))

    return Dialect(Spark(), {**REPLACEMENTS, exp.Table: rename})


@dataclass(frozen=True, slots=True)
class _FrameReader:
    """Reads results through a session."""

    own: Session

    def read_rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a result. Sums are decimals without digits after the point: they become integers."""
        columns = [_read_column(column.to_pylist()) for column in self._run(query)]
        return list(zip(*columns, strict=True))

    def read_texts(self, queries: Queries) -> tuple[list[str], npt.NDArray[np.int64]]:
        texts, units = self._run(str(queries.people))
        return texts.to_pylist(), units.to_numpy()

    def read_holders(self, query: str) -> list[tuple[Any, ...]]:
        return self.read_rows(query)

    def _run(self, query: str) -> list[Any]:
        return list(self.own.sql(query).toArrow().columns)


def _read_column(values: Iterable[Any]) -> list[Any]:
    return [int(value) if isinstance(value, Decimal) else value for value in values]
