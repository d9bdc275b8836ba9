"""Run the service: one process, or several workers that share the ledgers and the accounts."""

import gc
import os
from pathlib import Path

from fastapi import FastAPI

from sfumato.extras import imported
from sfumato.service.api import make_service_app
from sfumato.service.fair_accepting import LOOP
from sfumato.service.metrics import clear_metrics
from sfumato.service.service_settings import VARIABLE, ServiceSettings, read_service_settings


def serve(
    settings: ServiceSettings, host: str, port: int, *, workers: int, certificate: Path | None, key: Path | None
) -> None:
    """Serve until it is stopped. There is no access log: who asked what is in the log of the accounts."""
    uvicorn = imported("uvicorn", "serve")
    os.environ[VARIABLE] = settings.to_json()
    clear_metrics(Path(f"{settings.accounts}.metrics"))
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
        loop=LOOP,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
    )


def make_worker_app() -> FastAPI:
    """The application of one worker, from the settings that `serve` left in the environment."""
    app = make_service_app(read_service_settings())
    gc.freeze()  # what is there now stays: a full collection would look at all of it, for a tenth of a second
    return app
