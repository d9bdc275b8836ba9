"""Reading and writing catalog.toml."""

import difflib
import json
import os
import re
import shutil
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_errors import build_catalog_error, name_place
from sfumato.catalog.columns import Boolean, Category, ColumnDeclaration, Date, DateTime, Id, Integer, Real, Text
from sfumato.catalog.dataset import Dataset, Table, change_dataset
from sfumato.catalog.names import find_name
from sfumato.catalog.text_format import KEYS as READING_KEYS
from sfumato.catalog.text_format import PLAIN_TEXT, TextFormat
from sfumato.errors import CatalogError, describe_kind
from sfumato.kernel.exact import write_plain
from sfumato.kernel.neighbours import ROW

FILE = "catalog.toml"
KINDS: dict[str, type[Any]] = {
    "integer": Integer,
    "real": Real,
    "category": Category,
    "boolean": Boolean,
    "text": Text,
    "date": Date,
    "datetime": DateTime,
    "id": Id,
}
NAMES = {kind: name for name, kind in KINDS.items()}
LIMITS = ("epsilon", "delta", "accounting", "rho", "mu")
TABLE_KEYS = (
    "max_rows_per_unit",
    "max_groups_per_unit",
    "rows",
    "people",
    "public",
    "unique",
)  # as in Table
ABOUT = ("name", "population", "neighbours", "ledger_id", "ledger", "schemas", "engine")  # as in Dataset
HEAD = re.compile(r"""\ufeff?\s*\[\s*["']?dataset["']?\s*\]""")
LEDGER_ID = re.compile(r"""(\s*["']?ledger_id["']?\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*')""")
UNITS = (
    'unit_column = "…", unit = "row", unit = "counts" with count_column = "…", '
    'unit_through = { column = "…", table = "…" } or public = true'
)

Section = Mapping[str, Any]


def read_dataset(content: bytes) -> Dataset:
    """The dataset that the text of a catalog declares."""
    return _read_content(_parse(content))


def load_catalog(folder: Path) -> Dataset:
    """The dataset that folder/catalog.toml declares."""
    return read_dataset(read_bytes(Path(folder) / FILE))


def write_catalog(dataset: Dataset, folder: Path) -> None:
    """Write folder/catalog.toml, all of it or nothing. It is refused if it would not read back as the same dataset."""
    content = "\n".join(_write_lines(dataset)).encode()
    if _read_content(_parse(content)) != dataset:
        raise build_catalog_error(
            "This dataset cannot be written as a catalog.toml.", "Its numbers may be too long to be read back."
        )
    replace_file(Path(folder) / FILE, content)


def is_automatic(folder: Path, table: str) -> bool:
    """Does the catalog leave max_rows_per_unit of this table to be chosen?"""
    tables = _parse(read_bytes(Path(folder) / FILE)).get("tables", {})
    declared = tables.get(table) if isinstance(tables, dict) else None
    return isinstance(declared, dict) and declared.get("max_rows_per_unit") == "auto"


def set_ledger_id(folder: Path, ledger_id: str) -> None:
    """Write the ledger's id under [dataset]. The rest of the owner's text is unchanged."""
    path = Path(folder) / FILE
    before = read_bytes(path)
    declared = _read_content(_parse(before))
    wanted = change_dataset(declared, ledger_id=ledger_id)
    after = _set_line(before.decode(), wanted.ledger_id or "").encode()
    try:
        done = _read_content(_parse(after)) == wanted
    except CatalogError:
        done = False
    if not done:
        line = f"ledger_id = {_write_string(ledger_id)}"
        raise build_catalog_error(
            f"{FILE}: the place of ledger_id was not found.", f"Write it under [dataset] yourself: {line}"
        )
    replace_file(path, after)


def _set_line(text: str, ledger_id: str) -> str:
    """The text with the line of ledger_id changed, or added below the other lines of [dataset]."""
    lines = re.split(r"(?<=\n)", text)
    head = next((number for number, line in enumerate(lines) if HEAD.match(line)), None)
    if head is None:
        return text
    last = head
    for number, line in enumerate(lines[head + 1 :], head + 1):
        if line.lstrip().startswith("["):
            break
        if found := LEDGER_ID.match(line):
            lines[number] = found[1] + _write_string(ledger_id) + line[found.end() :]
            return "".join(lines)
        if line.strip() and not line.lstrip().startswith("#"):
            last = number
    end = "\r\n" if lines[head].endswith("\r\n") else "\n"
    lines[last] = lines[last].rstrip("\r\n") + end
    return "".join([*lines[: last + 1], f"ledger_id = {_write_string(ledger_id)}{end}", *lines[last + 1 :]])


def write_public_catalog(dataset: Dataset) -> str:
    """What an analyst may know of a dataset, as a catalog: its declarations, without sources, ledger and analysts."""
    tables = {name: _hide_source(table) for name, table in dataset.tables.items()}
    shown = change_dataset(dataset, tables=tables, engine=None, ledger=None, ledger_id=None, analysts={})
    return "\n".join(_write_lines(shown))


def _hide_source(table: Table) -> Table:
    parts: dict[str, Any] = {part.name: getattr(table, part.name) for part in fields(Table)}
    return Table(**{**parts, "source": None, "reading": PLAIN_TEXT})


def read_bytes(path: Path) -> bytes:
    """The bytes of a catalog's file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "Make one with `sfumato init`, or choose its folder with -C."
        raise build_catalog_error(f"There is no {FILE} in {path.parent.absolute()}.", hint) from None
    except OSError as error:
        raise build_catalog_error(
            f"{path} cannot be read: {error.strerror}.", "Check that it is a readable file."
        ) from None


def _parse(content: bytes) -> Section:
    try:
        return tomllib.loads(content.decode("utf-8-sig"), parse_float=Decimal)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise build_catalog_error(f"{FILE}, line {line}: the text is not UTF-8.", "Save the file as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise build_catalog_error(
            f"{FILE} is not TOML: {error}.", "Texts need quotes, and a table is declared once."
        ) from None
    except (ValueError, ArithmeticError, RecursionError):
        raise build_catalog_error(f"{FILE} is not TOML: a number is too long, or nesting too deep.") from None


def _read_content(content: Section) -> Dataset:
    _check_keys("", content, ("dataset", "budget", "analysts", "tables", "views"), ("dataset", "budget"))
    about = _read_section("dataset", content["dataset"])
    _check_keys("dataset", about, ABOUT, ("name",))
    budget = _read_budget("budget", content["budget"], "basic")
    analysts = _read_section("analysts", content.get("analysts", {}))
    tables = _read_section("tables", content.get("tables", {}))
    return Dataset(
        **about,
        tables=[_read_table(name, table) for name, table in tables.items()],
        budget=budget,
        analysts={name: _read_budget(f"analysts.{name}", limit, budget.accounting) for name, limit in analysts.items()},
        views={name: _read_view(name, view) for name, view in _read_section("views", content.get("views", {})).items()},
    )


def _read_view(name: str, raw: object) -> str:
    view = _read_section(f"views.{name}", raw)
    _check_keys(f"views.{name}", view, ("sql",), ("sql",))
    sql: str = view["sql"]
    return sql


def _read_budget(where: str, raw: object, accounting: str) -> Budget:
    limits = _read_section(where, raw)
    _check_keys(where, limits, LIMITS, ())
    with name_place(where):
        return Budget(**{"accounting": accounting, **limits})


def _read_table(name: str, raw: object) -> Table:
    where = f"tables.{name}"
    table = _read_section(where, raw)
    _check_keys(
        where,
        table,
        ("source", "unit_column", "unit", "count_column", "unit_through", *TABLE_KEYS, *READING_KEYS, "columns"),
        (),
    )
    columns = {
        column: _read_column(f"{where}.columns.{column}", declared)
        for column, declared in _read_section(f"{where}.columns", table.get("columns", {})).items()
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
        through = _read_section(f"{where}.unit_through", table["unit_through"])
        _check_keys(f"{where}.unit_through", through, ("column", "table"), ("column", "table"))
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
    declared = _read_section(where, raw)
    name = declared.get("type")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise build_catalog_error(f"{where}: type must be one of {', '.join(KINDS)}.", _suggest_key(name, KINDS))
    known = tuple(part.name for part in fields(kind))
    _check_keys(where, declared, ("type", *known), tuple(key for key in known if key not in ("nullable", "unique")))
    with name_place(where):
        declaration: ColumnDeclaration = kind(**{key: value for key, value in declared.items() if key != "type"})
        return declaration


def _read_section(where: str, raw: object) -> Section:
    if not isinstance(raw, dict):
        raise build_catalog_error(
            f"{where} must be a section of keys and values; got {describe_kind(raw)}.", f"Begin it with [{where}]."
        )
    return raw


def _check_keys(where: str, section: Section, known: tuple[str, ...], required: tuple[str, ...]) -> None:
    place = f"{where}: " if where else ""
    for key in section:
        if key not in known:
            raise build_catalog_error(f"{place}there is no key {key!r} here.", _suggest_key(key, known))
    for key in required:
        if key not in section:
            raise build_catalog_error(f"{place}{key} is missing.", f"Needed here: {', '.join(required)}.")


def _suggest_key(key: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key.casefold(), known, 1, 0.5) if isinstance(key, str) else []
    return f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(known)}."


def _write_lines(dataset: Dataset) -> Iterator[str]:
    yield "[dataset]"
    yield f"name = {_write_string(dataset.name)}"
    yield f"population = {_write_string(dataset.population)}"
    yield f"neighbours = {_write_string(dataset.neighbours.value)}"
    if dataset.schemas:
        yield f"schemas = [{', '.join(map(_write_string, dataset.schemas))}]"
    if dataset.engine is not None:
        yield f"engine = {_write_string(dataset.engine)}"
    if dataset.ledger is not None:
        yield f"ledger = {_write_string(dataset.ledger)}"
    if dataset.ledger_id is not None:
        yield f"ledger_id = {_write_string(dataset.ledger_id)}"
    yield from _write_budget("budget", dataset.budget)
    for name, limit in dataset.analysts.items():
        yield from _write_budget(f"analysts.{_write_key(name)}", limit)
    for table in dataset.tables.values():
        yield from _write_table(table)
    for name, sql in dataset.views.items():
        yield from ("", f"[views.{_write_key(name)}]", f"sql = {_write_string(sql)}")
    yield ""


def _write_budget(where: str, budget: Budget) -> Iterator[str]:
    yield from ("", f"[{where}]")
    yield from write_budget_lines(budget)


def write_budget_lines(budget: Budget) -> Iterator[str]:
    """The lines of a budget."""
    for key in LIMITS:
        value = getattr(budget, key)
        if value is not None:
            yield f"{key} = {_write_string(write_plain(value) if isinstance(value, Decimal) else value)}"


def _write_table(table: Table) -> Iterator[str]:
    yield from ("", f"[tables.{_write_key(table.name)}]")
    if table.source is not None:
        yield f"source = {_write_string(table.source)}"
    if table.public:
        pass  # no privacy unit
    elif table.count_column is not None:
        yield 'unit = "counts"'
        yield f"count_column = {_write_string(table.count_column)}"
    elif table.unit is ROW:
        yield 'unit = "row"'
    elif table.unit is not None:
        yield f"unit_column = {_write_string(table.unit)}"
    elif table.unit_through:
        column, through = map(_write_string, table.unit_through)
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
        yield f"columns.{_write_key(name)} = {{ {pairs} }}"


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
            return _write_string(value)
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case tuple():
            return f"[{', '.join(map(write_value, value))}]"
        case date():
            return _write_string(value.isoformat())
        case _:
            return str(value)


def _write_string(text: str) -> str:
    """A TOML basic string. TOML has JSON's escapes, except for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _write_string(name)


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file in one step. A crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the name too, not only the content
        finally:
            os.close(folder)
    except OSError as error:
        raise build_catalog_error(
            f"{path} cannot be written: {error.strerror}.", "Check that the folder exists and is yours."
        ) from None
