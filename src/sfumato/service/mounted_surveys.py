"""The surveys of a service: their signed documents, their reports, and the collector that respondents send to.

The collector and the respondents' pages are those of `survey_app`. Respondents do not sign in. What only an owner may
see is on the service's own pages, so the owner's page of the collector stays closed here.
"""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.errors import PermissionDenied
from sfumato.local.collect.collector import Collector
from sfumato.local.survey.manifest import Manifest, read_manifest
from sfumato.local.survey.new_survey import SurveyKey, new_survey
from sfumato.private_files import locked, make_private_folder
from sfumato.service.survey_app import make_survey_app
from sfumato.service.survey_settings import SurveySettings, place_of

PLACE = "/surveys/collect"
CLOSED = ("/owner", "/metrics")
UNKNOWN = PermissionDenied("no-survey", "There is no such survey here.", "Choose one on the page of surveys.")


@dataclass(slots=True)
class MountedSurveys:
    """The surveys in a folder. New ones are served from the next request on, by every worker."""

    folder: Path
    _names: tuple[str, ...] = ()
    _app: ASGIApp | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def list_paths(self) -> tuple[str, ...]:
        """The files of the signed surveys."""
        return tuple(str(path) for path in sorted(self.folder.glob("*.json"))) if self.folder.is_dir() else ()

    def list(self) -> list[Manifest]:
        """The surveys, newest first."""
        found = [read_manifest(Path(path).read_bytes()) for path in self.list_paths()]
        return sorted(found, key=lambda manifest: manifest.created, reverse=True)

    def find(self, survey: str) -> Collector:
        """The collector of a survey."""
        path = self.folder / f"{survey}.json"
        if not (survey.isascii() and survey.isalnum() and path.is_file()):
            raise UNKNOWN
        state = make_private_folder(self.folder / "collected")
        return Collector(read_manifest(path.read_bytes()), place_of(str(state), survey))

    def make(self, question: str, **asked: Any) -> Manifest:  # noqa: ANN401 - as `new_survey` takes them
        """Make a survey, sign it with the service's key, and collect its reports from now on."""
        new_survey(question, key=SurveyKey(), **asked)  # refuse first what cannot be made
        make_private_folder(self.folder)
        with locked(self.folder / "key.lock"):
            made = new_survey(question, key=SurveyKey(self.folder / "survey.key"), **asked).manifest
        place = self.folder / f"{made.id}.json"
        place.with_suffix(".new").write_bytes(made.to_bytes())
        place.with_suffix(".new").replace(place)
        return made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = self.list_paths()
        inside = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or not names or inside.startswith(CLOSED):
            await JSONResponse({"error": "unknown", "message": "There is nothing here."}, 404)(scope, receive, send)
            return
        with self._lock:
            if self._app is None or names != self._names:
                state = make_private_folder(self.folder / "collected")
                self._app, self._names = make_survey_app(SurveySettings(names, str(state))), names
            app = self._app
        await app(scope, receive, send)
