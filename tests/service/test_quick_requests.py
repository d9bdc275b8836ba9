"""What makes the service fast changes no answer: quick routes, JSON that is written once, and a socket per worker."""

import asyncio
import json
import math
import socket

import pytest
from fastapi import routing
from fastapi.testclient import TestClient
from served_clinic import BY_CITY, COUNT, make_clinic

from sfumato.json_values import write_json
from sfumato.service.api import make_app
from sfumato.service.fair_accepting import bind_beside, make_loop
from sfumato.service.service_settings import ServiceSettings

USUAL = "application/json; charset=utf-8"  # a quick route leaves it to FastAPI
QUICK = "application/json"
PATHS = ("queries", "queries:preview", "workloads", "workloads:preview")
ALL = {"questions": [{"sql": COUNT}, {"sql": BY_CITY}], "epsilon": "0.1"}
ONE = {"sql": COUNT, "epsilon": "0.1"}


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


@pytest.fixture
def client(clinic):
    settings = ServiceSettings((), "", requests_per_second=0)
    with TestClient(make_app([clinic.folder], clinic.accounts, settings), raise_server_exceptions=False) as client:
        yield client


def send(client, clinic, path, body, kind=QUICK, token=None, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {token or clinic.tokens['ann']}", "Content-Type": kind, **headers}
    return client.post(f"/v1/datasets/clinic/{path}", content=content, headers=sent)


def choose_body(path):
    return ALL if path.startswith("workloads") else ONE


@pytest.mark.parametrize("path", PATHS)
def test_a_quick_route_answers_as_the_usual_one_does(client, clinic, path):
    send(client, clinic, path, choose_body(path))  # from now on, the answer is stored
    quick, usual = (send(client, clinic, path, choose_body(path), kind) for kind in (QUICK, USUAL))
    assert quick.status_code == usual.status_code == 200, quick.text
    assert quick.json() == usual.json()
    assert dict(quick.headers) == dict(usual.headers)
    assert quick.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", PATHS)
def test_only_unusual_requests_take_the_usual_way(client, clinic, path, monkeypatch):
    """The negative control of the other tests: they do compare two ways."""

    async def fail(**_):
        raise RuntimeError("the usual way")

    monkeypatch.setattr(routing, "solve_dependencies", fail)
    assert send(client, clinic, path, choose_body(path)).status_code == 200
    assert send(client, clinic, path, choose_body(path), USUAL).status_code == 500


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "change",
    [
        {"body": b"{"}, {"body": b""}, {"body": b"[" * 15}, {"body": {}}, {"body": {**ONE, **ALL}}, {"body": [1]},
        {"body": {"sql": 1}}, {"body": {"sql": "x" * 10**5}}, {"token": "sfm_made_up"}, {"token": "made up"},
        {"body": b"{", "token": "sfm_made_up"}, {"prefer": "x" * 201}, {"kind": "text/plain"}, {"kind": ""},
    ],
)  # fmt: skip
def test_refusals_are_the_same(client, clinic, path, change):
    quick, usual = (
        send(client, clinic, path, **{"body": choose_body(path), "kind": kind, **change}) for kind in (QUICK, USUAL)
    )
    assert (quick.status_code, quick.text) == (usual.status_code, usual.text)
    refused = not (path.endswith("preview") and "prefer" in change)  # a preview takes no such header
    assert (quick.status_code in (400, 401)) == refused, quick.text


def test_a_key_and_the_wish_for_a_job_are_read(client, clinic):
    first, again = (send(client, clinic, "queries", ONE, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first.status_code == 200
    assert first.content == again.content, "a retry gets the very bytes"
    other = send(client, clinic, "queries", {**ONE, "sql": BY_CITY}, **{"Idempotency-Key": "k"})
    assert other.status_code == 400
    for key in ("", "x" * 201):
        assert send(client, clinic, "queries", ONE, **{"Idempotency-Key": key}).status_code == 400
    later = send(client, clinic, "queries", {**ONE, "sql": BY_CITY}, Prefer="respond-async")
    assert later.status_code == 202
    table = send(client, clinic, "queries", ONE, Accept="text/csv")
    assert table.headers["content-type"].startswith("text/csv")


def test_a_revoked_token_is_refused_at_once(client, clinic):
    assert send(client, clinic, "queries:preview", ONE).status_code == 200
    client.app.state.tokens.revoke(clinic.tokens["ann"].split("_")[1])
    assert send(client, clinic, "queries:preview", ONE).status_code == 401


def test_json_has_null_for_what_it_cannot_hold():
    value = {"low": -math.inf, "ends": (1.5, math.nan), "city": "Łódź \ud800"}
    assert json.loads(write_json(value)) == {"low": None, "ends": [1.5, None], "city": "Łódź \ud800"}
    assert write_json({"a": (1, "é")}) == '{"a":[1,"\\u00e9"]}'


def test_connections_are_spread_over_the_workers():
    async def count(*, listening=False):
        taken = [0, 0]

        def make_protocol(worker):
            def begin():
                taken[worker] += 1
                return asyncio.Protocol()

            return begin

        shared = socket.socket()
        shared.bind(("127.0.0.1", 0))
        if listening:  # as one that a supervisor of the system hands over
            shared.listen(100)
        loop, sockets = asyncio.get_running_loop(), [shared, shared.dup()]
        servers = [await loop.create_server(make_protocol(worker), sock=sockets[worker]) for worker in range(2)]
        port = servers[0].sockets[0].getsockname()[1]
        assert {server.sockets[0].getsockname()[1] for server in servers} == {port}
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(64)]
        await asyncio.sleep(0.2)
        for one in (*clients, *servers, *sockets):
            one.close()
        return taken

    with asyncio.Runner(loop_factory=make_loop) as runner:
        fair, handed_over = runner.run(count()), runner.run(count(listening=True))
    assert sum(fair) == sum(handed_over) == 64, "no connection waits at a socket that nobody looks at"
    assert min(fair) >= 8, "fewer have a probability of 1e-9"
    with asyncio.Runner() as runner:  # the negative control: asyncio's own loop at one socket
        assert min(runner.run(count())) < 8


def test_only_sockets_of_one_user_share_a_port():
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        second = bind_beside(first)
        assert first.getsockname() == second.getsockname()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):  # it did not ask to share
            stranger.bind(first.getsockname())
        second.close()
