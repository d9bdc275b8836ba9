"""The HTTP API: who may ask what, one charge for a retried request, and problem documents that name the fix."""

import io
import json
import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.csv
import pytest
from fastapi.testclient import TestClient
from served_clinic import BY_CITY, COUNT, make_clinic

from sfumato.errors import CatalogError, InvalidParameter
from sfumato.ledger.ledger import Ledger
from sfumato.service.accounts import Accounts
from sfumato.service.api import make_app
from sfumato.service.api_questions import ARROW, CSV
from sfumato.service.api_tokens import Tokens
from sfumato.service.service_shell import MOST_BYTES


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


@pytest.fixture
def client(clinic):
    with TestClient(make_app([clinic.folder], clinic.accounts), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def send(client, clinic):
    def send(method, path, who="ann", body=None, **headers):
        token = {"Authorization": f"Bearer {clinic.tokens.get(who, who)}"} if who else {}
        return client.request(method, f"/v1/{path}", json=body, headers={**token, **headers})

    return send


def ask(send, sql=COUNT, who="ann", epsilon="0.1", **headers):
    return send("POST", "datasets/clinic/queries", who, {"sql": sql, "epsilon": epsilon}, **headers)


def test_an_answer_has_rows_intervals_and_its_cost(send):
    answered = ask(send, BY_CITY, epsilon="0.4")
    assert answered.status_code == 200
    found = answered.json()
    assert [row["city"] for row in found["rows"]] == ["Rome", "Oslo"]
    assert all(low <= row["n"] <= high for row, ends in zip(found["rows"], found["intervals"], strict=True)
               for low, high in [ends["n"]])  # fmt: skip
    assert (found["cost"]["epsilon"], found["own_remaining"]["epsilon"], found["cached"]) == ("0.4", "0.6", False)
    again = ask(send, BY_CITY, epsilon="0.4").json()
    assert (again["rows"], again["cached"]) == (found["rows"], True)
    assert send("GET", "datasets/clinic").json()["budget"]["spent"]["epsilon"] == "0.4"


@pytest.mark.parametrize(("accept", "read"), [
    (ARROW, lambda content: pa.ipc.open_stream(content).read_all()),
    (CSV, lambda content: pa.csv.read_csv(io.BytesIO(content))),
])  # fmt: skip
def test_an_answer_comes_as_the_caller_prefers(send, accept, read):
    rows = ask(send, BY_CITY).json()["rows"]
    found = ask(send, BY_CITY, accept=accept)
    assert found.headers["content-type"].startswith(accept)
    table = read(found.content)
    assert table.column_names == ["city", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    assert table["n"].to_pylist() == [row["n"] for row in rows]


def test_a_preview_is_free(send):
    found = send("POST", "datasets/clinic/queries:preview", "ann", {"sql": COUNT, "epsilon": 0.1})
    assert found.json()["cost"]["epsilon"] == "0.1"
    assert found.json()["margins"]["n"] == pytest.approx(29.957, abs=0.001)
    assert send("GET", "datasets/clinic").json()["budget"]["spent"]["epsilon"] == "0"


@pytest.mark.parametrize("token", ["", "nonsense", "sfm_000000000000_AAAA"])
def test_a_wrong_token_is_refused(send, token):
    refused = send("GET", "datasets", token)
    assert (refused.status_code, refused.json()["code"]) == (401, "not-signed-in")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["content-type"] == "application/problem+json"
    assert send("GET", "health", "").json() == {"status": "ok"}


def test_revoked_and_expired_tokens_and_disabled_users_are_refused_at_once(send, clinic, monkeypatch):
    accounts = Accounts(clinic.accounts)
    assert send("GET", "me").json()["name"] == "ann"
    Tokens(accounts).revoke(clinic.tokens["ann"].split("_")[1])
    accounts.disable_user("bob")
    assert [send("GET", "me", who).status_code for who in ("ann", "bob")] == [401, 401]
    token = Tokens(accounts).make("ann", 1)
    assert send("GET", "me", token).status_code == 200
    later = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    monkeypatch.setattr("sfumato.service.api_tokens.write_now", lambda: later)
    assert send("GET", "me", token).status_code == 401
    with pytest.raises(InvalidParameter, match="active user"):
        Tokens(accounts).make("bob")
    accounts.close()


def test_the_name_comes_from_the_token_only(send, clinic):
    body = {"sql": COUNT, "epsilon": "0.1", "analyst": "bob"}
    refused = send("POST", "datasets/clinic/queries", "ann", body)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid-request")
    assert "analyst" in refused.json()["detail"]
    ask(send)
    entries = send("GET", "datasets/clinic/ledger", "olga").json()
    assert {entry["analyst"] for entry in entries if entry["kind"] == "charge"} == {"ann"}


def test_an_analyst_is_held_to_their_grant_and_sees_only_their_own_entries(send):
    assert ask(send, epsilon="0.9").status_code == 200
    refused = ask(send, "SELECT SUM(age) AS s FROM people", epsilon="0.2")
    assert (refused.status_code, refused.json()["code"]) == (409, "budget-exceeded")
    assert "0.1" in refused.json()["hint"]
    assert refused.json()["requested"]["epsilon"] == "0.2"  # amounts have one form everywhere, as in answers
    assert refused.json()["remaining"]["epsilon"] == "0.1"
    assert ask(send, "SELECT SUM(age) AS s FROM people", "bob", "0.2").status_code == 200
    seen = send("GET", "datasets/clinic/ledger", "bob").json()
    assert {entry["analyst"] for entry in seen} == {"bob"}
    assert [entry["loss"] and entry["loss"]["epsilon"] for entry in seen] == ["0.2", None]
    assert len(send("GET", "datasets/clinic/ledger", "olga").json()) > len(seen)


def test_all_analysts_together_stay_within_the_total(send, clinic):
    accounts = Accounts(clinic.accounts)
    for name in ("ann", "bob"):
        accounts.set_grant(name, "clinic", "2.5")
    accounts.close()
    assert ask(send, who="ann", epsilon="2").status_code == 200
    refused = ask(send, "SELECT SUM(age) AS s FROM people", "bob", "2")
    assert refused.status_code == 409
    assert "population" in refused.json()["detail"]


def test_a_changed_grant_holds_from_the_next_request_on(send, clinic):
    accounts = Accounts(clinic.accounts)
    assert ask(send, epsilon="0.5").status_code == 200
    accounts.set_grant("ann", "clinic", "0.6", per_query="0.05")
    assert ask(send, "SELECT SUM(age) AS s FROM people", epsilon="0.1").json()["code"] == "per-query-limit"
    assert ask(send, "SELECT SUM(age) AS s FROM people", epsilon="0.05").status_code == 200
    accounts.set_grant("ann", "clinic", "9", expires=datetime.now(UTC) - timedelta(seconds=1))
    assert ask(send, "SELECT AVG(age) AS s FROM people").json()["code"] == "no-grant"
    accounts.remove_grant("bob", "clinic")
    gone = send("GET", "datasets/clinic", "bob")
    assert (gone.status_code, gone.json()["code"]) == (404, "no-grant")
    assert send("GET", "datasets/nosuch", "bob").json()["detail"] == gone.json()["detail"], "existence is not told"
    accounts.close()


def test_owners_grant_and_analysts_do_not(send):
    body = {"user": "bob", "epsilon": "2", "per_query": "0.5"}
    assert send("PUT", "datasets/clinic/grants", "ann", body).json()["code"] == "owner-only"
    assert send("PUT", "datasets/clinic/grants", "olga", body).json()["per_query"] == "0.5"
    listed = send("GET", "datasets/clinic/grants", "olga").json()
    assert {grant["user"]: grant["epsilon"] for grant in listed["grants"]} == {"ann": "1", "bob": "2"}
    assert listed["all_analysts_together"]["epsilon"] == "3"
    assert send("GET", "log", "ann").status_code == 403


def test_a_grant_that_is_set_over_the_api_has_an_end(send, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")  # a time without a zone is in UTC, wherever the service runs
    time.tzset()
    body = {"user": "bob", "epsilon": "2", "expires": "2101-06-30T00:00:00"}
    assert send("PUT", "datasets/clinic/grants", "olga", body).json()["expires"] == "2101-06-30T00:00:00Z"
    body["expires"] = "2101-06-30T12:00:00+12:00"
    assert send("PUT", "datasets/clinic/grants", "olga", body).json()["expires"] == "2101-06-30T00:00:00Z"
    assert send("GET", "datasets/clinic", "bob").json()["own"]["expires"] == "2101-06-30T00:00:00Z"
    body["expires"] = "2001-06-30T00:00:00"
    assert send("PUT", "datasets/clinic/grants", "olga", body).status_code == 200
    assert send("GET", "datasets/clinic", "bob").json()["code"] == "no-grant"
    monkeypatch.undo()
    time.tzset()


def test_a_retry_with_the_same_key_pays_once(send, clinic, monkeypatch):
    key = {"Idempotency-Key": "one"}
    first, second = (ask(send, **key).json() for _ in range(2))
    assert first["rows"] == second["rows"]
    other = ask(send, "SELECT SUM(age) AS s FROM people", **key)
    assert (other.status_code, other.json()["code"]) == (400, "invalid-parameter")
    assert "new key" in other.json()["hint"]
    store = Ledger.store

    def fail(*_):
        raise RuntimeError("secret value 12345")

    monkeypatch.setattr(Ledger, "store", fail)
    failed = ask(send, BY_CITY, **{"Idempotency-Key": "two"})
    assert (failed.status_code, "12345" in failed.text) == (500, False)
    monkeypatch.setattr(Ledger, "store", store)
    spent = send("GET", "datasets/clinic").json()["budget"]["spent"]
    retried = ask(send, BY_CITY, **{"Idempotency-Key": "two"})
    assert retried.json()["code"] == "charge-closed"
    assert "new key" in retried.json()["hint"]
    assert send("GET", "datasets/clinic").json()["budget"]["spent"] == spent, "a retry never pays twice"


def test_problems_name_the_place_and_the_fix(send):
    wrong = ask(send, "SELECT COUNT(*) AS n FROM persons").json()
    assert (wrong["status"], wrong["title"]) == (422, "The question cannot be answered in this form")
    assert "people" in wrong["hint"] + wrong["detail"]
    assert send("POST", "datasets/clinic/queries", "ann", {"sql": 5}).status_code == 400
    assert send("POST", "datasets/clinic/queries", "ann", {"sql": COUNT}).json()["hint"]
    for path in ("nosuch", "datasets/clinic/nosuch"):
        assert send("GET", path).status_code == 404


def test_what_leaves_does_not_tell_where_the_data_is(send, clinic):
    shown = send("GET", "datasets/clinic").text + send("GET", "datasets").text + send("GET", "me").text
    assert "Oslo" in shown
    for hidden in ("secret-place", str(clinic.folder), "ledger_id", "ledger.db"):
        assert hidden not in shown


def test_large_requests_are_refused(client, clinic):
    headers = {"Authorization": f"Bearer {clinic.tokens['ann']}"}
    large = client.post("/v1/datasets/clinic/queries", content=b"x" * (MOST_BYTES + 1), headers=headers)
    assert large.status_code == 413
    chunks = client.post("/v1/datasets/clinic/queries", content=iter([b"{}"]), headers=headers)
    assert chunks.status_code == 411


def test_the_log_tells_who_did_what_and_no_secret(send, clinic):
    ask(send)
    text = json.dumps(send("GET", "log", "olga").json())
    assert "entry 2" in text
    assert "add user" in text
    for token in clinic.tokens.values():
        assert token.split("_", 2)[2] not in text
    stored = clinic.accounts.read_bytes()
    assert all(token.split("_", 2)[2].encode() not in stored for token in clinic.tokens.values())
    assert b"a long password of olga" not in stored
    assert oct(clinic.accounts.stat().st_mode)[-3:] == "600"


def test_passwords_are_checked_and_short_ones_refused(clinic):
    accounts = Accounts(clinic.accounts)
    assert accounts.check_password("olga", "a long password of olga").role == "owner"
    assert accounts.check_password("olga", "another password") is None
    assert accounts.check_password("ann", "") is None
    assert accounts.check_password("nobody", "a long password of olga") is None
    with pytest.raises(InvalidParameter, match="12 characters"):
        accounts.add_user("eve", "analyst", "short")
    for twin in ("ANN", "\u0430nn", "default", "Default"):  # the second begins with a Cyrillic letter
        with pytest.raises((CatalogError, InvalidParameter)):
            accounts.add_user(twin)
    accounts.close()


def test_two_folders_of_one_name_are_refused(clinic, tmp_path):
    other = make_clinic(tmp_path / "other")
    with pytest.raises(CatalogError, match="Two folders"):
        make_app([clinic.folder, other.folder], clinic.accounts)


def test_the_openapi_document_lists_every_route(client):
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/v1/datasets/{name}/queries:preview" in document["paths"]


def test_what_is_left_of_a_grant_has_the_form_of_a_budget(send):
    shown = send("GET", "datasets/clinic").json()
    assert shown["own"]["remaining"] == {"epsilon": "1", "delta": "0"}
    assert shown["budget"]["remaining"].keys() == shown["own"]["remaining"].keys()
