# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The owner's commands for a service: serve, user, grant."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, print_table, say

if TYPE_CHECKING:
    from sfumato.catalog.columns import ColumnDeclaration
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


def open_accounts(folder: Path, given: Path | None) -> "Accounts":
    from sfumato.extras import imported

    imported("argon2", "serve")
    from sfumato.service.accounts import Accounts

    return Accounts(find_accounts(folder, given))


def serve(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders with a catalog.toml. Default: the folder of -C.", metavar="DIR")
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="The number of processes.", min=1, max=64)] = 1,
    accounts: AccountsFile = None,
    certificate: Annotated[Path | None, typer.Option(help="The TLS certificate (PEM).", metavar="FILE")] = None,
    key: Annotated[Path | None, typer.Option(help="The key of the certificate (PEM).", metavar="FILE")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a made-up clinic, with an owner and an analyst.")] = False,
) -> None:
    """Let analysts ask over HTTP. They need no copy of the data: the owner gives each a token and a grant."""
    with refusals(as_json=False):
        from sfumato.extras import imported

        imported("fastapi", "serve")
        if (certificate is None) != (key is None):
            raise Usage("--certificate and --key belong together.", "Give both, or neither behind a proxy.")
        if host not in ("127.0.0.1", "localhost", "::1") and certificate is None:
            say(
                "Without --certificate, tokens and answers travel unencrypted. Put a proxy with TLS in front.", "yellow"
            )
        from sfumato.service.run_service import serve as run

        if demo:
            with tempfile.TemporaryDirectory(prefix="sfumato-") as scratch:
                folder = _make_demo(Path(scratch), _write_address(host, port, secure=certificate is not None))
                run(
                    [folder], find_accounts(folder, None), host, port, workers=workers, certificate=certificate, key=key
                )
            return
        from sfumato.catalog.catalog_file import load_catalog

        chosen = folders or [context.obj]
        names = [load_catalog(folder).name for folder in chosen]
        address = _write_address(host, port, secure=certificate is not None)
        say(f"Serving {', '.join(names)} on {address}. Stop with Ctrl-C.")
        run(chosen, find_accounts(chosen[0], accounts), host, port, workers=workers, certificate=certificate, key=key)


def _write_address(host: str, port: int, *, secure: bool) -> str:
    return f"http{'s' if secure else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def _make_demo(scratch: Path, address: str) -> Path:
    """A clinic of made-up patients with two users, and what to type next."""
    from sfumato.catalog.budget import Budget
    from sfumato.catalog.catalog_file import write_catalog
    from sfumato.catalog.columns import Boolean, Category, Id, Integer
    from sfumato.catalog.dataset import Dataset, Table
    from sfumato.cli.demo import WARDS, write_clinic
    from sfumato.service.sessions import Sessions

    folder = scratch / "clinic"
    folder.mkdir()
    write_clinic(folder)
    columns: dict[str, ColumnDeclaration] = {
        "patient_id": Id(), "age": Integer(0, 120), "ward": Category(list(WARDS)), "smoker": Boolean(),
        "pain": Integer(0, 10),
    }  # fmt: skip
    table = Table("patients", "patients.csv", "patient_id", columns)
    write_catalog(Dataset("clinic", [table], Budget(epsilon=3, delta="1e-6")), folder)
    made = open_accounts(folder, None)
    try:
        made.add_user("olga", "owner")
        made.add_user("ann", "analyst")
        made.set_grant("ann", "clinic", "1", delta="1e-7", per_query="0.5")
        token, sessions = made.make_token("ann", 1, "demo"), Sessions(made)
        links = {name: f"{address}/signin/{sessions.make_link(name)}" for name in ("ann", "olga")}
    finally:
        made.close()
    say("A clinic of 1,000 made-up patients. It ends with this command (Ctrl-C).")
    say("Open one of these links in a browser. Each signs in once; use a private window for the second one.")
    typer.echo(f"  Ann, an analyst:   {links['ann']}")
    typer.echo(f"  Olga, the owner:   {links['olga']}")
    say("Ann may spend epsilon = 1 in all, and 0.5 on one question. From Python, in another terminal:")
    question = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    code = f'import sfumato as sf; print(sf.connect("{address}", "{token}").ask("{question}", epsilon=0.5).rows)'
    typer.echo(f"  python -c '{code}'")
    return folder


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
        made = open_accounts(context.obj, accounts)
        try:
            user = made.add_user(name, role)  # type: ignore[arg-type]  # checked there
        finally:
            made.close()
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
        made = open_accounts(context.obj, accounts)
        try:
            token = made.make_token(name, days, label)
        finally:
            made.close()
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
        made = open_accounts(context.obj, accounts)
        from sfumato.service.sessions import Sessions

        try:
            made.require_active(name)
            link = f"{address.rstrip('/')}/signin/{Sessions(made).make_link(name, timedelta(hours=hours))}"
        finally:
            made.close()
        if as_json:
            print_json({"user": name, "link": link, "hours": hours})
            return
        typer.echo(link)
        say(f"This link signs {name} in once, within {hours} hours. It is not shown again.")


@users.command("password")
def set_password(context: typer.Context, name: Name, *, accounts: AccountsFile = None) -> None:
    """Set somebody's password for the pages. It is asked for, and stored as a hash. Their sessions end."""
    with refusals(as_json=False):
        made = open_accounts(context.obj, accounts)
        try:
            made.require_active(name)
            made.set_password(name, typer.prompt("Password", hide_input=True, confirmation_prompt=True))
        finally:
            made.close()
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
        made = open_accounts(context.obj, accounts)
        try:
            made.revoke_token(token_id)
        finally:
            made.close()
        say(f"Revoked {token_id}.")


@users.command("disable")
def disable_user(context: typer.Context, name: Name, *, accounts: AccountsFile = None) -> None:
    """End a user's access at once. Their entries in the ledger stay."""
    with refusals(as_json=False):
        made = open_accounts(context.obj, accounts)
        try:
            made.disable_user(name)
        finally:
            made.close()
        say(f"{name} has no access any more.")


@users.command("list")
def list_users(context: typer.Context, *, accounts: AccountsFile = None, as_json: AsJson = False) -> None:
    """List the users and their tokens, without the secret parts."""
    with refusals(as_json):
        made = open_accounts(context.obj, accounts)
        try:
            found, tokens = made.list_users(), made.list_tokens()
        finally:
            made.close()
        if as_json:
            shown = [{part: getattr(token, part) for part in token.__slots__} for token in tokens]
            print_json({"users": found, "tokens": shown})
            return
        print_table(
            ("user", "role", "active"), [(one["name"], one["role"], "yes" if one["active"] else "no") for one in found]
        )
        if tokens:
            rows = [(one.id, one.user, one.label, one.expires, "revoked" if one.revoked else "") for one in tokens]
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
    per_query: Annotated[str | None, typer.Option(help="The most for one question.", metavar="E")] = None,
    until: Annotated[datetime | None, typer.Option(help="The end of the grant: 2027-01-31.", metavar="DATE")] = None,
    accounts: AccountsFile = None,
    as_json: AsJson = False,
) -> None:
    """Grant an analyst a limit on a dataset, within the dataset's own budget, in place of an earlier grant."""
    with refusals(as_json):
        from sfumato.catalog.catalog_file import load_catalog

        known = load_catalog(context.obj)
        made = open_accounts(context.obj, accounts)
        try:
            grant = made.set_grant(
                name, dataset or known.name, epsilon, delta=delta, per_query=per_query, expires=until
            )
        finally:
            made.close()
        if as_json:
            print_json({part: getattr(grant, part) for part in grant.__slots__})
            return
        single = f", at most {grant.per_query} on one question" if grant.per_query else ""
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
        made = open_accounts(context.obj, accounts)
        try:
            made.remove_grant(name, which)
        finally:
            made.close()
        say(f"{name} may no longer ask {which}.")


@grants.command("list")
def list_grants(context: typer.Context, *, accounts: AccountsFile = None, as_json: AsJson = False) -> None:
    """List the grants."""
    with refusals(as_json):
        made = open_accounts(context.obj, accounts)
        try:
            found = made.list_grants()
        finally:
            made.close()
        if as_json:
            print_json([{part: getattr(grant, part) for part in grant.__slots__} for grant in found])
            return
        rows = [
            (one.user, one.dataset, one.epsilon, one.delta, one.per_query or "-", one.expires or "never")
            for one in found
        ]
        print_table(("user", "dataset", "epsilon", "delta", "per question", "ends"), rows, right=(2, 3, 4))
