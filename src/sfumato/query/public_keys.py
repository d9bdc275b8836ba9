"""GROUP BY a column of a public table: the keys are the values that its rows have, which are known without asking."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.query.functions import MOST_KEYS
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem, Scope


def list_public_keys(keys: Sequence[exp.Expr], scope: Scope, dataset: Dataset) -> tuple[FromItem, ...]:
    """The items of FROM, with the values of each public column that is a key (possible_keys.py: those together)."""
    columns = [key for key in keys if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier)]
    found = [scope.resolve(key) for key in columns if _is_known(key, scope)]
    items = []
    for item in scope.items:
        listed = [_list_values(item, name, dataset) for other, name in found if other is item]
        values = {name: typed for one in listed if one is not None for name, typed in one.items()}
        few = prod(len(typed.values or ()) for typed in values.values()) <= MOST_KEYS
        items.append(replace(item, columns={**item.columns, **values}) if values and few else item)
    return tuple(items)


def _is_known(key: exp.Column, scope: Scope) -> bool:
    if key.table:
        return True
    return sum(key.name.lower() in map(str.lower, item.columns.keys() - item.merged) for item in scope.items) == 1


def _list_values(item: FromItem, name: str, dataset: Dataset) -> dict[str, Typed] | None:
    table = dataset.tables.get(item.table) if item.public is not None else None
    if table is None or table.public_rows is None or name not in table.columns:
        return None
    typed = item.columns[name]
    if typed.type != "text" and not typed.whole:
        return None
    place = list(table.columns).index(name)
    found = {row[place] for row in table.public_rows} - {None}
    allowed = found if typed.values is None else found & set(typed.values)
    if not 0 < len(allowed) <= MOST_KEYS:
        return None
    values = sorted(allowed) if typed.whole else sorted(allowed, key=str)  # type: ignore[type-var]
    return {name: replace(typed, values=tuple(values))}
