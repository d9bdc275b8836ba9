"""Sources: where a plan's rows come from. Each row of a private source belongs to one unit and carries a weight.

The weight of a row is numerator/held. `numerator` is one number for the whole source; `held` is a column of it.
`extent` derives all that the proof of K-35 needs, in one pass over the tree and in the order of that proof. A source
that has no extent cannot be built.

To add an operator: add its class to `Source` and its case to `extent`. mypy (assert_never) then names the other places:
engines/sql/source_sql.py, engines/reference, engines/plan_agrees.py, planning/groups.py, planning/unit_and_version.py,
query/size_limits.py, query/capped_scans.py and answering/suggestions.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import assert_never

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Expression, kinds_of

MOST_REACH = 1 << 40
BITS_OF_ROWS = 31  # of one unit in one table
MOST_BITS = 126  # of `held`: products with it fit 128 bits
MOST_SCANS = 4  # private tables that meet in one row
MOST_MET = 1 << 26  # rows of one unit in a join of private tables
MOST_REPEATED = 1 << 16  # rows that public tables make of one row
TIMES_MET = 8  # joins and undeclared keys read so many times max_rows of one unit: fewer would lose accuracy


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a pinned private table. A row weighs min(1, max_rows/n), n being its unit's rows that are let in.

    Below a private join, or with undeclared keys, at most `most_met` rows of a unit are let in: those least by a hash.
    """

    table: str
    version: str
    max_rows: int = 1
    prefix: str = ""  # its columns are named prefix + declared name
    most_met: int | None = None

    def __post_init__(self) -> None:
        extent(self)


@dataclass(frozen=True, slots=True)
class PublicScan:
    """The rows of a pinned public table. They belong to no unit."""

    table: str
    version: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Derived:
    """SELECT columns FROM source WHERE filters: one row for each row that passes the filters."""

    source: "Source"
    filters: tuple[Expression, ...]
    columns: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        extent(self)


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows of both sides whose expressions are equal; `outer` keeps left rows that have no partner.

    A private right side is always joined on the unit too. A left row meets at most `multiplicity` rows of a public one.
    """

    left: "Source"
    right: "Source"
    outer: bool
    on: tuple[tuple[Expression, Expression], ...]
    multiplicity: int | None = None  # of a public right side; None: the right side is private

    def __post_init__(self) -> None:
        extent(self)


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all parts, duplicates included (UNION ALL). The parts have the same column names."""

    parts: "tuple[Source, ...]"

    def __post_init__(self) -> None:
        extent(self)


@dataclass(frozen=True, slots=True)
class UnitColumn:
    """An aggregate over the rows of one unit: count, sum, avg, min or max, on a grid, clamped to bounds in steps."""

    name: str
    function: str
    value: Expression | None
    lower: int
    upper: int
    exponent: int


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit that has a row in the source that passes the filters."""

    source: "Source"
    filters: tuple[Expression, ...]
    columns: tuple[UnitColumn, ...]

    def __post_init__(self) -> None:
        extent(self)


Source = Scan | PublicScan | Derived | Join | Union | PerUnit


@dataclass(frozen=True, slots=True)
class Extent:
    """How far one unit reaches through a source, and how much work one unit can cause."""

    private: bool  # do its rows belong to units?
    reach: int  # the weights of one unit's rows add up to at most this
    numerator: int  # of every row's weight numerator/held; held >= numerator
    held_bits: int  # `held` fits so many bits
    tables: tuple[str, ...]  # all tables below, public ones too, in order
    columns: tuple[str, ...]  # the names of its columns, or prefixes of names, which end in a dot
    scans: int = 0  # private tables that meet in one row
    rows_met: int | None = 1  # the most rows of one unit; None: any number
    repeated: int = 1  # the most rows that public tables make of one row of private tables
    single_rows: bool = False  # each row comes from one row of one private table, and weighs 1

    def __post_init__(self) -> None:
        if max(self.reach, self.numerator) > MOST_REACH or self.held_bits > MOST_BITS:
            raise KernelFault("One unit reaches too many rows.")
        if self.scans > MOST_SCANS:
            raise KernelFault("Too many private tables meet in one row.")
        if self.repeated > MOST_REPEATED:
            raise KernelFault("Public tables may make too many rows of one.")

    def find_columns(self, names: set[str]) -> set[str]:
        """Return those of the names that are columns of the source.

        Claim: K-26. A join selects from each of its sides that side's columns, and no others.
        Requires: names below a join begin with prefixes of their own (query).
        Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
        """
        prefixes = tuple(column for column in self.columns if column.endswith("."))
        return {name for name in names if name in self.columns or name.startswith(prefixes)}


def extent(source: Source) -> Extent:
    """Derive the extent of a source; refuse a source that the proof does not cover.

    Claim: K-35. The weights of one unit's rows add up to at most `reach`, whatever the data, and depend on no other
    unit's rows. A source without a private table below it is public. `held_bits`, `rows_met` and `repeated` are upper
    bounds. `single_rows` holds only if no row depends on two rows of private tables.
    Requires: the engine gives rows their weights as the operators say, and checks that bounds and multiplicities are
    those of the pinned tables.
    Checked by: tests/kernel/test_reach.py::test_reach_by_hand
    """
    match source:
        case Scan(table, _, most, prefix, met):
            if most < 1 or not (met is None or most <= met <= TIMES_MET * MOST_REACH):
                raise KernelFault("A scan lets in at least one row of a unit, and into a join at least max_rows.")
            bits = BITS_OF_ROWS if met is None else met.bit_length()
            return Extent(True, most, most, bits, (table,), (prefix,), 1, met, single_rows=most == 1)
        case PublicScan(table, _, prefix):
            return Extent(False, 0, 1, 1, (table,), (prefix,), single_rows=True)
        case Derived(inner, _, columns):
            return replace(extent(inner), columns=_check_names([name for name, _ in columns]))
        case Join(left, right, _, on, multiplicity):
            return _join(extent(left), extent(right), on, multiplicity)
        case Union(parts):
            return _union([extent(part) for part in parts])
        case PerUnit(inner, _, unit_columns):
            below = extent(inner)
            if not below.private:
                raise KernelFault("Only a private source has units.")
            return Extent(True, 1, 1, 1, below.tables, _check_names([column.name for column in unit_columns]))
        case _:
            assert_never(source)


def _join(left: Extent, right: Extent, on: Sequence[tuple[Expression, Expression]], multiplicity: int | None) -> Extent:
    if not left.private or right.private != (multiplicity is None) or (multiplicity is not None and multiplicity < 1):
        raise KernelFault("A join has a private left side; its right side has a multiplicity if it is public.")
    if any(len(kinds_of(one) | kinds_of(two)) != 1 for one, two in on):
        raise KernelFault("A join compares values of one kind: an engine might convert one kind into another.")
    tables, columns = left.tables + right.tables, left.columns + right.columns
    if multiplicity is not None:
        reach, met = left.reach * multiplicity, None if left.rows_met is None else left.rows_met * multiplicity
        repeated = left.repeated * multiplicity
        return replace(left, reach=reach, tables=tables, columns=columns, rows_met=met, repeated=repeated)
    if left.rows_met is None or right.rows_met is None or left.rows_met * right.rows_met > MOST_MET:
        raise KernelFault("One unit may have too many rows in a join.")
    reach, numerator = left.reach * right.reach, left.numerator * right.numerator
    bits, scans = left.held_bits + right.held_bits, left.scans + right.scans
    met, repeated = left.rows_met * right.rows_met, left.repeated * right.repeated
    return Extent(True, reach, numerator, bits, tables, columns, scans, met, repeated)


def _union(parts: Sequence[Extent]) -> Extent:
    if len(parts) < 2 or not all(part.private for part in parts):
        raise KernelFault("A union has at least two private parts.")
    numerator = lcm(*(part.numerator for part in parts))
    bits = max(part.held_bits + (numerator // part.numerator).bit_length() for part in parts)
    met = [part.rows_met for part in parts if part.rows_met is not None]
    tables = tuple(table for part in parts for table in part.tables)
    return Extent(
        True, sum(part.reach for part in parts), numerator, bits, tables, parts[0].columns,
        max(part.scans for part in parts), sum(met) if len(met) == len(parts) else None,
        max(part.repeated for part in parts), all(part.single_rows for part in parts),
    )  # fmt: skip


def _check_names(names: list[str]) -> tuple[str, ...]:
    """Refuse a column that would replace a unit or a weight, which are columns too."""
    if any(name.casefold().startswith("__sfumato") for name in names) or len(set(names)) != len(names):
        raise KernelFault("A source's columns have different names, and none is reserved.")
    return tuple(names)
