"""Changing the budget in catalog.toml. The rest of the owner's text is unchanged."""

import re
from pathlib import Path

from sfumato.catalog.budget import Budget
from sfumato.catalog.catalog_errors import build_catalog_error
from sfumato.catalog.catalog_file import read_bytes, read_dataset, replace_file
from sfumato.catalog.catalog_keys import FILE, LIMITS
from sfumato.catalog.catalog_text import write_budget_lines
from sfumato.catalog.dataset import change_dataset
from sfumato.errors import CatalogError

HEAD = re.compile(r"""\ufeff?\s*\[\s*["']?budget["']?\s*\]""")
LIMIT = re.compile(rf"""\s*["']?({"|".join(LIMITS)})["']?\s*=""")


def write_budget(folder: Path, budget: Budget) -> None:
    """Write this budget under [budget]."""
    path = Path(folder) / FILE
    before = read_bytes(path)
    declared = read_dataset(before)
    wanted = change_dataset(declared, budget=budget)
    if declared == wanted:
        return
    lines = list(write_budget_lines(budget))
    after = _replace_lines(before.decode(), lines).encode()
    try:
        done = read_dataset(after) == wanted
    except CatalogError:
        done = False
    if not done:
        raise build_catalog_error(
            f"{FILE}: the place of [budget] was not found.", f"Write there yourself: {'; '.join(lines)}"
        )
    replace_file(path, after)


def _replace_lines(text: str, limits: list[str]) -> str:
    """The text with these lines under [budget], instead of the old ones."""
    lines = re.split(r"(?<=\n)", text)
    head = next((number for number, line in enumerate(lines) if HEAD.match(line)), None)
    if head is None:
        return text
    end = "\r\n" if lines[head].endswith("\r\n") else "\n"
    after = lines[head + 1 :]
    last = next((number for number, line in enumerate(after) if line.lstrip().startswith("[")), len(after))
    kept = [line for line in after[:last] if not LIMIT.match(line)]
    start = lines[head].rstrip("\r\n") + end
    return "".join([*lines[:head], start, *(f"{line}{end}" for line in limits), *kept, *after[last:]])
