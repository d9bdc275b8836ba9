"""How every engine that speaks SQL checks a plan and measures it. An engine says how it binds and how it reads."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.engines.measured_cells import HeldKeys, Rows, collect_aggregates, collect_texts, names_texts
from sfumato.engines.plan_queries import PlanQueries, Queries
from sfumato.errors import EngineFailed, KernelFault
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates


class ResultReader(Protocol):
    """Runs queries on an engine, and reads what they return."""

    def read_rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """All rows. Sums are integers."""
        ...

    def read_texts(self, queries: Queries) -> tuple[Sequence[str], npt.NDArray[np.int64]]:
        """The keys and their units, of a plan that counts the units of one text and measures nothing else."""
        ...

    def read_holders(self, query: str) -> Rows | HeldKeys:
        """The keys, and who holds each of them."""
        ...


def check_binding(queries: PlanQueries, plan: BoundedPlan, bind: Callable[[str], object]) -> None:
    """Refuse a plan that does not agree with the pinned tables, or that the engine cannot bind.

    The failure has one constant text: an engine's own would quote hidden names.
    """
    queries.check(plan)
    bound = False
    with suppress(Exception):
        for query in queries.find(plan):
            bind(query)
        bound = True
    if not bound:
        raise KernelFault("The engine cannot run this plan.")


def measure_plan(
    queries: PlanQueries, plan: BoundedPlan, open_reader: Callable[[], AbstractContextManager[ResultReader]]
) -> ExactAggregates:
    """Measure. Every failure has one constant text: what failed may depend on the data."""
    measured = None
    with suppress(Exception), open_reader() as reader:  # nothing of it is kept: a cause could quote a record
        measured = _read_results(queries, plan, reader)
    if measured is None:
        raise EngineFailed
    return measured


def _read_results(queries: PlanQueries, plan: BoundedPlan, reader: ResultReader) -> ExactAggregates:
    found = queries.find(plan)
    if names_texts(plan) and found.people is not None:
        return collect_texts(plan, *reader.read_texts(found))
    read_people = reader.read_holders if plan.holds_pairs else reader.read_rows
    people = None if found.people is None else read_people(found.people)
    added = None if found.added is None else reader.read_rows(found.added)
    return collect_aggregates(plan, people, added, {name: reader.read_rows(text) for name, text in found.apart.items()})
