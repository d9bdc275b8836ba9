"""Faults planted in whole questions: engines and releases that do not do what the certificate says.

A replay must find each of them with a few runs. `broken_mechanisms.py` has the faults of single mechanisms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.engines.engine import Engine
from sfumato.errors import EngineFailed
from sfumato.kernel.certify import certify
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.release import ExactAggregates
from sfumato.lab.auditing.recorded_release import ExactIntegers

Alter = Callable[[BoundedPlan, ExactIntegers], ExactIntegers]


@dataclass(frozen=True, slots=True)
class BrokenQuery:
    """A question about the table `visits` of `docs/audit.md`, and a fault of the engine that runs it."""

    name: str
    category: str
    fault: str
    sql: str
    alter: Alter

    def wrap(self, engine: Engine) -> Engine:
        """The engine with the fault."""
        return _BrokenEngine(engine, self.alter)


class _BrokenEngine:
    def __init__(self, inner: Engine, alter: Alter) -> None:
        self._inner = inner
        self._alter = alter

    def check(self, plan: BoundedPlan) -> None:
        self._inner.check(plan)

    def aggregate(self, plan: BoundedPlan) -> ExactAggregates:
        """Measure, and alter what was measured."""
        altered = self._alter(plan, ExactIntegers.read(self._inner.aggregate(plan)))
        return altered.to_exact(plan)

    def close(self) -> None:
        self._inner.close()


def _change(measured: ExactIntegers, change: Callable[[tuple[int, ...]], Sequence[int]]) -> ExactIntegers:
    return replace(measured, integers={name: tuple(change(cells)) for name, cells in measured.integers.items()})


def _largest_sensitivity(plan: BoundedPlan) -> Fraction:
    return max(certified.sensitivity.l1 for certified in certify(plan).measurements)


def _double(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """As if the sensitivity were half of what it is."""
    return _change(measured, lambda cells: [2 * cell for cell in cells])


def _unbound(plan: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """As if all rows of a person counted: eight times the bound."""
    return _change(measured, lambda cells: [cell * (8 if cell > 0 else 1) for cell in cells])


def _overflow(plan: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Sums in integers that are too small for one person: they wrap around."""
    most = int(_largest_sensitivity(plan))
    end = most * 9 // 10
    return _change(measured, lambda cells: [(cell - end) % (8 * most) + end - 8 * most for cell in cells])


def _rescale(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Bounds from the data: everybody's values are multiplied when one value is high."""
    return _change(measured, lambda cells: [cell * (1 + max(cells, default=0) // 2**17) for cell in cells])


def _drop_empty(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Only cells that somebody is in: the shape depends on the data."""
    return _change(measured, lambda cells: [cell for cell in cells if cell])


def _fail_on_much(plan: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """An error that depends on the data."""
    most = _largest_sensitivity(plan)
    if any(sum(map(abs, cells)) > most / 2 for cells in measured.integers.values()):
        raise EngineFailed
    return measured


def _share_cells(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """A person of one cell is counted in all cells: replacing or adding one moves every cell."""
    return _change(measured, lambda cells: [sum(cells)] * len(cells))


def _count_keys_twice(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Rows instead of people per undeclared key."""
    return _change(measured, lambda cells: [3 * cell for cell in cells])


def _invent_key(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Keys that nobody holds get large counts as soon as there are many keys."""
    return _change(measured, lambda cells: [cell + 1_000 * (len(cells) > 5) for cell in cells])


def _merge_bins(_: BoundedPlan, measured: ExactIntegers) -> ExactIntegers:
    """Weights of a private choice that one person moves further than certified."""
    bins = {
        name: tuple({place: 5 * weight for place, weight in cell.items()} for cell in cells)
        for name, cells in measured.bins.items()
    }
    return replace(measured, bins=bins)


_GROUPED = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
_SUM = "SELECT SUM(cost) AS s FROM visits"

BROKEN_QUERIES = (
    BrokenQuery("half-the-sensitivity", "sensitivity", "Integers are twice as large as certified.", _SUM, _double),
    BrokenQuery("rows-instead-of-people", "sensitivity", "All rows of a person count.", _GROUPED, _unbound),
    BrokenQuery("clamp-after-sum", "sensitivity", "One value can exceed the bound of a value.", _SUM, _unbound),
    BrokenQuery("integer-overflow", "sensitivity", "Sums wrap around.", _SUM, _overflow),
    BrokenQuery("one-person-in-all-cells", "sensitivity", "A person moves every cell.", _GROUPED, _share_cells),
    BrokenQuery("choice-weights", "selection", "A person's weight in the bins exceeds the bound.",
        "SELECT MEDIAN(cost) AS m FROM visits", _merge_bins),
    BrokenQuery("bounds-of-the-data", "data-dependent", "One high value changes the scale of all.", _GROUPED, _rescale),
    BrokenQuery("cells-of-the-data", "data-dependent", "Empty cells are left out.", _GROUPED, _drop_empty),
    BrokenQuery("error-of-the-data", "data-dependent", "Many rows make the engine fail.", _SUM, _fail_on_much),
    BrokenQuery("keys-by-rows", "selection", "Rows instead of people are compared with the threshold.",
        "SELECT job, COUNT(*) AS n FROM visits GROUP BY job", _count_keys_twice),
    BrokenQuery("keys-of-nobody", "selection", "The counts of all keys depend on the number of keys.",
        "SELECT job, COUNT(*) AS n FROM visits GROUP BY job", _invent_key),
)  # fmt: skip
