"""In how many groups one person is counted. The engine keeps a person in at most that many groups (K-25)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import assert_never

from sfumato.kernel.expressions import Column, collect_columns
from sfumato.kernel.plan import BoundedPlan, Key
from sfumato.kernel.row_sources import (
    Capped,
    Derived,
    Join,
    PerKey,
    PerUnit,
    PublicScan,
    Scan,
    Source,
    Union,
    derive_extent,
    list_unique,
)
from sfumato.query.query import Query
from sfumato.query.source_outline import outline_source


@dataclass(frozen=True, slots=True)
class Groups:
    """The most groups that one person is in: it follows from the question, or else tables declare it."""

    most: int
    follows: bool


def columns_of_keys(keys: Iterable[Key]) -> set[str]:
    """The columns that the group keys read."""
    return set[str]().union(*(collect_columns(key.expression) for key in keys))


def count_groups(  # noqa: PLR0911 - one return an operator
    source: Source, read: set[str], declared: Callable[[str], int]
) -> Groups:
    """The bound of a question that names none. `read`: the columns of the keys; `declared`: the bound of a table.

    A subquery with one row for each person declares nothing. Its row is in one group, or in as many as the rows of
    public tables that it meets: to drop some of them would only make the answer wrong.
    """
    match source:
        case Scan(table):
            return Groups(declared(table), follows=False)
        case Capped(inner):
            return count_groups(inner, read, declared)
        case PublicScan() | PerUnit():
            return Groups(1, follows=True)
        case PerKey(max_rows=most):
            return Groups(most, follows=False)
        case Derived(inner, _, columns):
            below = [collect_columns(expression) for name, expression in columns if name in read]
            return count_groups(inner, set[str]().union(*below), declared)
        case Join(left, right, multiplicity=None):
            sides = [count_groups(side, read, declared) for side in (left, right)]
            both_declared = not any(side.follows for side in sides)
            most = (max if both_declared else prod)(side.most for side in sides)
            return Groups(most, follows=all(side.follows for side in sides))
        case Join(left, right, multiplicity=multiplicity):
            found = count_groups(left, read, declared)
            grows = found.follows and outline_source(right).find_columns(read)
            return Groups(found.most * (multiplicity or 1), follows=True) if grows else found
        case Union(parts):
            found_parts = [count_groups(part, read, declared) for part in parts]
            from_tables = [part.most for part in found_parts if not part.follows]
            most = sum(part.most for part in found_parts if part.follows) + max(from_tables, default=0)
            return Groups(most, follows=not from_tables)
        case _:
            assert_never(source)


def has_one_row_per_group(query: Query, groups: int) -> bool:
    """Is a count of rows a count of people, which costs less? A person has one row in a group, and is in few groups.

    That is so if the group keys include a unique key of the rows, and if only rows are counted.
    """
    counted = all(aggregate.function == "COUNT" and aggregate.value is None for aggregate in query.aggregates)
    if not counted or any(key.values is None for key in query.keys) or groups >= derive_extent(query.source).reach:
        return False
    names = {key.expression.name for key in query.keys if isinstance(key.expression, Column)}
    return any(key <= names for key in list_unique(query.source))


def drops_groups(plan: BoundedPlan) -> bool:
    """May a person be in more groups than the plan counts?"""
    found = count_groups(plan.source, columns_of_keys(plan.keys), lambda _: 1)
    possible = [most for most in (found.most if found.follows else None, plan.cells) if most is not None]
    return not plan.unit.per_row and (not possible or plan.max_groups_per_unit < min(possible))
