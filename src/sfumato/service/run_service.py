"""Run the service: one process, or several workers that share the ledgers and the accounts."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI

from sfumato.extras import imported
from sfumato.service.api import make_app

SETTINGS = "SFUMATO_SERVICE"  # the environment variable in which workers find what they serve
QUIET = {"version": 1, "disable_existing_loggers": False}  # no access log: addresses and paths are nobody's business


def serve(folders: Sequence[Path], accounts: Path, host: str, port: int, *, workers: int, certificate: Path | None,
          key: Path | None) -> None:  # fmt: skip
    """Serve until it is stopped."""
    uvicorn = imported("uvicorn", "serve")
    os.environ[SETTINGS] = json.dumps({"folders": [str(one.absolute()) for one in folders], "accounts": str(accounts)})
    uvicorn.run(
        "sfumato.service.run_service:make_worker_app",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=15,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
    )


def make_worker_app() -> FastAPI:
    """The application of one worker, from the settings that `serve` left in the environment."""
    settings = json.loads(os.environ[SETTINGS])
    return make_app([Path(folder) for folder in settings["folders"]], Path(settings["accounts"]))
