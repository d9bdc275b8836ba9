"""The parts of the API about the ledger, grants, users, the log and monitoring."""

import csv
import hmac
import io
import json
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from sfumato.answers.answer import Cost
from sfumato.service.accounts import Accounts, Grant, require_owner
from sfumato.service.api_questions import CSV, Amount
from sfumato.service.callers import Caller, find_any_caller
from sfumato.service.grant_limits import check_grant
from sfumato.service.metrics import Metrics
from sfumato.service.served_datasets import ServedDatasets

MOST_LINES = 10_000
CHUNK = 1 << 16
Most = Annotated[int, Query(ge=1, le=MOST_LINES)]
Before = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only what comes before this number.")]


class GrantRequest(BaseModel):
    """A limit for one analyst: in all, and for a single question."""

    model_config = ConfigDict(extra="forbid")
    user: str
    epsilon: str | float | int
    delta: str | float | int = "0"
    per_query: Amount = None
    per_query_delta: Amount = None
    expires: Annotated[datetime | None, Field(description="When it ends; in UTC, if it names no time zone.")] = None


def add_owner_routes(
    app: FastAPI, accounts: Accounts, served: ServedDatasets, metrics: Metrics, metrics_token: str
) -> None:
    """Add these parts."""
    _add_ledger(app, served)
    _add_grants(app, accounts, served)
    _add_log(app, accounts)

    @app.get("/metrics", include_in_schema=False)
    def show_metrics(request: Request, authorization: Annotated[str, Header()] = "") -> Response:
        """Counters for Prometheus: for an owner, or for who has the token of the metrics."""
        given = authorization.removeprefix("Bearer ").encode()
        if not (metrics_token and hmac.compare_digest(given, metrics_token.encode())):
            require_owner(find_any_caller(request))
        return PlainTextResponse(metrics.write(), media_type="text/plain; version=0.0.4")


def _add_ledger(app: FastAPI, served: ServedDatasets) -> None:
    @app.get("/v1/datasets/{name}/ledger")
    def list_entries(name: str, user: Caller, most: Most = 1000, before: Before = None) -> list[dict[str, Any]]:
        """The newest entries of the ledger, oldest first: all for an owner, their own for an analyst.

        Answers are not in it. To page back, send the first number as `before`.
        """
        with served.using(name, user) as (curator, _):
            own = "" if user.role == "owner" else user.name
            return [
                {"number": entry.number, "kind": entry.kind, "analyst": entry.analyst, "time": entry.time,
                 "loss": None if entry.loss is None else Cost.from_loss(entry.loss).as_text(), "hash": entry.hash}
                for entry in curator.ledger().entries(most, analyst=own, before=before)
            ]  # fmt: skip

    @app.get("/v1/datasets/{name}/ledger:verify")
    def verify(name: str, user: Caller) -> dict[str, Any]:
        """Check every hash, signature and sum of the ledger (owner)."""
        require_owner(user)
        with served.using(name, user) as (curator, _):
            found = curator.ledger().verify()
            return {"ok": found.ok, "entries": found.entries, "reason": found.reason}

    @app.get("/v1/datasets/{name}/ledger:export", response_class=StreamingResponse)
    def export(name: str, user: Caller) -> StreamingResponse:
        """Every entry as a line of JSON, so that others can check the ledger (owner). Answers are left out."""
        require_owner(user)
        with served.using(name, user) as (curator, _):
            file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the stream closes it
            curator.ledger().export(file)
        headers = {"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
        return StreamingResponse(_send(file), media_type="application/jsonl", headers=headers)


def _send(file: IO[str]) -> Iterator[str]:
    with file:
        file.seek(0)
        while part := file.read(CHUNK):
            yield part


def _add_grants(app: FastAPI, accounts: Accounts, served: ServedDatasets) -> None:
    @app.get("/v1/datasets/{name}/grants")
    def list_grants(name: str, user: Caller) -> dict[str, Any]:
        """The grants of a dataset, and what all analysts together can learn: never more than the total."""
        require_owner(user)
        with served.using(name, user) as (curator, _):
            grants = [{part: getattr(grant, part) for part in Grant.__slots__} for grant in accounts.list_grants(name)]
            return {"grants": grants, "all_analysts_together": curator.budget.limit.as_text()}

    @app.put("/v1/datasets/{name}/grants")
    def set_grant(name: str, wanted: GrantRequest, user: Caller) -> dict[str, Any]:
        """Grant an analyst a limit, in place of an earlier one."""
        require_owner(user)
        with served.using(name, user) as (curator, _):
            grant = accounts.set_grant(
                wanted.user, name, wanted.epsilon, delta=wanted.delta, per_query=wanted.per_query,
                per_query_delta=wanted.per_query_delta, expires=wanted.expires, by=user.name,
                check=lambda grant: check_grant(grant, curator.dataset.budget),
            )  # fmt: skip
        return {part: getattr(grant, part) for part in Grant.__slots__}

    @app.delete("/v1/datasets/{name}/grants/{analyst}")
    def remove_grant(name: str, analyst: str, user: Caller) -> dict[str, str]:
        """End an analyst's access. What they spent stays spent."""
        require_owner(user)
        with served.using(name, user):
            accounts.remove_grant(analyst, name, by=user.name)
        return {"removed": analyst}


def _add_log(app: FastAPI, accounts: Accounts) -> None:
    @app.get("/v1/log", response_model=None)
    def list_log(
        user: Caller, most: Most = 1000, before: Before = None, accept: Annotated[str, Header()] = "application/json"
    ) -> list[dict[str, Any]] | Response:
        """Who did what, newest first, as JSON, CSV or lines of JSON (owner). It holds no secret and no data."""
        require_owner(user)
        lines = [dict(line) for line in accounts.list_log(most, before)]
        if "application/jsonl" in accept:
            return PlainTextResponse("".join(f"{json.dumps(line)}\n" for line in lines), media_type="application/jsonl")
        if CSV not in accept:
            return lines
        sink = io.StringIO()
        writer = csv.DictWriter(sink, ("number", "time", "user", "action", "dataset", "detail"))
        writer.writeheader()
        writer.writerows(lines)
        return Response(sink.getvalue(), media_type=CSV)
