"""Expressions over one row: columns, literals and calls of total functions."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

Scalar = None | bool | int | float | str | date | datetime


class ColumnType(Enum):
    """What a column of a snapshot holds."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    DATETIME = "datetime"
    ID = "id"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the plan's source: a declared name, or `t1.name` where the source has several parts."""

    name: str
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the analyst wrote."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the allow-list, applied to expressions. Every function is total: see query/functions.py."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression = Column | Literal | Call


def may_be_negative_zero(expression: Expression) -> bool:
    """Is it a number that was computed? Two zeros are one key, and must be told apart nowhere."""
    match expression:
        case Column(_, kind):
            return kind is ColumnType.REAL
        case Literal(value):
            return isinstance(value, float)
        case Call("case", arguments):
            return any(may_be_negative_zero(each) for each in (*arguments[1::2], arguments[-1]))
        case Call("coalesce", arguments):
            return any(may_be_negative_zero(each) for each in arguments)
        case Call(function):
            return function in COMPUTED


COMPUTED = ("+", "-", "*", "/", "neg", "abs", "floor", "ceil")
TRUTHS = ("and", "or", "not", "is null", "like", "=", "<>", "<", "<=", ">", ">=")
MADE = {"midnight": "datetime", "date_trunc": "date", "datetime_trunc": "datetime"}
MADE |= dict.fromkeys((*COMPUTED, "extract", "date_diff"), "number") | dict.fromkeys(TRUTHS, "boolean")
HELD_AS = {
    ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.BOOLEAN: "boolean", ColumnType.TEXT: "text",
    ColumnType.DATE: "date", ColumnType.DATETIME: "datetime", ColumnType.ID: "text",
}  # fmt: skip
WRITTEN = {bool: "boolean", int: "number", float: "number", str: "text", date: "date", datetime: "datetime"}


def kinds_of(expression: Expression) -> set[str]:
    """What its values may be: numbers, texts (ids too), truth values, days or moments; of NULL alone nothing."""
    match expression:
        case Column(_, kind):
            return {HELD_AS[kind]}
        case Literal(None):
            return set()
        case Literal(value):
            return {WRITTEN[type(value)]}
        case Call("case", arguments):
            return set().union(*(kinds_of(each) for each in (*arguments[1:-1:2], arguments[-1])))
        case Call("coalesce", arguments):
            return set().union(*(kinds_of(each) for each in arguments))
        case Call(function):
            return {MADE.get(function.split(" ")[0] if function not in MADE else function, "unknown")}


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns that an expression reads."""
    match expression:
        case Column(name):
            return {name}
        case Literal():
            return set()
        case Call(_, arguments):
            return set().union(*(columns_of(each) for each in arguments))
