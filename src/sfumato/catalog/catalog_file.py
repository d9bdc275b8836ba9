"""Reading and writing catalog.toml."""

import os
import re
import shutil
import threading
import tomllib
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_errors import build_catalog_error, name_place
from sfumato.catalog.catalog_keys import ABOUT, FILE, LIMITS, Section, check_keys, read_section
from sfumato.catalog.catalog_table import read_table
from sfumato.catalog.catalog_text import write_catalog_lines, write_string
from sfumato.catalog.dataset import Dataset, Table, change_dataset
from sfumato.catalog.text_format import PLAIN_TEXT
from sfumato.errors import CatalogError

HEAD = re.compile(r"""\ufeff?\s*\[\s*["']?dataset["']?\s*\]""")
LEDGER_ID = re.compile(r"""(\s*["']?ledger_id["']?\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*')""")


def read_dataset(content: bytes) -> Dataset:
    """The dataset that the text of a catalog declares."""
    return _read_content(_parse(content))


def load_catalog(folder: Path) -> Dataset:
    """The dataset that folder/catalog.toml declares."""
    return read_dataset(read_bytes(Path(folder) / FILE))


def write_catalog(dataset: Dataset, folder: Path) -> None:
    """Write folder/catalog.toml, all of it or nothing. It is refused if it would not read back as the same dataset."""
    content = "\n".join(write_catalog_lines(dataset)).encode()
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
        line = f"ledger_id = {write_string(ledger_id)}"
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
            lines[number] = found[1] + write_string(ledger_id) + line[found.end() :]
            return "".join(lines)
        if line.strip() and not line.lstrip().startswith("#"):
            last = number
    end = "\r\n" if lines[head].endswith("\r\n") else "\n"
    lines[last] = lines[last].rstrip("\r\n") + end
    return "".join([*lines[: last + 1], f"ledger_id = {write_string(ledger_id)}{end}", *lines[last + 1 :]])


def write_public_catalog(dataset: Dataset) -> str:
    """What an analyst may know of a dataset, as a catalog: its declarations, without sources, ledger and analysts."""
    tables = {name: _hide_source(table) for name, table in dataset.tables.items()}
    shown = change_dataset(dataset, tables=tables, engine=None, ledger=None, ledger_id=None, analysts={})
    return "\n".join(write_catalog_lines(shown))


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
    check_keys("", content, ("dataset", "budget", "analysts", "tables", "views"), ("dataset", "budget"))
    about = read_section("dataset", content["dataset"])
    check_keys("dataset", about, ABOUT, ("name",))
    budget = _read_budget("budget", content["budget"], "basic")
    analysts = read_section("analysts", content.get("analysts", {}))
    tables = read_section("tables", content.get("tables", {}))
    return Dataset(
        **about,
        tables=[read_table(name, table) for name, table in tables.items()],
        budget=budget,
        analysts={name: _read_budget(f"analysts.{name}", limit, budget.accounting) for name, limit in analysts.items()},
        views={name: _read_view(name, view) for name, view in read_section("views", content.get("views", {})).items()},
    )


def _read_view(name: str, raw: object) -> str:
    view = read_section(f"views.{name}", raw)
    check_keys(f"views.{name}", view, ("sql",), ("sql",))
    sql: str = view["sql"]
    return sql


def _read_budget(where: str, raw: object, accounting: str) -> Budget:
    limits = read_section(where, raw)
    check_keys(where, limits, LIMITS, ())
    with name_place(where):
        return Budget(**{"accounting": accounting, **limits})


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
