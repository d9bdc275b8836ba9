"""What a survey server needs to know. Workers are started with it as JSON in an environment variable."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "SFUMATO_SURVEY_SERVER"


@dataclass(frozen=True, slots=True)
class SurveySettings:
    """The surveys, where reports are kept, and the limits of a request."""

    surveys: tuple[str, ...]  # files of signed surveys
    state: str = "collected"  # a folder of SQLite files, one for each survey, or a postgresql:// address
    owner_token: str = ""  # empty: the owner's page is closed
    consent: str = ""  # a file with the team's privacy text
    announcements: str = ""  # a folder with ID.json: the announcement of the present period
    late_periods: int = 1  # reports of so many earlier periods are accepted
    most_bytes: int = 8 << 20  # of a request, as it was sent
    most_decoded_bytes: int = 32 << 20  # of a compressed request
    most_reports: int = 50_000  # of a request
    requests_per_second: float = 50.0  # of one address; 0: no limit
    metrics_token: str = ""  # who has it may read /metrics; the owner may, too
    open_metrics: bool = False  # /metrics answers this machine without a token
    keys: str = ""  # the file of the team's trusted keys

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_settings(text: str | None = None) -> SurveySettings:
    """The settings of this process: of the text, or of the environment variable."""
    values = json.loads(text if text is not None else os.environ[VARIABLE])
    return SurveySettings(**{**values, "surveys": tuple(values["surveys"])})


def place_of(state: str, survey: str) -> Path | str:
    """Where the reports of a survey are kept."""
    return state if "://" in state else Path(state) / f"{survey}.db"
