"""What users and requests must not be able to do: take more than their share, stop a dataset for others, fill a log."""

import ast
import json
import re
import threading
import time
from io import BytesIO
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest
from fastapi.testclient import TestClient
from served_clinic import BY_CITY, CATALOG, COUNT, make_clinic

import sfumato as sf
from sfumato.engines.duckdb.duckdb_engine import DuckDBEngine
from sfumato.ledger.ledger import Ledger
from sfumato.remote import connection as remote
from sfumato.remote.connection import Connection
from sfumato.service import site_lab
from sfumato.service.accounts import Accounts
from sfumato.service.api import make_app
from sfumato.service.api_tokens import Tokens
from sfumato.service.callers import COOKIE
from sfumato.service.jobs import MOST_OF_ONE, count_to_step
from sfumato.service.page_views import write_python
from sfumato.service.service_settings import ServiceSettings
from sfumato.service.shared_threads import MOST_OF_ONE as MOST_SHARED

OWN = {"origin": "http://testserver"}


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


def make(clinic, **settings):
    return make_app([clinic.folder], clinic.accounts, ServiceSettings((), "", **settings))


def open_client(clinic, **settings):
    return TestClient(make(clinic, **settings), raise_server_exceptions=False)


def sign_in(client, name):
    link = client.app.state.sessions.make_link(name)
    assert client.post(f"/signin/{link}", headers=OWN, follow_redirects=False).status_code == 303
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get("/").text)[1]


def ask_page(client, csrf, sql=COUNT, **fields):
    form = {"csrf": csrf, "sql": sql, "epsilon": "0.01", "action": "ask", **fields}
    return client.post("/datasets/clinic/ask", data=form, headers=OWN, follow_redirects=False)


def token(clinic, who="ann"):
    return {"Authorization": f"Bearer {clinic.tokens[who]}"}


@pytest.fixture
def slow(monkeypatch):
    """Questions that end when the test lets them."""
    free, began, aggregate = threading.Event(), [], DuckDBEngine.aggregate

    def wait(*parts):
        began.append(1)
        free.wait(30)
        return aggregate(*parts)

    monkeypatch.setattr(DuckDBEngine, "aggregate", wait)
    yield SimpleNamespace(free=free, began=began)
    free.set()


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def wait_until(true, seconds=20):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_failure_never_reaches_the_server_which_would_log_its_text(clinic, monkeypatch, caplog):
    def fail(*_):
        raise MemoryError("a value 4711")

    monkeypatch.setattr(DuckDBEngine, "aggregate", fail)
    with TestClient(make(clinic)) as client:  # it raises what the server would log
        answered = client.post("/v1/datasets/clinic/queries", json={"sql": COUNT, "epsilon": "0.1"},
                               headers=token(clinic))  # fmt: skip
        page = ask_page(client, sign_in(client, "ann"), "SELECT SUM(age) AS s FROM people")
    assert (answered.status_code, answered.json()["code"]) == (500, "internal")
    assert page.status_code == 500
    assert "MemoryError" in caplog.text, "the log says what kind of failure it was, and where"
    assert "test_misuse.py" in caplog.text
    assert "4711" not in caplog.text + answered.text + page.text


# -- shares of the service ---------------------------------------------------------------------------------------------


def test_one_user_has_one_rate_however_the_requests_are_signed(clinic):
    accounts = Accounts(clinic.accounts)
    others = [Tokens(accounts).make("ann") for _ in range(3)]
    accounts.close()
    with open_client(clinic, requests_per_second=3) as client:
        link = client.app.state.sessions.make_link("ann")
        client.post(f"/signin/{link}", headers=OWN, follow_redirects=False)
        cookie = f"{COOKIE}={client.cookies[COOKIE]}"
        client.cookies.clear()
        spellings = [
            {"Authorization": f"Bearer {clinic.tokens['ann']}"}, {"Authorization": f"bEARER {clinic.tokens['ann']}"},
            {"Cookie": cookie}, {"Cookie": f"a=1; {cookie}"}, {"Cookie": cookie, "Authorization": "Basic eA=="},
            *({"Authorization": f"Bearer {other}"} for other in others),
        ]  # fmt: skip
        first = [client.get("/v1/me", headers=headers).status_code for headers in spellings]
        assert first == [200] * len(spellings)
        many = [client.get("/v1/me", headers=spellings[number % 8]).status_code for number in range(40)]
        assert many.count(200) <= 20, "eight ways to sign in are not eight times as many requests"
        assert client.get("/v1/me", headers=token(clinic, "bob")).status_code == 200


def test_questions_of_pages_are_limited_and_take_no_thread_of_other_pages(clinic, slow):
    statuses = []
    with open_client(clinic, wait_seconds=60, most_running=4) as client, open_client_of(client) as other:
        csrf = sign_in(client, "ann")
        sign_in(other, "bob")

        def work(number):
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {number}"
            statuses.append(ask_page(client, csrf, sql).status_code)

        threads = in_threads(MOST_OF_ONE + 6, work)
        wait_until(lambda: statuses.count(429) == 6)
        assert other.get("/").status_code == 200, "others are not affected"
        assert len(slow.began) <= 4, "and only a few run at a time"
        slow.free.set()
        for thread in threads:
            thread.join(60)
    assert sorted(statuses) == [303] * MOST_OF_ONE + [429] * 6


def open_client_of(client):
    return TestClient(client.app, raise_server_exceptions=False)


def test_one_user_runs_few_attacks_of_the_lab_at_a_time(clinic, monkeypatch):
    free, running = threading.Event(), []
    real = site_lab._run
    monkeypatch.setattr(site_lab, "_run", lambda *parts: running.append(1) or (free.wait(30) and real(*parts)))
    with open_client(clinic) as client:
        csrf = sign_in(client, "ann")
        threads = in_threads(
            8, lambda _: client.post("/lab/attacks/least-significant-bits", data={"csrf": csrf}, headers=OWN)
        )
        wait_until(lambda: len(running) >= MOST_SHARED)
        time.sleep(0.3)
        assert len(running) == MOST_SHARED
        free.set()
        for thread in threads:
            thread.join(60)


# -- long questions ----------------------------------------------------------------------------------------------------


def test_a_long_question_of_a_page_gets_a_page_of_its_own(clinic, slow):
    with open_client(clinic, wait_seconds=0.05) as client:
        csrf = sign_in(client, "ann")
        begun = ask_page(client, csrf, BY_CITY)
        assert begun.headers["location"].startswith("/jobs/")
        shown = client.get(begun.headers["location"])
        assert shown.status_code == 200
        assert "is being answered" in shown.text
        assert client.get("/jobs/00").status_code == 404
        slow.free.set()
        wait_until(lambda: client.get(begun.headers["location"], follow_redirects=False).status_code == 303)
        for _ in range(2):
            answer = client.get(begun.headers["location"])
            assert "Rome" in answer.text
        assert len(client.get("/").text.split("/answers/")) == 2, "the answer is kept once"


def test_a_question_of_a_page_can_be_cancelled(clinic, slow):
    with open_client(clinic, wait_seconds=0.05) as client, open_client_of(client) as other:
        csrf, foreign = sign_in(client, "ann"), sign_in(other, "bob")
        path = ask_page(client, csrf, BY_CITY).headers["location"]
        assert client.post(f"{path}/cancel", data={"csrf": "0" * 64}, headers=OWN).status_code == 403
        assert other.post(f"{path}/cancel", data={"csrf": foreign}, headers=OWN).status_code == 404
        cancelled = client.post(f"{path}/cancel", data={"csrf": csrf}, headers=OWN)
        assert "was cancelled" in cancelled.text
        slow.free.set()


def test_cancelling_stops_the_engine_that_the_question_uses(clinic, slow, monkeypatch):
    stopped = []
    monkeypatch.setattr(DuckDBEngine, "interrupt", lambda engine, thread: stopped.append(engine))
    with open_client(clinic) as client:
        headers = {**token(clinic), "Prefer": "respond-async"}
        job = client.post("/v1/datasets/clinic/queries", json={"sql": COUNT, "epsilon": "0.1"}, headers=headers).json()
        wait_until(lambda: slow.began)
        used = client.app.state.served._open["clinic"].curator.engine
        accounts = Accounts(clinic.accounts)
        accounts.set_grant("bob", "clinic", "0.5")  # from now on, the dataset is opened anew for new requests
        accounts.close()
        client.get("/v1/datasets/clinic", headers=token(clinic, "bob"))
        assert client.app.state.served._open["clinic"].curator.engine is not used
        client.delete(f"/v1/jobs/{job['id']}", headers=token(clinic))
        assert stopped
        assert stopped[0] is used
        slow.free.set()


def test_a_client_waits_for_a_long_question(clinic, slow, monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.05)
    with open_client(clinic, wait_seconds=0.05) as client:
        monkeypatch.setattr(remote, "_OPENER", Opener(client))
        people = sf.connect("http://localhost", clinic.tokens["ann"])
        threading.Timer(0.5, slow.free.set).start()
        assert len(people.ask(BY_CITY, "0.1").rows) == 2
        slow.free.clear()
        threading.Timer(0.5, slow.free.set).start()
        with pytest.raises(sf.errors.BudgetExceeded):
            people.ask(COUNT, "5")
        slow.free.clear()

        def ask_in_vain(_):
            with pytest.raises(sf.errors.PermissionDenied):
                people.ask(COUNT, "0.1")

        asking = in_threads(1, ask_in_vain)
        wait_until(lambda: client.get("/v1/jobs", headers=token(clinic)).json()[0]["stage"] == "running")
        job = client.get("/v1/jobs", headers=token(clinic)).json()[0]
        client.delete(f"/v1/jobs/{job['id']}", headers=token(clinic))
        asking[0].join(20)
        assert not asking[0].is_alive()
        slow.free.set()


def test_a_client_waits_for_an_attempt_that_runs(monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(remote, "MOST_PAUSE", 0.001)
    left = [(409, {"code": "request-running", "detail": ""})] * 9 + [(200, {"rows": []})]
    keys = []

    class Running:
        def open(self, request, timeout):
            keys.append(request.get_header("Idempotency-key"))
            status, found = left.pop(0)
            body = BytesIO(json.dumps(found).encode())
            if status == 200:
                return body
            raise HTTPError("", status, "", {}, body)

    monkeypatch.setattr(remote, "_OPENER", Running())
    assert Connection("http://localhost", "t").ask("datasets", "x", "queries", body={}) == {"rows": []}
    assert len(set(keys)) == 1
    left += [(409, {"code": "charge-closed", "detail": "d", "hint": "h"})]
    with pytest.raises(sf.errors.LedgerError, match="d"):
        Connection("http://localhost", "t").ask("datasets", "x", "queries", body={})


class Opener:
    """Sends the requests of `sf.connect` to a client of the tests."""

    def __init__(self, client):
        self._client = client

    def open(self, request, timeout):
        found = self._client.request(
            request.method, request.full_url.removeprefix("http://localhost"), content=request.data,
            headers=dict(request.header_items()),
        )  # fmt: skip
        body = BytesIO(found.content)
        if found.status_code >= 400:
            raise HTTPError(request.full_url, found.status_code, "", found.headers, body)
        return body


def test_the_outcome_of_a_job_is_shown_at_fixed_steps(clinic, monkeypatch):
    assert [round(count_to_step(taken, 0.5), 6) for taken in (0, 0.2, 0.5, 0.6)] == [0.5, 0.3, 0, 0.4]
    assert count_to_step(3.3, 0) == 0
    aggregate = DuckDBEngine.aggregate
    monkeypatch.setattr(DuckDBEngine, "aggregate", lambda *parts: time.sleep(1.2) or aggregate(*parts))
    with open_client(clinic, pad_seconds=1.0) as client:
        headers = {**token(clinic), "Prefer": "respond-async"}
        client.get("/v1/datasets/clinic", headers=token(clinic))
        before = time.monotonic()
        job = client.post("/v1/datasets/clinic/queries", json={"sql": COUNT, "epsilon": "0.1"}, headers=headers).json()
        stages = [job["stage"]]
        while stages[-1] != "done" and time.monotonic() < before + 20:
            time.sleep(0.03)  # within the limit of requests for each minute
            stages.append(client.get(f"/v1/jobs/{job['id']}", headers=token(clinic)).json()["stage"])
        assert stages[-1] == "done"
        assert time.monotonic() - before >= 2.0, "it was answered after 1.2 seconds"


def test_a_charge_that_is_closed_does_not_look_like_a_short_failure(clinic, monkeypatch):
    with open_client(clinic) as client:
        headers = {**token(clinic), "Idempotency-Key": "k"}
        body = {"sql": COUNT, "epsilon": "0.1"}
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "store", lambda *_: (_ for _ in ()).throw(OSError("full")))
            assert client.post("/v1/datasets/clinic/queries", json=body, headers=headers).status_code >= 400
        retried = client.post("/v1/datasets/clinic/queries", json=body, headers=headers)
        assert (retried.status_code, retried.json()["code"]) == (409, "charge-closed")


# -- grants and names that would stop a dataset ------------------------------------------------------------------------


def set_budget(clinic, lines):
    text = CATALOG.format(ledger="").replace('epsilon = "3"\ndelta = "1e-6"', lines)
    (clinic.folder / "catalog.toml").write_text(text)


@pytest.mark.parametrize(("budget", "grant"), [
    ('rho = "0.5"\naccounting = "zcdp"', {"epsilon": "1"}),  # no delta, so an epsilon cannot be counted in rho
    ('mu = "1"\naccounting = "gdp"', {"epsilon": "1"}),
])  # fmt: skip
def test_a_grant_that_cannot_be_counted_is_refused_and_stops_nobody_else(clinic, budget, grant):
    accounts = Accounts(clinic.accounts)
    for name in ("ann", "bob"):
        accounts.remove_grant(name, "clinic")
    set_budget(clinic, budget)
    with open_client(clinic) as client:
        olga = token(clinic, "olga")
        wanted = {"user": "ann", **grant}
        refused = client.put("/v1/datasets/clinic/grants", json=wanted, headers=olga)
        assert refused.status_code == 400, refused.text
        accounts.set_grant("ann", "clinic", **grant)  # as an earlier version, or before the budget was changed
        accounts.set_grant("bob", "clinic", "1", delta="1e-7")
        body = {"sql": COUNT, "epsilon": "0.1"}
        assert client.post("/v1/datasets/clinic/queries", json=body, headers=olga).status_code == 200
        assert client.post("/v1/datasets/clinic/queries", json=body, headers=token(clinic, "bob")).status_code == 200
        own = client.post("/v1/datasets/clinic/queries", json=body, headers=token(clinic))
        assert (own.status_code, own.json()["code"]) == (403, "broken-grant")
        assert client.delete("/v1/datasets/clinic/grants/ann", headers=olga).status_code == 200
    accounts.close()


def test_an_account_whose_name_the_catalog_spells_otherwise_is_the_same_analyst(clinic):
    text = CATALOG.format(ledger="")
    (clinic.folder / "catalog.toml").write_text(
        text + '[analysts.Olga]\nepsilon = "0.3"\n[analysts.ANN]\nepsilon = "0.2"\n'
    )
    with open_client(clinic) as client:
        body = {"sql": COUNT, "epsilon": "0.25"}
        asked = [client.post("/v1/datasets/clinic/queries", json=body, headers=token(clinic, who)) for who in
                 ("olga", "ann")]  # fmt: skip
        assert [one.status_code for one in asked] == [200, 200], "ann's grant of 1 is in place of the catalog's 0.2"
        over = client.post("/v1/datasets/clinic/queries", json={"sql": BY_CITY, "epsilon": "0.25"},
                           headers=token(clinic, "olga"))  # fmt: skip
        assert over.json()["code"] == "budget-exceeded"


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [-1, 0, 2**31, 2**70, 10**300])
def test_any_number_of_an_entry_shows_the_page(clinic, before):
    with open_client(clinic) as client:
        sign_in(client, "olga")
        assert client.get(f"/datasets/clinic?before={before}").status_code == 200


@pytest.mark.parametrize("sql", [
    COUNT, BY_CITY, 'SELECT COUNT(*) AS "n of all"', 'SELECT "a"\nFROM t GROUP BY "a"', "SELECT 1\r\nFROM t",
    'SELECT 1 -- """\nimport os; os.system("x") #', "SELECT 'a\\' FROM t\n", "SELECT '\U0001f600é' FROM t",
])  # fmt: skip
@pytest.mark.parametrize("dataset", ["clinic", "my clinic", "class", 'a"b', "año"])
def test_the_question_in_python_is_one_question(sql, dataset):
    saved = SimpleNamespace(dataset=dataset, asked={"sql": sql, "epsilon": "0.1"})
    tree = ast.parse(write_python(saved))
    assert [type(line).__name__ for line in tree.body] == ["Import", "Assign", "Assign"]
    connected, asked = (line.value for line in tree.body[1:])
    assert ast.literal_eval(connected.args[2]) == dataset
    assert ast.literal_eval(asked.args[0]).split() == sql.split()


def test_the_log_says_that_a_link_was_made(clinic):
    with open_client(clinic) as client:
        sign_in(client, "ann")
        lines = client.get("/v1/log", headers=token(clinic, "olga")).json()
    assert {(line["action"], line["detail"]) for line in lines} >= {("make sign-in link", "ann"), ("sign in", "")}


def test_a_retry_after_a_power_failure_gets_the_answer_of_the_ledger(clinic):
    with open_client(clinic) as client:
        headers = {**token(clinic), "Idempotency-Key": "k"}
        body = {"sql": BY_CITY, "epsilon": "0.1"}
        first = client.post("/v1/datasets/clinic/queries", json=body, headers=headers).json()
        accounts = Accounts(clinic.accounts)
        with accounts.transaction() as connection:  # what was written last, and not waited for
            connection.exec_driver_sql("UPDATE service_requests SET answer = ''")
        accounts.close()
        again = client.post("/v1/datasets/clinic/queries", json=body, headers=headers).json()
        assert again["rows"] == first["rows"]
        spent = client.get("/v1/datasets/clinic", headers=token(clinic)).json()["budget"]["spent"]
        assert spent["epsilon"] == "0.1"
