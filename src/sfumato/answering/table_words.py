# ruff: noqa: PLC0415 - commands import this; what is heavy is imported when it is needed
"""Describe a catalog in words and as JSON: tables, privacy units, contribution bounds, column bounds."""

from dataclasses import fields
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.catalog.columns import ColumnDeclaration
    from sfumato.catalog.dataset import Dataset, Table

MOST_SHOWN = 8


def write_dataset_json(dataset: "Dataset") -> dict[str, Any]:
    """What the catalog declares."""
    from sfumato.answers.answer import Cost

    return {
        "name": dataset.name,
        "population": dataset.population,
        "neighbours": dataset.neighbours.value,
        "budget": Cost.from_loss(dataset.budget.loss).as_text(),
        "tables": [write_table_json(table) for table in dataset.tables.values()],
    }


def write_table_json(table: "Table") -> dict[str, Any]:
    """One table. Its unit is a column, ROW, COUNTS(column), or null: public, or reached through another table."""
    return {
        "name": table.name,
        "source": table.source,
        "public": table.public,
        "unit": _name_unit(table),
        "count_column": table.count_column,
        "unit_through": list(table.unit_through) if table.unit_through else None,
        "max_rows_per_unit": table.max_rows_per_unit,
        "max_groups_per_unit": table.max_groups_per_unit,
        "rows": table.rows,
        "people": table.people,
        "columns": [_write_column_json(name, declared) for name, declared in table.columns.items()],
    }


def _name_unit(table: "Table") -> str | None:
    from sfumato.kernel.neighbours import ROW

    if table.public:
        return None
    if table.count_column is not None:
        return f"COUNTS({table.count_column})"
    return "ROW" if table.unit is ROW else table.unit


def _write_column_json(name: str, declared: "ColumnDeclaration") -> dict[str, Any]:
    from sfumato.catalog.catalog_keys import NAMES

    parts = {part.name: getattr(declared, part.name) for part in fields(declared)}
    texts = {key: part.isoformat() if isinstance(part, date) else part for key, part in parts.items()}
    return {"name": name, "type": NAMES[type(declared)], "nullable": True, **texts}


def describe_unit(table: "Table") -> str:
    """The privacy unit and the contribution bound of a table, in sentences."""
    from sfumato.kernel.neighbours import ROW

    if table.public:
        return "Public table."
    if table.count_column is not None:
        name, most = table.count_column, table.most_count
        clamped = "" if most is None else f" Counts above {most:,} are clamped."
        return f"Privacy unit: each unit of {name} is one person." + clamped + _describe_public(table.rows, "people")
    if table.unit is ROW:
        return "Privacy unit: each row." + _describe_public(table.rows, "rows")
    owner = table.unit or " of ".join(table.unit_through or ())
    rows, groups = table.max_rows_per_unit, table.max_groups_per_unit
    bound = f"{rows} row{'s' if rows > 1 else ''}, {groups} group{'s' if groups > 1 else ''}"
    return f"Privacy unit: {owner}. Contribution bound: {bound}." + _describe_public(table.people, "people")


def _describe_public(number: int | None, of_what: str) -> str:
    return "" if number is None else f" Public number of {of_what}: {number:,}."


def describe_bounds(column: dict[str, Any]) -> str:
    """The bounds or the first values of a column, from its JSON."""
    if "values" in column:
        values = [str(value) for value in column["values"]]
        return ", ".join(values[:MOST_SHOWN]) + (f", ... ({len(values)})" if len(values) > MOST_SHOWN else "")
    return f"{_show_value(column['lower'])} to {_show_value(column['upper'])}" if "lower" in column else ""


def _show_value(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else str(value)
