"""Send the reports of a million simulated devices through HTTP in batches, and check the result.

    python bench/survey_server.py [--people N] [--batch N] [--workers N] [--state postgresql://...]

It prints reports per second beside the time of the same work without HTTP. A run misses its limit below 20,000 reports
per second, or if a million devices take two minutes or more.
"""

import argparse
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np

from sfumato.kernel.entropy import SYSTEM
from sfumato.local.collect.collector import Collector
from sfumato.local.survey.manifest import Manifest
from sfumato.local.survey.new_survey import SurveyKey, new_survey

SHARES = (0.5, 0.25, 0.2, 0.05)
LEAST_PER_SECOND = 20_000


def write_batches(manifest: Manifest, people: int, batch: int) -> Iterator[bytes]:
    """The bodies of the requests: every device has its own report and its own random id."""
    generator = np.random.default_rng(1)
    for start in range(0, people, batch):
        count = min(batch, people - start)
        reports = manifest.table.randomise(generator.choice(len(SHARES), count, p=SHARES))
        ids = SYSTEM.take(16 * count).tobytes().hex()
        head = f'{{"survey":"{manifest.id}","period":0,"id":"'
        lines = (
            f'{head}{ids[32 * place : 32 * place + 32]}","report":{value}}}'
            for place, value in enumerate(manifest.table.form.encode(reports))
        )
        yield gzip.compress("\n".join(lines).encode(), 1)


def post(address: str, body: bytes) -> int:
    request = Request(address, body, {"Content-Encoding": "gzip"})  # noqa: S310 - on loopback
    with urlopen(request, timeout=300) as answer:  # noqa: S310 - on loopback
        return int(json.loads(answer.read())["accepted"])


def start_server(folder: Path, path: Path, port: int, workers: int, state: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sfumato", "survey", "serve", str(path), "--port", str(port)]
    options = ["--state", state or str(folder / "state"), "--workers", str(workers), "--rate", "0"]
    environment = {**os.environ, "SFUMATO_OWNER_TOKEN": "bench"}
    server = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, env=environment, start_new_session=True)
    for _ in range(600):
        try:
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return server
        except (URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--people", type=int, default=1_000_000)
    options.add_argument("--batch", type=int, default=10_000)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--state", default="")
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp())
    labels = ["none", "a cat", "a dog", "another animal"]
    manifest = new_survey("Do you have a pet?", labels=labels, epsilon=1, key=SurveyKey()).manifest
    path = folder / "survey.json"
    path.write_bytes(manifest.to_bytes())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bodies = list(write_batches(manifest, given.people, given.batch))
    print(f"{len(bodies)} requests, {sum(map(len, bodies)) / 1e6:.0f} MB compressed")
    server = start_server(folder, path, port, given.workers, given.state)
    try:
        started = time.perf_counter()
        with ThreadPoolExecutor(2 * given.workers) as pool:
            accepted = sum(pool.map(lambda body: post(f"http://127.0.0.1:{port}/reports", body), bodies))
        seconds = time.perf_counter() - started
        owner = {"Authorization": "Bearer bench"}
        with urlopen(Request(f"http://127.0.0.1:{port}/owner/publish", f"survey={manifest.id}".encode(), owner)):
            pass
        with urlopen(Request(f"http://127.0.0.1:{port}/owner/results.json", headers=owner)) as answer:
            found = json.loads(answer.read())
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
    if not accepted == found["people"] == given.people:
        raise SystemExit("reports were lost, or counted twice")
    inside = sum(line["low"] <= share <= line["high"] for line, share in zip(found["estimates"], SHARES, strict=True))
    plain = Collector(manifest, folder / "plain.db")
    some = [gzip.decompress(body).split(b"\n") for body in bodies[: max(1, len(bodies) // 10)]]
    before = time.perf_counter()
    for lines in some:
        plain.ingest_lines(lines)
    alone = sum(map(len, some)) / (time.perf_counter() - before)
    rate = given.people / seconds
    print(f"{given.people:,} devices in {seconds:.1f} s: {rate:,.0f} reports/s ({alone:,.0f}/s without HTTP)")
    print(f"{inside} of {len(SHARES)} intervals contain the true share")
    missed = rate < LEAST_PER_SECOND or seconds * 1_000_000 / given.people >= 120
    if missed:
        print(f"MISSED: fewer than {LEAST_PER_SECOND:,} reports/s, or two minutes for a million devices")
    raise SystemExit(int(missed))


if __name__ == "__main__":
    main()
