"""Show a result of the lab: in the terminal, as JSON, and as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from sfumato.cli.show import print_json, print_table, say, to_stdout

if TYPE_CHECKING:
    from sfumato.lab.explanations.lesson_page import LessonPage

WIDTH = 80  # of the text of a result

Html = Annotated[Path | None, typer.Option(help="Write a self-contained page to this file.", metavar="FILE")]


class LabResult(Protocol):
    """What every result of the lab can do. Its text fits 80 columns."""

    def save(self, path: Path) -> None: ...

    def to_dict(self) -> dict[str, Any]: ...


def show_result(result: LabResult, html: Path | None, as_json: bool) -> None:
    """Print the result, or its JSON, and write its page if a file is named."""
    if html is not None:
        result.save(html)
    if as_json:
        print_json(result.to_dict())
        return
    console, page, write_text = to_stdout(), getattr(result, "page", None), getattr(result, "write_text", None)
    narrow = console.is_terminal and console.width < WIDTH
    if narrow and page is not None:
        _print_narrow(page)
    elif narrow and write_text is not None:
        typer.echo(write_text(console.width))
    else:
        typer.echo(str(result))
    if html is not None:
        say(f"The page is in {html}.")


def _print_narrow(page: "LessonPage") -> None:
    """Print a page in a terminal that is too narrow for its drawing: words are wrapped, and tables become records."""
    for words in (page.title, *page.paragraphs):
        say(words)
    if page.drawing:
        say(f"(The drawing needs {WIDTH} columns.)", "dim")
    for table in page.tables:
        if not table.folded:
            say(f"\n{table.title}".rstrip(), "bold")
            print_table(table.headings, table.rows, right=table.numbers)
    for note in page.notes:
        say(note)
