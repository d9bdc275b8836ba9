"""In how many groups one person is counted. The engine holds a plan to its bound, whatever it is (K-25)."""

from collections.abc import Iterable
from math import prod
from typing import assert_never

from sfumato.catalog.dataset import Dataset
from sfumato.kernel.expressions import columns_of
from sfumato.kernel.plan import BoundedPlan, Key
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Source, Union, extent


def columns_read(keys: Iterable[Key]) -> set[str]:
    """The columns that the group keys read."""
    return set[str]().union(*(columns_of(key.expression) for key in keys))


def groups_of(source: Source, read: set[str], dataset: Dataset) -> int:
    """The bound of a question that names none: what follows from it, or else what its tables declare.

    A subquery with one row for each person declares nothing. Its row is in one group, or in as many as the rows of
    public tables that it meets: dropping some of them would only make the answer wrong.
    """
    follows = most_groups(source, read)
    if follows is not None:
        return follows
    match source:
        case Scan(table):
            return dataset.table(table).max_groups_per_unit
        case Derived(inner):
            return groups_of(inner, _below(source, read), dataset)
        case Join(left, right, multiplicity=multiplicity):
            if multiplicity is not None:
                return groups_of(left, read, dataset)
            sides = [groups_of(each, read, dataset) for each in (left, right)]
            declared = [most_groups(each, read) is None for each in (left, right)]
            return max(sides) if all(declared) else prod(sides)
        case Union(parts):
            following = [most for each in parts if (most := most_groups(each, read)) is not None]
            declared_parts = [groups_of(each, read, dataset) for each in parts if most_groups(each, read) is None]
            return sum(following) + max(declared_parts)
    raise AssertionError("the others follow from the question")


def most_groups(source: Source, read: set[str]) -> int | None:
    """The most groups that one person can be in, where it follows from the question; None: a table's rows decide."""
    match source:
        case Scan():
            return None
        case PublicScan() | PerUnit():
            return 1
        case Derived(inner):
            return most_groups(inner, _below(source, read))
        case Join(left, right, multiplicity=multiplicity):
            mine = most_groups(left, read)
            theirs = (
                most_groups(right, read)
                if multiplicity is None
                else multiplicity
                if extent(right).find_columns(read)
                else 1
            )
            return None if mine is None or theirs is None else mine * theirs
        case Union(parts):
            each = [most_groups(part, read) for part in parts]
            found = [most for most in each if most is not None]
            return sum(found) if len(found) == len(each) else None
        case _:
            assert_never(source)


def _below(source: Derived, read: set[str]) -> set[str]:
    return set[str]().union(*(columns_of(made) for name, made in source.columns if name in read))


def drops_groups(plan: BoundedPlan) -> bool:
    """May a person be in more groups than count them?"""
    follows = most_groups(plan.source, columns_read(plan.keys))
    possible = [each for each in (follows, plan.cells) if each is not None]
    return not plan.unit.per_row and (not possible or plan.max_groups_per_unit < min(possible))
