"""Sources: where a plan's rows come from. Each row of a private source belongs to one unit and carries a weight.

The weight of a row is numerator/held. `numerator` is one number for the whole source; `held` is a column of it.
`derive_extent` derives all that the proof of K-35 needs, in one pass over the tree and in the order of that proof. No
plan can be built of a source that has no extent.

To add an operator: add its class to `Source` and its case to `derive_extent`. mypy then names the other places:
engines/sql/source_sql.py, engines/reference, engines/plan_agrees.py, planning/groups.py, planning/unit_and_version.py,
query/source_outline.py, query/size_limits.py, query/capped_scans.py, query/count_columns.py, answering/suggestions.py
and lab/auditing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import assert_never

from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Column, ColumnType, Expression, find_kinds

MOST_REACH = 1 << 40
BITS_OF_ROWS = 31  # of one unit in one table
BITS_OF_COUNT = 63  # of one unit in any source: engines count in 64 bits
MOST_BITS = 126  # of `held`: products with it fit 128 bits
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
    unique: tuple[tuple[str, ...], ...] = ()  # declared keys, without the prefix: no two rows of a unit share one


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


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows of both sides whose expressions are equal; `outer` keeps left rows that have no partner.

    A private right side is always joined on the unit too. A left row meets at most `multiplicity` rows of a public one.
    `meets_one`: a unique key of a private right side is compared, and a pair weighs what its left row weighs (K-78).
    """

    left: "Source"
    right: "Source"
    outer: bool
    on: tuple[tuple[Expression, Expression], ...]
    multiplicity: int | None = None  # of a public right side; None: the right side is private
    meets_one: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all parts, duplicates included (UNION ALL). The parts have the same column names."""

    parts: "tuple[Source, ...]"


@dataclass(frozen=True, slots=True)
class UnitColumn:
    """An aggregate over the rows of one unit: count, sum, avg, min or max, on a grid, clamped to bounds in steps.

    distinct: how many different values, at most `upper`. earliest, latest: of days, moments or reals, as they are.
    """

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


@dataclass(frozen=True, slots=True)
class Capped:
    """The rows of a private source, bounded again: a row weighs min(1, max_rows/n), n being its unit's rows there."""

    source: "Source"
    max_rows: int


@dataclass(frozen=True, slots=True)
class PerKey:
    """One row for each unit and each value of `keys` among the unit's rows that pass the filters.

    A row weighs min(1, max_rows/n), n being the number of such rows of its unit.
    """

    source: "Source"
    filters: tuple[Expression, ...]
    columns: tuple[UnitColumn, ...]
    keys: tuple[tuple[str, Expression], ...]
    max_rows: int


Source = Scan | PublicScan | Derived | Join | Union | PerUnit | PerKey | Capped


@dataclass(frozen=True, slots=True)
class Extent:
    """How far one unit reaches through a source."""

    private: bool  # do its rows belong to units?
    reach: int  # the weights of one unit's rows add up to at most this
    numerator: int  # of every row's weight numerator/held; held >= numerator
    held_bits: int  # `held` fits so many bits
    single_rows: bool = False  # each row comes from one row of one private table, and weighs 1

    def __post_init__(self) -> None:
        if max(self.reach, self.numerator) > MOST_REACH or self.held_bits > MOST_BITS:
            raise KernelFault("One unit reaches too many rows.")


def derive_extent(source: Source) -> Extent:  # noqa: PLR0911 - one return an operator
    """Derive the extent of a source; refuse a source that the proof does not cover.

    Claim: K-35. The weights of one unit's rows add up to at most `reach`, whatever the data, and depend on no other
    unit's rows. A source without a private table below it is public. `held_bits` is an upper bound. `single_rows` holds
    only if no row depends on two rows of private tables.
    Relies on: K-78 (joins that meet one row), K-79 (bounds on the rows of a source).
    Requires: the engine gives rows their weights as the operators say, and checks that bounds and multiplicities are
    those of the pinned tables.
    Relies on: K-65 (one row for each person and key).
    Checked by: tests/kernel/test_reach.py::test_reach_by_hand
    """
    match source:
        case Scan(max_rows=most, most_met=met):
            if not 1 <= most <= (most if met is None else met):
                raise KernelFault("A scan lets in at least one row of a unit, and into a join at least max_rows.")
            bits = BITS_OF_ROWS if met is None else met.bit_length()
            return Extent(True, most, most, bits, single_rows=most == 1)
        case PublicScan():
            return Extent(False, 0, 1, 1, single_rows=True)
        case Derived(inner, _, columns):
            _check_names([name for name, _ in columns])
            return derive_extent(inner)
        case Join(left, right, multiplicity=multiplicity):
            return _join(source, derive_extent(left), derive_extent(right), multiplicity)
        case Union(parts):
            return _unite([derive_extent(part) for part in parts])
        case PerUnit(inner, _, unit_columns):
            _check_names([column.name for column in unit_columns])
            if not derive_extent(inner).private:
                raise KernelFault("Only a private source has units.")
            return Extent(True, 1, 1, 1)
        case Capped(inner, most):
            return cap_extent(derive_extent(inner), most)
        case PerKey(inner, _, unit_columns, keys, most):
            _check_names([*(column.name for column in unit_columns), *(name for name, _ in keys)])
            return group_extent(derive_extent(inner), most)
        case _:
            assert_never(source)


def cap_extent(inner: Extent, most: int) -> Extent:
    """The extent of a private source whose rows are bounded once more.

    Claim: K-79. The weights of one unit's rows add up to at most `most`.
    Requires: a row weighs most/max(n, most), n being the number of its unit's rows in the source (engine).
    Relies on: K-35 (the rows of a unit depend on it alone).
    Checked by: tests/neighbours/test_question_limits.py::test_no_neighbour_moves_more
    """
    if most < 1 or not inner.private:
        raise KernelFault("A bound is at least 1, and of a private source.")
    return Extent(True, most, most, BITS_OF_COUNT)


def group_extent(inner: Extent, most: int) -> Extent:
    """The extent of one row for each unit and key.

    Claim: K-65. The weights of one unit's rows add up to at most `most`.
    Requires: a row weighs most/max(n, most), n being the number of its unit's rows of all keys (engine).
    Relies on: K-79 (the rows of a key are bounded once more).
    Checked by: tests/neighbours/test_per_key.py::test_no_neighbour_moves_more_rows_of_a_key
    """
    return cap_extent(inner, most)


def _join(join: Join, left: Extent, right: Extent, multiplicity: int | None) -> Extent:
    if not left.private or right.private != (multiplicity is None) or (multiplicity is not None and multiplicity < 1):
        raise KernelFault("A join has a private left side; its right side has a multiplicity if it is public.")
    if any(len(find_kinds(one) | find_kinds(two)) != 1 for one, two in join.on):
        raise KernelFault("A join compares values of one kind: an engine might convert one kind into another.")
    if join.meets_one:  # a left row meets one row of its unit at most: pairs are no more, and weigh no more
        compared = {two.name for _, two in join.on if isinstance(two, Column)}
        if multiplicity is not None or not any(key <= compared for key in list_unique(join.right)):
            raise KernelFault("A join meets one row only if it compares a unique key of its private right side.")
        return replace(left, single_rows=False)
    if multiplicity is not None:
        return replace(left, reach=left.reach * multiplicity)
    reach, numerator = left.reach * right.reach, left.numerator * right.numerator
    return Extent(True, reach, numerator, left.held_bits + right.held_bits)


def list_unique(source: Source) -> tuple[frozenset[str], ...]:
    """Sets of columns of which no two rows of one unit share the values, where none of these is NULL.

    Claim: K-78. It follows from the keys that the scans declare, and from one row for each unit and key (K-65).
    Requires: the pinned tables were declared with these keys (engine).
    Checked by: tests/kernel/test_reach.py::test_unique_keys_through_a_source
    """
    match source:
        case Scan(prefix=prefix, unique=keys):
            return tuple(frozenset(prefix + name for name in key) for key in keys)
        case Derived(inner, _, columns):
            names = {value.name: name for name, value in columns if isinstance(value, Column)}
            return tuple(frozenset(names[name] for name in key) for key in list_unique(inner) if key <= names.keys())
        case Join(inner, multiplicity=1) | Join(inner, meets_one=True) | Capped(inner):
            return list_unique(inner)
        case PerKey(keys=keys) if all(isinstance(key, Column) and key.type is not ColumnType.REAL for _, key in keys):
            return (frozenset(name for name, _ in keys),)
        case _:
            return ()


def _unite(parts: Sequence[Extent]) -> Extent:
    if len(parts) < 2 or not all(part.private for part in parts):
        raise KernelFault("A union has at least two private parts.")
    reach, numerator = sum(part.reach for part in parts), lcm(*(part.numerator for part in parts))
    bits = max(part.held_bits + (numerator // part.numerator).bit_length() for part in parts)
    return Extent(True, reach, numerator, bits, all(part.single_rows for part in parts))


def _check_names(names: list[str]) -> None:
    """Refuse a column that would replace a unit or a weight, which are columns too."""
    folded = [name.casefold() for name in names]  # engines may not tell capital letters apart
    if any(name.startswith("__sfumato") for name in folded) or len(set(folded)) != len(names):
        raise KernelFault("A source's columns have different names, and none is reserved.")
