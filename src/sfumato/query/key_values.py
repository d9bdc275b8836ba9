"""The public values of a group key, from those of the one column that it reads.

CASE WHEN city = 'Rome' THEN 'Italy' ELSE city END has no key 'Rome', and WHERE city LIKE 'R%' leaves only the keys that
pass. Everything follows from declarations and from the question, never from the data.
"""

from collections.abc import Iterable, Sequence

from sfumato.kernel.expressions import Column, Expression, Scalar, collect_columns
from sfumato.query.mapped_values import show_whole, take_work
from sfumato.query.query import Typed
from sfumato.query.relation import FromItem
from sfumato.row_meanings.evaluate import evaluate


def list_key_values(
    typed: Typed, items: Iterable[FromItem], filters: Sequence[Expression]
) -> tuple[Scalar, ...] | None:
    """All values that the key has for rows that pass the filters; None if they are unknown or too many."""
    names = collect_columns(typed.expression)
    column = _find_column(names, items)
    if column is None or column.values is None:
        return typed.values
    conditions = [condition for condition in filters if collect_columns(condition) == names]
    if not take_work(len(column.values) * (1 + len(conditions))):
        return typed.values
    name = names.pop()
    found: dict[Scalar, None] = {}
    for value in (*column.values, *((None,) if column.nullable else ())):
        row = {name: value}
        if all(evaluate(condition, row) is True for condition in conditions):
            made = evaluate(typed.expression, row)
            if made is not None:
                found[show_whole(made, whole=typed.whole)] = None
    if not found:  # no row passes: the question's caution says so
        return typed.values
    ordered = list(found) if typed.type in ("text", "boolean") else sorted(found)  # type: ignore[type-var]
    return tuple(ordered)


def _find_column(names: set[str], items: Iterable[FromItem]) -> Typed | None:
    """The one declared column that a key reads. None: it reads several, or one that has no list of values."""
    if len(names) != 1:
        return None
    for item in items:
        for typed in item.columns.values():
            if isinstance(typed.expression, Column) and typed.expression.name in names:
                return typed
    return None
