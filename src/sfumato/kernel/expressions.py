"""Expressions over one row: columns, literals and calls of total functions.

To add a function: give it types and bounds in query/ (functions.py and its neighbours), a lowering in engines/sql/
(scalars.py, function_sql.py), a meaning in row_meanings/, and the kind of its values here, in KIND_OF_RESULT.
"""

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

Scalar = None | bool | int | float | str | date | datetime
UNIT = "__sfumato_unit"  # the canonical id of a row's privacy unit: a column of every private source


class ColumnType(Enum):
    """The type of a snapshot's column."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    DATETIME = "datetime"
    ID = "id"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the plan's source: a declared name, or `t1.name` where the source has several tables."""

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
    unit: str | None = None  # "month" in EXTRACT(month FROM day), "BIGINT" in CAST(x AS BIGINT)


Expression = Column | Literal | Call

ARITHMETIC = ("+", "-", "*", "/", "neg", "abs", "floor", "ceil")
COMPUTED = (*ARITHMETIC, "mod", "round", "trunc", "sqrt", "ln", "exp", "text_real")  # whose value may be -0.0
NUMBERS = ("extract", "date_diff", "sign", "to_integer", "length", "strpos", "text_integer")
CAST_TEXTS = ("boolean_text", "integer_text", "date_text", "datetime_text")
TEXTS = ("upper", "lower", "||", "replace", "substr", "left", "right", "trim", "pad", "split", "strftime", *CAST_TEXTS)
DATES = ("date_trunc", "date_add", "make_date", "text_date", "datetime_date")
DATETIMES = ("midnight", "datetime_trunc", "datetime_add")
TRUTHS = ("and", "or", "not", "is null", "like", "=", "<>", "<", "<=", ">", ">=")
KIND_OF_RESULT = dict.fromkeys((*COMPUTED, *NUMBERS), "number") | dict.fromkeys(TRUTHS, "boolean")
KIND_OF_RESULT |= dict.fromkeys(TEXTS, "text") | dict.fromkeys(DATES, "date") | dict.fromkeys(DATETIMES, "datetime")
CHOOSING = ("coalesce", "least", "greatest")
KIND_OF_COLUMN = {column_type: column_type.value for column_type in ColumnType}
KIND_OF_COLUMN |= {ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.ID: "text"}
MOST_MADE = 1 << 16  # characters of a text that REPLACE makes longer, or that || makes
KIND_OF_LITERAL = {bool: "boolean", int: "number", float: "number", str: "text", date: "date", datetime: "datetime"}


def may_be_negative_zero(expression: Expression) -> bool:
    """Can its value be -0.0? In keys and joins, -0.0 and 0.0 must be equal on every engine."""
    match expression:
        case Column(_, kind):
            return kind is ColumnType.REAL
        case Literal(value):
            return isinstance(value, float)
        case Call(function):
            return function in COMPUTED or any(map(may_be_negative_zero, _list_outcomes(expression)))


def find_kinds(expression: Expression) -> set[str]:
    """The kinds that its values may have: number, text (ids too), boolean, date, datetime. NULL has no kind."""
    match expression:
        case Column(_, kind):
            return {KIND_OF_COLUMN[kind]}
        case Literal(None):
            return set()
        case Literal(value):
            return {KIND_OF_LITERAL[type(value)]}
        case Call(function):
            outcomes = [find_kinds(outcome) for outcome in _list_outcomes(expression)]
            return set[str]().union(*outcomes) if outcomes else {KIND_OF_RESULT.get(function, "unknown")}


def _list_outcomes(call: Call) -> "tuple[Expression, ...]":
    """The arguments of which one is the value of the call: those of CASE, COALESCE, LEAST and GREATEST."""
    if call.function == "case":
        return (*call.arguments[1:-1:2], call.arguments[-1])
    return call.arguments if call.function in CHOOSING else ()


def count_read(old: str, new: str) -> int | None:
    """How many characters of a text REPLACE reads, so that it makes no more than MOST_MADE; None: all of them.

    Claim: K-62. A function that makes a text longer makes at most MOST_MADE characters of any row.
    Requires: old is not empty (caller).
    Checked by: tests/engines/test_text_growth.py::test_no_row_makes_a_longer_text
    """
    return None if len(new) <= len(old) else MOST_MADE * len(old) // len(new)


def collect_columns(expression: Expression) -> set[str]:
    """The names of the columns that an expression reads."""
    match expression:
        case Column(name):
            return {name}
        case Literal():
            return set()
        case Call(_, arguments):
            return set[str]().union(*map(collect_columns, arguments))
