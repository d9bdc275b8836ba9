# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands on the ledger's files: adopt, and those that copy it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working

if TYPE_CHECKING:
    from sfumato.ledger.adoption import Adoption

AcceptMissing = Annotated[
    bool,
    typer.Option(help="Continue although entries are missing that were seen before: what they cost stays charged."),
]

AcceptKey = Annotated[
    bool,
    typer.Option(help="Continue although a key that is not yours signed the newest entries: you know whose it is."),
]


def add_to(ledger: typer.Typer) -> None:
    """Make these commands part of `sfumato ledger`."""
    for command in (adopt, backup, restore, export):
        ledger.command()(command)
    ledger.command("open-charges")(open_charges)


def adopt(
    context: typer.Context,
    accept_missing: AcceptMissing = False,
    accept_key: AcceptKey = False,
    as_json: AsJson = False,
) -> None:
    """Say that this ledger is the one that continues, after it was moved, restored or copied. It is an entry."""
    with refusals(as_json):
        from sfumato.folder_ledger import adopt_ledger

        with working("Adopting"):
            done = adopt_ledger(Path(context.obj), accept_missing=accept_missing, accept_key=accept_key)
        _tell(done, as_json, "The ledger continues here")


def backup(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file.")],
    as_json: AsJson = False,
) -> None:
    """Write the ledger as it is now into a new file. Others may go on using it."""
    with refusals(as_json):
        from sfumato.folder_ledger import back_up_ledger

        with working("Copying"):
            back_up_ledger(Path(context.obj), out)
        if as_json:
            print_json({"backup": str(out)})
            return
        say(f"Wrote {out}. To return to it: sfumato ledger restore {out}", "green")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that `ledger backup` wrote.")],
    accept_missing: AcceptMissing = False,
    accept_key: AcceptKey = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup in the place of the ledger. Running processes must open the dataset again. It is an entry."""
    with refusals(as_json):
        from sfumato.folder_ledger import restore_ledger

        with working("Restoring"):
            done = restore_ledger(Path(context.obj), file, accept_missing=accept_missing, accept_key=accept_key)
        _tell(done, as_json, "The backup is in place")


def export(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file of JSON lines.")],
    answers: Annotated[bool, typer.Option(help="With the integers of all answers, not only their hashes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write every entry for an outsider, who checks it with `sfumato ledger verify --export OUT`."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger
        from sfumato.private_files import new_private_file

        folder = Path(context.obj)
        with working("Exporting"), read_ledger(folder, load_catalog(folder)) as books, new_private_file(out) as file:
            entries = books.export(file, answers=answers)
        if as_json:
            print_json({"export": str(out), "entries": entries})
            return
        say(f"Wrote {entries} entries to {out}. To check it: sfumato ledger verify --export {out}", "green")


def open_charges(context: typer.Context, as_json: AsJson = False) -> None:
    """List charges that have no answer. Asking the same question again takes one up at no further cost.

    Not a watch: it is over with its process, or goes on there, and another one is charged anew.
    """
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.cli.ledger_commands import entry_json, loss_words, question_words, to_the_second
        from sfumato.folder_ledger import read_ledger

        folder = Path(context.obj)
        with working("Reading"), read_ledger(folder, load_catalog(folder)) as books:
            found = [entry_json(each) for each in books.open_charges()]
        if as_json:
            print_json({"open_charges": found})
            return
        if not found:
            say("None.")
            return
        rows = [
            [
                str(each["number"]), to_the_second(each["time"]), each["analyst"] or "",
                loss_words(each["loss"]), question_words(each["question"]),
            ]
            for each in found
        ]  # fmt: skip
        print_table(["entry", "time", "analyst", "cost", "question"], rows, right=[0])


def _tell(done: "Adoption", as_json: bool, what: str) -> None:
    from sfumato.answers.answer import Cost

    carried = None if done.carried is None else Cost.of(done.carried).as_text()
    if as_json:
        told = {"entry": done.entry, "head": done.hash, "missing": done.missing, "carried": carried}
        print_json({**told, "key_before": done.key_before or None})
        return
    say(f"{what}: entry {done.entry}, with the hash {done.hash}.", "green")
    if done.key_before:
        whose = "The key that signed it before is not here" if done.new_key else "A key that is not yours signed before"
        say(f"{whose}: {done.key_before}. Your own signs from this entry on.", "yellow")
    if done.missing:
        cost = "" if carried is None else f" They cost {', '.join(f'{k} = {v}' for k, v in carried.items())}"
        lacking = "1 entry is" if done.missing == 1 else f"{done.missing} entries are"
        say(f"At least {lacking} missing.{cost + ', which stays charged.' if cost else ''}", "yellow")
    say("Other copies are refused from now on, where they can be told.", "dim")
