"""Reading one table of catalog.toml: its privacy unit, its bounds, and its columns."""

from dataclasses import fields

from sfumato.catalog.catalog_errors import build_catalog_error, name_place
from sfumato.catalog.catalog_keys import KINDS, TABLE_KEYS, check_keys, read_section, suggest_type
from sfumato.catalog.columns import ColumnDeclaration, Id
from sfumato.catalog.dataset import Table
from sfumato.catalog.names import find_name
from sfumato.catalog.text_format import KEYS as READING_KEYS
from sfumato.catalog.text_format import TextFormat
from sfumato.kernel.neighbours import ROW

UNITS = (
    'unit_column = "…", unit = "row", unit = "counts" with count_column = "…", '
    'unit_through = { column = "…", table = "…" } or public = true'
)


def read_table(name: str, raw: object) -> Table:
    where = f"tables.{name}"
    table = read_section(where, raw)
    check_keys(
        where,
        table,
        ("source", "unit_column", "unit", "count_column", "unit_through", *TABLE_KEYS, *READING_KEYS, "columns"),
        (),
    )
    columns = {
        column: _read_column(f"{where}.columns.{column}", declared)
        for column, declared in read_section(f"{where}.columns", table.get("columns", {})).items()
    }
    units = [key for key in ("unit_column", "unit", "unit_through") if key in table]
    if len(units) > 1:
        raise build_catalog_error(f"{where}: {' and '.join(units)} contradict each other.", f"Write one of: {UNITS}.")
    if not units and table.get("public") is not True:
        raise build_catalog_error(f"{where} has no privacy unit.", f"Write one of: {UNITS}.")
    if "unit" in table and table["unit"] not in ("row", "counts"):
        raise build_catalog_error(f'{where}: unit can only be "row" or "counts".', f"Write one of: {UNITS}.")
    if ("count_column" in table) != (table.get("unit") == "counts"):
        hint = 'For example: unit = "counts" and count_column = "n". Each unit of n is then one person.'
        raise build_catalog_error(f'{where}: unit = "counts" and count_column need each other.', hint)
    link = None
    if "unit_through" in table:
        through = read_section(f"{where}.unit_through", table["unit_through"])
        check_keys(f"{where}.unit_through", through, ("column", "table"), ("column", "table"))
        link = through["column"], through["table"]
    unit = ROW if "unit" in table else table.get("unit_column")
    owner = link[0] if link else unit
    if isinstance(owner, str) and find_name(owner, columns) is None:
        columns[owner] = Id()  # to name the unit's column is to declare it
    rest = {key: table[key] for key in TABLE_KEYS if key in table}
    if rest.get("max_rows_per_unit") == "auto":
        hint = f"Run `sfumato cap {name} --epsilon 0.1 --declare`: it buys a number and writes it here."
        raise build_catalog_error(f"{where}: max_rows_per_unit is not chosen yet.", hint)
    with name_place(where):
        reading = TextFormat(**{key: table[key] for key in READING_KEYS if key in table})
    return Table(
        name, table.get("source"), unit, columns, unit_through=link, reading=reading,
        count_column=table.get("count_column"), **rest,
    )  # fmt: skip


def _read_column(where: str, raw: object) -> ColumnDeclaration:
    declared = read_section(where, raw)
    name = declared.get("type")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise build_catalog_error(f"{where}: type must be one of {', '.join(KINDS)}.", suggest_type(name))
    known = tuple(part.name for part in fields(kind))
    check_keys(where, declared, ("type", *known), tuple(key for key in known if key not in ("nullable", "unique")))
    with name_place(where):
        declaration: ColumnDeclaration = kind(**{key: value for key, value in declared.items() if key != "type"})
        return declaration
