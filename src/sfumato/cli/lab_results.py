"""Show a result of the lab: in the terminal, as JSON, and as a page."""

from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from sfumato.cli.show import print_json, say

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
    typer.echo(str(result))
    if html is not None:
        say(f"The page is in {html}.")
