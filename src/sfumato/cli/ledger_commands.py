# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The books: what is spent of the budget, entry by entry, and whether the sums hold."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size

from sfumato.cli.refusals import OTHER, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working

if TYPE_CHECKING:
    from sfumato.kernel.losses import PrivacyLoss
    from sfumato.ledger.ledger import Entry, Totals

MOST_ENTRIES = 2**63 - 1  # what a database can count
LINE = 80  # letters of a line of the list
MOST_OF_A_KIND = 10
MOST_OF_A_LOSS = 18
INDENT = 7  # of an analyst and a question below their entry
ledger = typer.Typer(help="What was charged, entry by entry.")


budget = typer.Typer(help="What the budget is, what is spent of it, and what is left.")


@budget.callback(invoke_without_command=True)
def show_budget(context: typer.Context, as_json: AsJson = False) -> None:
    """What the budget is, what is spent of it, and what is left. Nothing is written."""
    if context.invoked_subcommand is not None:
        return
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger

        with working("Opening"):
            dataset = load_catalog(Path(context.obj))
            with read_ledger(Path(context.obj), dataset) as books:
                whole = _texts(books.totals())
                own = {name: _texts(books.totals(name)) for name in books.list_limited_analysts()}
                same = books.totals().limit == dataset.budget.loss
        if as_json:
            print_json({"population": dataset.population, **whole, "analysts": own})
            return
        rows = [
            [who, *(loss_words(part) for part in (each["limit"], each["spent"], each["remaining"]))]
            for who, each in [(f"all of {dataset.population}", whole), *own.items()]
        ]
        print_table(["budget", "limit", "spent", "left"], rows)
        if not same:
            say("catalog.toml declares another budget. To take it: sfumato budget set", "yellow")


@budget.command("set")
def set_budget(
    context: typer.Context,
    *,
    epsilon: Annotated[str | None, typer.Option(help="The new limit.", metavar="E")] = None,
    delta: Annotated[str | None, typer.Option(help="Its delta.", metavar="D")] = None,
    rho: Annotated[str | None, typer.Option(help="The new limit under zCDP accounting.", metavar="R")] = None,
    accounting: Annotated[str | None, typer.Option(help="basic or zcdp.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change the budget: in the ledger, as an entry, and in catalog.toml. Without options, as catalog.toml says."""
    with refusals(as_json):
        from sfumato.catalog.budget import Budget
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import set_budget as set_budget_of

        folder = Path(context.obj)
        before = load_catalog(folder).budget
        wanted = None
        if any(each is not None for each in (epsilon, delta, rho, accounting)):
            kind = accounting or ("zcdp" if rho is not None else before.accounting)
            same = epsilon is None and rho is None
            wanted = Budget(
                before.epsilon if same else epsilon,
                before.delta if delta is None else delta,
                kind,
                before.rho if same else rho,
            )
        with working("Changing the budget"):
            set_budget_of(folder, wanted)
        limit_words = loss_words(_loss((wanted or before).loss))
        if as_json:
            print_json({"limit": _loss((wanted or before).loss)})
            return
        say(f"The budget is {limit_words}.", "green")


@ledger.callback(invoke_without_command=True)
def entries(
    context: typer.Context,
    last: Annotated[int, typer.Option(min=1, max=MOST_ENTRIES, help="So many of the newest entries.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what was charged, oldest first."""
    if context.invoked_subcommand is not None:
        return
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger

        folder = Path(context.obj)
        with working("Opening"), read_ledger(folder, load_catalog(folder)) as books:
            found, identity = [entry_json(each) for each in books.entries(last)], books.ledger_id
        if as_json:
            print_json({"ledger_id": identity, "entries": found})
            return
        _print_list(found)


@ledger.command()
def show(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="ENTRY", min=1, max=MOST_ENTRIES, help="The entry's number.")],
    as_json: AsJson = False,
) -> None:
    """Show one entry: who asked what, in full, and what it cost."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.errors import InvalidParameter
        from sfumato.folder_ledger import read_ledger

        folder = Path(context.obj)
        with working("Opening"), read_ledger(folder, load_catalog(folder)) as books:
            entry = books.entry(number)
        if entry is None:
            raise InvalidParameter("entry", "must be the number of an entry", "another number", "See `sfumato ledger`.")
        found = entry_json(entry)
        if as_json:
            print_json(found)
            return
        shown = {**found, **{name: loss_words(found[name]) for name in ("loss", "budget", "spent")}}
        shown["question"] = question_words(found["question"])
        print_table(["", ""], [[name, str(value)] for name, value in shown.items() if value not in (None, "")])


@ledger.command()
def verify(
    context: typer.Context,
    *,
    full: Annotated[bool, typer.Option(help="Walk all entries, not only those since the last time.")] = False,
    head: Annotated[str | None, typer.Option(help="The hash of an entry that must be there.", metavar="HASH")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Check this export instead; it needs no ledger.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Walk the chain: every hash, signature, sum and answer. Nothing is written to the ledger."""
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
            with working("Verifying"), read_ledger(folder, load_catalog(folder)) as books:
                found = books.verify(full=full, head=head)
                newest, key = (books.head()[1], books.public_key) if found.ok else (None, None)
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
            say(f"{found.reason} {found.entries} entries; the last one's hash is {newest}.", "green")
            if key and export is not None:
                say(f"They are signed with the key {key}.", "dim")
            if found.verified_before:
                say(f"The first {found.verified_before} were verified before; --full walks them again.", "dim")
        else:
            where = "" if found.first_broken is None else f"Broken at entry {found.first_broken}: "
            say(f"{where}{found.reason} {found.entries} entries hold.", "red")
        if not found.ok:
            raise typer.Exit(OTHER)


def _texts(totals: "Totals") -> dict[str, dict[str, str]]:
    from sfumato.answers.answer import Cost

    return {name: Cost.of(getattr(totals, name)).as_text() for name in ("limit", "spent", "remaining")}


def entry_json(entry: "Entry") -> dict[str, Any]:
    """An entry as it is printed."""
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "analyst": entry.analyst or None,
        "about": entry.about,
        "loss": _loss(entry.loss),
        "budget": _loss(entry.budget),
        "spent": _loss(entry.spent),
        "hash": entry.hash,
        "question": json.loads(entry.question) if entry.question else None,
    }


def question_words(question: dict[str, Any] | None) -> str:
    """A recorded question in words: its SQL, or what else was asked for."""
    if question is None:
        return ""
    parts = [str(each["sql"]) for each in question["questions"]]
    wanted = [
        f"±{width:g} of {name}" for each in question["questions"] for name, width in each.get("margin", {}).items()
    ]
    known = ("how", "questions", "confidence")
    more = [f"{name.replace('_', ' ')} {value}" for name, value in question.items() if name not in known]
    words = "; ".join([*parts, *([f"wanted: {', '.join(wanted)}"] if wanted else []), *more])
    return words if question["how"] == "ask" else f"{question['how']}: {words}"


def to_the_second(time: str) -> str:
    """The time of an entry as it is listed; `ledger show` has all of it."""
    return time[:19].replace("T", " ")


def _print_list(found: list[dict[str, Any]]) -> None:
    """Print entries within 80 columns: who asked what has a line of its own, below its entry."""
    headings = ("entry", "time", "kind", "cost", "spent by then")
    rows = [
        [
            str(entry["number"]), to_the_second(entry["time"]), _cut(entry["kind"], MOST_OF_A_KIND),
            _cut(loss_words(entry["loss"]), MOST_OF_A_LOSS), _cut(loss_words(entry["spent"]), MOST_OF_A_LOSS),
        ]
        for entry in found
    ]  # fmt: skip
    # an answer has the analyst of its charge, which is listed too
    below = [
        ": ".join(
            filter(None, ("" if entry["kind"] == "answer" else entry["analyst"], question_words(entry["question"])))
        )
        for entry in found
    ]
    print_table(headings, rows, right=[0], below=[_cut(text, LINE - INDENT) for text in below], indent=INDENT)
    say("In full, with hashes: sfumato ledger show ENTRY, or --json.", "dim")


def _cut(text: str, most: int) -> str:
    """A text of at most so many letters; `ledger show` has all of it."""
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def _loss(loss: "PrivacyLoss | None") -> dict[str, str] | None:
    from sfumato.answers.answer import Cost

    return None if loss is None else Cost.of(loss).as_text()


def loss_words(loss: dict[str, str] | None) -> str:
    """ε = 0.5, δ = 1e-6; a delta of zero is left out."""
    shown = {"epsilon": "ε", "delta": "δ"}
    parts = {name: text for name, text in (loss or {}).items() if name != "delta" or text != "0"}
    return ", ".join(f"{shown.get(name, name)} = {text}" for name, text in parts.items())
