"""Run a notebook (a Python file in the percent format) and write it, with its output, as a page of the site."""

import contextlib
import html
import io
import os
import re
import tempfile
import warnings
from pathlib import Path

from notebook_cells import Cell, read_cells, run_cell

ROOT = Path(__file__).resolve().parents[2]
ANSI = re.compile(r"\x1b\[[0-9;]*m")
OWN_PAGE = re.compile(r"^\s*(<!doctype|<html)", re.IGNORECASE)


def render_notebook(path: Path) -> str:
    """The page in Markdown: texts, code, and what the code prints and shows. A cell that fails is an error."""
    names: dict[str, object] = {"__name__": "__main__"}
    parts = [f"---\nnotebook: {path.name}\n---"]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)  # what a notebook writes is not part of the project
        try:
            for cell in read_cells(path):
                parts.append(cell.text if cell.kind == "markdown" else _render_code(cell, names, path.stem))
        finally:
            os.chdir(before)
    where = path.relative_to(ROOT)
    told = f"*This page is the notebook `{where}`, run when the site was built. The noise is drawn again each time.*"
    parts.append(told)
    return "\n\n".join(part for part in parts if part)


def _render_code(cell: Cell, names: dict[str, object], name: str) -> str:
    if not cell.text.strip():
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = run_cell(cell, names, name)
    parts = [f"````python\n{cell.text}\n````"]
    text = ANSI.sub("", printed.getvalue()).rstrip()
    if text:
        parts.append(f"````text\n{text}\n````")
    if value is not None:
        parts.append(show(value))
    return "\n\n".join(parts)


def show(value: object) -> str:
    """What a notebook shows for the value of a cell."""
    shown = getattr(value, "_repr_mimebundle_", dict)()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    if "image/svg+xml" in (bundle or {}):
        return f'<div class="chart">{_inline(bundle["image/svg+xml"])}</div>'
    drawn = getattr(value, "_repr_html_", lambda: None)()
    if drawn is None:
        return f"````text\n{value!r}\n````"
    if OWN_PAGE.match(drawn):
        return _frame(drawn)
    return f'<div class="output">{_inline(drawn)}</div>'


def _frame(page: str) -> str:
    """A page of its own inside the page: its styles do not meet those of the site."""
    source = html.escape(page, quote=True).replace("\n", "&#10;")
    grow = "this.style.height=this.contentDocument.documentElement.scrollHeight+24+'px'"
    return f'<iframe class="view" title="Output" srcdoc="{source}" onload="{grow}" loading="lazy"></iframe>'


def _inline(text: str) -> str:
    """HTML without empty lines, which would end it in Markdown."""
    return re.sub(r"\n\s*", "\n", text.strip())
