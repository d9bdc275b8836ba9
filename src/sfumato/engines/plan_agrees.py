"""Check a plan against the snapshot: its bounds, multiplicities and NULLs. A false plan is refused before a charge.

Part of the trusted perimeter: claims K-27 and K-35.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from sfumato.catalog.dataset import Table
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, Expression
from sfumato.kernel.plan import BoundedPlan
from sfumato.kernel.row_sources import (
    TIMES_MET,
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
)


def check_source(source: Source, tables: Mapping[str, Table]) -> None:
    """Raise a KernelFault if the bounds or multiplicities of a plan are not those of the pinned tables."""
    match source:
        case Scan(name, max_rows=most, most_met=met, unique=keys):
            table = _find_table(tables, name)
            if table.public or table.max_rows_per_unit != most:
                raise KernelFault("The pinned weights are those of another bound.")
            if met not in (None, TIMES_MET * most):
                raise KernelFault("The pinned table marks another number of rows for joins.")
            if not set(keys) <= set(table.unique):
                raise KernelFault("The pinned table was not declared with this unique key.")
        case PublicScan(name):
            if not _find_table(tables, name).public:
                raise KernelFault("A plan reads a private table as a public one.")
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            check_source(inner, tables)
        case Join(left, right, _, on, multiplicity):
            check_source(left, tables)
            check_source(right, tables)
            if multiplicity is not None and multiplicity < _find_multiplicity(right, on, tables):
                raise KernelFault("A public table has more rows for one key than the plan says.")
        case Union(parts):
            for part in parts:
                check_source(part, tables)
        case _:
            assert_never(source)


def check_nullability(plan: BoundedPlan, tables: Mapping[str, Table]) -> None:
    """Raise a KernelFault if a plan says that a column has no NULLs, and its declaration does not say so."""
    if not isinstance(plan.source, Scan):
        return
    declared = _find_table(tables, plan.source.table).columns
    for measurement in plan.measurements:
        match getattr(measurement.quantity, "value", None):
            case Column(name, nullable=False) if getattr(
                declared.get(name.removeprefix(plan.source.prefix)), "nullable", True
            ):
                raise KernelFault("A plan treats a nullable column as one without NULLs.")


def _find_table(tables: Mapping[str, Table], name: str) -> Table:
    if name not in tables:
        raise KernelFault("A plan reads a table that is not pinned.")
    return tables[name]


def _find_multiplicity(right: Source, on: Sequence[tuple[Expression, Expression]], tables: Mapping[str, Table]) -> int:
    """The most rows that one left row meets: of the compared columns, the one that tells rows apart best."""
    found = [most for _, two in on if (most := _find_column_multiplicity(right, two, tables)) is not None]
    if not found:
        raise KernelFault("A join compares no column of the public table.")
    return min(found)


def _find_column_multiplicity(source: Source, compared: Expression, tables: Mapping[str, Table]) -> int | None:
    """The largest multiplicity of a public table's own column; None for what is computed."""
    match source, compared:
        case Derived(inner, _, columns), Column(name):
            made = dict(columns).get(name)
            return None if made is None else _find_column_multiplicity(inner, made, tables)
        case PublicScan(table, _, prefix), Column(name) if name.startswith(prefix):
            return dict(_find_table(tables, table).multiplicities).get(name.removeprefix(prefix))
    return None
