"""Workers of a service that are killed in the middle of requests, and clients that send their requests again.

A parent process imports everything once and forks the workers, which share one socket. So a killed worker is replaced
in a fraction of a second, and a thousand kills take minutes.
"""

import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256

from sfumato.curator import Curator
from sfumato.opening import open_folder
from sfumato.service.service_settings import ServiceSettings

EPSILON = "0.001"
FINAL = "charge-closed"  # the charge of an earlier attempt was closed: paid, and no answer
AGAIN = ("request-running", "too-many-requests")
MOST_SECONDS = 120
DROPPED = 0.1  # the share of attempts whose client goes away before it has the answer


def run_workers(settings, listening, workers, orders, told):
    """The parent of the workers: forks them, and kills one when it is told to. It runs in a process of its own."""
    import uvicorn

    from sfumato.service.api import make_service_app

    def start():
        pid = os.fork()
        if pid:
            return pid
        config = uvicorn.Config(make_service_app(settings), access_log=False, log_level="critical", loop="asyncio")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            os._exit(0)

    running = [start() for _ in range(workers)]
    told.put("ready")
    while orders.get() == "kill":
        victim = random.randrange(workers)
        os.kill(running[victim], signal.SIGKILL)
        os.waitpid(running[victim], 0)
        running[victim] = start()
        told.put("killed")
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@dataclass
class Killing:
    """A service whose workers are killed. `faults` are answers that no client should get."""

    settings: ServiceSettings
    workers: int = 2
    faults: list = field(default_factory=list)
    outcomes: dict = field(default_factory=dict)  # by analyst and key: `answered`, `closed` or `refused`
    resent: int = 0
    dropped: int = 0  # connections that a client closed before it had the answer

    def __enter__(self):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(128)
        self.port = self._socket.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self._orders, self._told = context.Queue(), context.Queue()
        parts = (self.settings, self._socket, self.workers, self._orders, self._told)
        self._parent = context.Process(target=run_workers, args=parts)
        self._parent.start()
        assert self._told.get(timeout=120) == "ready"
        self._stop = threading.Event()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._orders.put("stop")
        self._parent.join(60)
        self._socket.close()

    def stop(self):
        """Let the clients end after the request that they are sending."""
        self._stop.set()

    def wait_for_progress(self, seconds=20):
        """Wait until a request had an outcome, so that the next kill hits a service that works."""
        before, deadline = len(self.outcomes), time.monotonic() + seconds
        while len(self.outcomes) == before and time.monotonic() < deadline:
            time.sleep(0.005)

    def kill(self):
        self._orders.put("kill")
        assert self._told.get(timeout=120) == "killed"

    def keep_asking(self, analyst, token, seed):
        """Send question after question until the kills are over, each again and again until it has an outcome."""
        number = 0
        while not self._stop.is_set():
            number += 1
            key = f"{analyst}-{seed}-{number}"
            # a question that nobody else asks: the stored answer of another analyst would not be charged
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {number % 100} AND job <> '{seed}-{number}'"
            self.outcomes[analyst, key] = self._send(token, key, {"sql": sql, "epsilon": EPSILON})

    def _send(self, token, key, body):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
        deadline, attempts = time.monotonic() + MOST_SECONDS, 0
        while time.monotonic() < deadline:
            self.resent += attempts > 0
            attempts += 1
            drops = random.random() < DROPPED
            patience = random.uniform(0.001, 0.05) if drops else 30
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
                connection.request("POST", "/v1/datasets/clinic/queries", json.dumps(body), headers)
                answered = connection.getresponse()
                found = json.loads(answered.read())
                connection.close()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.dropped += drops and isinstance(error, TimeoutError)
                connection.close()
                time.sleep(0.02)  # the worker was killed, or the client gave up; nobody knows how far it came
                continue
            if answered.status == 200:
                return "answered"
            if found["code"] == FINAL:
                return "closed"
            if answered.status == 409 and found["code"] == "budget-exceeded":
                return "refused"
            if answered.status != 503 and found["code"] not in AGAIN:
                self.faults.append((answered.status, found["code"], found["detail"]))
                return "fault"
            time.sleep(0.02)
        self.faults.append(("never", key, ""))
        return "fault"


def check_charges(settings, outcomes):
    """Every request was charged at most once, every answered one exactly once, and the charges add up."""
    curator: Curator = open_folder(settings.folders[0])
    with curator:
        ledger = curator.ledger()
        assert ledger.verify().ok
        entries = ledger.entries()
        spent = curator.budget.spent.epsilon
    charges: dict[str, list[int]] = {}
    for entry in entries:
        if entry.kind == "charge":
            charges.setdefault(json.loads(entry.question)["request"], []).append(entry.number)
    answers = {entry.about for entry in entries if entry.kind == "answer"}
    assert spent == Decimal(EPSILON) * sum(map(len, charges.values())), "the sum of all charges"
    for (analyst, key), outcome in outcomes.items():
        own = charges.pop(sha256(f"{analyst}\n{key}".encode()).hexdigest()[:32], [])
        assert len(own) <= 1, f"{key} was charged {len(own)} times"
        if outcome == "answered":
            assert len(own) == 1, f"{key} was answered and not charged"
            assert own[0] in answers, f"the answer of {key} is not stored"
        if outcome == "refused":
            assert not own
    assert not charges, "a charge belongs to no request"
    return sum(outcome == "answered" for outcome in outcomes.values())
