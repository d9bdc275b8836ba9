# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Serve datasets to many analysts, or a made-up clinic to try it."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.account_commands import AccountsFile, find_accounts, open_accounts
from sfumato.cli.listening import LOCAL, refuse_used_port
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import say

if TYPE_CHECKING:
    from sfumato.catalog.columns import ColumnDeclaration
    from sfumato.service.service_settings import ServiceSettings

METRICS_TOKEN = "SFUMATO_METRICS_TOKEN"  # noqa: S105 - the name of a variable


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
    sources: Annotated[
        Path | None, typer.Option(help="Owners may register the files in it by their path.", metavar="DIR")
    ] = None,
    registered: Annotated[
        Path | None, typer.Option(help="Where datasets that owners register are kept.", metavar="DIR")
    ] = None,
    surveys: Annotated[
        Path | None, typer.Option(help="Where surveys and their reports are kept.", metavar="DIR")
    ] = None,
    wait: Annotated[float, typer.Option(help="A longer question becomes a job.", metavar="SECONDS", min=0.1)] = 30.0,
    pad: Annotated[
        float, typer.Option(help="Answers leave at multiples of it; 0: at once.", metavar="SECONDS", min=0, max=60)
    ] = 0.0,
    rate: Annotated[float, typer.Option(help="Requests per second of one user; 0: any.", metavar="N", min=0)] = 100.0,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a made-up clinic, with an owner and an analyst.")] = False,
) -> None:
    """Let analysts ask over HTTP. They need no copy of the data: the owner gives each a token and a grant."""
    with refusals(as_json=False):
        from sfumato.extras import imported

        imported("fastapi", "serve")
        if (certificate is None) != (key is None):
            raise Usage("--certificate and --key belong together.", "Give both, or neither behind a proxy.")
        if host not in LOCAL and certificate is None:
            say(
                "Without --certificate, tokens and answers travel unencrypted. Put a proxy with TLS in front.", "yellow"
            )
        from sfumato.service.run_service import serve as run
        from sfumato.service.service_settings import ServiceSettings

        address = _write_address(host, port, secure=certificate is not None)
        if sources is not None and not sources.is_dir():
            raise Usage(f"The folder {sources} does not exist.", "--sources names a folder with files to register.")

        refuse_used_port(host, port)

        def write_place(place: Path | None) -> str:
            return "" if place is None else str(place.absolute())

        def make_settings(chosen: list[Path], place: Path) -> ServiceSettings:
            return ServiceSettings(
                tuple(str(folder.absolute()) for folder in chosen), str(place), wait_seconds=wait, pad_seconds=pad,
                requests_per_second=rate, metrics_token=os.environ.get(METRICS_TOKEN, ""),
                sources=write_place(sources), registered=write_place(registered), surveys=write_place(surveys),
            )  # fmt: skip

        if demo:
            with tempfile.TemporaryDirectory(prefix="sfumato-") as scratch:
                folder = _make_demo(Path(scratch), address)
                settings = make_settings([folder], find_accounts(folder, None))
                run(settings, host, port, workers=workers, certificate=certificate, key=key)
            return
        chosen = folders or [context.obj]
        settings = make_settings(chosen, find_accounts(chosen[0], accounts))
        say(f"Serving {', '.join(_open_once(settings))} on {address}. Stop with Ctrl-C.")
        run(settings, host, port, workers=workers, certificate=certificate, key=key)


def _open_once(settings: "ServiceSettings") -> list[str]:
    """Open what will be served, and close it: what cannot be served is refused here, before workers start."""
    from sfumato.catalog.catalog_file import load_catalog
    from sfumato.opening import open_folder

    names = []
    for folder in settings.folders:
        names.append(load_catalog(Path(folder)).name)
        open_folder(folder).close()
    return names


def _write_address(host: str, port: int, *, secure: bool) -> str:
    return f"http{'s' if secure else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def _make_demo(scratch: Path, address: str) -> Path:
    """A clinic of made-up patients with two users, and what to type next."""
    from sfumato.catalog.budget import Budget
    from sfumato.catalog.catalog_file import write_catalog
    from sfumato.catalog.columns import Boolean, Category, Id, Integer
    from sfumato.catalog.dataset import Dataset, Table
    from sfumato.cli.demo import WARDS, write_clinic
    from sfumato.service.api_tokens import Tokens
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
    with open_accounts(folder, None) as made:
        made.add_user("olga", "owner")
        made.add_user("ann", "analyst")
        made.set_grant("ann", "clinic", "1", delta="1e-7", per_query="0.5")
        token, sessions = Tokens(made).make("ann", 1, "demo"), Sessions(made)
        links = {name: f"{address}/signin/{sessions.make_link(name)}" for name in ("ann", "olga")}
    say("A clinic of 1,000 made-up patients. It ends with this command (Ctrl-C).")
    say("Open one of these links in a browser. Each signs in once; use a private window for the second one.")
    typer.echo(f"  Ann, an analyst:   {links['ann']}")
    typer.echo(f"  Olga, the owner:   {links['olga']}")
    say("Ann may spend epsilon = 1 in all, and 0.5 on one question. From Python, in another terminal:")
    question = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    code = f'import sfumato as sf; print(sf.connect("{address}", "{token}").ask("{question}", epsilon=0.5).rows)'
    typer.echo(f"  python -c '{code}'")
    return folder
