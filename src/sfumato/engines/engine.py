"""The interface of an engine."""

from typing import Protocol

from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates


class Engine(Protocol):
    """One job: run a plan and return integers, one for each measurement and cell."""

    def check(self, plan: BoundedPlan) -> None:
        """Refuse a plan that cannot be run, by the declared columns alone: no data is read. It precedes the charge."""
        ...

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure. It reads data, and so comes after the charge; no data can make it raise."""
        ...

    def close(self) -> None:
        """Release connections and memory. A closed engine answers nothing."""
        ...
