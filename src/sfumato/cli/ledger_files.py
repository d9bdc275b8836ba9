# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands on the ledger's files: adopt, and those that copy it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, say, working

if TYPE_CHECKING:
    from sfumato.ledger.adoption import Adoption

AcceptMissing = Annotated[
    bool,
    typer.Option(help="Continue although entries are missing that were seen before: what they cost stays charged."),
]


def add_to(ledger: typer.Typer) -> None:
    """Make these commands part of `sfumato ledger`."""
    ledger.command()(adopt)


def adopt(context: typer.Context, accept_missing: AcceptMissing = False, as_json: AsJson = False) -> None:
    """Say that this ledger is the one that continues, after it was moved, restored or copied. It is an entry."""
    with refusals(as_json):
        from sfumato.folder_ledger import adopt_ledger

        with working("Adopting"):
            done = adopt_ledger(Path(context.obj), accept_missing=accept_missing)
        _tell(done, as_json, "The ledger continues here")


def _tell(done: "Adoption", as_json: bool, what: str) -> None:
    from sfumato.answers import Cost

    carried = None if done.carried is None else Cost.of(done.carried).as_text()
    if as_json:
        print_json({"entry": done.entry, "head": done.hash, "missing": done.missing, "carried": carried})
        return
    say(f"{what}: entry {done.entry}, with the hash {done.hash}.", "green")
    if done.new_key:
        say("The key that signed it before is not here; a new one signs from this entry on.", "yellow")
    if done.missing:
        cost = "" if carried is None else f" They cost {', '.join(f'{k} = {v}' for k, v in carried.items())}"
        say(f"At least {done.missing} entries are missing.{cost + ', which stays charged.' if cost else ''}", "yellow")
    say("Other copies are refused from now on, where they can be told.", "dim")
