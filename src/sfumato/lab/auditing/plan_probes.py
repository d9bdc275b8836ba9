"""Probe the engine's check: a plan that does not agree with the pinned tables must be refused before it is charged."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sfumato.catalog.dataset import Table
from sfumato.engines.engine import Engine
from sfumato.errors import SfumatoError
from sfumato.kernel.expressions import Column
from sfumato.kernel.plan import BoundedPlan, Pivot, Strategy, take_part
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union


def check_refusals(engine: Engine, plan: BoundedPlan, tables: Mapping[str, Table]) -> Iterator[str]:
    """False plans that the engine accepts."""
    for what, source in list_false_sources(plan.source):
        if _is_accepted(engine, plan, source=source):
            yield f"The engine accepts a plan with {what}."
    for place, measurement in enumerate(plan.measurements):
        value = getattr(measurement.quantity, "value", None)
        if not isinstance(value, Column) or not isinstance(plan.source, Scan):
            continue
        declared = tables[plan.source.table].columns.get(value.name.removeprefix(plan.source.prefix))
        if value.nullable and getattr(declared, "nullable", False):
            quantity = measurement.quantity
            sure = replace(take_part(quantity), value=replace(value, nullable=False))  # type: ignore[arg-type]
            others = list(plan.measurements)
            if isinstance(quantity, Pivot | Strategy):
                sure = replace(quantity, part=sure)  # type: ignore[arg-type]
            others[place] = replace(measurement, quantity=sure)
            if _is_accepted(engine, plan, measurements=tuple(others)):
                yield "The engine accepts a plan that treats a nullable column as one without NULLs."


def list_false_sources(source: Source) -> Iterator[tuple[str, Source]]:
    """The source with one false statement about a pinned table, at each place that has one."""
    match source:
        case Scan(max_rows=most, most_met=met):
            yield (
                "another contribution bound",
                replace(source, max_rows=most + 1, most_met=None if met is None else met + 8),
            )
            if met is not None:
                yield "another cap of a join", replace(source, most_met=met + 1)
            yield "a table that is not pinned", replace(source, table="no such table")
            yield "a unique key that is not declared", replace(source, unique=(*source.unique, ("no such column",)))
        case PublicScan():
            yield "a public table that is not pinned", replace(source, table="no such table")
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            yield from ((what, replace(source, source=false)) for what, false in list_false_sources(inner))
        case Join(left, right, multiplicity=times):
            if times is not None and times > 1:
                yield "fewer rows of a public key than there are", replace(source, multiplicity=times - 1)
            yield from ((what, replace(source, left=false)) for what, false in list_false_sources(left))
            yield from ((what, replace(source, right=false)) for what, false in list_false_sources(right))
        case Union(parts):
            for place, part in enumerate(parts):
                for what, false in list_false_sources(part):
                    yield what, replace(source, parts=(*parts[:place], false, *parts[place + 1 :]))


def _is_accepted(engine: Engine, plan: BoundedPlan, **changes: object) -> bool:
    try:
        engine.check(replace(plan, **changes))  # type: ignore[arg-type]
    except SfumatoError:
        return False
    return True
