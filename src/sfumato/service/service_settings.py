"""What a service needs to know. Workers are started with it as JSON in an environment variable."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "SFUMATO_SERVICE"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The datasets, the accounts, and the limits of a request."""

    folders: tuple[str, ...]  # each with a catalog.toml
    accounts: str  # the file of the accounts
    registered: str = ""  # the folder in which owners make new datasets; empty: beside the accounts
    sources: str = ""  # the folder whose files owners may register by their path; empty: uploads only
    surveys: str = ""  # the folder of the surveys; empty: beside the accounts
    wait_seconds: float = 30.0  # a question that takes longer becomes a job
    most_running: int = 8  # questions that one worker answers at the same time
    pad_seconds: float = 0.0  # answers leave at multiples of it; 0: at once
    requests_per_second: float = 100.0  # of one user or address, in each worker; 0: no limit
    most_upload_bytes: int = 1 << 30
    metrics_token: str = ""  # who has it may read /metrics; an owner may, too

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def place(self, name: str) -> Path:
        """A folder of the service: the given one, or the one beside the accounts."""
        given = str(getattr(self, name))
        return Path(given) if given else Path(self.accounts).absolute().parent / name


def read_service_settings(text: str | None = None) -> ServiceSettings:
    """The settings of this process: of the text, or of the environment variable."""
    values = json.loads(text if text is not None else os.environ[VARIABLE])
    return ServiceSettings(**{**values, "folders": tuple(values["folders"])})
