# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato ledger`: list the entries, show one, and verify all of them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size

from sfumato.answering.entry_words import OUTCOMES, describe_question, show_time, write_entry_json
from sfumato.cli.refusals import OTHER, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working
from sfumato.shown_amounts import list_amounts, round_amounts

MOST_ENTRIES = 2**63 - 1  # what a database can count
LINE = 80  # columns of the list
MOST_OF_A_KIND = 10
MOST_OF_A_LOSS = 18
INDENT = 7  # of the line with the analyst and the question, below their entry
ledger = typer.Typer(help="List the entries of the ledger: what was charged, when, and to whom.")


@ledger.callback(invoke_without_command=True)
def entries(
    context: typer.Context,
    last: Annotated[int, typer.Option(min=1, max=MOST_ENTRIES, help="How many of the newest entries.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the newest entries of the ledger, oldest first."""
    if context.invoked_subcommand is not None:
        return
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger

        folder = Path(context.obj)
        with working("Opening"), read_ledger(folder, load_catalog(folder)) as opened:
            found, identity = [write_entry_json(entry, opened) for entry in opened.entries(last)], opened.ledger_id
        if as_json:
            print_json({"ledger_id": identity, "entries": found})
            return
        _print_entries(found)


@ledger.command()
def show(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="ENTRY", min=1, max=MOST_ENTRIES, help="The entry's number.")],
    as_json: AsJson = False,
) -> None:
    """Show one entry in full: who asked what, and what it cost."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.errors import InvalidParameter
        from sfumato.folder_ledger import read_ledger

        folder = Path(context.obj)
        with working("Opening"), read_ledger(folder, load_catalog(folder)) as opened:
            entry = opened.entry(number)
            found = {} if entry is None else write_entry_json(entry, opened)
        if not found:
            raise InvalidParameter("entry", "must be the number of an entry", "another number", "See `sfumato ledger`.")
        if as_json:
            print_json(found)
            return
        shown = {**found, **{name: list_amounts(found[name]) for name in ("loss", "budget", "spent")}}
        shown["question"] = describe_question(found["question"])
        shown["outcome"] = OUTCOMES.get(found["outcome"], "")
        print_table(["", ""], [[name, str(value)] for name, value in shown.items() if value not in (None, "")])


@ledger.command()
def verify(
    context: typer.Context,
    *,
    full: Annotated[bool, typer.Option(help="Check all entries, not only those since the last time.")] = False,
    head: Annotated[str | None, typer.Option(help="The hash of an entry that must be there.", metavar="HASH")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Check this exported file instead of the ledger.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every hash, signature, sum and answer, and the index of answers. Nothing is written to the ledger."""
    with refusals(as_json):
        newest, key = None, None
        if export is not None:
            from sfumato.ledger.export import check_export

            with working("Verifying"):
                checked = check_export(export, head)
            found, newest, key = checked.verification, checked.head, checked.public_key
        else:
            from sfumato.catalog.catalog_file import load_catalog
            from sfumato.folder_ledger import read_ledger

            folder = Path(context.obj)
            with working("Verifying"), read_ledger(folder, load_catalog(folder)) as opened:
                found = opened.verify(full=full, head=head)
                newest, key = (opened.head()[1], opened.public_key) if found.ok else (None, None)
        if as_json:
            print_json(
                {
                    "ok": found.ok,
                    "entries": found.entries,
                    "verified_before": found.verified_before,
                    "first_broken": found.first_broken,
                    "reason": found.reason,
                    "head": newest,
                    "public_key": key,
                }
            )
        elif found.ok:
            say(f"{found.reason} {found.entries} entries. Hash of the last one: {newest}", "green")
            if key and export is not None:
                say(f"Signed with the key {key}.", "dim")
            if found.verified_before:
                say(f"The first {found.verified_before} were checked earlier; --full checks them again.", "dim")
        else:
            where = "" if found.first_broken is None else f"Entry {found.first_broken} fails: "
            say(f"{where}{found.reason} {found.entries} entries are correct.", "red")
        if not found.ok:
            raise typer.Exit(OTHER)


def _print_entries(found: list[dict[str, Any]]) -> None:
    """Print entries within 80 columns. The analyst and the question have a line of their own, below the entry."""
    headings = ("entry", "time", "kind", "cost", "spent by then")
    amounts = [[round_amounts(entry[name], "up") for name in ("loss", "spent")] for entry in found]
    rows = [
        [
            str(entry["number"]),
            show_time(entry["time"]),
            _shorten(entry["outcome"] if entry["outcome"] in OUTCOMES else entry["kind"], MOST_OF_A_KIND),
            *(_shorten(list_amounts(shown), MOST_OF_A_LOSS) for shown, _ in pair),
        ]
        for entry, pair in zip(found, amounts, strict=True)
    ]
    # an answer belongs to the analyst of its charge, which is listed too
    below = [
        ": ".join(
            filter(None, ("" if entry["kind"] == "answer" else entry["analyst"], describe_question(entry["question"])))
        )
        for entry in found
    ]
    print_table(headings, rows, right=[0], below=[_shorten(text, LINE - INDENT) for text in below], indent=INDENT)
    if any(rounded for pair in amounts for _, rounded in pair):
        say("Long amounts are rounded up.", "dim")
    say("For one entry in full: sfumato ledger show ENTRY", "dim")


def _shorten(text: str, most: int) -> str:
    """A text of at most `most` columns; `ledger show` prints all of it."""
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"
