"""Sources: where a plan's rows come from. Every row of a source belongs to one unit, and carries a weight.

The weight of a row is numerator/held: `numerator` follows from the source alone, `held` is a column of it.
"""

from dataclasses import dataclass, replace
from math import lcm
from typing import assert_never

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, Expression, kinds_of

MOST_REACH = 1 << 40
BITS_OF_ROWS = 31  # of one unit in one table
MOST_BITS = 126
MOST_SCANS = 4  # of private tables that meet in one row: the product of their rows held stays below 2**124
MOST_MET = 1 << 26  # rows of one unit in a join of private tables
MOST_REPEATED = 1 << 16  # rows that public tables make of one row
TIMES_MET = 8  # joins and undeclared keys read so many times max_rows of one unit: fewer would lose accuracy


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a pinned private table. A row weighs min(1, max_rows/n), n being its unit's rows that are let in.

    All are let in, or, below a private join or with undeclared keys, at most `most_met`: those least by a hash.
    """

    table: str
    version: str
    max_rows: int = 1
    prefix: str = ""  # its columns are named prefix + declared name
    most_met: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= MOST_REACH:
            raise KernelFault("A table lets in at least one row of a unit, and a bounded number.")
        if self.most_met is not None and not self.max_rows <= self.most_met <= TIMES_MET * MOST_REACH:
            raise KernelFault("A table lets into a join at least the rows that it counts.")


@dataclass(frozen=True, slots=True)
class PublicScan:
    """The rows of a pinned public table: nobody's."""

    table: str
    version: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Derived:
    """SELECT columns FROM source WHERE filters: one row for each that passes."""

    source: "Source"
    filters: tuple[Expression, ...]
    columns: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        _own_names([name for name, _ in self.columns])


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of both sides whose expressions are equal in pairs; `outer` keeps left rows that meet none.

    A private right side is joined on the unit too, always. A public one has at most `multiplicity` rows for each left.
    """

    left: "Source"
    right: "Source"
    outer: bool
    on: tuple[tuple[Expression, Expression], ...]
    multiplicity: int | None = None  # of a public right side; None: the right side is private

    def __post_init__(self) -> None:
        if not is_private(self.left) or is_private(self.right) != (self.multiplicity is None):
            raise KernelFault("A join has a private left side; its right side has a multiplicity if it is public.")
        if self.multiplicity is not None and self.multiplicity < 1:
            raise KernelFault("A public key has at least one row.")
        if scans(self.left) + scans(self.right) > MOST_SCANS:
            raise KernelFault("Too many private tables meet in one row.")
        if any(len(kinds_of(one) | kinds_of(two)) != 1 for one, two in self.on):
            raise KernelFault("A join compares values of one kind: an engine might turn one kind into another.")
        if self.multiplicity is None and rows_met(self.left) * rows_met(self.right) > MOST_MET:
            raise KernelFault("One unit may have too many rows in a join.")
        if repeated(self) > MOST_REPEATED:
            raise KernelFault("Public tables may make too many rows of one.")


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all parts, duplicates included (UNION ALL). The parts have the same column names."""

    parts: "tuple[Source, ...]"

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not all(is_private(each) for each in self.parts):
            raise KernelFault("A union has at least two private parts.")


@dataclass(frozen=True, slots=True)
class UnitColumn:
    """An aggregate over the rows of one unit: count, sum, avg, min or max, on a grid and held to bounds in steps."""

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
        if not is_private(self.source):
            raise KernelFault("Only a private source has units.")
        _own_names([each.name for each in self.columns])


def _own_names(names: list[str]) -> None:
    """A column must not take the place of a unit or a weight, which are columns too."""
    if any(name.casefold().startswith("__sfumato") for name in names) or len(set(names)) != len(names):
        raise KernelFault("A source's columns have names of their own.")


Source = Scan | PublicScan | Derived | Join | Union | PerUnit


def is_private(source: Source) -> bool:
    """Do its rows belong to units?

    Claim: K-35. A source is public only if no private table is below it.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_what_is_private
    """
    match source:
        case Scan() | Join() | Union() | PerUnit():
            return True
        case PublicScan():
            return False
        case Derived(inner):
            return is_private(inner)
        case _:
            assert_never(source)


def numerator(source: Source) -> int:
    """The numerator of every row's weight: numerator/held, with held >= numerator.

    Claim: K-35. See `reach`.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_reach_by_hand
    """
    match source:
        case Scan(max_rows=most):
            return most
        case PublicScan() | PerUnit():
            return 1
        case Derived(inner):
            return numerator(inner)
        case Join(left, right):
            return numerator(left) * numerator(right)
        case Union(parts):
            return lcm(*(numerator(each) for each in parts))
        case _:
            assert_never(source)


def reach(source: Source) -> int:
    """The most that the weights of one unit's rows add up to; and no other unit's rows depend on it.

    Claim: K-35. The sum over one unit's rows of numerator/held is at most this, whatever the data.
    Requires: the engine holds rows as each operator says, and checks that multiplicities are the pinned tables'.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    most = _reach(source)
    if most > MOST_REACH or numerator(source) > MOST_REACH or _bits_held(source) > MOST_BITS:
        raise KernelFault("One unit reaches too many rows.")
    return most


def _bits_held(source: Source) -> int:
    """How many bits the column that weights divide by may need."""
    match source:
        case Scan(most_met=most):
            return BITS_OF_ROWS if most is None else most.bit_length()
        case PublicScan() | PerUnit():
            return 1
        case Derived(inner):
            return _bits_held(inner)
        case Join(left, right):
            return _bits_held(left) + _bits_held(right)
        case Union(parts):
            whole = numerator(source)
            return max(_bits_held(each) + (whole // numerator(each)).bit_length() for each in parts)
        case _:
            assert_never(source)


def _reach(source: Source) -> int:
    match source:
        case Scan(max_rows=most):
            return most
        case PublicScan():
            raise KernelFault("A public table has no units.")
        case PerUnit():
            return 1
        case Derived(inner):
            return _reach(inner)
        case Join(left, right, multiplicity=None):
            return _reach(left) * _reach(right)
        case Join(left, multiplicity=multiplicity):
            return _reach(left) * (multiplicity or 1)
        case Union(parts):
            return sum(_reach(each) for each in parts)
        case _:
            assert_never(source)


def scans(source: Source) -> int:
    """How many private tables meet in one row.

    Claim: K-35. The product of so many counts of rows is a row's `held`, and fits 128 bits.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_too_many_tables_are_refused
    """
    match source:
        case Scan():
            return 1
        case PublicScan() | PerUnit():
            return 0
        case Derived(inner):
            return scans(inner)
        case Join(left, right):
            return scans(left) + scans(right)
        case Union(parts):
            return max(scans(each) for each in parts)
        case _:
            assert_never(source)


def as_met(source: Source) -> Source:
    """The source with a bounded number of rows of one unit in each table: for joins and for undeclared keys."""
    match source:
        case Scan(max_rows=most):
            return replace(source, most_met=TIMES_MET * most)
        case PublicScan() | PerUnit():  # a unit has one row there, whatever is below
            return source
        case Derived(inner):
            return replace(source, source=as_met(inner))
        case Join(left):  # its right side is as it should be, or public
            return replace(source, left=as_met(left))
        case Union(parts):
            return replace(source, parts=tuple(as_met(each) for each in parts))
        case _:
            assert_never(source)


def rows_met(source: Source) -> int:
    """The most rows that one unit has in a side of a join of private tables.

    Claim: K-35. No unit has more, whatever the data; a side that has no such number is refused.
    Requires: the engine holds rows as each operator says.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_a_join_is_of_so_many_rows_of_one_unit
    """
    match source:
        case Scan(most_met=int(most)):
            return most
        case Scan():
            raise KernelFault("A join, and a group of undeclared keys, read a bounded number of rows of one unit.")
        case PublicScan() | PerUnit():
            return 1
        case Derived(inner):
            return rows_met(inner)
        case Join(left, right, multiplicity=None):
            return rows_met(left) * rows_met(right)
        case Join(left, multiplicity=multiplicity):
            return rows_met(left) * (multiplicity or 1)
        case Union(parts):
            return sum(rows_met(each) for each in parts)
        case _:
            assert_never(source)


def repeated(source: Source) -> int:
    """The most rows that public tables make of one row of private ones.

    Claim: K-35. No row of private tables becomes more, whatever the data: the time of a join shows no row.
    Requires: a public table's multiplicity is the pinned one's (engine).
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_public_tables_make_a_bounded_number_of_rows_of_one
    """
    match source:
        case Scan() | PublicScan() | PerUnit():
            return 1
        case Derived(inner):
            return repeated(inner)
        case Join(left, right, multiplicity=None):
            return repeated(left) * repeated(right)
        case Join(left, multiplicity=multiplicity):
            return repeated(left) * (multiplicity or 1)
        case Union(parts):
            return max(repeated(each) for each in parts)
        case _:
            assert_never(source)


def of_single_rows(source: Source) -> bool:
    """Is every row made from one row of one private table? A row unit allows nothing else.

    Claim: K-35. No row of such a source depends on two rows of private tables, and each weighs 1.
    Requires: nothing.
    Relies on: nothing.
    Proof: docs/claims/K-35.md
    Checked by: tests/kernel/test_reach.py::test_row_units_meet_nobody
    """
    match source:
        case Scan(max_rows=most):
            return most == 1
        case PublicScan():
            return True
        case PerUnit():
            return False
        case Derived(inner):
            return of_single_rows(inner)
        case Join(left, multiplicity=multiplicity):
            return multiplicity is not None and of_single_rows(left)
        case Union(parts):
            return all(of_single_rows(each) for each in parts)
        case _:
            assert_never(source)


def tables_of(source: Source) -> tuple[str, ...]:
    """The names of all tables below, public ones too, in order."""
    match source:
        case Scan(table) | PublicScan(table):
            return (table,)
        case Derived(inner) | PerUnit(inner):
            return tables_of(inner)
        case Join(left, right):
            return tables_of(left) + tables_of(right)
        case Union(parts):
            return tuple(name for each in parts for name in tables_of(each))
        case _:
            assert_never(source)


def reads_of(source: Source, names: set[str]) -> set[str]:
    """Those of the names that are columns of the source.

    Claim: K-26. A join selects from each of its sides that side's columns, and no others.
    Requires: names below a join begin with prefixes of their own (query).
    Relies on: nothing.
    Proof: docs/claims/K-26.md
    Checked by: tests/neighbours/test_joins.py::test_no_neighbour_moves_more_through_a_join
    """
    below = _columns_below(source)
    return {
        name for name in names if any(name == each or (each.endswith(".") and name.startswith(each)) for each in below)
    }


def _columns_below(source: Source) -> tuple[str, ...]:
    """How the names of a source's columns begin, or the names themselves."""
    match source:
        case Scan(prefix=prefix) | PublicScan(prefix=prefix):
            return (prefix,)
        case Derived(columns=columns):
            return tuple(name for name, _ in columns)
        case Join(left, right):
            return _columns_below(left) + _columns_below(right)
        case Union(parts):
            return _columns_below(parts[0])
        case PerUnit(columns=columns):
            return tuple(each.name for each in columns)
        case _:
            assert_never(source)


__all__ = [
    "Column", "Derived", "Join", "PerUnit", "PublicScan", "Scan", "Source", "Union", "UnitColumn",
    "as_met", "is_private", "numerator", "of_single_rows", "reach", "reads_of", "repeated", "rows_met", "scans",
    "tables_of",
]  # fmt: skip
