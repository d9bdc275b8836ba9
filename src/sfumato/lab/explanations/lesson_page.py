"""An explanation as a page: paragraphs, a figure, tables and notes. For a terminal, for a notebook, and as a file."""

import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Protocol

from sfumato.drawing.figure import Figure
from sfumato.drawing.pages import add_style, make_page, make_table

COLUMNS = 80


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of texts. The columns with the indexes `numbers` are aligned to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    title: str = ""
    folded: bool = False  # on a page, a reader opens it; a terminal leaves it out


@dataclass(frozen=True, slots=True)
class LessonPage:
    """What a view shows. `drawing` replaces the figure in a terminal."""

    title: str
    paragraphs: tuple[str, ...]
    figure: Figure
    drawing: tuple[str, ...]
    tables: tuple[PageTable, ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """The page for a terminal of 80 columns."""
        lines = textwrap.wrap(self.title, COLUMNS)
        for words in self.paragraphs:
            lines += textwrap.wrap(words, COLUMNS)
        if self.drawing:
            lines += ["", *self.drawing]
        for table in self.tables:
            if not table.folded:
                lines += ["", *([table.title] if table.title else []), *lay_out_table(table)]
        if self.notes:
            lines.append("")
        for note in self.notes:
            lines += textwrap.wrap(note, COLUMNS)
        return "\n".join(lines)

    def html(self) -> str:
        """The page as a piece of HTML."""
        words = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in self.paragraphs)
        tables = "".join(map(_draw_table, self.tables))
        notes = "".join(f'<p class="sf-note">{escape(note)}</p>' for note in self.notes)
        return f"<h1>{escape(self.title)}</h1>{words}{self.figure.html()}{tables}{notes}"

    def notebook_html(self) -> str:
        """The page for a notebook: it has its own style."""
        return add_style(self.html())

    def save(self, path: str | Path) -> None:
        """Write a self-contained HTML page."""
        Path(path).write_text(make_page(self.title, self.html()), encoding="utf-8")


class HasPage(Protocol):
    """A result that is shown as a page."""

    @property
    def page(self) -> LessonPage: ...


def save_page(result: HasPage, path: str | Path) -> None:
    """Write a self-contained HTML page."""
    result.page.save(path)


def write_text(result: HasPage) -> str:
    """The result for a terminal of 80 columns."""
    return result.page.text()


def write_html(result: HasPage) -> str:
    """The result for a notebook."""
    return result.page.notebook_html()


def _draw_table(table: PageTable) -> str:
    drawn = make_table(table.headings, table.rows, table.numbers)
    if table.folded:
        return f"<details><summary>{escape(table.title)}</summary>{drawn}</details>"
    return (f"<h2>{escape(table.title)}</h2>" if table.title else "") + drawn


def lay_out_table(table: PageTable) -> list[str]:
    """The lines of a table in a terminal: columns two spaces apart."""
    lines = [table.headings, *table.rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(table.headings))]
    return [
        "  ".join(
            cell.rjust(width) if index in table.numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def draw_bar(share: float, width: int) -> str:
    """A bar of blocks for a share from 0 to 1. A share above zero is always seen."""
    filled = round(width * min(max(share, 0.0), 1.0))
    return "█" * (max(filled, 1) if share > 0 else 0)
