"""`sf.connect` against a real server: the interface of a Curator, workers that share one budget, and killed workers."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
from served_clinic import BY_CITY, COUNT, make_clinic

import sfumato as sf
from sfumato.remote.connection import Connection, RemoteRefusal

SERVE = """
import sys
from pathlib import Path
from sfumato.service.run_service import serve
from sfumato.service.service_settings import ServiceSettings
folder, port, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings = ServiceSettings((str(folder),), str(folder / ".sfumato" / "accounts.db"))
serve(settings, "127.0.0.1", port, workers=workers, certificate=None, key=None)
"""


@contextmanager
def run_service(clinic, workers=1):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(clinic.folder), str(port), str(workers)]
    process = subprocess.Popen(command)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/v1/health", timeout=5).read()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        yield url, process
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        for child in children:
            if child.is_running():
                child.kill()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    return make_clinic(tmp_path_factory.mktemp("served") / "clinic", "2")


@pytest.fixture(scope="module")
def service(clinic):
    with run_service(clinic) as (url, _):
        yield url


@pytest.fixture
def people(service, clinic):
    return sf.connect(service, clinic.tokens["ann"])


def test_an_answer_is_the_object_that_a_curator_returns(people):
    answer = people.ask(BY_CITY, epsilon=0.1)
    assert isinstance(answer, sf.Answer)
    assert (answer.cost.epsilon, float(answer.cost.epsilon)) == (Decimal("0.1"), 0.1)
    assert answer.to_pandas(intervals=True).columns.tolist()[:3] == ["city", "n", "n_low"]
    assert "Laplace" in answer.explain()
    assert answer.plot().to_dict()["title"]["text"] == "n, age by city"
    assert answer.disclosure["signature"]
    assert answer.loss.group(3) == sf.PureDP("0.3")
    assert people.ask(BY_CITY, epsilon=0.1).cached


def test_the_snippet_of_the_documentation_runs(service, clinic):
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(snippet, "service.md", "exec"), {"url": service, "token": clinic.tokens["bob"]})


def test_the_snippet_of_the_operators_tutorial_runs(service, clinic):
    text = (Path(__file__).parents[2] / "docs" / "tutorials" / "operator.md").read_text()
    (snippet,) = re.findall(r'```python title="With the running service"\n(.*?)```', text, re.DOTALL)
    assert '"http://127.0.0.1:8000"' in snippet
    code = snippet.replace('"http://127.0.0.1:8000"', "url")
    exec(compile(code, "operator.md", "exec"), {"url": service, "token": clinic.tokens["bob"]})


def test_the_commands_of_the_documentation_run(tmp_path, capsys, monkeypatch):
    """Each command of the owner's block but the last, which serves until it is stopped."""
    from sfumato.cli.main import app

    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    make_clinic(tmp_path / "clinic")
    (tmp_path / "clinic" / ".sfumato" / "accounts.db").unlink()
    monkeypatch.chdir(tmp_path)
    *commands, last = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    for command in commands:
        assert not app(command, standalone_mode=False)
    assert last[2] == "serve"
    printed = capsys.readouterr().out
    assert re.search(r"^sfm_[0-9a-f]{12}_\S{43}$", printed, re.MULTILINE)
    assert "ann may spend epsilon = 1 on clinic, at most 0.2 on one question." in printed
    for words in (["user", "list"], ["grant", "list"], ["user", "list", "--json"], ["grant", "list", "--json"]):
        assert not app(["-C", "clinic", *words], standalone_mode=False)
        assert "ann" in capsys.readouterr().out


def test_dates_stay_dates(people):
    sql = "SELECT DATE_TRUNC('year', born) AS y, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY 1 LIMIT 3"
    assert all(isinstance(row["y"], date) for row in people.ask(sql, epsilon=0.1).rows)


def test_frames_previews_and_budgets(people):
    question = people.where("age > 40").group_by("city").agg(n=sf.count(), age=sf.mean("age"))
    preview = question.preview(epsilon="0.1", assume={"n": 100})
    assert preview.fits
    assert preview.margins["n"] > 0
    assert "Cost" in preview.explain() or preview.explain()
    before = people.budget.spent.epsilon
    assert {row["city"] for row in question.ask(epsilon="0.1").rows} == {"Rome", "Oslo"}
    assert people.budget.spent.epsilon == before + Decimal("0.1")
    assert list(people.dataset.tables) == ["people"]
    assert people.dataset.table("people").source is None


def test_errors_are_those_of_a_curator(people, service):
    with pytest.raises(sf.errors.QueryError, match="persons"):
        people.ask("SELECT COUNT(*) FROM persons", epsilon=1)
    with pytest.raises(sf.errors.BudgetExceeded):
        people.ask("SELECT SUM(age) AS s FROM people WHERE age > 77", epsilon=5)
    with pytest.raises(sf.errors.InvalidParameter):
        people.ask(COUNT, epsilon=-1)
    with pytest.raises(sf.errors.PermissionDenied):
        sf.connect(service, "sfm_wrong_token")
    with pytest.raises(sf.errors.PermissionDenied):
        sf.connect(service, people._connection.token, "nosuch")
    with pytest.raises(RemoteRefusal, match="does not answer"):
        sf.connect("http://127.0.0.1:9", "x")


@pytest.mark.parametrize("url", ["http://example.org", "ftp://127.0.0.1", "clinic", ""])
def test_tokens_are_not_sent_in_the_clear(url):
    with pytest.raises(sf.errors.InvalidParameter):
        Connection(url, "secret")
    assert "secret" not in repr(Connection("https://example.org", "secret"))


def test_workers_share_one_budget_and_a_killed_worker_loses_nothing(tmp_path):
    clinic = make_clinic(tmp_path / "clinic", "3")
    answered, refused = [], []
    with run_service(clinic, workers=2) as (url, process):

        def work(name):
            people = sf.connect(url, clinic.tokens[name])
            for index in range(12):
                try:
                    sql = (
                        f"SELECT COUNT(*) AS n FROM people WHERE age > {index} AND age < {99 if name == 'ann' else 98}"
                    )
                    answered.append(people.ask(sql, epsilon="0.2").cost.epsilon)
                except sf.errors.BudgetExceeded:
                    refused.append(name)
                except RemoteRefusal:
                    answered.append(None)  # not answered; a retry would be free if it was charged

        threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob")]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        workers = [child for child in psutil.Process(process.pid).children(recursive=True) if child.is_running()]
        victims = [child for child in workers if "spawn" in " ".join(child.cmdline()) or "fork" in child.name()]
        if victims:
            os.kill(victims[-1].pid, signal.SIGKILL)  # uvicorn starts another one
        for thread in threads:
            thread.join(120)
    with sf.open(clinic.folder) as curator:
        spent = curator.budget.spent.epsilon
        entries = curator.ledger().entries()
        assert curator.ledger().verify().ok
    charges = sum(entry.kind == "charge" for entry in entries)
    assert spent == Decimal("0.2") * charges
    assert spent <= 3
    assert len([cost for cost in answered if cost]) <= charges
    assert len(answered) + len(refused) == 24
