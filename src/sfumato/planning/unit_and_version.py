"""The privacy unit of a source, and the versions of its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sfumato.catalog.dataset import Dataset
from sfumato.errors import UnsupportedSyntax
from sfumato.kernel.neighbours import PrivacyUnit
from sfumato.kernel.plan import Key
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.planning.groups import columns_of_keys, count_groups
from sfumato.query.source_outline import outline_source


def pin_versions(source: Source, versions: Mapping[str, str]) -> Source:
    """Write the version of every table into the source."""
    match source:
        case Scan(table) | PublicScan(table):
            return replace(source, version=versions[table])
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            return replace(source, source=pin_versions(inner, versions))
        case Join(left, right):
            return replace(source, left=pin_versions(left, versions), right=pin_versions(right, versions))
        case Union(parts):
            return replace(source, parts=tuple(pin_versions(part, versions) for part in parts))
        case _:
            assert_never(source)


def find_row_limits(source: Source) -> dict[str, int]:
    """For each table that is capped: the most rows of one person that are read from it."""
    match source:
        case Scan(table, most_met=most):
            return {} if most is None else {table: most}
        case PublicScan():
            return {}
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            return find_row_limits(inner)
        case Join(left, right):
            return find_row_limits(left) | find_row_limits(right)
        case Union(parts):
            return {table: most for part in parts for table, most in find_row_limits(part).items()}
        case _:
            assert_never(source)


def find_unit(source: Source, dataset: Dataset, keys: Sequence[Key] = ()) -> tuple[PrivacyUnit, int]:
    """The privacy unit of a source, and the number of groups in which one unit is counted."""
    tables = [dataset.table(name) for name in dict.fromkeys(outline_source(source).tables)]
    private = [table for table in tables if not table.public]
    units = [dataset.unit(table.name) for table in private]
    if len({unit.per_row for unit in units}) > 1:
        hint = "Give each table a unit_column, or ask about one table."
        raise UnsupportedSyntax("syntax", "Rows that are people do not meet rows that belong to people.", hint)
    unit = PrivacyUnit(", ".join(table.name for table in private), units[0].id_column, dataset.neighbours)
    groups = count_groups(source, columns_of_keys(keys), lambda name: dataset.table(name).max_groups_per_unit)
    return unit, groups.most
