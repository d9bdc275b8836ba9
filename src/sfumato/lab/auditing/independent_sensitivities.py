"""How far one unit can move a measurement, by rules that are not the kernel's. A certificate must allow at least this.

The rules are those of docs/claims/K-25.md, K-31 to K-33, K-35, K-64, K-74, K-77 and K-78, written down a second time:
from the declared tables and the plan. The replays look for people who reach them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, prod
from typing import assert_never

import numpy as np

from sfumato.catalog.dataset import Table
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.expressions import Column, ColumnType, Literal
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import (
    BoundedPlan,
    Count,
    Curve,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Key,
    Keys,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Quantity,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.kernel.strategies import Matrix
from sfumato.lab.auditing.plain_reading import PinnedTables

WEIGHT = 65_536  # steps of a person's row
MOST_KRONECKER = 1 << 16  # entries of a strategy's whole matrix


@dataclass(frozen=True, slots=True)
class LeastSensitivity:
    """What a certificate must allow at least: L1, and squared L2."""

    l1: Fraction
    l2_squared: Fraction


def check_sensitivities(certificate: Certificate, tables: Mapping[str, Table], pinned: PinnedTables) -> Iterator[str]:
    """The measurements whose certified sensitivity, or spread of a choice, is below the rules."""
    (plan,) = certificate.plans
    for measurement, certified in zip(plan.measurements, certificate.measurements, strict=True):
        if isinstance(certified.noise, QuantileChoice | ExtremeChoice | ModeChoice):
            if _falls_short(plan, certified, certified.noise, tables, pinned):
                yield f"{certified.name}: the spread of its choice is too narrow for what one unit moves."
            continue
        least = find_least(plan, measurement.quantity, tables, pinned)
        allowed = certified.sensitivity
        if allowed.l1 < least.l1 or allowed.l2_squared < least.l2_squared:
            yield f"{certified.name}: the certified sensitivity is below what one unit can move."


def find_least(  # noqa: PLR0911, PLR0912 - one return a rule
    plan: BoundedPlan, quantity: Quantity, tables: Mapping[str, Table], pinned: PinnedTables
) -> LeastSensitivity:
    """The sensitivity of a quantity that adds up."""
    reach, several = find_reach(plan.source, tables, pinned), plan.cells != 1
    replaces, per_row = plan.unit.neighbours is Neighbours.REPLACE_ONE, plan.unit.per_row
    people = 2 if replaces else 1
    match quantity:
        case Count():
            return _add_up(Fraction(0), Fraction(reach * (1 if per_row else WEIGHT)), replaces, several)
        case Sum(value, grid, offset):
            if replaces and _is_fixed(plan) and isinstance(value, Column) and not value.nullable:
                return LeastSensitivity(Fraction(grid.upper - grid.lower), Fraction((grid.upper - grid.lower) ** 2))
            low, high = (Fraction(reach * (end - offset)) for end in (grid.lower, grid.upper))
            return _add_up(min(low, Fraction(0)), max(high, Fraction(0)), replaces, several)
        case People() | Keys():
            cells = [len(key.values) for key in plan.keys if key.values is not None]
            declared = prod(cells) if len(cells) == len(plan.keys) else None
            groups = plan.max_groups_per_unit if declared is None else min(plan.max_groups_per_unit, declared)
            moved = Fraction(groups * people if several else 1)
            return LeastSensitivity(moved, moved)
        case Halves(grid=grid):  # both halves of a row add up to the whole range
            whole = Fraction(people * reach * (grid.upper - grid.lower))
            return LeastSensitivity(whole, _square_of_one(whole, people))
        case Thirds(grid=grid):
            whole = Fraction(people * reach * (grid.upper - grid.lower) ** 2)
            return LeastSensitivity(whole, _square_of_one(whole, people))
        case Curve(grid=grid):
            # from the middle to the upper bound and back: half of the range times itself, and its square
            half = grid.upper - (grid.lower + grid.upper) // 2
            return LeastSensitivity(Fraction(2 * half * half), Fraction(2 * half**4))
        case Distinct() | DistinctSum():
            return _find_different(plan, quantity, reach, replaces)
        case Pivot(part, conditions):  # a row belongs to one condition: as one more key
            apart = replace(plan, keys=(*plan.keys, Key(Literal(None), tuple(range(len(conditions))))))
            return find_least(apart, part, tables, pinned)
        case Strategy(part, matrices):
            return _find_mixed(find_least(suppose_add_remove(plan), part, tables, pinned), part, matrices, replaces)
        case Products():
            sides = find_sides(plan, quantity, tables, pinned)
            return LeastSensitivity(sum(sides, Fraction(0)), sum((side**2 for side in sides), Fraction(0)))
        case WeightedKeys():  # n keys of one person weigh 1/sqrt(n) each, rounded down to steps of 2**-16
            weights = [held * isqrt(WEIGHT**2 // held) for held in range(1, plan.max_groups_per_unit + 1)]
            return LeastSensitivity(Fraction(people * max(weights)), Fraction(people * WEIGHT**2))
        case Quantiles() | Extreme() | Mode():
            return LeastSensitivity(Fraction(0), Fraction(0))  # `_falls_short` has rules of choices
        case _:
            assert_never(quantity)


def suppose_add_remove(plan: BoundedPlan) -> BoundedPlan:
    """The plan for units that come or leave: there, the L1 change is what one unit adds at most."""
    return replace(plan, unit=replace(plan.unit, neighbours=Neighbours.ADD_REMOVE))


def _find_mixed(
    one: LeastSensitivity, part: Count | Sum, matrices: tuple[Matrix, ...], replaces: bool
) -> LeastSensitivity:
    """Queries over all cells: one unit fills the cell whose column is the longest; another one leaves another cell."""
    columns = np.ones((1, 1), object)
    longest = squares = 1
    for matrix in matrices:
        factor = np.array(matrix, object)
        columns = np.kron(columns, factor) if columns.size * factor.size <= MOST_KRONECKER else columns
        longest *= max(sum(map(abs, column)) for column in zip(*matrix, strict=True))
        squares *= max(sum(entry * entry for entry in column) for column in zip(*matrix, strict=True))
    l1, l2_squared = one.l1 * longest, one.l2_squared * squares
    if not replaces:
        return LeastSensitivity(l1, l2_squared)
    if isinstance(part, Sum) and part.grid.lower < part.offset < part.grid.upper:
        low, high = part.grid.lower - part.offset, part.grid.upper - part.offset
        opposed = Fraction(high - low, max(high, -low)) ** 2  # in one cell, with opposite signs
        return LeastSensitivity(Fraction(0), max(opposed, Fraction(1)) * l2_squared)
    if columns.shape[0] != prod(map(len, matrices)):
        return LeastSensitivity(l1, l2_squared)  # too many cells to compare: what one unit moves at least
    apart = columns.T @ columns
    lengths = apart.diagonal()
    farthest = max(Fraction(int(far)) for far in (lengths[:, None] + lengths[None, :] - 2 * apart).ravel())
    return LeastSensitivity(l1, one.l2_squared * max(farthest, Fraction(squares)))


def find_sides(
    plan: BoundedPlan, products: Products, tables: Mapping[str, Table], pinned: PinnedTables
) -> list[Fraction]:
    """The most that one unit moves each term of joint sums (docs/claims/K-57.md): the sides of a box."""
    reach, replaces = find_reach(plan.source, tables, pinned), plan.unit.neighbours is Neighbours.REPLACE_ONE
    sides = []
    for term in products.terms:
        finest = min(sum(products.factors[place].grid.exponent for place in any_term) for any_term in products.terms)
        ends = [2 ** (sum(products.factors[place].grid.exponent for place in term) - finest)]
        for place in term:
            grid = products.factors[place].grid
            ends = [end * bound for end in ends for bound in (grid.lower, grid.upper)]
        low, high = min(0, *ends) if len(set(term)) == len(term) else 0, max(0, *ends)
        sides.append(_add_up(Fraction(reach * low), Fraction(reach * high), replaces, plan.cells != 1).l1)
    return sides


def _find_different(
    plan: BoundedPlan, quantity: Distinct | DistinctSum, reach: int, replaces: bool
) -> LeastSensitivity:
    """Different values: one unit adds as many as it has rows, and no more than the lists have."""
    listed = [len(key.values) for key in quantity.keys if key.values is not None]
    kept = in_cell = reach
    if len(listed) == len(quantity.keys):
        kept = reach if plan.cells is None else min(reach, plan.cells * prod(listed))
        in_cell = min(kept, prod(listed))
    if isinstance(quantity, DistinctSum):
        low, high = (Fraction(kept * (end - quantity.offset)) for end in (quantity.grid.lower, quantity.grid.upper))
        return _add_up(min(low, Fraction(0)), max(high, Fraction(0)), replaces, plan.cells != 1)
    moved = Fraction(kept * (2 if replaces and plan.cells != 1 else 1))
    return LeastSensitivity(moved, moved * in_cell)


def _square_of_one(whole: Fraction, people: int) -> Fraction:
    """All in one part, of each of the people."""
    return people * (whole / people) ** 2


def _is_fixed(plan: BoundedPlan) -> bool:
    """Is every row counted, whatever it holds?"""
    return isinstance(plan.source, Scan) and plan.unit.per_row and not plan.filters and not plan.keys


def _add_up(low: Fraction, high: Fraction, replaces: bool, several: bool) -> LeastSensitivity:
    """Of sums to which one unit adds from `low` <= 0 to `high` >= 0."""
    size = max(high, -low)
    if not replaces:
        return LeastSensitivity(size, size**2)
    if not several:
        return LeastSensitivity(high - low, (high - low) ** 2)
    together = (high - low) ** 2 if low < 0 < high else Fraction(0)  # both in one cell
    return LeastSensitivity(2 * size, max(2 * size**2, together))


def find_reach(source: Source, tables: Mapping[str, Table], pinned: PinnedTables) -> int:  # noqa: PLR0911
    """The most rows of weight 1 that one unit has in a source."""
    match source:
        case Scan(table=name):
            return tables[name].max_rows_per_unit
        case PublicScan():
            return 1
        case Derived(inner):
            return find_reach(inner, tables, pinned)
        case Join(left, meets_one=True) if _is_met_once(source, tables):
            return find_reach(left, tables, pinned)
        case Join(left, right, multiplicity=None):
            return find_reach(left, tables, pinned) * find_reach(right, tables, pinned)
        case Join(left, right):
            return find_reach(left, tables, pinned) * _find_multiplicity(source, right, pinned)
        case Union(parts):
            return sum(find_reach(part, tables, pinned) for part in parts)
        case PerUnit():
            return 1
        case Capped(max_rows=most) | PerKey(max_rows=most):  # bounded again
            return most
        case _:
            assert_never(source)


def _is_met_once(join: Join, tables: Mapping[str, Table]) -> bool:
    """Are all columns of a key compared, of which the catalog says that no two rows of one person share it?"""
    compared = {two.name for _, two in join.on if isinstance(two, Column)}
    return any(key <= compared for key in list_declared_keys(join.right, tables))


def list_declared_keys(source: Source, tables: Mapping[str, Table]) -> list[set[str]]:
    """The unique keys of the catalog, as a source names their columns."""
    match source:
        case Scan(table=name, prefix=prefix):
            return [{prefix + column for column in key} for key in tables[name].unique]
        case Derived(inner, columns=columns):
            shown = {value.name: name for name, value in columns if isinstance(value, Column)}
            keys = list_declared_keys(inner, tables)
            return [{shown[column] for column in key} for key in keys if key <= set(shown)]
        case Join(left, multiplicity=times, meets_one=one) if one or times == 1:
            return list_declared_keys(left, tables)
        case Capped(inner):
            return list_declared_keys(inner, tables)
        case PerKey(keys=keys):  # GROUP BY the person and these: one row for each
            plain = all(isinstance(key, Column) and key.type != ColumnType.REAL for _, key in keys)
            return [{name for name, _ in keys}] if plain else []
        case _:
            return []


def _find_multiplicity(join: Join, right: Source, pinned: PinnedTables) -> int:
    """The most rows of a public table that share all compared values; 1 where they are computed."""
    if not isinstance(right, PublicScan) or not all(isinstance(two, Column) for _, two in join.on):
        return 1
    names = [two.name.removeprefix(right.prefix) for _, two in join.on if isinstance(two, Column)]
    shared = Counter(tuple(row[name] for name in names) for row in pinned[right.table])
    return max((times for values, times in shared.items() if None not in values), default=1)


def _falls_short(
    plan: BoundedPlan,
    certified: Certified,
    choice: QuantileChoice | ExtremeChoice | ModeChoice,
    tables: Mapping[str, Table],
    pinned: PinnedTables,
) -> bool:
    """Is the spread narrower than what one unit's weight moves, per epsilon?"""
    replaces = plan.unit.neighbours is Neighbours.REPLACE_ONE
    weight = find_reach(plan.source, tables, pinned) * (1 if plan.unit.per_row else WEIGHT)
    epsilon = Fraction(getattr(certified.loss, "epsilon", 0))
    if isinstance(choice, QuantileChoice):
        alone = [choice.fractions] if choice.miss is None else [(fraction,) for fraction in choice.fractions] * 2
        moves = (sum_quantile_moves(loss, replaces=replaces, several=plan.cells != 1) for loss in alone)
        times = sum(moves, Fraction(0))
    else:
        times = Fraction(2 if replaces else 1)
    return not epsilon or choice.spread * epsilon < times * weight or choice.reach < weight


def sum_quantile_moves(fractions: tuple[Fraction, ...], *, replaces: bool, several: bool) -> Fraction:
    """How far a weight of 1 moves the scores of all fractions together (docs/claims/K-31.md).

    A weight above a wanted rank moves the bins beyond it by 1 - f, one below by f. Each fraction pays for its own
    choice, and all of them for the weight that enters on one side.
    """
    own = sum((max(share, 1 - share) for share in fractions), Fraction(0))
    sides = max(sum(fractions, Fraction(0)), sum((1 - share for share in fractions), Fraction(0)))
    if not replaces:
        return own + sides
    return 2 * (own + sides) if several else Fraction(2 * len(fractions))
