"""A plan that compares values of two kinds is refused: an engine would convert values, and fail on some rows."""

from datetime import date

import pytest

from sfumato.engines.sql.scalars import lower_expression
from sfumato.errors import KernelFault
from sfumato.kernel.expressions import Call, Column, ColumnType, Expression, Literal

TEXT, NUMBER = Column("t", ColumnType.TEXT), Column("n", ColumnType.INTEGER)
TRUTH = Call("=", (TEXT, Literal("a")))


@pytest.mark.parametrize(
    "node",
    [
        Call("=", (TEXT, Literal(2))),
        Call("<", (NUMBER, Literal("2"))),
        Call("<>", (Column("d", ColumnType.DATE), Literal("2020-01-01"))),
        Call("=", (Column("i", ColumnType.ID), NUMBER)),
        Call("=", (Column("b", ColumnType.BOOLEAN), Literal(1))),
        Call(">=", (Column("m", ColumnType.DATETIME), Literal(date(2020, 1, 1)))),
        Call("case", (TRUTH, Literal("a"), Literal(1))),
        Call("coalesce", (TEXT, NUMBER)),
        Call("and", (TRUTH, Call("=", (NUMBER, TEXT)))),
        Call("=", (Call("case", (TRUTH, TEXT, NUMBER)), TEXT)),
    ],
    ids=str,
)
def test_values_of_two_kinds_are_refused(node: Expression) -> None:
    with pytest.raises(KernelFault, match="two kinds"):
        lower_expression(node)


@pytest.mark.parametrize(
    "node",
    [
        TRUTH,
        Call("=", (NUMBER, Literal(None))),
        Call("case", (TRUTH, Literal(None), Literal(1))),
        Call("<", (NUMBER, Literal(2.5))),
    ],
    ids=str,
)
def test_values_of_one_kind_and_null_are_lowered(node: Expression) -> None:
    assert lower_expression(node).sql()
