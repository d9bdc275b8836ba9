"""Measure again with another engine: what an engine measured must be what the plan says, integer for integer."""

from collections import Counter
from collections.abc import Iterator

from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.engines.engine import Engine
from sfumato.engines.reference.reference_engine import ReferenceEngine
from sfumato.ingest.hidden_names import UNIT
from sfumato.kernel.plan import BoundedPlan, Keys, WeightedKeys
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.lab.auditing.plain_reading import PinnedTables
from sfumato.lab.auditing.plain_unique_keys import Row
from sfumato.lab.auditing.recorded_release import ExactIntegers

MOST_PAIRED = 400_000  # rows that the plain engine looks at; a join looks at all pairs


def make_second_engine(engine: str, pinned: PinnedTables, loaded: DuckDBEngine) -> Engine:
    """The plain engine over the pinned rows, or DuckDB where the plain engine is audited."""
    if engine != "duckdb":
        return loaded
    return ReferenceEngine({name: [_use_text(row) for row in rows] for name, rows in pinned.items()})


def _use_text(row: Row) -> Row:
    return {**row, UNIT: str(row[UNIT])} if UNIT in row else row


def compare_measurements(
    plan: BoundedPlan, measured: ExactIntegers, second: Engine, pinned: PinnedTables
) -> Iterator[str]:
    """The integers that differ from those of the second engine, by the name of their measurement."""
    if count_paired(plan.source, pinned) > MOST_PAIRED:
        return
    again = ExactIntegers.read(second.aggregate(plan))
    keys = next(
        (
            measured_keys.name
            for measured_keys in plan.measurements
            if isinstance(measured_keys.quantity, Keys | WeightedKeys)
        ),
        None,
    )
    for measurement in plan.measurements:
        width = measurement.quantity.width
        one, two = (_index(side, measurement.name, width, keys) for side in (measured, again))
        if one != two:
            yield f"{measurement.name}: the engine did not measure what the plan says: another engine disagrees."


def count_paired(source: Source, pinned: PinnedTables) -> int:
    """How many rows, or pairs of rows, the plain engine looks at."""
    match source:
        case Scan(table=name) | PublicScan(table=name):
            return len(pinned[name])
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            return count_paired(inner, pinned)
        case Join(left, right, multiplicity=None):  # only rows of one unit are looked at together
            return count_paired(left, pinned) * max(1, _count_most(right, pinned))
        case Join(left, right):
            return max(1, count_paired(left, pinned)) * max(1, count_paired(right, pinned))
        case Union(parts):
            return sum(count_paired(part, pinned) for part in parts)


def _count_most(source: Source, pinned: PinnedTables) -> int:
    """At least the most rows of one unit."""
    match source:
        case Scan(table=name):
            return max(Counter(row.get(UNIT) for row in pinned[name]).values(), default=0)
        case PublicScan(table=name):
            return len(pinned[name])
        case Derived(inner) | PerKey(inner) | Capped(inner):
            return _count_most(inner, pinned)
        case PerUnit():
            return 1
        case Join(left, right):
            return _count_most(left, pinned) * max(1, _count_most(right, pinned))
        case Union(parts):
            return sum(_count_most(part, pinned) for part in parts)


def _index(side: ExactIntegers, name: str, width: int, keys: str | None) -> dict[object, object]:
    """The integers or the bins of each cell. Of undeclared keys, those that somebody is counted for."""
    if name in side.bins:
        cells: list[object] = [
            tuple(sorted((place, weight) for place, weight in bins.items() if weight)) for bins in side.bins[name]
        ]
    else:
        integers = side.integers[name]
        cells = [integers[place : place + width] for place in range(0, len(integers), width)]
    if side.keys is None or keys is None:
        return dict(enumerate(cells))
    counted = side.integers[keys]
    return {repr(key): cell for key, cell, people in zip(side.keys, cells, counted, strict=True) if people}
