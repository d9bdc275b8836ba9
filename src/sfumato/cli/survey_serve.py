# ruff: noqa: PLC0415 - a command imports the packages that only it needs
"""Run a survey on a web server: serve, and a shuffling relay."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.listening import LOCAL, refuse_used_port
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import say

if TYPE_CHECKING:
    from starlette.applications import Starlette

TOKEN = "SFUMATO_OWNER_TOKEN"  # noqa: S105 - the name of a variable
METRICS_TOKEN = "SFUMATO_METRICS_TOKEN"  # noqa: S105 - the name of a variable

Host = Annotated[str, typer.Option(help="The address to listen on.", metavar="HOST")]
Port = Annotated[int, typer.Option(help="The port to listen on.", metavar="N", min=1, max=65535)]
Rate = Annotated[float, typer.Option(help="Requests per second from one address; 0: no limit.", metavar="N", min=0)]


def serve(
    surveys: Annotated[list[Path], typer.Argument(metavar="SURVEYS", help="Files of signed surveys.")],
    *,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    state: Annotated[
        str, typer.Option(help="A folder for the reports, or a postgresql:// address.", metavar="PLACE")
    ] = "collected",
    workers: Annotated[int, typer.Option(help="The number of processes.", metavar="N", min=1)] = 1,
    late: Annotated[int, typer.Option(help="Accept reports of so many earlier periods.", metavar="N", min=0)] = 1,
    rate: Rate = 50.0,
    consent: Annotated[
        Path | None, typer.Option(help="A text file with your consent and privacy text.", metavar="FILE")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The team's list of trusted keys, to publish with the surveys.", metavar="RING")
    ] = None,
    open_metrics: Annotated[
        bool, typer.Option("--open-metrics", help="Answer /metrics from this machine without a token.")
    ] = False,
    announcements: Annotated[
        Path | None, typer.Option(help="A folder with the announced periods, SURVEY_ID.json.", metavar="DIR")
    ] = None,
) -> None:
    """Serve surveys: a page for respondents, the intake of reports, and a page for their owner."""
    with refusals(False):
        from sfumato.extras import imported
        from sfumato.local.survey.manifest import read_manifest

        uvicorn = imported("uvicorn", "serve")
        imported("starlette", "serve")
        imported("jinja2", "serve")
        for path in (*surveys, *(path for path in (consent, keys) if path)):
            if not path.is_file():
                raise Usage(
                    f"The file {path} does not exist.",
                    "Make a survey first: sfumato survey new; a list of keys: sfumato survey keys.",
                )
        manifests = [read_manifest(path.read_bytes()) for path in surveys]
        refuse_used_port(host, port)
        from sfumato.service.survey_settings import VARIABLE, SurveySettings

        settings = SurveySettings(
            surveys=tuple(str(path.resolve()) for path in surveys),
            state=state if "://" in state else str(Path(state).resolve()),
            owner_token=_find_token(state),
            consent="" if consent is None else str(consent.resolve()),
            announcements="" if announcements is None else str(announcements.resolve()),
            keys="" if keys is None else str(keys.resolve()),
            late_periods=late,
            metrics_token=os.environ.get(METRICS_TOKEN, ""),
            open_metrics=open_metrics,
            requests_per_second=rate,
        )
        from sfumato.service.survey_board import SurveyBoard

        SurveyBoard(settings)  # refuse here what cannot be served, before workers start
        at = f"http://{'localhost' if host in LOCAL else host}:{port}"
        for manifest in manifests:
            page = f"{at}/s/{manifest.id}"
            say(f"{manifest.question}\n  respondents: {page}\n  document:    {page}/manifest")
        say(f"Reports:  {at}/reports")
        say(f"Owner:    {at}/owner?token={settings.owner_token}", "green")
        if host not in LOCAL:
            say("Put an https server in front of this one: browsers randomise only on https pages.", "yellow")
        os.environ[VARIABLE] = settings.to_json()
        uvicorn.run(
            "sfumato.service.survey_app:make_app_from_environment",
            factory=True, host=host, port=port, workers=workers, access_log=False, log_level="warning",
            server_header=False, date_header=False,
        )  # fmt: skip


def relay(
    upstream: Annotated[str, typer.Argument(metavar="URL", help="The collector's address for reports.")],
    *,
    batch: Annotated[int, typer.Option(help="Pass on so many reports of a survey together.", metavar="N")] = 1000,
    state: Annotated[Path, typer.Option(help="The file of the reports that wait.", metavar="FILE")] = Path("relay.db"),
    host: Host = "127.0.0.1",
    port: Port = 8766,
    rate: Rate = 50.0,
) -> None:
    """Shuffle: take reports, strip everything else, and pass them on to a collector in batches and random order."""
    with refusals(False):
        from sfumato.extras import imported
        from sfumato.local.survey.manifest import ENDPOINT

        uvicorn = imported("uvicorn", "serve")
        imported("starlette", "serve")
        if not upstream or not ENDPOINT.fullmatch(upstream):
            raise Usage(
                "The collector's address must be https, or http on this machine.", "For example https://…/reports."
            )
        if batch < 2:
            raise Usage("A batch must have 2 reports or more.", "One report cannot be shuffled.")
        refuse_used_port(host, port)
        from sfumato.service.survey_relay import RelaySettings, make_relay_app

        app: Starlette = make_relay_app(RelaySettings(upstream, batch, str(state), requests_per_second=rate))
        say(f"Reports:  http://{'localhost' if host in LOCAL else host}:{port}/reports")
        say(f"They are passed on to {upstream} in batches of {batch:,} or more, shuffled.")
        uvicorn.run(
            app, host=host, port=port, access_log=False, log_level="warning", server_header=False, date_header=False
        )


def _find_token(state: str) -> str:
    """The owner's secret: of the environment, or in a file beside the reports that only its owner can read."""
    if os.environ.get(TOKEN):
        return os.environ[TOKEN]
    from sfumato.signing import make_secret

    if "://" in state:
        return make_secret()
    place = Path(state) / "owner-token"
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make_secret())
    return place.read_text().strip()
