# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato ledger adopt`, `backup`, `restore`, `export` and `open-charges`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working

if TYPE_CHECKING:
    from sfumato.ledger.adoption import Adoption

AcceptMissing = Annotated[
    bool,
    typer.Option(help="Continue although entries are missing that were seen before. What they cost stays charged."),
]

AcceptKey = Annotated[
    bool,
    typer.Option(help="Continue although another key signed the newest entries. Only if you know whose it is."),
]


def add_to(ledger: typer.Typer) -> None:
    """Add these commands to `sfumato ledger`."""
    for command in (adopt, backup, restore, export):
        ledger.command()(command)
    ledger.command("open-charges")(open_charges)


def adopt(
    context: typer.Context,
    accept_missing: AcceptMissing = False,
    accept_key: AcceptKey = False,
    as_json: AsJson = False,
) -> None:
    """Continue with this copy of the ledger, after it was moved or copied. Other copies are refused from then on."""
    with refusals(as_json):
        from sfumato.folder_ledger import adopt_ledger

        with working("Adopting"):
            done = adopt_ledger(Path(context.obj), accept_missing=accept_missing, accept_key=accept_key)
        _print_adoption(done, as_json, "This copy of the ledger continues")


def backup(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file.")],
    as_json: AsJson = False,
) -> None:
    """Copy the ledger into a new file. Others can use the ledger meanwhile."""
    with refusals(as_json):
        from sfumato.folder_ledger import back_up_ledger

        with working("Copying"):
            back_up_ledger(Path(context.obj), out)
        if as_json:
            print_json({"backup": str(out)})
            return
        say(f"Wrote {out}. To restore it: sfumato ledger restore {out}", "green")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that `ledger backup` wrote.")],
    accept_missing: AcceptMissing = False,
    accept_key: AcceptKey = False,
    as_json: AsJson = False,
) -> None:
    """Replace the ledger with a backup. Running processes must open the dataset again."""
    with refusals(as_json):
        from sfumato.folder_ledger import restore_ledger

        with working("Restoring"):
            done = restore_ledger(Path(context.obj), file, accept_missing=accept_missing, accept_key=accept_key)
        _print_adoption(done, as_json, "The backup was restored")


def export(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file of JSON lines.")],
    answers: Annotated[bool, typer.Option(help="Include the integers of all answers, not only their hashes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write all entries to a file that others can check with `sfumato ledger verify --export OUT`."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger
        from sfumato.private_files import write_private_file

        folder = Path(context.obj)
        with working("Exporting"), read_ledger(folder, load_catalog(folder)) as opened, write_private_file(out) as file:
            entries = opened.export(file, answers=answers)
        if as_json:
            print_json({"export": str(out), "entries": entries})
            return
        say(f"Wrote {entries} entries to {out}. To check it: sfumato ledger verify --export {out}", "green")


def open_charges(context: typer.Context, as_json: AsJson = False) -> None:
    """List charges without an answer. To resume one at no further cost, ask the same question again.

    A watch or a prepaid charge cannot be resumed: it ends with its process, and another one is a new charge.
    """
    with refusals(as_json):
        from sfumato.answering.entry_words import describe_question, show_time, write_entry_json
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger
        from sfumato.shown_amounts import write_amounts

        folder = Path(context.obj)
        with working("Reading"), read_ledger(folder, load_catalog(folder)) as opened:
            found = [write_entry_json(charge, opened) for charge in opened.open_charges()]
        if as_json:
            print_json({"open_charges": found})
            return
        if not found:
            say("Every charge has its answer.")
            return
        rows = [
            [
                str(charge["number"]), show_time(charge["time"]), charge["analyst"] or "",
                write_amounts(charge["loss"]), describe_question(charge["question"]),
            ]
            for charge in found
        ]  # fmt: skip
        print_table(["entry", "time", "analyst", "cost", "question"], rows, right=[0])


def _print_adoption(done: "Adoption", as_json: bool, what: str) -> None:
    from sfumato.answers.answer import Cost

    carried = None if done.carried is None else Cost.from_loss(done.carried).as_text()
    if as_json:
        told = {"entry": done.entry, "head": done.hash, "missing": done.missing, "carried": carried}
        print_json({**told, "key_before": done.key_before or None})
        return
    say(f"{what}. This is entry {done.entry}; its hash is {done.hash}", "green")
    if done.key_before:
        other = "The key that signed until now is not here" if done.new_key else "Another key signed until now"
        say(f"{other}: {done.key_before}. Your key signs from this entry on.", "yellow")
    if done.missing:
        cost = (
            ""
            if carried is None
            else f" They cost {', '.join(f'{name} = {amount}' for name, amount in carried.items())}"
        )
        lacking = "1 entry is" if done.missing == 1 else f"{done.missing} entries are"
        say(f"At least {lacking} missing.{cost + ', which stays charged.' if cost else ''}", "yellow")
    say("Other copies are refused from now on, wherever Sfumato can detect them.", "dim")
