"""Devices, a relay and a collector as processes of their own, over HTTP: what leaves a device is counted once."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from make_vectors import FixedKey

import sfumato as sf
from sfumato.local.collect.collector import Collector
from sfumato.local.survey.new_survey import new_survey


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Process:
    """A command of `sfumato survey` that listens on a port."""

    def __init__(self, *command, port):
        self.port = port
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "survey", *map(str, command), "--port", str(port), "--rate", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"},
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 90
        while True:
            try:
                with urlopen(f"http://localhost:{port}/health"):
                    return
            except OSError:
                assert self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def post(self, path, body):
        try:
            with urlopen(Request(f"http://localhost:{self.port}{path}", body)) as answer:
                return answer.status
        except HTTPError as error:
            error.close()
            return error.code

    def stop(self):
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(30)


def wait_for(check):
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("late", [False, True], ids=["collector first", "collector late"])
def test_reports_go_from_devices_through_the_relay_to_the_collector(tmp_path, late):
    ports = find_port(), find_port()
    upstream = f"http://localhost:{ports[0]}/reports"
    manifest = new_survey(
        "Do you have a pet?", key=FixedKey(), epsilon=1, labels=["no", "yes"], minimum_batch=5,
        endpoint=f"http://localhost:{ports[1]}/reports",
    ).manifest  # fmt: skip
    path = tmp_path / "pet.json"
    path.write_bytes(manifest.to_bytes())
    serve = ("serve", path, "--state", tmp_path / "state")
    started = [] if late else [Process(*serve, port=ports[0])]
    try:
        relay = Process("relay", upstream, "--batch", "11", "--state", tmp_path / "relay.db", port=ports[1])
        started.append(relay)
        made = [
            sf.local.Survey(manifest, tmp_path / f"person-{person}.db").report(person % 3 == 0) for person in range(12)
        ]
        collected = tmp_path / "state" / f"{manifest.id}.db"

        def count():
            return Collector(manifest, collected).count_received().accepted if collected.exists() else 0

        for report in made[:9]:
            assert relay.post("/reports", report.to_json().encode()) == 200
        assert relay.post("/reports", made[0].to_json().encode()) == 200  # sent again by a device that was not sure
        taken_back = json.dumps({"survey": manifest.id, "id": made[8].id}).encode()
        assert relay.post("/reports/withdraw", taken_back) == 200  # it still waits at the relay
        assert count() == 0  # no batch is whole
        for report in made[9:]:
            assert relay.post("/reports", report.to_json().encode()) == 200
        if late:  # the relay could not deliver; it does when it starts again
            relay.stop()
            started.remove(relay)
            started.append(Process(*serve, port=ports[0]))
            relay = Process("relay", upstream, "--batch", "11", "--state", tmp_path / "relay.db", port=ports[1])
            started.append(relay)
        wait_for(lambda: count() == 11)
        collector = Collector(manifest, collected)
        assert relay.post("/reports/withdraw", json.dumps({"survey": manifest.id, "id": made[0].id}).encode()) == 200
        assert collector.periods() == {0: 10}
        assert collector.tally(0).people == 10
        assert relay.post("/reports/withdraw", json.dumps({"survey": manifest.id, "id": made[1].id}).encode()) == 409
        expected = sum(report.report for report in made[1:8]) + sum(report.report for report in made[9:])
        assert int(collector.tally(0).counts[1]) == expected
        assert collector.count_received().duplicate == 0
    finally:
        for process in started:
            process.stop()
