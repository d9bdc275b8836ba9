# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato audit`: measure the privacy loss of a question on made-up data."""

from typing import Annotated

import typer

from sfumato.cli.ask_commands import Delta, Epsilon, IntervalShare, MaxGroups, MaxRows, Rho, Sql
from sfumato.cli.refusals import OTHER, refusals
from sfumato.cli.show import AsJson, print_json, say, working

STYLES = {"consistent": "green", "violated": "bold red", "inconclusive": "yellow"}


def audit(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    replay_only: Annotated[
        bool, typer.Option("--replay", help="Only replay: run neighbouring datasets with the same noise, and compare.")
    ] = False,
    samples: Annotated[int, typer.Option(help="Releases on each dataset, for the measured epsilon.", min=100)] = 4_000,
    engine: Annotated[str, typer.Option(help="duckdb or reference.", metavar="NAME")] = "duckdb",
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    interval_share: IntervalShare = None,
    as_json: AsJson = False,
) -> None:
    """Audit a question on made-up rows of the declared columns. No private row is read, and nothing is spent.

    Without a price, epsilon is 1. The exit code is 1 if a violation was found.
    """
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.lab.auditing.audit_stage import describe_public
        from sfumato.lab.auditing.query_audit import audit_query
        from sfumato.lab.auditing.query_replay import replay

        dataset = describe_public(load_catalog(context.obj), sql, context.obj)
        with working("Auditing"):
            found = (
                replay(
                    dataset, sql, epsilon, rho=rho, delta=delta, engine=engine,
                    max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
                )
                if replay_only
                else audit_query(
                    dataset, sql, epsilon, rho=rho, delta=delta, samples=samples, engine=engine,
                    max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
                )
            )  # fmt: skip
        if as_json:
            print_json(found.to_dict())
        else:
            first, *others = str(found).splitlines()
            say(first, STYLES[found.verdict])
            for line in others:
                say(line)
        if found.verdict == "violated":
            raise typer.Exit(OTHER)
