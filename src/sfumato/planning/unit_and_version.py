"""Whose rows a source has, and of which version of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sfumato.catalog.dataset import Dataset
from sfumato.errors import UnsupportedSyntax
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.plan import Key
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Source, Union, extent
from sfumato.planning.groups import columns_read, groups_of


def pinned(source: Source, versions: Mapping[str, str]) -> Source:
    """The source, with the version of every table in it."""
    match source:
        case Scan(table) | PublicScan(table):
            return replace(source, version=versions[table])
        case Derived(inner) | PerUnit(inner):
            return replace(source, source=pinned(inner, versions))
        case Join(left, right):
            return replace(source, left=pinned(left, versions), right=pinned(right, versions))
        case Union(parts):
            return replace(source, parts=tuple(pinned(each, versions) for each in parts))
        case _:
            assert_never(source)


def most_rows_read(source: Source) -> dict[str, int]:
    """For each private table of which not all rows of a person are read: the most rows of one person that are."""
    match source:
        case Scan(table, most_met=most):
            return {} if most is None else {table: most}
        case PublicScan():
            return {}
        case Derived(inner) | PerUnit(inner):
            return most_rows_read(inner)
        case Join(left, right):
            return most_rows_read(left) | most_rows_read(right)
        case Union(parts):
            return {table: most for part in parts for table, most in most_rows_read(part).items()}
        case _:
            assert_never(source)


def whose(source: Source, dataset: Dataset, keys: Sequence[Key] = ()) -> tuple[PrivacyUnit, int]:
    """The unit of a source, and in how many groups of it one unit is counted."""
    tables = [dataset.table(name) for name in dict.fromkeys(extent(source).tables)]
    private = [each for each in tables if not each.public]
    units = [dataset.unit(each.name) for each in private]
    if len({unit.per_row for unit in units}) > 1:
        hint = "Give each table a unit_column, or ask about one table."
        raise UnsupportedSyntax("syntax", "Rows that are people do not meet rows that belong to people.", hint)
    names = ", ".join(each.name for each in private)
    return PrivacyUnit(names, units[0].id_column, dataset.neighbours), groups_of(source, columns_read(keys), dataset)
