"""Changing keys of one table in catalog.toml. The rest of the owner's text is unchanged."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.catalog_file import read_bytes, read_dataset
from sfumato.catalog.catalog_keys import FILE
from sfumato.catalog.catalog_text import write_value
from sfumato.catalog.dataset import Dataset, change_dataset
from sfumato.catalog.text_format import TextFormat
from sfumato.errors import CatalogError

SECTION = re.compile(r"""\s*\[\s*tables\s*\.\s*(?:"(?P<quoted>[^"\\]+)"|'(?P<plain>[^']+)'|(?P<bare>[\w-]+))\s*\]""")


def edit_reading(folder: Path, table: str, keys: Mapping[str, str | bool]) -> tuple[bytes, Dataset]:
    """The catalog's text with these keys of a table's text format set, and the dataset that it declares."""
    before = read_bytes(Path(folder) / FILE)
    declared = read_dataset(before)
    reading = {part.name: getattr(declared.tables[table].reading, part.name) for part in fields(TextFormat)}
    changed = replace(declared.tables[table], reading=TextFormat(**reading | dict(keys)))
    tables = [changed if other.name == table else other for other in declared.tables.values()]
    wanted = change_dataset(declared, tables=tables)
    after = _edit_keys(before.decode("utf-8-sig"), table, keys).encode()
    try:
        done = read_dataset(after) == wanted
    except CatalogError:
        done = False
    if not done:
        lines = "\n".join(f"{key} = {write_value(value)}" for key, value in keys.items())
        raise build_catalog_error(
            f"{FILE}: the place of tables.{table} was not found.", f"Write there yourself:\n{lines}"
        )
    return after, wanted


def edit_max_rows(folder: Path, table: str, most: int) -> tuple[bytes, Dataset]:
    """The catalog's text with this max_rows_per_unit of a table, which may be "auto" before, and its dataset."""
    keys = {"max_rows_per_unit": most}
    after = _edit_keys(read_bytes(Path(folder) / FILE).decode("utf-8-sig"), table, keys).encode()
    wanted = read_dataset(after)
    if table not in wanted.tables or wanted.tables[table].max_rows_per_unit != most:
        raise build_catalog_error(
            f"{FILE}: the place of tables.{table} was not found.", f"Write there yourself: max_rows_per_unit = {most}"
        )
    return after, wanted


def replace_section(text: bytes, table: str, section: str) -> bytes:
    """The catalog's text with another section of a table in the place of its old one.

    Comments above the next section belong to that one. If the section is not found, the text is as it was.
    """
    lines = re.split(r"(?<=\n)", text.decode("utf-8-sig"))
    head = next((number for number, line in enumerate(lines) if _find_table_name(line) == table), None)
    if head is None:
        return text
    heads = (number for number in range(head + 1, len(lines)) if lines[number].lstrip().startswith("["))
    last = next((number for number in heads if _find_table_name(lines[number]) != table), len(lines))
    while last < len(lines) and lines[last - 1].strip()[:1] in ("", "#"):
        last -= 1
    after = ["\n", *lines[last:]] if last < len(lines) and lines[last].strip() else lines[last:]
    return "".join([*lines[:head], f"{section.strip()}\n", *after]).encode()


def _edit_keys(text: str, table: str, keys: Mapping[str, str | bool | int]) -> str:
    lines = re.split(r"(?<=\n)", text)
    head = next((number for number, line in enumerate(lines) if _find_table_name(line) == table), None)
    if head is None:
        return text
    end = "\r\n" if lines[head].endswith("\r\n") else "\n"
    lines[head] = lines[head].rstrip("\r\n") + end
    left = dict(keys)
    for number, line in enumerate(lines[head + 1 :], head + 1):
        if line.lstrip().startswith("["):
            break
        found = re.match(r"\s*([\w-]+)\s*=", line)
        if found and found[1] in left:
            lines[number] = f"{found[1]} = {write_value(left.pop(found[1]))}{end}"
    added = [f"{key} = {write_value(value)}{end}" for key, value in left.items()]
    return "".join([*lines[: head + 1], *added, *lines[head + 1 :]])


def _find_table_name(line: str) -> str | None:
    found = SECTION.match(line)
    return None if found is None else found["quoted"] or found["plain"] or found["bare"]
