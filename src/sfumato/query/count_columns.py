"""The count column of a counts table in a question: it is 1 for each person, so only SUM and COUNT may use it."""

from collections.abc import Iterator
from typing import assert_never

from sqlglot import exp

from sfumato.catalog.dataset import Dataset
from sfumato.catalog.names import find_name
from sfumato.kernel.expressions import COMPUTED, Call, Expression, collect_columns
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Query


def check_count_use(tree: exp.Query, query: Query, dataset: Dataset) -> tuple[str, ...]:
    """Refuse `WHERE n > 5`, `GROUP BY n`, `AVG(n)`: each row has n = 1, which is probably not what the question means.

    Returns sentences about the counts tables of the question, for explain().
    """
    counts = _find_count_columns(query.source, dataset)
    if not counts:
        return ()
    conditions = [*query.filters, *(key.expression for key in query.keys), *_list_conditions(query.source)]
    for aggregate in query.aggregates:
        value = None if aggregate.value is None else aggregate.value.expression
        if value is not None and not (aggregate.function == "SUM" and _is_computed(value, set(counts))):
            conditions.append(value)
    for condition in conditions:
        for column in sorted(collect_columns(condition) & set(counts)):
            _, name = counts[column]
            node = next((node for node in tree.find_all(exp.Column) if _is_misused(node, name)), tree)
            what = f"{name}[at] is 1 for each person of a counts table: it can be used only in SUM and COUNT"
            raise build_syntax_refusal(
                node, what, f"SUM({name}) counts people. For large groups: HAVING SUM({name}) > 5."
            )
    return tuple(
        f"Privacy unit of {table}: each unit of {name} is one person. A record with {name} = 5 stands for 5 people, "
        f"each with {name} = 1."
        for table, name in dict.fromkeys(counts.values())
    )


def _is_misused(node: exp.Column, name: str) -> bool:
    return find_name(node.name, (name,)) is not None and node.find_ancestor(exp.Sum, exp.Count) is None


def _is_computed(value: Expression, counts: set[str]) -> bool:
    """Is a count column used only in arithmetic?"""
    match value:
        case Call(function, arguments):
            inside = all(_is_computed(argument, counts) for argument in arguments)
            return inside and (function in COMPUTED or not collect_columns(value) & counts)
        case _:
            return True


def _find_count_columns(source: Source, dataset: Dataset) -> dict[str, tuple[str, str]]:
    """The count columns of the source's tables: the name in expressions, and (table, declared name)."""
    match source:
        case Scan(table, prefix=prefix):
            name = dataset.table(table).count_column
            return {} if name is None else {prefix + name: (table, name)}
        case PublicScan():
            return {}
        case Derived(inner) | PerUnit(inner) | PerKey(inner) | Capped(inner):
            return _find_count_columns(inner, dataset)
        case Join(left, right):
            return _find_count_columns(left, dataset) | _find_count_columns(right, dataset)
        case Union(parts):
            return {name: column for part in parts for name, column in _find_count_columns(part, dataset).items()}
        case _:
            assert_never(source)


def _list_conditions(source: Source) -> Iterator[Expression]:
    """The conditions of WHERE and ON below a question."""
    match source:
        case Scan() | PublicScan():
            return
        case Capped(inner):
            yield from _list_conditions(inner)
        case Derived(inner, filters) | PerUnit(inner, filters) | PerKey(inner, filters):
            yield from filters
            yield from _list_conditions(inner)
        case Join(left, right, on=on):
            yield from (side for pair in on for side in pair)
            yield from _list_conditions(left)
            yield from _list_conditions(right)
        case Union(parts):
            for part in parts:
                yield from _list_conditions(part)
        case _:
            assert_never(source)
