"""Keys of a public table that occur together: no answer shows a combination that none of its rows has."""

from collections.abc import Iterator, Sequence

from sfumato.catalog.dataset import Dataset, Table
from sfumato.kernel.expressions import Column, Expression, Scalar, collect_columns
from sfumato.kernel.plan import Key
from sfumato.kernel.row_sources import Join, Source
from sfumato.query.mapped_values import take_work
from sfumato.query.query import PossibleKeys
from sfumato.query.relation import Relation
from sfumato.row_meanings.evaluate import evaluate

Owner = tuple[str, str, int]  # of a column: the public table, its name there, and which item of FROM it is


def find_possible_keys(keys: Sequence[Key], relation: Relation, dataset: Dataset) -> tuple[PossibleKeys, ...]:
    """For each public table in FROM whose columns are keys: the combinations of these that its rows have."""
    owners: dict[Expression, Owner] = {}
    for place, item in enumerate(relation.items):
        table = dataset.tables.get(item.table)
        if item.public is None or table is None or table.public_rows is None:
            continue
        for name, typed in item.columns.items():
            if isinstance(typed.expression, Column) and name in table.columns:
                owners[typed.expression] = (table.name, name, place)
    if not owners:
        return ()
    for one, two in _list_equal_values(relation.source):  # v.site = s.site: they are the same value
        if two in owners and one not in owners:
            owners[one] = owners[two]
    grouped: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for index, key in enumerate(keys):
        owner = owners.get(key.expression)
        if owner is not None and key.values is not None:
            grouped.setdefault((owner[0], owner[2]), []).append((index, owner[1]))
    found = []
    for (table_name, number), indexed in grouped.items():
        table = dataset.tables[table_name]
        places = [list(table.columns).index(name) for _, name in indexed]
        known = _select_rows(relation, number, table)
        rows = frozenset(tuple(row[place] for place in places) for row in known)
        if _are_listed(rows, [keys[index].values or () for index, _ in indexed]):
            found.append(PossibleKeys(tuple(index for index, _ in indexed), rows))
    return tuple(found)


def _select_rows(relation: Relation, number: int, table: Table) -> list[tuple[Scalar, ...]]:
    """The rows of a public table that pass the conditions on its columns alone."""
    names = {
        typed.expression.name: list(table.columns).index(name)
        for name, typed in relation.items[number].columns.items()
        if isinstance(typed.expression, Column) and name in table.columns
    }
    conditions = [one for one in relation.filters if (read := collect_columns(one)) and read <= names.keys()]
    rows = list(table.public_rows or ())
    if not conditions or not take_work(len(rows) * len(conditions)):
        return rows
    return [
        row
        for row in rows
        if all(evaluate(one, {name: row[place] for name, place in names.items()}) is True for one in conditions)
    ]


def _are_listed(rows: frozenset[tuple[Scalar, ...]], values: Sequence[Sequence[Scalar]]) -> bool:
    """Are the values of the rows spelled as those of the keys? Then no row that can be met is left out."""
    kinds = [{type(value) for value in listed} for listed in values]
    spelled = all(value is None or type(value) in kind for row in rows for value, kind in zip(row, kinds, strict=True))
    return spelled and all(kind <= {str, int, bool, float} for kind in kinds)


def _list_equal_values(source: Source) -> Iterator[tuple[Expression, Expression]]:
    """The pairs of expressions that inner joins with public tables compare."""
    if isinstance(source, Join):
        yield from _list_equal_values(source.left)
        if source.multiplicity is not None and not source.outer:
            yield from source.on
