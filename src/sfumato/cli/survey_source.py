# ruff: noqa: PLC0415 - a command imports the packages that only it needs
"""The survey that a command is given: its arguments, and loading it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.show import working

if TYPE_CHECKING:
    from sfumato.local.survey.signed_survey import Survey

Source = Annotated[str, typer.Argument(metavar="SURVEY", help="The survey: a file or an https address.")]
PublicKey = Annotated[
    str | None,
    typer.Option("--public-key", help="The public key of the team that asks, in hex; refuse any other.", metavar="K"),
]


def load(source: str, public_key: str | None = None, *, cap: str | None = None, device: Path | None = None) -> "Survey":
    """Load and check the survey."""
    from sfumato.local.survey.signed_survey import Survey

    with working("Checking the survey"):
        return Survey.load(source, public_key=public_key, cap=cap, device=device)
