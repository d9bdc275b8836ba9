"""Conditions on a row as SQL: features and labels with the values true and false. NULL counts as false."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np

from sfumato.catalog.dataset import Dataset, Table
from sfumato.errors import InvalidParameter
from sfumato.query.declared_columns import type_column


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column: it is true, or at least a threshold; or the opposite. `sql` is never NULL."""

    column: str
    sql: str
    at_least: float | None = None  # None: the column itself is true (or 1)
    positive: bool = True

    def negate(self) -> "Condition":
        """The opposite condition."""
        return Condition(self.column, f"NOT ({self.sql})", self.at_least, not self.positive)

    def check(self, row: Mapping[str, object]) -> bool:
        """Whether a row satisfies it. A missing value is false before a negation."""
        value = read_number(row.get(self.column))
        if value is None:
            return not self.positive
        found = value == 1 if self.at_least is None else value >= self.at_least
        return found is self.positive

    def __str__(self) -> str:
        text = self.column if self.at_least is None else f"{self.column} >= {self.at_least:g}"
        return text if self.positive else f"NOT {text}"


def read_number(value: object) -> int | float | Fraction | Decimal | None:
    """A number or truth value of Python, numpy or pandas. None: a missing value (None, NaN, pandas' NA), or a text."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (int, Fraction)):
        return plain
    if isinstance(plain, Decimal):
        return None if plain.is_nan() else plain
    if not isinstance(plain, Real):
        return None
    number = float(plain)
    return None if math.isnan(number) else number


def read_truth(dataset: Dataset, table: str, column: str) -> Condition:
    """A column that is declared as Boolean, or as an integer from 0 to 1."""
    declared, name = _find_column(dataset, table, column)
    typed = type_column(declared, name)
    if typed.type == "boolean":
        return Condition(name, _fill_null(quote(name), nullable=typed.nullable))
    within = typed.lower is not None and typed.lower >= 0 and typed.upper is not None and typed.upper <= 1
    if typed.type == "number" and typed.whole and within:
        return Condition(name, _fill_null(f"{quote(name)} = 1", nullable=typed.nullable))
    hint = "Declare it as Boolean() or Integer(0, 1)."
    raise InvalidParameter("column", "must have the values true and false", f"{name}, which has others", hint)


def read_threshold(dataset: Dataset, table: str, column: str, at_least: float) -> Condition:
    """The condition that a number is at least a threshold."""
    declared, name = _find_column(dataset, table, column)
    typed = type_column(declared, name)
    if typed.type != "number":
        raise InvalidParameter("column", "must be a number", f"{name}, which is a {typed.type}")
    sql = _fill_null(f"{quote(name)} >= {at_least!r}", nullable=typed.nullable)
    return Condition(name, sql, at_least)


def join_conditions(conditions: Sequence[Condition]) -> str:
    """All conditions together, as SQL."""
    return " AND ".join(f"({condition.sql})" for condition in conditions)


def quote(name: str) -> str:
    """A column's name as SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _find_column(dataset: Dataset, table: str, column: str) -> tuple[Table, str]:
    declared = dataset.table(table)
    return declared, declared.column(column).name


def _fill_null(sql: str, *, nullable: bool) -> str:
    return f"COALESCE({sql}, FALSE)" if nullable else sql
