# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands for the accounts of a service: user, grant."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, print_table, say

if TYPE_CHECKING:
    from sfumato.service.accounts import Accounts

users = typer.Typer(help="Who may use the service: users and their tokens.", no_args_is_help=True)
grants = typer.Typer(help="What each analyst may learn of a dataset.", no_args_is_help=True)

AccountsFile = Annotated[
    Path | None,
    typer.Option("--accounts", help="The file of the accounts. Default: in the dataset's folder.", metavar="FILE"),
]
Name = Annotated[str, typer.Argument(help="The user's name. The ledger records it.", metavar="NAME")]


def find_accounts(folder: Path, given: Path | None) -> Path:
    """The file of the accounts: the given one, or the one of the folder."""
    return (folder / ".sfumato" / "accounts.db" if given is None else given).absolute()


@contextmanager
def open_accounts(folder: Path, given: Path | None) -> "Iterator[Accounts]":
    """The accounts of a folder, for one command."""
    from sfumato.extras import imported

    imported("argon2", "serve")
    from sfumato.service.accounts import Accounts

    made = Accounts(find_accounts(folder, given))
    try:
        yield made
    finally:
        made.close()


@users.command("add")
def add_user(
    context: typer.Context,
    name: Name,
    *,
    role: Annotated[str, typer.Option(help="owner or analyst.", metavar="ROLE")] = "analyst",
    accounts: AccountsFile = None,
    as_json: AsJson = False,
) -> None:
    """Add a user. They get access with a token (`sfumato user token`) and a grant (`sfumato grant set`)."""
    with refusals(as_json):
        with open_accounts(context.obj, accounts) as made:
            user = made.add_user(name, role)  # type: ignore[arg-type]  # checked there
        if as_json:
            print_json({"name": user.name, "role": user.role})
            return
        say(f"Added {user.name} ({user.role}).")
        say(f"Next: sfumato -C {context.obj} user token {user.name}")


@users.command("token")
def make_token(
    context: typer.Context,
    name: Name,
    *,
    days: Annotated[int, typer.Option(help="How many days it is valid.", min=1, max=3650)] = 90,
    label: Annotated[str, typer.Option(help="What it is for.", metavar="TEXT")] = "",
    accounts: AccountsFile = None,
    as_json: AsJson = False,
) -> None:
    """Make an API token. It is shown once, and only its hash is stored."""
    with refusals(as_json):
        with open_accounts(context.obj, accounts) as made:
            from sfumato.service.api_tokens import Tokens

            token = Tokens(made).make(name, days, label)
        if as_json:
            print_json({"user": name, "token": token, "days": days})
            return
        typer.echo(token)
        say(f"This token of {name} is valid for {days} days. It is not shown again.")


@users.command("link")
def make_link(
    context: typer.Context,
    name: Name,
    *,
    hours: Annotated[int, typer.Option(help="How long it can be used.", min=1, max=24 * 30)] = 24,
    address: Annotated[
        str, typer.Option(help="Where the service is reached.", metavar="URL")
    ] = "http://127.0.0.1:8000",
    accounts: AccountsFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a link that signs somebody in to the pages once."""
    with refusals(as_json):
        from sfumato.service.sessions import Sessions

        with open_accounts(context.obj, accounts) as made:
            made.require_active(name)
            link = f"{address.rstrip('/')}/signin/{Sessions(made).make_link(name, timedelta(hours=hours))}"
        if as_json:
            print_json({"user": name, "link": link, "hours": hours})
            return
        typer.echo(link)
        say(f"This link signs {name} in once, within {hours} hours. It is not shown again.")


@users.command("password")
def set_password(context: typer.Context, name: Name, *, accounts: AccountsFile = None) -> None:
    """Set somebody's password for the pages. It is asked for, and stored as a hash. Their sessions end."""
    with refusals(as_json=False):
        with open_accounts(context.obj, accounts) as made:
            made.require_active(name)
            made.set_password(name, typer.prompt("Password", hide_input=True, confirmation_prompt=True))
        say(f"{name} signs in with this password from now on.")


@users.command("revoke")
def revoke_token(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(help="The id of a token, as `user list` shows it.", metavar="ID")],
    *,
    accounts: AccountsFile = None,
) -> None:
    """Revoke a token. It is refused from the next request on."""
    with refusals(as_json=False):
        with open_accounts(context.obj, accounts) as made:
            from sfumato.service.api_tokens import Tokens

            Tokens(made).revoke(token_id)
        say(f"Revoked {token_id}.")


@users.command("disable")
def disable_user(context: typer.Context, name: Name, *, accounts: AccountsFile = None) -> None:
    """End a user's access at once. Their entries in the ledger stay."""
    with refusals(as_json=False):
        with open_accounts(context.obj, accounts) as made:
            made.disable_user(name)
        say(f"{name} has no access any more.")


@users.command("list")
def list_users(context: typer.Context, *, accounts: AccountsFile = None, as_json: AsJson = False) -> None:
    """List the users and their tokens, without the secret parts."""
    with refusals(as_json):
        with open_accounts(context.obj, accounts) as made:
            from sfumato.service.api_tokens import Tokens

            found, tokens = made.list_users(), Tokens(made).list()
        if as_json:
            shown = [{part: getattr(token, part) for part in token.__slots__} for token in tokens]
            print_json({"users": found, "tokens": shown})
            return
        print_table(
            ("user", "role", "active"),
            [(result["name"], result["role"], "yes" if result["active"] else "no") for result in found],
        )
        if tokens:
            rows = [
                (known.id, known.user, known.label, known.expires, "revoked" if known.revoked else "")
                for known in tokens
            ]
            print_table(("token", "user", "label", "expires", ""), rows)


@grants.command("set")
def set_grant(
    context: typer.Context,
    name: Name,
    *,
    epsilon: Annotated[str, typer.Option(help="The epsilon that they may spend in all.", metavar="E")],
    dataset: Annotated[
        str | None, typer.Option(help="The dataset. Default: that of the folder.", metavar="NAME")
    ] = None,
    delta: Annotated[str, typer.Option(help="The delta that they may spend in all.", metavar="D")] = "0",
    per_query: Annotated[str | None, typer.Option(help="The most epsilon for one question.", metavar="E")] = None,
    per_query_delta: Annotated[
        str | None, typer.Option(help="The most delta for one question. Default: all of it.", metavar="D")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(help="The grant ends when this day begins (UTC): 2027-01-31.", metavar="DATE")
    ] = None,
    accounts: AccountsFile = None,
    as_json: AsJson = False,
) -> None:
    """Grant an analyst a limit on a dataset, within the dataset's own budget, in place of an earlier grant."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog
        from sfumato.service.grant_limits import check_grant

        known = load_catalog(context.obj)
        here = dataset in (None, known.name)
        with open_accounts(context.obj, accounts) as made:
            grant = made.set_grant(
                name, dataset or known.name, epsilon, delta=delta, per_query=per_query,
                per_query_delta=per_query_delta, expires=until,
                check=lambda grant: check_grant(grant, known.budget) if here else None,
            )  # fmt: skip
        if as_json:
            print_json({part: getattr(grant, part) for part in grant.__slots__})
            return
        single_delta = f", delta = {grant.per_query_delta}" if grant.per_query_delta else ""
        single = f", at most {grant.per_query}{single_delta} on one question" if grant.per_query else ""
        say(f"{name} may spend epsilon = {grant.epsilon} on {grant.dataset}{single}.")
        say(
            "All analysts together never learn more than the dataset's budget allows, also if they share their answers."
        )


@grants.command("remove")
def remove_grant(
    context: typer.Context,
    name: Name,
    *,
    dataset: Annotated[
        str | None, typer.Option(help="The dataset. Default: that of the folder.", metavar="NAME")
    ] = None,
    accounts: AccountsFile = None,
) -> None:
    """End an analyst's access to a dataset. What they spent stays spent."""
    with refusals(as_json=False):
        from sfumato.catalog.catalog_file import load_catalog

        which = dataset or load_catalog(context.obj).name
        with open_accounts(context.obj, accounts) as made:
            made.remove_grant(name, which)
        say(f"{name} may no longer ask {which}.")


@grants.command("list")
def list_grants(context: typer.Context, *, accounts: AccountsFile = None, as_json: AsJson = False) -> None:
    """List the grants."""
    with refusals(as_json):
        with open_accounts(context.obj, accounts) as made:
            found = made.list_grants()
        if as_json:
            print_json([{part: getattr(grant, part) for part in grant.__slots__} for grant in found])
            return
        rows = [
            (
                result.user,
                result.dataset,
                result.epsilon,
                result.delta,
                result.per_query or "-",
                result.expires or "never",
            )
            for result in found
        ]
        print_table(("user", "dataset", "epsilon", "delta", "per question", "ends"), rows, right=(2, 3, 4))
