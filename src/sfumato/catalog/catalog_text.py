"""Writing a dataset as the lines of a catalog.toml."""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from datetime import date
from decimal import Decimal

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_keys import LIMITS, NAMES, TABLE_KEYS
from sfumato.catalog.columns import ColumnDeclaration, Integer
from sfumato.catalog.dataset import Dataset, Table
from sfumato.catalog.text_format import KEYS as READING_KEYS
from sfumato.catalog.text_format import PLAIN_TEXT
from sfumato.kernel.exact import write_plain
from sfumato.kernel.neighbours import ROW


def write_catalog_lines(dataset: Dataset) -> Iterator[str]:
    """All lines of the catalog."""
    yield "[dataset]"
    yield f"name = {write_string(dataset.name)}"
    yield f"population = {write_string(dataset.population)}"
    yield f"neighbours = {write_string(dataset.neighbours.value)}"
    if dataset.schemas:
        yield f"schemas = [{', '.join(map(write_string, dataset.schemas))}]"
    if dataset.engine is not None:
        yield f"engine = {write_string(dataset.engine)}"
    if dataset.ledger is not None:
        yield f"ledger = {write_string(dataset.ledger)}"
    if dataset.ledger_id is not None:
        yield f"ledger_id = {write_string(dataset.ledger_id)}"
    yield from _write_budget("budget", dataset.budget)
    for name, limit in dataset.analysts.items():
        yield from _write_budget(f"analysts.{write_key(name)}", limit)
    for table in dataset.tables.values():
        yield from _write_table(table)
    for name, sql in dataset.views.items():
        yield from ("", f"[views.{write_key(name)}]", f"sql = {write_string(sql)}")
    yield ""


def _write_budget(where: str, budget: Budget) -> Iterator[str]:
    yield from ("", f"[{where}]")
    yield from write_budget_lines(budget)


def write_budget_lines(budget: Budget) -> Iterator[str]:
    """The lines of a budget."""
    for key in LIMITS:
        value = getattr(budget, key)
        if value is not None:
            yield f"{key} = {write_string(write_plain(value) if isinstance(value, Decimal) else value)}"


def _write_table(table: Table) -> Iterator[str]:
    yield from ("", f"[tables.{write_key(table.name)}]")
    if table.source is not None:
        yield f"source = {write_string(table.source)}"
    if table.public:
        pass  # no privacy unit
    elif table.count_column is not None:
        yield 'unit = "counts"'
        yield f"count_column = {write_string(table.count_column)}"
    elif table.unit is ROW:
        yield 'unit = "row"'
    elif table.unit is not None:
        yield f"unit_column = {write_string(table.unit)}"
    elif table.unit_through:
        column, through = map(write_string, table.unit_through)
        yield f"unit_through = {{ column = {column}, table = {through} }}"
    defaults = {part.name: part.default for part in fields(Table) if part.default is not MISSING}
    for key in TABLE_KEYS:
        if getattr(table, key) != defaults[key]:
            yield f"{key} = {write_value(getattr(table, key))}"
    for key in READING_KEYS:
        if getattr(table.reading, key) != getattr(PLAIN_TEXT, key):
            yield f"{key} = {write_value(getattr(table.reading, key))}"
    for name, declaration in list_written_columns(table).items():
        parts = {part.name: getattr(declaration, part.name) for part in fields(declaration)}
        if parts.get("nullable"):
            del parts["nullable"]
        parts.pop("unique", None)  # the table's keys say it
        written = {"type": NAMES[type(declaration)], **parts}
        pairs = ", ".join(f"{key} = {write_value(part)}" for key, part in written.items())
        yield f"columns.{write_key(name)} = {{ {pairs} }}"


def list_written_columns(table: Table) -> dict[str, ColumnDeclaration]:
    """The columns that a catalog declares. The key count_column declares that column, except for its largest count."""
    columns = dict(table.columns)
    if table.count_column is not None:
        del columns[table.count_column]
        if table.most_count is not None:
            columns[table.count_column] = Integer(0, table.most_count)
    return columns


def write_value(value: object) -> str:
    """A value in TOML."""
    match value:
        case str():
            return write_string(value)
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case tuple():
            return f"[{', '.join(map(write_value, value))}]"
        case date():
            return write_string(value.isoformat())
        case _:
            return str(value)


def write_string(text: str) -> str:
    """A TOML basic string. TOML has JSON's escapes, except for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_key(name: str) -> str:
    """A key of TOML, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else write_string(name)
