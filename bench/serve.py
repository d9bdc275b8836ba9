"""Load and faults of the service: 64 analysts at the same time, and workers that are killed.

    python bench/serve.py [--previews N] [--asks N] [--kills N] [--only load|faults]

- load: no errors, and the amount spent equals the sum of the answers' costs; at least 300 previews and 50 durable asks
  per second; an ask takes at most 3 times as long as a bare FastAPI endpoint with one SQLite commit. The two are
  measured in turns of about the same length, and their medians are compared: a disk is not equally fast for a minute.
- faults: workers are killed mid-request, with ledgers on SQLite and PostgreSQL, and connections to the ledger and its
  server, too. Clients also go away before they have their answers. No charge is lost, and no retried request is charged
  twice.

The clients share the processors with the workers, here as in the measurement of the bare endpoint. They are one process
that only sends and counts; it reads the answers after the measurement. Both applications have two workers of the same
server, and commit with the same settings of SQLite (a write-ahead log, and a wait for the disk at every commit).

Ingestion of survey reports is measured by bench/survey_server.py.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import psycopg

sys.path += [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests" / "service")]

from killed_workers import Killing, check_charges
from peers.http_load import Load, send_all
from postgres_server import run_server
from served_clinic import make_clinic

from sfumato.opening import open_folder
from sfumato.service.accounts import Accounts
from sfumato.service.api_tokens import Tokens
from sfumato.service.fair_accepting import LOOP
from sfumato.service.service_settings import VARIABLE, ServiceSettings

ANALYSTS, WORKERS, ROUNDS = 64, 2, 5
BARE_TIMES = 3  # as many bare requests as asks in a turn, so that the turns take about as long
LEAST_PREVIEWS, LEAST_ASKS, MOST_RATIO = 300, 50, 3.0
EPSILON = "0.01"
CATALOG = """
[dataset]
name = "clinic"
[budget]
epsilon = "1000000"
[tables.people]
source = "people.csv"
unit_column = "person_id"
columns.person_id = { type = "id" }
columns.age = { type = "integer", lower = 0, upper = 120 }
columns.city = { type = "category", values = ["Rome", "Oslo"] }
"""


def make_folder(folder: Path) -> tuple[ServiceSettings, list[str]]:
    """A small dataset, its analysts, and their tokens."""
    folder.mkdir()
    rows = [f"{i},{20 + i % 60},{'Rome' if i % 3 else 'Oslo'}" for i in range(1000)]
    (folder / "people.csv").write_text("\n".join(["person_id,age,city", *rows]) + "\n")
    (folder / "catalog.toml").write_text(CATALOG)
    open_folder(folder).close()
    path = folder / ".sfumato" / "accounts.db"
    accounts = Accounts(path)
    tokens = []
    for number in range(ANALYSTS):
        accounts.add_user(f"analyst-{number}")
        accounts.set_grant(f"analyst-{number}", "clinic", "10000", per_query="1")
        tokens.append(Tokens(accounts).make(f"analyst-{number}"))
    accounts.close()
    return ServiceSettings((str(folder),), str(path), requests_per_second=0), tokens


@contextmanager
def run_app(app: str, health: str, *, factory: bool = False, **environment: str) -> Iterator[int]:
    """Serve an application with two workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--workers", str(WORKERS), "--no-access-log"]
    command += ["--log-level", "warning", "--loop", LOOP, *(["--factory"] if factory else [])]
    places = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(places)}
    server = subprocess.Popen(command, env=settings, start_new_session=True)
    try:
        for _ in range(600):
            try:
                with urlopen(f"http://127.0.0.1:{port}{health}", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def write_question(number: int, *, preview: bool = False) -> tuple[str, bytes, str]:
    """A request that nobody has sent before."""
    low, high = number % 97, 100 + number // 97
    sql = f"SELECT city, COUNT(*) AS n FROM people WHERE age > {low} AND age < {high} GROUP BY city"
    body = json.dumps({"sql": sql, "epsilon": EPSILON}).encode()
    path = f"/v1/datasets/clinic/queries{':preview' if preview else ''}"
    return path, body, "" if preview else f"Idempotency-Key: {number}\r\n"


def write_bare(number: int) -> tuple[str, bytes, str]:
    _, body, headers = write_question(number)
    return "/bare", body, headers


def measure_load(previews: int, asks: int) -> list[str]:
    """Previews, asks, and the bare endpoint in turns. Returns what missed its limit."""
    folder = Path(tempfile.mkdtemp())
    settings, tokens = make_folder(folder / "clinic")
    bare_place = {"BARE_DATABASE": str(folder / "bare.db")}
    asked: list[Load] = []
    bare: list[Load] = []
    part = asks // ROUNDS
    with (
        run_app("sfumato.service.run_service:make_worker_app", "/v1/health", factory=True,
                **{VARIABLE: settings.to_json()}) as port,
        run_app("peers.bare_endpoint:app", "/openapi.json", **bare_place) as bare_port,
    ):  # fmt: skip
        send_all(port, tokens, 4 * ANALYSTS, lambda number: write_question(10**6 + number, preview=True))  # warm up
        send_all(bare_port, tokens, 4 * ANALYSTS, write_bare)  # and its threads open their connections
        previewed = send_all(port, tokens, previews, lambda number: write_question(number, preview=True))
        for begin in range(0, ROUNDS * part, part):
            bare.append(send_all(bare_port, tokens, BARE_TIMES * part, write_bare))
            asked.append(send_all(port, tokens, part, lambda number, at=begin: write_question(at + number), keep=True))
    return report_load(settings, previewed, asked, bare)


def join(turns: list[Load]) -> Load:
    """All turns as one."""
    whole = Load()
    for turn in turns:
        whole.seconds += turn.seconds
        whole.processor_seconds += turn.processor_seconds
        whole.times += turn.times
        whole.answers += turn.answers
        for status, count in turn.statuses.items():
            whole.statuses[status] = whole.statuses.get(status, 0) + count
    return whole


def show_turns(turns: list[Load]) -> str:
    return ", ".join(f"{turn.per_second:,.0f}" for turn in turns)


def report_load(settings: ServiceSettings, previewed: Load, ask_turns: list[Load], bare_turns: list[Load]) -> list[str]:
    asked, bare = join(ask_turns), join(bare_turns)
    costs = sum((Decimal(answer["cost"]["epsilon"]) for answer in asked.answers), Decimal(0))
    with open_folder(settings.folders[0]) as curator:
        spent = curator.budget.spent.epsilon
        verified = curator.ledger().verify().ok
    asks, commits = (median(turn.per_second for turn in turns) for turns in (ask_turns, bare_turns))
    own = [1000 * load.processor_seconds / len(load.times) for load in (previewed, asked, bare)]
    lines = [
        (f"{previewed.per_second:,.0f} previews/s (median {1000 * previewed.percentile(0.5):.0f} ms, "
         f"99 % {1000 * previewed.percentile(0.99):.0f} ms)", previewed.per_second >= LEAST_PREVIEWS),
        (f"{asks:,.0f} durable asks/s (median of {show_turns(ask_turns)}; "
         f"median {1000 * asked.percentile(0.5):.0f} ms, 99 % {1000 * asked.percentile(0.99):.0f} ms)",
         asks >= LEAST_ASKS),
        (f"{commits:,.0f} bare commits/s (median of {show_turns(bare_turns)}): an ask takes {commits / asks:.2f} x "
         f"(limit {MOST_RATIO:g})", commits / asks <= MOST_RATIO),
        (f"statuses: previews {previewed.statuses}, asks {asked.statuses}, bare {bare.statuses}",
         set(previewed.statuses) == set(asked.statuses) == set(bare.statuses) == {200}),
        ("the clients' own processor time: preview {:.2f} ms, ask {:.2f} ms, bare {:.2f} ms".format(*own), True),
        (f"spent {spent}, sum of the answers' costs {costs}; the ledger verifies: {verified}",
         spent == costs and verified),
    ]  # fmt: skip
    for text, met in lines:
        print(text if met else f"MISSED: {text}", flush=True)
    return [text for text, met in lines if not met]


def measure_faults(kills: int) -> list[str]:
    """Kill workers mid-request; with PostgreSQL also its connections, and now and then its server."""
    missed = run_faults("SQLite", "", kill_worker, kills // 2)
    with run_server() as server:

        def kill(service: Any, number: int) -> str:  # noqa: ANN401 - of the tests
            if number % 25 == 24:
                server.kill()
                server.start()
                return "server of the ledger"
            if number % 2:
                return kill_worker(service, number)
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
            return "connections to the ledger"

        missed += run_faults("PostgreSQL", server.make_address(), kill, kills - kills // 2)
    return missed


def kill_worker(service: Any, _: int) -> str:  # noqa: ANN401 - of the tests
    service.kill()
    return "worker"


def run_faults(name: str, ledger: str, kill: Callable[[Any, int], str], kills: int) -> list[str]:
    clinic = make_clinic(Path(tempfile.mkdtemp()) / "clinic", "3", ledger)
    settings = ServiceSettings((str(clinic.folder),), str(clinic.accounts), requests_per_second=0)
    killed: Counter[str] = Counter()
    began = time.monotonic()
    with Killing(settings) as service:
        asking = [
            threading.Thread(target=service.keep_asking, args=(who, clinic.tokens[who], seed))
            for seed, who in enumerate(["ann", "bob", "ann", "bob"])
        ]
        for thread in asking:
            thread.start()
        for number in range(kills):
            service.wait_for_progress()
            time.sleep(random.uniform(0, 0.03))  # noqa: S311 - when to kill
            killed[kill(service, number)] += 1
        service.wait_for_progress()
        service.stop()
        for thread in asking:
            thread.join(300)
    try:
        answered = check_charges(settings, service.outcomes)
    except AssertionError as error:
        print(f"MISSED: {name}: {error}")
        return [f"{name}: {error}"]
    kinds = ", ".join(f"{count:,} x {kind}" for kind, count in killed.items())
    text = (
        f"{name}: {kills:,} kills ({kinds}) in {time.monotonic() - began:.0f} s, and {service.dropped:,} connections "
        f"dropped by clients: {len(service.outcomes):,} requests, {service.resent:,} resent, {answered:,} answered, "
        f"no charge lost, none charged twice; unexpected answers: {service.faults[:3]}"
    )
    print(text if not service.faults else f"MISSED: {text}", flush=True)
    return [text] if service.faults else []


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--previews", type=int, default=10_000)
    options.add_argument("--asks", type=int, default=2_000)
    options.add_argument("--kills", type=int, default=1_000)
    options.add_argument("--only", choices=("load", "faults"))
    given = options.parse_args()
    missed = [] if given.only == "faults" else measure_load(given.previews, given.asks)
    missed += [] if given.only == "load" else measure_faults(given.kills)
    raise SystemExit(int(bool(missed)))


if __name__ == "__main__":
    main()
