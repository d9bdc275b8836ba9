"""Declared columns -> Typed: bounds, possible values and types follow from the catalog alone."""

from collections.abc import Mapping
from types import MappingProxyType

from sfumato.catalog.columns import Boolean, Category, Date, DateTime, Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.kernel.expressions import Column, ColumnType, Scalar
from sfumato.query import functions
from sfumato.query.date_functions import list_keys_between
from sfumato.query.periods import convert_to_number
from sfumato.query.query import Typed

TYPES = {
    ColumnType.INTEGER: "number", ColumnType.REAL: "number", ColumnType.BOOLEAN: "boolean",
    ColumnType.TEXT: "text", ColumnType.DATE: "date", ColumnType.DATETIME: "datetime", ColumnType.ID: "id",
}  # fmt: skip
MOST_REMEMBERED = 16
# By identity, not by equality: equal declarations can differ in type (1 == 1.0). The table is part of the value, so
# that its identity is not used again while it is remembered.
_REMEMBERED: dict[int, tuple[Table, Mapping[str, Typed]]] = {}


def type_columns(table: Table, prefix: str) -> Mapping[str, Typed]:
    """All columns of a table, each named with a prefix. Those without a prefix are computed once for each table."""
    if prefix:
        return {name: type_column(table, name, prefix) for name in table.columns}
    remembered = _REMEMBERED.get(id(table))
    if remembered is not None and remembered[0] is table:
        return remembered[1]
    columns = MappingProxyType({name: type_column(table, name) for name in table.columns})
    if len(_REMEMBERED) >= MOST_REMEMBERED:
        _REMEMBERED.clear()
    _REMEMBERED[id(table)] = (table, columns)
    return columns


def _list_public(table: Table, name: str) -> tuple[Scalar, ...] | None:
    """The values of a real column of a public table, whose rows are known and not many."""
    if table.public_rows is None:
        return None
    place = list(table.columns).index(name)
    found = {row[place] for row in table.public_rows}
    numbers = sorted(value for value in found if isinstance(value, float))
    return tuple(numbers) if 0 < len(numbers) <= functions.MOST_KEYS else None


def type_column(table: Table, name: str, prefix: str = "") -> Typed:  # noqa: PLR0911 - one return for each type
    """One declared column, with the bounds and values that its declaration gives."""
    found = table.column(name)
    column = Column(prefix + found.name, found.type, found.nullable)
    kind = TYPES[column.type]
    match table.columns[name]:
        case Integer(lower=lower, upper=upper):
            values = functions.list_whole_values(lower, upper)
            return Typed(column, kind, column.nullable, float(lower), float(upper), True, values)
        case Real(lower=lower, upper=upper):
            return Typed(column, kind, column.nullable, lower, upper, values=_list_public(table, name))
        case Category(values=values) if kind == "number":
            low, high = float(min(values)), float(max(values))
            return Typed(column, kind, column.nullable, low, high, True, tuple(values))
        case Category(values=values):
            return Typed(column, kind, column.nullable, values=tuple(values))
        case Boolean():
            return Typed(column, kind, column.nullable, values=functions.TRUTHS)
        case Date(lower=first, upper=last):
            values = list_keys_between("date", "day", first, last)
            return Typed(
                column, kind, column.nullable, convert_to_number(first), convert_to_number(last), values=values
            )
        case DateTime(lower=first, upper=last):
            return Typed(column, kind, column.nullable, convert_to_number(first), convert_to_number(last))
    return Typed(column, kind, column.nullable)
