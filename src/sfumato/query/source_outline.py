"""What a source is made of, and how much work one unit can cause in it.

No privacy proof needs this. The limits keep a person with many rows from stalling the engine, or from being noticed by
the time that an answer takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sfumato.errors import InvalidParameter, KernelFault
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union

MOST_SCANS = 4  # private tables that meet in one row
MOST_MET = 1 << 24  # rows of one unit in a join of private tables: a few seconds
MOST_HELD = 1 << 20  # rows of one unit that a join makes and the engine holds in memory, to compare or to sort them
MOST_REPEATED = 1 << 16  # rows that public tables make of one row


@dataclass(frozen=True, slots=True)
class Outline:
    """Tables, columns and work of a source."""

    tables: tuple[str, ...]  # all tables below, public ones too, in order
    columns: tuple[str, ...]  # the names of its columns, or prefixes of names, which end in a dot
    scans: int = 0  # private tables that meet in one row
    rows_met: int | None = 1  # the most rows of one unit; None: any number
    repeated: int = 1  # the most rows that public tables make of one row of private tables

    def __post_init__(self) -> None:
        if self.scans > MOST_SCANS:
            raise KernelFault("Too many private tables meet in one row.")
        if self.repeated > MOST_REPEATED:
            raise KernelFault("Public tables may make too many rows of one.")

    def find_columns(self, names: set[str]) -> set[str]:
        """Return those of the names that are columns of the source."""
        prefixes = tuple(column for column in self.columns if column.endswith("."))
        return {name for name in names if name in self.columns or name.startswith(prefixes)}


def outline_source(source: Source) -> Outline:  # noqa: PLR0911 - one return an operator
    """Find the tables and columns of a source, and refuse one in which a unit could cause too much work."""
    match source:
        case Scan(table, prefix=prefix, most_met=met):
            return Outline((table,), (prefix,), 1, met)
        case PublicScan(table, _, prefix):
            return Outline((table,), (prefix,))
        case Derived(inner, _, columns):
            return replace(outline_source(inner), columns=tuple(name for name, _ in columns))
        case Join(left, right, multiplicity=multiplicity, meets_one=meets_one):
            return _join(outline_source(left), outline_source(right), multiplicity, meets_one=meets_one)
        case Union(parts):
            return _unite([outline_source(part) for part in parts])
        case Capped(inner):
            return outline_source(inner)
        case PerUnit(inner, _, columns):
            return Outline(outline_source(inner).tables, tuple(column.name for column in columns))
        case PerKey(inner, _, columns, keys):
            below = outline_source(inner)
            names = (*(column.name for column in columns), *(name for name, _ in keys))
            return Outline(below.tables, names, 1, below.rows_met)
        case _:
            assert_never(source)


def holds_many(source: Source) -> bool:
    """Could the engine hold too many rows of one unit in memory, if it groups them by values that no list bounds?

    Rows of a single table are no more than the unit has. A join multiplies them.
    """
    outline = outline_source(source)
    multiplies = outline.scans > 1 or outline.repeated > 1
    return multiplies and (outline.rows_met is None or outline.rows_met > MOST_HELD)


def check_work(source: Source, *, groups_undeclared_keys: bool) -> None:
    """Refuse a source in which one unit could cause too much work. `outline_source` has the limits of joins."""
    if outline_source(source).rows_met is None and groups_undeclared_keys:
        raise KernelFault("Undeclared keys read a bounded number of rows of one unit.")
    if groups_undeclared_keys and holds_many(source):
        hint = "Declare a smaller max_rows_per_unit, a unique key, or the values of the columns."
        kind = "a join whose rows are grouped by values that are not declared"
        raise InvalidParameter("question", f"must hold at most {MOST_HELD:,} rows of one person in memory", kind, hint)


def _join(left: Outline, right: Outline, multiplicity: int | None, *, meets_one: bool) -> Outline:
    tables, columns = left.tables + right.tables, left.columns + right.columns
    if multiplicity is not None:
        met, repeated = None if left.rows_met is None else left.rows_met * multiplicity, left.repeated * multiplicity
        return Outline(tables, columns, left.scans, met, repeated)
    scans = left.scans + right.scans
    if meets_one:  # no more rows than the left side
        return Outline(tables, columns, scans, left.rows_met, left.repeated)
    if left.rows_met is None or right.rows_met is None or left.rows_met * right.rows_met > MOST_MET:
        raise KernelFault("One unit may have too many rows in a join.")
    return Outline(tables, columns, scans, left.rows_met * right.rows_met, left.repeated * right.repeated)


def _unite(parts: Sequence[Outline]) -> Outline:
    met = [part.rows_met for part in parts if part.rows_met is not None]
    return Outline(
        tuple(table for part in parts for table in part.tables),
        parts[0].columns,
        max(part.scans for part in parts),
        sum(met) if len(met) == len(parts) else None,
        max(part.repeated for part in parts),
    )
