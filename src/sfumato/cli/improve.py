# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Commands that make answers better: upgrade, diagnose, bounds, cap."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.ask_commands import Analyst, Confidence, Epsilon, Rho, Sql, require_one_price
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.reported_charges import charging
from sfumato.cli.show import AsJson, print_answer, print_json, say, working


def upgrade(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = "analyst",
    as_json: AsJson = False,
) -> None:
    """Improve an answer: pay only the difference to this total epsilon. The releases are combined."""
    with refusals(as_json):
        require_one_price(epsilon=epsilon, rho=rho)
        with charging(context.obj, as_json) as curator:
            with working("Asking"):
                answer = curator.upgrade(sql, epsilon, rho=rho, confidence=confidence, analyst=analyst)
            if as_json:
                print_json(answer.to_dict())
            else:
                print_answer(answer)


def diagnose(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Annotated[str, typer.Option(help="What it may cost.", metavar="E")] = "0.01",
    analyst: Analyst = "analyst",
    as_json: AsJson = False,
) -> None:
    """Estimate, with noise, which share of rows is dropped or clamped, and which share of people is over a bound."""
    with refusals(as_json), charging(context.obj, as_json) as curator:
        with working("Counting"):
            found = curator.diagnose(sql, epsilon, analyst=analyst)
        if as_json:
            shares = {"filtered": found.filtered, "at_bounds": found.at_bounds, "people_bounded": found.people_bounded}
            print_json({**shares, "cost": found.cost.as_text()})
            return
        for line in str(found).splitlines():
            say(line)


def bounds(
    context: typer.Context,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="A numeric column that was declared with wide bounds.")
    ],
    *,
    table: Annotated[str | None, typer.Option(help="Its table, if there are several.", metavar="TABLE")] = None,
    epsilon: Annotated[str, typer.Option(help="What it may cost.", metavar="E")] = "0.1",
    analyst: Analyst = "owner",
    as_json: AsJson = False,
) -> None:
    """Buy bounds for a column: powers of two that contain most values. The owner then declares them."""
    with refusals(as_json), charging(context.obj, as_json) as curator:
        with working("Choosing"):
            found = curator.find_bounds(column, epsilon, table=table, analyst=analyst)
        if as_json:
            print_json(
                {"column": found.column, "lower": found.lower, "upper": found.upper, "cost": found.cost.as_text()}
            )
            return
        say(str(found))
        say("Nothing was declared: write these into catalog.toml, then run `sfumato prepare`.", "dim")


def cap(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="A table whose people have ids.")] = None,
    *,
    epsilon: Annotated[str, typer.Option(help="What it may cost.", metavar="E")] = "0.1",
    declare: Annotated[
        bool, typer.Option("--declare", help="Write it into catalog.toml (also over auto), and load the table again.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show the cost and spend nothing.")] = False,
    analyst: Analyst = "owner",
    as_json: AsJson = False,
) -> None:
    """Buy a contribution bound for a table: a number of rows that nearly everybody keeps to. The owner declares it."""
    with refusals(as_json):
        from sfumato.answering.find_cap import CANDIDATES, preview_cap
        from sfumato.catalog.catalog_file import is_automatic, load_catalog
        from sfumato.catalog.table_edit import edit_max_rows

        folder = Path(context.obj)
        if declare and table is None:
            raise Usage("--declare: for which table?", "Name it: sfumato cap TABLE --declare")
        if preview:
            automatic = table is not None and is_automatic(folder, table)
            dataset = edit_max_rows(folder, str(table), CANDIDATES[-1])[1] if automatic else load_catalog(folder)
            shown = preview_cap(dataset, table, epsilon)
            if as_json:
                print_json({"table": shown.table, "people_above": shown.people_above, "cost": shown.cost.as_text()})
            else:
                say(str(shown))
            return
        if declare and table is not None and is_automatic(folder, table):
            _declare_rows(folder, table, CANDIDATES[-1])  # a bound that bounds nobody, until one is chosen
        with charging(folder, as_json) as curator:
            with working("Choosing"):
                found = curator.find_cap(table, epsilon, analyst=analyst)
            if as_json:
                bound = {"table": found.table, "max_rows_per_unit": found.max_rows_per_unit}
                print_json({**bound, "people_above": found.people_above, "cost": found.cost.as_text()})
            else:
                say(str(found))
        if declare:
            _declare_rows(folder, found.table, found.max_rows_per_unit)
        if not as_json:
            done = "It is declared in catalog.toml, and the table is loaded again."
            say(
                done if declare else "Nothing was declared: write it into catalog.toml, then run `sfumato prepare`.",
                "dim",
            )


def _declare_rows(folder: Path, table: str, most: int) -> None:
    """Write max_rows_per_unit into the catalog, and load the table again."""
    from sfumato.catalog.catalog_file import replace_file
    from sfumato.catalog.catalog_keys import FILE
    from sfumato.catalog.table_edit import edit_max_rows
    from sfumato.cli.pinning import find_snapshot_path
    from sfumato.engines.backend import choose_backend
    from sfumato.ingest.load_report import Loading

    text, dataset = edit_max_rows(folder, table, most)
    pinned = find_snapshot_path(folder, dataset)
    choose_backend(dataset.engine).prepare(pinned, dataset.tables, folder, loading=Loading(quiet=True))
    replace_file(folder / FILE, text)
