"""The queries that measure a plan, as one engine writes them. Every engine that speaks SQL runs these."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sfumato.catalog.dataset import Table
from sfumato.engines.measured_cells import Added, names_texts
from sfumato.engines.plan_agrees import check_nullability, check_source
from sfumato.engines.sql.dialect import Dialect
from sfumato.engines.sql.lowering import lower, lower_bins, lower_different, lower_held_keys, lower_people
from sfumato.ingest.pinned_rows import find_grids
from sfumato.kernel.plan import BoundedPlan, Choice, Different, Grid, Keys, People, WeightedKeys
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.weighted_keys import find_weight

MOST_READY = 8  # plans whose queries are kept between their check and their run


@dataclass(frozen=True, slots=True)
class TextRows:
    """A query of texts and the units that have them, and how `people` counts these units.

    A unit is counted in at most `most` texts. If these are n, it weighs weigh(n) in each; without `weigh`, 1.
    """

    query: str
    most: int
    weigh: Callable[[int], int] | None


@dataclass(frozen=True, slots=True)
class Queries:
    """The texts that measure a plan."""

    people: str | None
    added: str | None
    apart: Mapping[str, str]
    texts: TextRows | None = None  # if `people` counts the units of one text, and units are people

    def __iter__(self) -> Iterator[str]:
        return (query for query in (self.people, self.added, *self.apart.values()) if query is not None)


class PlanQueries:
    """Writes the queries of plans over pinned tables, and keeps those of the last plans."""

    def __init__(self, pinned: Mapping[str, Table], declared: Mapping[str, Table], dialect: Dialect) -> None:
        """`pinned`: the tables as they were pinned, public ones with what was read from them."""
        self._tables = pinned
        self._stored: dict[str, Mapping[str, Grid]] = {name: find_grids(table) for name, table in declared.items()}
        self._dialect = dialect
        self._ready: dict[int, tuple[BoundedPlan, Queries | None]] = {}
        self._lock = threading.Lock()

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that does not agree with the pinned tables."""
        check_source(plan.source, self._tables)
        check_nullability(plan, self._tables)

    def find(self, plan: BoundedPlan) -> Queries:
        """The queries of a plan: those of its check, if it is the same object (equal plans may differ in a literal)."""
        with self._lock:
            _, ready = self._ready.pop(id(plan), (plan, None))
        ready = ready or self._lower(plan)
        self.keep(plan, ready)
        return ready

    def keep(self, plan: BoundedPlan, queries: Queries) -> None:
        """Keep the queries of a plan for its run."""
        with self._lock:
            self._ready[id(plan)] = (plan, queries)  # holding the plan keeps its id from being used again
            while len(self._ready) > MOST_READY:
                del self._ready[next(iter(self._ready))]

    def _lower(self, plan: BoundedPlan) -> Queries:
        stored = self._stored[plan.source.table] if isinstance(plan.source, Scan) else {}
        write = self._dialect.write
        self.check(plan)
        counted = any(
            isinstance(measurement.quantity, People | Keys | WeightedKeys) for measurement in plan.measurements
        )
        adds = any(isinstance(measurement.quantity, Added) for measurement in plan.measurements)
        apart: dict[str, str] = {}
        for measurement in plan.measurements:
            if isinstance(measurement.quantity, Choice):
                apart[measurement.name] = write(lower_bins(plan, measurement.name, measurement.quantity))
            elif isinstance(measurement.quantity, Different):
                apart[measurement.name] = write(lower_different(plan, measurement.quantity))
        return Queries(
            # with undeclared keys, one query gives the sums and the people of each key, but not who holds it
            write(lower_people(plan)) if counted and (plan.cells or plan.holds_pairs or not adds) else None,
            write(lower(plan, stored)) if adds else None,
            apart,
            self._find_text_rows(plan),
        )

    def _find_text_rows(self, plan: BoundedPlan) -> TextRows | None:
        """The rows of one text, where the number of a unit's texts is bounded. `people` reads the same rows."""
        if not names_texts(plan) or plan.unit.per_row:
            return None
        weigh = find_weight if isinstance(plan.measurements[0].quantity, WeightedKeys) else None
        return TextRows(self._dialect.write(lower_held_keys(plan)), plan.max_groups_per_unit, weigh)
