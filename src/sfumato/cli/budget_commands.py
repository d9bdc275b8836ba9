# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato budget`: show the budget, and change it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.answering.entry_words import write_loss_as_json
from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working
from sfumato.shown_amounts import list_amounts, write_amounts

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Totals

budget = typer.Typer(help="Show the budget: its limit, what is spent, and what is left.")


@budget.callback(invoke_without_command=True)
def show_budget(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the budget: its limit, what is spent, and what is left. Nothing is written."""
    if context.invoked_subcommand is not None:
        return
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import read_ledger

        with working("Opening"):
            dataset = load_catalog(Path(context.obj))
            with read_ledger(Path(context.obj), dataset) as ledger:
                whole = _write_totals_json(ledger.totals())
                own = {name: _write_totals_json(ledger.totals(name)) for name in ledger.list_limited_analysts()}
                same = ledger.totals().limit == dataset.budget.loss
        if as_json:
            print_json({"population": dataset.population, **whole, "analysts": own})
            return
        rows = [
            [
                name,
                list_amounts(totals["limit"]),
                write_amounts(totals["spent"]),
                write_amounts(totals["remaining"], "down"),
            ]
            for name, totals in [(f"population {dataset.population}", whole), *own.items()]
        ]
        print_table(["budget", "limit", "spent", "left"], rows)
        if not same:
            say("catalog.toml declares another budget. To apply it: sfumato budget set", "yellow")


@budget.command("set")
def set_budget(
    context: typer.Context,
    *,
    epsilon: Annotated[str | None, typer.Option(help="The new epsilon.", metavar="E")] = None,
    delta: Annotated[str | None, typer.Option(help="The new delta.", metavar="D")] = None,
    rho: Annotated[str | None, typer.Option(help="The new rho, under zCDP accounting.", metavar="R")] = None,
    mu: Annotated[str | None, typer.Option(help="The new mu, under Gaussian-DP accounting.", metavar="M")] = None,
    accounting: Annotated[str | None, typer.Option(help="basic, zcdp or gdp.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change the budget, in the ledger and in catalog.toml. Without options, apply the budget in catalog.toml."""
    with refusals(as_json):
        from sfumato.catalog.budget import Budget
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.folder_ledger import set_budget as change_budget

        folder = Path(context.obj)
        before = load_catalog(folder).budget
        wanted = None
        if any(option is not None for option in (epsilon, delta, rho, mu, accounting)):
            kind = accounting or ("zcdp" if rho is not None else "gdp" if mu is not None else before.accounting)
            same = epsilon is None and rho is None and mu is None
            wanted = Budget(
                before.epsilon if same else epsilon,
                before.delta if delta is None else delta,
                kind,
                before.rho if same else rho,
                before.mu if same else mu,
            )
        with working("Changing the budget"):
            change_budget(folder, wanted)
        limit = write_loss_as_json((wanted or before).loss)
        if as_json:
            print_json({"limit": limit})
            return
        say(f"The budget is now {list_amounts(limit)}.", "green")


def _write_totals_json(totals: "Totals") -> dict[str, dict[str, str]]:
    from sfumato.answers.answer import Cost

    return {name: Cost.from_loss(getattr(totals, name)).as_text() for name in ("limit", "spent", "remaining")}
