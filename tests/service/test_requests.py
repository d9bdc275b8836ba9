"""Grants for one question, retries, jobs, workloads, and the limits of a request."""

import asyncio
import gc
import json
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from fastapi.testclient import TestClient
from served_clinic import BY_CITY, CATALOG, COUNT, make_clinic

from sfumato.engines.duckdb import duckdb_engine
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.errors import InvalidParameter
from sfumato.ledger.ledger import Ledger
from sfumato.service.account_versions import Remembered
from sfumato.service.accounts import Accounts
from sfumato.service.api import make_app
from sfumato.service.group_commit import GroupCommit
from sfumato.service.jobs import CHARGED, ENDED, NOT_CHARGED
from sfumato.service.service_settings import ServiceSettings
from sfumato.service.service_shell import MOST_DEPTH, measure_depth
from sfumato.service.shared_threads import MOST_OF_ONE, SharedThreads

SUM = "SELECT SUM(age) AS s FROM people"
UNDECLARED = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


def open_client(clinic, **settings):
    app = make_app([clinic.folder], clinic.accounts, ServiceSettings((), "", **settings))
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def client(clinic):
    with open_client(clinic) as client:
        yield client


def send(client, clinic, method, path, who="ann", body=None, **headers):
    token = {"Authorization": f"Bearer {clinic.tokens[who]}"}
    return client.request(method, f"/v1/{path}", json=body, headers={**token, **headers})


def ask(client, clinic, sql=COUNT, epsilon="0.1", who="ann", headers=None, **more):
    body = {"sql": sql, "epsilon": epsilon, **more}
    return send(client, clinic, "POST", "datasets/clinic/queries", who, body, **(headers or {}))


def spent(client, clinic):
    return send(client, clinic, "GET", "datasets/clinic", "olga").json()["budget"]["spent"]


def set_budget(clinic, lines):
    """The clinic with another budget."""
    text = CATALOG.format(ledger="").replace('epsilon = "3"\ndelta = "1e-6"', lines)
    (clinic.folder / "catalog.toml").write_text(text)


# -- the limit of a single question ------------------------------------------------------------------------------------


def test_a_grant_limits_the_delta_of_a_single_question(client, clinic):
    accounts = Accounts(clinic.accounts)
    accounts.set_grant("ann", "clinic", "1", delta="1e-7", per_query="0.5", per_query_delta="1e-9")
    assert ask(client, clinic, UNDECLARED, "0.4", delta="1e-8").json()["code"] == "per-query-limit"
    assert spent(client, clinic)["epsilon"] == "0"
    assert ask(client, clinic, UNDECLARED, "0.4", delta="1e-9").status_code == 200
    accounts.close()


@pytest.mark.parametrize(("budget", "amount"), [
    ('epsilon = "3"\ndelta = "1e-6"\naccounting = "zcdp"', "rho"),
    ('epsilon = "3"\ndelta = "1e-6"\naccounting = "gdp"', "μ²"),
])  # fmt: skip
def test_a_grant_limits_rho_and_mu_of_a_single_question(clinic, budget, amount):
    set_budget(clinic, budget)
    accounts = Accounts(clinic.accounts)
    accounts.set_grant("ann", "clinic", "2", delta="1e-6", per_query="0.5", per_query_delta="1e-6")
    with open_client(clinic) as client:
        refused = ask(client, clinic, COUNT, "1.5")
        assert refused.json()["code"] == "per-query-limit"
        assert f"{amount} = 0.0" in refused.json()["detail"]
        assert ask(client, clinic, COUNT, "0.05").status_code == 200
        workload = {"questions": [{"sql": COUNT}, {"sql": SUM}], "epsilon": "1.5"}
        refused = send(client, clinic, "POST", "datasets/clinic/workloads", "ann", workload)
        assert refused.json()["code"] == "per-query-limit"
    accounts.close()


def test_a_grant_limits_a_question_by_its_margin_and_not_one_that_is_stored(client, clinic):
    assert ask(client, clinic, COUNT, "0.5").status_code == 200
    accounts = Accounts(clinic.accounts)
    accounts.set_grant("ann", "clinic", "1", per_query="0.1")
    assert ask(client, clinic, COUNT, "0.5").json()["cached"], "it costs nothing, so no limit forbids it"
    assert ask(client, clinic, BY_CITY, "0.5").json()["code"] == "per-query-limit"
    narrow = ask(client, clinic, SUM, None, margin={"s": 500})
    assert narrow.json()["code"] == "per-query-limit"
    wide = ask(client, clinic, SUM, None, margin={"s": 50_000})
    assert wide.status_code == 200
    assert 0 < float(wide.json()["cost"]["epsilon"]) <= 0.1
    several = "SELECT city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)"
    assert ask(client, clinic, several, "0.11").json()["code"] == "per-query-limit", "one charge for two releases"
    assert ask(client, clinic, several, "0.1").status_code == 200
    accounts.close()


def test_a_preview_says_that_a_single_question_is_above_its_limit(client, clinic):
    accounts = Accounts(clinic.accounts)
    accounts.set_grant("ann", "clinic", "1", per_query="0.1")
    path = "datasets/clinic/queries:preview"
    found = [send(client, clinic, "POST", path, "ann", {"sql": COUNT, "epsilon": e}).json() for e in ("0.1", "0.2")]
    assert [one["fits"] for one in found] == [True, False]
    accounts.close()


def test_a_limit_on_the_delta_needs_one_on_the_epsilon(clinic):
    accounts = Accounts(clinic.accounts)
    with pytest.raises(InvalidParameter, match="per_query_delta"):
        accounts.set_grant("ann", "clinic", "1", per_query_delta="1e-9")
    accounts.close()


# -- retries -----------------------------------------------------------------------------------------------------------


def test_a_retry_gets_the_very_answer_also_after_the_grant_ended(client, clinic):
    key = {"Idempotency-Key": "k"}
    first = ask(client, clinic, BY_CITY, headers=key)
    assert ask(client, clinic, BY_CITY, headers=key).content == first.content
    assert spent(client, clinic)["epsilon"] == "0.1"


def test_a_charge_without_an_answer_is_resumed_under_its_key(client, clinic, monkeypatch):
    aggregate = DuckDBEngine.aggregate
    monkeypatch.setattr(DuckDBEngine, "aggregate", _end_like_a_kill)
    key = {"Idempotency-Key": "k"}
    assert ask(client, clinic, BY_CITY, headers=key).status_code == 500
    assert spent(client, clinic)["epsilon"] == "0.1"
    monkeypatch.setattr(DuckDBEngine, "aggregate", aggregate)
    resumed = ask(client, clinic, BY_CITY, headers=key)
    assert resumed.status_code == 200
    assert spent(client, clinic)["epsilon"] == "0.1"


def _end_like_a_kill(*_):
    raise MemoryError


def test_a_retry_about_other_data_is_refused_and_not_charged_again(client, clinic, monkeypatch):
    aggregate = DuckDBEngine.aggregate
    monkeypatch.setattr(DuckDBEngine, "aggregate", _end_like_a_kill)
    key = {"Idempotency-Key": "k"}
    ask(client, clinic, BY_CITY, headers=key)
    monkeypatch.setattr(DuckDBEngine, "aggregate", aggregate)
    monkeypatch.setattr("sfumato.service.asking.LOWERING_VERSION", 99)  # as after an upgrade, or with new data
    refused = ask(client, clinic, BY_CITY, headers=key)
    assert refused.json()["code"] == "charge-closed"
    assert "changed" in refused.json()["detail"]
    assert spent(client, clinic)["epsilon"] == "0.1"
    never_charged = ask(client, clinic, SUM, headers={"Idempotency-Key": "k2"})
    assert never_charged.status_code == 200


def test_an_attempt_while_another_one_runs_is_told_to_wait(client, clinic, monkeypatch):
    begun, free = threading.Event(), threading.Event()
    aggregate = DuckDBEngine.aggregate

    def slow(*parts):
        begun.set()
        free.wait(30)
        return aggregate(*parts)

    monkeypatch.setattr(DuckDBEngine, "aggregate", slow)
    key = {"Idempotency-Key": "k"}
    found = []
    first = threading.Thread(target=lambda: found.append(ask(client, clinic, BY_CITY, headers=key)))
    first.start()
    assert begun.wait(30)
    second = ask(client, clinic, BY_CITY, headers=key)
    assert (second.status_code, second.json()["code"]) == (409, "request-running")
    free.set()
    first.join(30)
    assert found[0].status_code == 200
    assert ask(client, clinic, BY_CITY, headers=key).content == found[0].content


# -- jobs --------------------------------------------------------------------------------------------------------------


def wait_for(client, clinic, address, stages=("done", "failed", "cancelled")):
    for _ in range(300):
        found = send(client, clinic, "GET", address).json()
        if found["stage"] in stages:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_a_job_is_begun_at_once_and_its_answer_is_there_later(client, clinic):
    begun = ask(client, clinic, BY_CITY, headers={"Prefer": "respond-async"})
    assert begun.status_code == 202
    address = begun.headers["location"].removeprefix("/v1/")
    done = wait_for(client, clinic, address)
    assert done["stage"] == "done"
    assert [row["city"] for row in done["outcome"]["answers"][0]["rows"]] == ["Rome", "Oslo"]
    assert send(client, clinic, "GET", address, "bob").status_code == 404, "a job is for who asked"
    assert send(client, clinic, "GET", address, "olga").status_code == 200
    assert [job["id"] for job in send(client, clinic, "GET", "jobs").json()] == [done["id"]]
    assert send(client, clinic, "DELETE", address).json()["note"] == ENDED


def test_a_long_question_becomes_a_job_and_a_failed_one_says_why(clinic, monkeypatch):
    with open_client(clinic, wait_seconds=0.05) as client:
        aggregate, free = DuckDBEngine.aggregate, threading.Event()
        monkeypatch.setattr(DuckDBEngine, "aggregate", lambda *parts: free.wait(30) and aggregate(*parts))
        begun = ask(client, clinic, BY_CITY)
        assert begun.status_code == 202
        assert begun.json()["stage"] in ("waiting", "running")
        free.set()
        assert wait_for(client, clinic, f"jobs/{begun.json()['id']}")["stage"] == "done"
        failed = ask(client, clinic, "SELECT nothing FROM people", headers={"Prefer": "respond-async"})
        outcome = wait_for(client, clinic, f"jobs/{failed.json()['id']}")
        assert (outcome["stage"], outcome["outcome"]["status"]) == ("failed", 422)


def test_cancelling_says_what_became_of_the_charge(clinic, monkeypatch):
    with open_client(clinic, most_running=1) as client:
        aggregate, free, begun = DuckDBEngine.aggregate, threading.Event(), threading.Event()

        def slow(*parts):
            begun.set()
            free.wait(30)
            return aggregate(*parts)

        monkeypatch.setattr(DuckDBEngine, "aggregate", slow)
        later = {"Prefer": "respond-async"}
        running = ask(client, clinic, BY_CITY, headers=later).json()["id"]
        waiting = ask(client, clinic, SUM, headers=later).json()["id"]
        assert begun.wait(30)
        stopped = send(client, clinic, "DELETE", f"jobs/{waiting}").json()
        assert (stopped["stage"], stopped["note"]) == ("cancelled", NOT_CHARGED)
        stopped = send(client, clinic, "DELETE", f"jobs/{running}").json()
        assert (stopped["stage"], stopped["note"]) == ("cancelled", CHARGED)
        assert "does not undo" in CHARGED
        free.set()
        for _ in range(100):  # the charge stays, and only the job that had begun was charged
            if spent(client, clinic)["epsilon"] == "0.1":
                break
        monkeypatch.setattr(DuckDBEngine, "aggregate", aggregate)
        assert ask(client, clinic, BY_CITY).status_code == 200
        assert spent(client, clinic)["epsilon"] == "0.1", "asking again costs nothing further"


def test_one_user_cannot_take_all_threads(clinic, monkeypatch):
    with open_client(clinic, most_running=2) as client:
        aggregate, free = DuckDBEngine.aggregate, threading.Event()
        monkeypatch.setattr(DuckDBEngine, "aggregate", lambda *parts: free.wait(60) and aggregate(*parts))
        monkeypatch.setattr("sfumato.service.jobs.MOST_OF_ONE", 3)
        later = {"Prefer": "respond-async"}
        texts = [f"SELECT COUNT(*) AS n FROM people WHERE age > {number}" for number in range(5)]
        statuses = [ask(client, clinic, sql, "0.01", headers=later).status_code for sql in texts]
        assert statuses == [202, 202, 202, 429, 429]
        assert ask(client, clinic, COUNT, who="bob", headers=later).status_code == 202, "others are not affected"
        free.set()


def test_an_engine_can_be_interrupted(clinic, monkeypatch):
    with open_client(clinic) as client:
        ask(client, clinic)
        engine = client.app.state.served._open["clinic"].curator.engine
        stopped = []

        def read_slowly(reader, _):
            threading.Timer(0.5, lambda: (stopped.append(1), engine.interrupt(thread))).start()
            thread, slow = (
                threading.get_ident(),
                "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b",
            )
            return reader.cursor.execute(slow).fetchall()

        monkeypatch.setattr(duckdb_engine._CursorReader, "read_rows", read_slowly)
        failed = ask(client, clinic, SUM)
        assert failed.json()["code"] == "engine-failed"
        assert stopped


def test_a_job_of_an_ended_worker_is_started_again_under_its_key(clinic):
    with open_client(clinic) as client:
        begun = ask(client, clinic, BY_CITY, headers={"Prefer": "respond-async"}).json()
        wait_for(client, clinic, f"jobs/{begun['id']}")
    accounts = Accounts(clinic.accounts)
    with accounts.transaction() as connection:  # as if the worker had been killed before it wrote the outcome
        connection.exec_driver_sql("UPDATE service_jobs SET stage = 'running', outcome = ''")
        connection.exec_driver_sql("UPDATE service_requests SET answer = ''")
    accounts.close()
    with open_client(clinic) as client:
        done = wait_for(client, clinic, f"jobs/{begun['id']}")
        assert done["stage"] == "done"
        assert spent(client, clinic)["epsilon"] == "0.1"


# -- workloads ---------------------------------------------------------------------------------------------------------


def test_a_workload_is_one_charge(client, clinic):
    body = {"questions": [{"sql": COUNT}, {"sql": BY_CITY}], "epsilon": "0.4"}
    planned = send(client, clinic, "POST", "datasets/clinic/workloads:preview", "ann", body).json()
    assert planned["cost"]["epsilon"] == "0.4"
    answered = send(client, clinic, "POST", "datasets/clinic/workloads", "ann", body)
    assert [len(one["rows"]) for one in answered.json()["answers"]] == [1, 2]
    assert spent(client, clinic)["epsilon"] == "0.4"
    margins = {"questions": [{"sql": COUNT, "margin": 20}, {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > 40",
               "margin": {"n": 30}}]}  # fmt: skip
    planned = send(client, clinic, "POST", "datasets/clinic/workloads:preview", "ann", margins).json()
    assert float(planned["cost"]["epsilon"]) > 0
    wrong = send(client, clinic, "POST", "datasets/clinic/workloads", "ann", {"questions": [{"sql": COUNT}]})
    assert wrong.status_code == 400


# -- limits, metrics, padding, the log ---------------------------------------------------------------------------------


def test_depth_rate_and_methods_are_limited(clinic):
    deep = "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1)
    assert measure_depth(deep.encode()) == MOST_DEPTH + 1
    assert measure_depth(b'{"sql": "' + b"[" * 99 + b'"}') == 1
    with open_client(clinic, requests_per_second=2) as client:
        headers = {"Authorization": f"Bearer {clinic.tokens['ann']}", "Content-Type": "application/json"}
        refused = client.post("/v1/datasets/clinic/queries", content=deep, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (400, "too-deep")
        statuses = [client.get("/v1/me", headers=headers).status_code for _ in range(12)]
        assert (statuses[0], statuses[-1]) == (200, 429)
        assert send(client, clinic, "GET", "me", "bob").status_code == 200, "others do not have to wait"


def test_made_up_tokens_count_for_the_address(clinic):
    with open_client(clinic, requests_per_second=2) as client:
        assert send(client, clinic, "GET", "me").status_code == 200
        for path, expected in (("/v1/me", 401), ("/v1/health", 200)):  # also where nobody looks at the token
            tokens = [{"Authorization": f"Bearer sfm_{number}_wrong"} for number in range(12)]
            statuses = [client.get(path, headers=token).status_code for token in tokens]
            assert set(statuses) <= {expected, 429}
        assert statuses[-1] == 429
        assert client.get("/signin").status_code == 429, "and so do requests without any"
        cookies = [client.get("/signin", headers={"Cookie": f"a={number}"}).status_code for number in range(3)]
        assert set(cookies) == {429}
        assert send(client, clinic, "GET", "me").status_code == 200, "a known user does not have to wait"


def test_a_revoked_token_is_never_remembered_under_a_later_version():
    remembered = Remembered()

    def read_slowly():  # before this returns, somebody revokes the token, and another thread notices
        assert remembered.find(2, "digest", lambda: None) is None
        return "ann"

    assert remembered.find(1, "digest", read_slowly) == "ann"
    assert remembered.find(2, "digest", lambda: None) is None


def test_one_user_never_has_all_threads_of_previews():
    threads, free, begun = SharedThreads(), threading.Event(), []

    async def run():
        slow = [asyncio.create_task(threads.run("ann", lambda: begun.append(1) or free.wait(30))) for _ in range(20)]
        await asyncio.sleep(0.1)
        found = await asyncio.wait_for(threads.run("bob", lambda: "quick"), 10)
        running = len(begun)
        free.set()
        await asyncio.gather(*slow)
        return found, running

    assert asyncio.run(run()) == ("quick", MOST_OF_ONE)
    assert threads._turns == threads._waiting == {}
    threads.close()


def test_an_unexpected_error_is_not_logged(clinic, monkeypatch, caplog):
    def fail(*_):
        raise MemoryError("a value 4711")

    for wait in (30.0, 0.001):  # the error comes while the request waits, or after it became a job
        with open_client(clinic, wait_seconds=wait) as client:
            monkeypatch.setattr(DuckDBEngine, "aggregate", lambda *parts: time.sleep(0.2) or fail())
            assert ask(client, clinic, BY_CITY, headers={"Idempotency-Key": str(wait)}).status_code in (500, 202)
            time.sleep(0.5)
        gc.collect()
    assert "4711" not in caplog.text
    assert "never retrieved" not in caplog.text


def test_metrics_are_for_owners_and_name_nothing_of_a_request(clinic):
    with open_client(clinic, metrics_token="watch") as client:
        ask(client, clinic, "SELECT COUNT(*) AS secretalias FROM people")
        client.get("/v1/datasets/secretname%0Aother")
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {clinic.tokens['ann']}"}).status_code == 403
        assert client.get("/metrics", headers={"Authorization": f"Bearer {clinic.tokens['olga']}"}).status_code == 200
        text = client.get("/metrics", headers={"Authorization": "Bearer watch"}).text
    assert 'sfumato_requests_total{route="ask",code="2xx"} 1' in text
    assert "secret" not in text
    assert "clinic" not in text


def test_answers_leave_at_fixed_steps(clinic):
    with open_client(clinic, pad_seconds=0.5) as client:
        send(client, clinic, "GET", "me")
        for sql in (COUNT, COUNT, "SELECT nonsense"):
            before = time.monotonic()
            ask(client, clinic, sql)
            assert time.monotonic() - before >= 0.5


def test_the_ledger_is_paged_exported_and_verified(client, clinic):
    for index in range(6):
        ask(client, clinic, f"SELECT COUNT(*) AS n FROM people WHERE age > {index}", who="ann" if index % 2 else "bob")
    whole = send(client, clinic, "GET", "datasets/clinic/ledger", "ann").json()
    assert {entry["analyst"] for entry in whole} == {"ann"}
    newest = send(client, clinic, "GET", "datasets/clinic/ledger?most=2", "ann").json()
    older = send(client, clinic, "GET", f"datasets/clinic/ledger?most=2&before={newest[0]['number']}", "ann").json()
    assert [*older, *newest] == whole[-4:]
    assert send(client, clinic, "GET", "datasets/clinic/ledger:export", "ann").status_code == 403
    lines = send(client, clinic, "GET", "datasets/clinic/ledger:export", "olga").text.splitlines()
    assert json.loads(lines[0])["format"] == "sfumato-ledger-export"
    assert len(lines) == json.loads(lines[0])["entries"] + 1
    assert send(client, clinic, "GET", "datasets/clinic/ledger:verify", "olga").json()["ok"]


def test_a_page_of_an_analyst_reads_only_that_page(client, clinic, monkeypatch):
    for index in range(8):
        ask(client, clinic, f"SELECT COUNT(*) AS n FROM people WHERE age > {index}", who="bob")
    ask(client, clinic)
    read = []
    entries = Ledger.entries
    monkeypatch.setattr(
        Ledger, "entries", lambda *parts, **more: read.extend(found := entries(*parts, **more)) or found
    )
    send(client, clinic, "GET", "datasets/clinic/ledger?most=5", "ann")
    assert {entry.analyst for entry in read} == {"ann"}
    assert len(read) <= 5


def test_the_log_is_exported_and_holds_no_secret(client, clinic, caplog):
    ask(client, clinic, "SELECT COUNT(*) AS n FROM people WHERE city = 'Rome'")
    ask(client, clinic, "SELECT nonsense 'secretword'")
    csv = send(client, clinic, "GET", "log", "olga", accept="text/csv").text
    assert csv.startswith("number,time,user,action,dataset,detail")
    assert "ask,clinic" in csv
    lines = send(client, clinic, "GET", "log?most=2", "olga", accept="application/jsonl").text.splitlines()
    assert len(lines) == 2
    before = json.loads(lines[-1])["number"]
    older = send(client, clinic, "GET", f"log?before={before}", "olga").json()
    assert all(line["number"] < before for line in older)
    for text in (csv, caplog.text):
        for hidden in ("secretword", "Rome", *(token.split("_", 2)[2] for token in clinic.tokens.values())):
            assert hidden not in text


def test_group_commits_undo_only_the_work_that_fails(clinic):
    accounts = Accounts(clinic.accounts)
    group = accounts._group
    assert isinstance(group, GroupCommit)
    found = []

    def work(number):
        def write(connection):
            connection.exec_driver_sql(f"INSERT INTO service_log VALUES ({1000 + number}, '', '', '', '', '')")
            if number % 3 == 0:
                raise ValueError(number)
            return number

        try:
            found.append(group.run(write))
        except ValueError as error:
            found.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(map(str, range(12)))
    with accounts.reading() as connection:
        written = connection.exec_driver_sql("SELECT number FROM service_log WHERE number >= 1000").scalars().all()
    assert sorted(written) == [1000 + number for number in range(12) if number % 3]
    accounts.close()


def test_a_write_that_fails_alone_leaves_nothing_and_the_next_one_is_written(clinic):
    accounts = Accounts(clinic.accounts)

    def write(number, error=None):
        def work(connection):
            connection.exec_driver_sql(f"INSERT INTO service_log VALUES ({number}, '', '', '', '', '')")
            if error is not None:
                raise error

        accounts.write(work)

    with pytest.raises(ValueError, match="refused"):
        write(2000, ValueError("refused"))
    with accounts.reading() as connection:  # perhaps the connection that has failed
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000, "readers wait as usual"
    write(2001)
    with accounts.reading() as connection:
        written = connection.exec_driver_sql("SELECT number FROM service_log WHERE number >= 2000").scalars().all()
    assert written == [2001]
    accounts.close()


def test_a_write_waits_for_another_process_that_writes(clinic):
    accounts = Accounts(clinic.accounts)
    accounts.log("ann", "first")  # the connection is open
    with closing(sqlite3.connect(clinic.accounts, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = []
        timer = threading.Timer(0.2, lambda: (ended.append(True), other.execute("COMMIT")))
        timer.start()
        accounts.log("ann", "second")
        assert ended == [True]
        timer.join()
    assert accounts.list_log(1)[0]["action"] == "second"
    accounts.close()
