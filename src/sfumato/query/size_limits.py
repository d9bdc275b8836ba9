"""How large a question is, written out: a name stands for what it means, and counts as often as it is read."""

from collections.abc import Iterator
from typing import assert_never

from sqlglot import exp

from sfumato.kernel.expressions import Call, Expression
from sfumato.kernel.row_sources import Derived, Join, PerUnit, PublicScan, Scan, Source, Union
from sfumato.query.parse import syntax_refusal
from sfumato.query.query import Query

MOST_PARTS = 4_000  # of one expression
MOST_LEVELS = 100
MOST_WRITTEN = 20_000  # of a question
TOO_LARGE = "The question is too large, with its subqueries written out"


class PartCounter:
    """Counts the parts of expressions. Each is measured once, however many share it, so counting takes no time."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[int, int]] = {}
        self._kept: list[Expression] = []  # sizes are known by identity, and nothing else may take its place
        self._total = 0

    def add(self, node: exp.Expr, expression: Expression) -> None:
        """Count what a name stands for."""
        self._total += self.measure(expression)[0]
        if self._total > MOST_WRITTEN:
            raise syntax_refusal(node, TOO_LARGE, "Ask for less at once.")

    def measure(self, expression: Expression) -> tuple[int, int]:
        """The number of its parts, and how deep they are nested."""
        if id(expression) not in self._sizes:
            inner = [self.measure(each) for each in expression.arguments] if isinstance(expression, Call) else []
            self._kept.append(expression)
            self._sizes[id(expression)] = (
                1 + sum(size for size, _ in inner),
                1 + max((depth for _, depth in inner), default=0),
            )
        return self._sizes[id(expression)]


def refuse_large_expression(node: exp.Expr, expression: Expression) -> None:
    """Refuse what has grown too large by being written into itself, again and again, through subqueries."""
    size, depth = PartCounter().measure(expression)
    if size > MOST_PARTS or depth > MOST_LEVELS:
        raise syntax_refusal(node, "The question has too many parts", "Ask for less at once.")


def refuse_large_query(node: exp.Expr, query: Query) -> None:
    """Refuse a question that is too large in all: its source, filters, keys and values."""
    counter = PartCounter()
    values = [each.value.expression for each in query.aggregates if each.value is not None]
    for each in (*_list_expressions(query.source), *query.filters, *(key.expression for key in query.keys), *values):
        counter.add(node, each)


def _list_expressions(source: Source) -> Iterator[Expression]:
    """The expressions of a source."""
    match source:
        case Scan() | PublicScan():
            return
        case Derived(inner, filters, columns):
            yield from _list_expressions(inner)
            yield from (*filters, *(each for _, each in columns))
        case Join(left, right, on=pairs):
            yield from _list_expressions(left)
            yield from _list_expressions(right)
            yield from (each for pair in pairs for each in pair)
        case Union(parts):
            for each in parts:
                yield from _list_expressions(each)
        case PerUnit(inner, filters, unit_columns):
            yield from _list_expressions(inner)
            yield from (*filters, *(each.value for each in unit_columns if each.value is not None))
        case _:
            assert_never(source)
