"""Unique keys of a table: columns whose values no two rows of one person share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato.catalog.catalog_errors import build_catalog_error, show_value
from sfumato.catalog.columns import ColumnDeclaration, Id, Real
from sfumato.catalog.names import build_unknown_name, find_name
from sfumato.errors import describe_kind

Key = tuple[str, ...]
HINT = 'For example: unique = ["order_id"], or unique = [["order_id", "line"]] for two columns together.'


def gather_unique(given: object, columns: Mapping[str, ColumnDeclaration], *, has_id: bool) -> tuple[Key, ...]:
    """The unique keys that a table and its columns declare, in the declared spelling of the columns."""
    if isinstance(given, str) or not isinstance(given, list | tuple):
        raise build_catalog_error(f"unique must be a list; got {describe_kind(given)}.", HINT)
    keys = [_read_key(key, columns) for key in given]
    keys += [(name,) for name, declared in columns.items() if isinstance(declared, Id) and declared.unique]
    if keys and not has_id:
        hint = "Remove unique, or declare the people's id column as the unit."
        raise build_catalog_error("unique is only for private tables whose unit is an id.", hint)
    return tuple(dict.fromkeys(keys))


def list_keys(given: str | Sequence[str | Sequence[str]]) -> tuple[Key, ...]:
    """Keys as they are written in Python: one column, or a list of columns and of lists of columns."""
    if isinstance(given, str):
        return ((given,),)
    if not isinstance(given, list | tuple):
        raise build_catalog_error(f"unique must be a list; got {describe_kind(given)}.", HINT)
    return tuple((key,) if isinstance(key, str) else tuple(key) for key in given)


def drop_flags(columns: Mapping[str, ColumnDeclaration]) -> dict[str, ColumnDeclaration]:
    """The columns without `unique`, which the table's keys say."""
    return {
        name: replace(declared, unique=False) if isinstance(declared, Id) else declared
        for name, declared in columns.items()
    }


def _read_key(given: object, columns: Mapping[str, ColumnDeclaration]) -> Key:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise build_catalog_error("unique must list columns, or lists of columns.", HINT)
    key: list[str] = []
    for name in names:
        found = find_name(name, columns)
        if found is None:
            raise build_unknown_name("column", name, columns, " for unique")
        if isinstance(columns[found], Real):
            hint = "Declare it as an id, an integer, a text or a date."
            raise build_catalog_error(f"unique names {show_value(found)}, which is a real number.", hint)
        key.append(found)
    return tuple(dict.fromkeys(key))
