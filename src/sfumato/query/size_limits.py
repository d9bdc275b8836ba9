"""Limits on the size of a question, with every name replaced by the expression that it stands for.

A name counts as often as it is used: a few nested subqueries could otherwise double an expression many times.
"""

from collections.abc import Iterator
from typing import assert_never

from sqlglot import exp

from sfumato.kernel.expressions import Call, Expression
from sfumato.kernel.row_sources import Capped, Derived, Join, PerKey, PerUnit, PublicScan, Scan, Source, Union
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Query
from sfumato.query.tokens import SHORTEN

MOST_PARTS = 4_000  # of one expression
MOST_LEVELS = 100
MOST_PARTS_OF_QUERY = 20_000
MOST_CELLS = 1_000_000  # groups of one question
MOST_BINS = 1 << 16  # among which one number is chosen
MOST_CHOSEN = 100  # of TOP_K
COPIES = {  # a function -> how often its SQL contains its argument, at most
    "sqrt": 2, "ln": 16, "exp": 40, "text_integer": 2, "text_real": 2, "text_date": 2, "make_date": 3,
}  # fmt: skip
MOST_IN_BINS = 1 << 28  # groups times bins of one question


class PartCounter:
    """Counts the parts of expressions. An expression that is shared is measured once, so counting is fast."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[int, int]] = {}
        self._measured: list[Expression] = []  # keeps them alive: sizes are stored by identity
        self._total = 0

    def add(self, node: exp.Expr, expression: Expression) -> None:
        """Count the parts of an expression, and refuse the question if the total is too large."""
        self._total += self.measure(expression)[0]
        if self._total > MOST_PARTS_OF_QUERY:
            raise build_syntax_refusal(node, "The question is too large once its subqueries are expanded", SHORTEN)

    def measure(self, expression: Expression) -> tuple[int, int]:
        """The number of parts, and how deeply they are nested."""
        if id(expression) not in self._sizes:
            arguments = expression.arguments if isinstance(expression, Call) else ()
            inner = [self.measure(argument) for argument in arguments]
            self._measured.append(expression)
            copies = COPIES.get(expression.function, 1) if isinstance(expression, Call) else 1
            self._sizes[id(expression)] = (
                1 + copies * sum(size for size, _ in inner),
                1 + max((depth for _, depth in inner), default=0),
            )
        return self._sizes[id(expression)]


def refuse_large_expression(node: exp.Expr, expression: Expression) -> None:
    """Refuse an expression that subqueries have made too large."""
    size, depth = PartCounter().measure(expression)
    if size > MOST_PARTS or depth > MOST_LEVELS:
        raise build_syntax_refusal(node, "The question has too many parts", SHORTEN)


def refuse_large_query(node: exp.Expr, query: Query) -> None:
    """Refuse a question whose source, filters, keys and values are together too large."""
    counter = PartCounter()
    keys = [key.expression for key in query.keys]
    values = [
        value.expression
        for aggregate in query.aggregates
        for value in (aggregate.value, *aggregate.also)
        if value is not None
    ]
    for expression in (*_list_expressions(query.source), *query.filters, *keys, *values):
        counter.add(node, expression)


def _list_expressions(source: Source) -> Iterator[Expression]:
    """All expressions inside a source."""
    match source:
        case Scan() | PublicScan():
            return
        case Derived(inner, filters, columns):
            yield from _list_expressions(inner)
            yield from (*filters, *(expression for _, expression in columns))
        case Join(left, right, on=pairs):
            yield from _list_expressions(left)
            yield from _list_expressions(right)
            yield from (expression for pair in pairs for expression in pair)
        case Union(parts):
            for part in parts:
                yield from _list_expressions(part)
        case Capped(inner):
            yield from _list_expressions(inner)
        case PerUnit(inner, filters, unit_columns):
            yield from _list_expressions(inner)
            yield from (*filters, *(column.value for column in unit_columns if column.value is not None))
        case PerKey(inner, filters, unit_columns, keys):
            yield from _list_expressions(inner)
            yield from (*filters, *(column.value for column in unit_columns if column.value is not None))
            yield from (expression for _, expression in keys)
        case _:
            assert_never(source)
