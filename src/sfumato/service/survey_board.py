"""The surveys of one server, and how its pages refuse."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.local.collect.collector import Collector, find_period
from sfumato.local.survey.manifest import Manifest, read_manifest
from sfumato.service.report_queue import ReportQueue
from sfumato.service.request_limits import RateLimit
from sfumato.service.survey_settings import SurveySettings, place_of

SKEW = timedelta(hours=1)  # clocks of devices and servers differ
RETRY_SECONDS = "5"
OPEN = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}


class SurveyBoard:
    """The surveys of one server, each with its collector."""

    def __init__(self, settings: SurveySettings) -> None:
        self.settings = settings
        self.rate = RateLimit(settings.requests_per_second)
        if "://" not in settings.state:
            Path(settings.state).mkdir(parents=True, exist_ok=True)
        manifests = [read_manifest(Path(name).read_bytes()) for name in settings.surveys]
        self.queues = {
            manifest.id: ReportQueue(
                Collector(manifest, place_of(settings.state, manifest.id), accepted_periods=self._accept_recent)
            )
            for manifest in manifests
        }

    def _accept_recent(self, manifest: Manifest) -> range:
        """The present period, and some before it: a report for another period is not from an honest device."""
        now = datetime.now(UTC)
        first = find_period(manifest, now - SKEW) - self.settings.late_periods
        return range(max(first, 0), find_period(manifest, now + SKEW) + 1)

    def collector(self, survey: str) -> Collector | None:
        queue = self.queues.get(survey)
        return None if queue is None else queue.collector


def get_board(request: Request) -> SurveyBoard:
    board: SurveyBoard = request.app.state.board
    return board


def refuse(status: int, code: str, message: str, **headers: str) -> Response:
    """A refusal in constant words, which pages of every origin may read."""
    return JSONResponse({"error": code, "message": message}, status, {**OPEN, **headers})
