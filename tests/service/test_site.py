"""The pages: signing in, what a session may do, and answers that keep their address."""

import asyncio
import re
import threading
import time
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from served_clinic import BY_CITY, COUNT, make_clinic

from sfumato.curator import Curator
from sfumato.errors import PermissionDenied
from sfumato.service.accounts import Accounts, User
from sfumato.service.api import make_app
from sfumato.service.callers import COOKIE
from sfumato.service.page_requests import write_sentence
from sfumato.service.page_views import show_margin
from sfumato.service.sessions import MOST_FAILURES, MOST_OF_NAME, MOST_OF_NETWORK, Sessions, find_network
from sfumato.service.site import MOST_CHECKS

PASSWORD = "a long password of olga"
OWN = {"origin": "http://testserver"}


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path / "clinic")


@pytest.fixture
def app(clinic):
    return make_app([clinic.folder], clinic.accounts)


@pytest.fixture
def open_client(app):
    opened = []

    def open_client():
        client = TestClient(app, raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def ann(app, open_client):
    return sign_in(app, open_client(), "ann")


@pytest.fixture
def olga(app, open_client):
    return sign_in(app, open_client(), "olga")


def sign_in(app, client, name):
    link = app.state.sessions.make_link(name)
    assert client.post(f"/signin/{link}", headers=OWN, follow_redirects=False).status_code == 303
    return client


def read_csrf(client, path="/"):
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get(path).text)[1]


def ask(client, sql=COUNT, epsilon="0.1", **fields):
    form = {"csrf": read_csrf(client), "sql": sql, "epsilon": epsilon, "action": "ask", **fields}
    return client.post("/datasets/clinic/ask", data=form, headers=OWN, follow_redirects=False)


def count_charges(app):
    curator = app.state.served._open["clinic"].curator
    return sum(entry.kind == "charge" for entry in curator.ledger().entries())


@pytest.mark.parametrize("path", ["/", "/datasets/clinic", "/datasets/clinic/ask", "/answers/00"])
def test_a_page_asks_to_sign_in_first(open_client, path):
    found = open_client().get(path, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, f"/signin?after={path}")


def test_a_password_signs_in(open_client):
    client = open_client()
    form = {"name": "olga", "password": PASSWORD, "after": "/datasets/clinic"}
    answered = client.post("/signin", data=form, headers=OWN, follow_redirects=False)
    assert (answered.status_code, answered.headers["location"]) == (303, "/datasets/clinic")
    cookie = answered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "olga (owner)" in client.get("/").text


@pytest.mark.parametrize("elsewhere", ["https://evil.test/", "//evil.test/", "/\\evil.test", "javascript:alert(1)"])
def test_a_sign_in_never_leads_to_another_site(open_client, elsewhere):
    form = {"name": "olga", "password": PASSWORD, "after": elsewhere}
    answered = open_client().post("/signin", data=form, headers=OWN, follow_redirects=False)
    assert answered.headers["location"] == "/"


def test_over_tls_the_cookie_is_secure(clinic, app):
    with TestClient(app, base_url="https://testserver") as client:
        link = app.state.sessions.make_link("ann")
        answered = client.post(f"/signin/{link}", headers={"origin": "https://testserver"}, follow_redirects=False)
        assert "Secure" in answered.headers["set-cookie"]


def test_wrong_passwords_are_counted_and_end_in_a_pause(open_client):
    client = open_client()
    wrong = {"name": "olga", "password": "a wrong password"}
    statuses = [client.post("/signin", data=wrong, headers=OWN).status_code for _ in range(MOST_FAILURES + 1)]
    assert statuses == [403] * MOST_FAILURES + [429]
    right = {"name": "olga", "password": PASSWORD}
    assert client.post("/signin", data=right, headers=OWN).status_code == 429  # the right one has to wait too
    other = client.post("/signin", data={"name": "ann", "password": "a wrong password"}, headers=OWN)
    assert other.status_code == 403  # other people do not have to wait


@pytest.fixture
def sessions(clinic, monkeypatch):
    """Sessions of a service whose only right password is "right"."""
    accounts = Accounts(clinic.accounts)
    check = lambda _, name, password: User(name, "analyst") if password == "right" else None  # noqa: E731
    monkeypatch.setattr(Accounts, "check_password", check)
    monkeypatch.setattr(Sessions, "_begin", lambda *_: "a secret")  # there are no users of these names
    yield Sessions(accounts)
    accounts.close()


def try_all(sessions, attempts):
    """The code of each refusal, and an empty text for each sign-in."""
    found = []
    for attempt in attempts:
        try:
            sessions.sign_in(*attempt)
            found.append("")
        except PermissionDenied as error:
            found.append(error.code)
    return found


def test_somebody_who_tries_many_names_is_paused_and_nobody_else_is(sessions):
    spraying = [(f"name {number}", "x", "198.51.100.7") for number in range(MOST_OF_NETWORK + 1)]
    assert try_all(sessions, spraying) == ["sign-in"] * MOST_OF_NETWORK + ["too-many-attempts"]
    assert try_all(sessions, [("bob", "right", "198.51.100.7")]) == ["too-many-attempts"]
    assert try_all(sessions, [("bob", "right", "198.51.100.8"), ("bob", "right", "")]) == ["", ""]


def test_wrong_passwords_from_one_address_do_not_keep_their_owner_out(sessions):
    wrong = [("ann", "x", "198.51.100.7")] * (MOST_FAILURES + 1)
    assert try_all(sessions, wrong) == ["sign-in"] * MOST_FAILURES + ["too-many-attempts"]
    assert try_all(sessions, [("ann", "right", "203.0.113.1")]) == [""]
    assert try_all(sessions, [("ann", "right", "198.51.100.7")]) == ["too-many-attempts"]  # its own count stays


def test_many_addresses_together_have_a_limit_for_one_name(sessions):
    spread = [("ann", "x", f"198.51.100.{number}") for number in range(MOST_OF_NAME + 1)]
    assert try_all(sessions, spread) == ["sign-in"] * MOST_OF_NAME + ["too-many-attempts"]
    assert try_all(sessions, [("bob", "right", "198.51.100.1")]) == [""]


def test_no_number_of_wrong_passwords_keeps_everybody_out(sessions):
    for number in range(300):
        try_all(sessions, [(f"name {number}", "x", f"198.51.{number // 250}.{number % 250}")] * 2)
    assert try_all(sessions, [("bob", "right", "203.0.113.1")]) == [""]


def test_a_password_of_ones_own_does_not_end_the_count_of_a_network(sessions):
    for number in range(MOST_OF_NETWORK):
        try_all(sessions, [(f"name {number}", "x", "2001:db8::1"), ("mallory", "right", "2001:db8::2")])
    assert try_all(sessions, [("ann", "x", "2001:db8::3")]) == ["too-many-attempts"]  # the same 64 bits
    assert try_all(sessions, [("ann", "x", "2001:db8:0:1::1")]) == ["sign-in"]


def test_people_who_sign_in_are_not_counted(sessions):
    office = [(f"name {number}", "right", "198.51.100.7") for number in range(2 * MOST_OF_NETWORK)]
    assert set(try_all(sessions, office)) == {""}


@pytest.mark.parametrize(
    ("address", "network"),
    [("198.51.100.7", "198.51.100.7/32"), ("::ffff:198.51.100.7", "198.51.100.7/32"), ("127.0.0.1", ""), ("::1", ""),
     ("2001:db8::7", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("testclient", ""), ("", "")],
)  # fmt: skip
def test_the_network_of_an_address(address, network):
    assert find_network(address) == network


def test_few_passwords_are_checked_at_the_same_time(app, monkeypatch):
    now, most, guard = 0, 0, threading.Lock()

    def check(*_):
        nonlocal now, most
        with guard:
            now, most = now + 1, max(most, now + 1)
        time.sleep(0.05)
        with guard:
            now -= 1

    async def post(number):
        body, sent = f"name=name+{number}&password=x".encode(), []
        headers = {b"host": b"testserver", b"content-length": str(len(body)).encode(),
                   b"content-type": b"application/x-www-form-urlencoded"}  # fmt: skip
        scope = {"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/signin",
                 "raw_path": b"/signin", "query_string": b"", "root_path": "", "headers": list(headers.items()),
                 "client": ("127.0.0.1", 1), "server": ("testserver", 80)}  # fmt: skip

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"]

    async def post_all():
        return await asyncio.gather(*(post(number) for number in range(8)))

    monkeypatch.setattr(Accounts, "check_password", check)
    assert asyncio.run(post_all()) == [403] * 8
    assert most == MOST_CHECKS


def test_an_unknown_name_and_a_wrong_password_look_alike(open_client):
    client = open_client()
    shown = [
        client.post("/signin", data={"name": name, "password": "wrong, wrong"}, headers=OWN).text.replace(name, "")
        for name in ("olga", "nobody")
    ]
    assert shown[0] == shown[1]


def test_a_link_signs_in_once(app, open_client):
    link = app.state.sessions.make_link("ann")
    client = open_client()
    assert client.get(f"/signin/{link}").status_code == 200  # opening it does not use it up
    assert client.post(f"/signin/{link}", headers=OWN, follow_redirects=False).status_code == 303
    again = open_client().post(f"/signin/{link}", headers=OWN, follow_redirects=False)
    assert again.status_code == 403
    assert COOKIE not in again.headers.get("set-cookie", "")


def test_an_expired_link_and_a_session_as_link_are_refused(app, open_client):
    late = app.state.sessions.make_link("ann", timedelta(seconds=-1))
    assert open_client().post(f"/signin/{late}", headers=OWN).status_code == 403
    client = sign_in(app, open_client(), "ann")
    secret = client.cookies[COOKIE]
    assert open_client().post(f"/signin/{secret}", headers=OWN).status_code == 403
    assert app.state.sessions.find(late) is None  # a link is no session either


def test_a_form_of_another_site_signs_nobody_in(app, open_client):
    link = app.state.sessions.make_link("ann")
    for origin in ("https://evil.test", "null"):
        refused = open_client().post(f"/signin/{link}", headers={"origin": origin}, follow_redirects=False)
        assert refused.status_code == 403
        assert COOKIE not in refused.headers.get("set-cookie", "")


def test_the_database_holds_no_secret_of_a_session(clinic, ann):
    stored = clinic.accounts.read_bytes() + clinic.accounts.with_name("accounts.db-wal").read_bytes()
    assert ann.cookies[COOKIE].encode() not in stored
    assert read_csrf(ann).encode() not in stored


def test_signing_out_and_disabling_end_a_session(app, clinic, ann, open_client):
    csrf, secret = read_csrf(ann), ann.cookies[COOKIE]
    assert ann.post("/signout", data={"csrf": csrf}, headers=OWN, follow_redirects=False).status_code == 303
    assert app.state.sessions.find(secret) is None
    bob = sign_in(app, open_client(), "bob")
    app.state.accounts.disable_user("bob")
    assert bob.get("/", follow_redirects=False).status_code == 303


def test_a_new_password_ends_the_sessions(app, olga):
    app.state.accounts.set_password("olga", "another long password")
    assert olga.get("/", follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    "path", ["/datasets/clinic/ask", "/datasets/clinic/ask:preview", "/datasets/clinic/grants", "/signout"]
)
@pytest.mark.parametrize("csrf", [None, "", "0" * 64])
def test_a_form_without_the_token_changes_nothing(app, olga, path, csrf):
    form = {"sql": COUNT, "epsilon": "0.1", "action": "ask", "user": "bob", **({} if csrf is None else {"csrf": csrf})}
    refused = olga.post(path, data=form, headers=OWN, follow_redirects=False)
    assert refused.status_code == 403
    assert olga.get("/").status_code == 200
    assert count_charges(app) == 0


def test_the_token_of_another_session_is_refused(app, ann, olga):
    form = {"csrf": read_csrf(olga), "sql": COUNT, "epsilon": "0.1", "action": "ask"}
    assert ann.post("/datasets/clinic/ask", data=form, headers=OWN, follow_redirects=False).status_code == 403


def test_the_api_takes_a_session_only_with_its_token(ann):
    body = {"sql": COUNT, "epsilon": "0.1"}
    address = "/v1/datasets/clinic/queries"
    assert ann.get("/v1/me").json()["name"] == "ann"
    assert ann.post(address, json=body).status_code == 403
    assert ann.post(address, json=body, headers={"X-CSRF-Token": read_csrf(ann)}).status_code == 200


def test_asking_spends_once_and_the_answer_keeps_its_address(app, ann):
    answered = ask(ann, BY_CITY, "0.4")
    assert answered.status_code == 303
    address = answered.headers["location"]
    first, again = ann.get(address).text, ann.get(address).text
    assert first == again
    assert "Rome" in first
    assert "Cost: ε = 0.4." in first
    assert count_charges(app) == 1
    free = ann.get(ask(ann, BY_CITY, "0.4").headers["location"]).text
    assert "Free: answered before" in free
    assert count_charges(app) == 1


def test_answers_can_be_downloaded_and_drawn(ann):
    address = ask(ann, BY_CITY, "0.4").headers["location"]
    assert ann.get(f"{address}/answer.csv").text.startswith('"city","n"')
    assert ann.get(f"{address}/answer.json").json()["columns"] == ["city", "n", "age"]
    assert ann.get(f"{address}/answer.arrow").content
    light, dark = (ann.get(f"{address}/chart.svg?column=n&theme={theme}").text for theme in ("light", "dark"))
    assert light.startswith("<svg")
    assert "Rome" in light
    assert light != dark
    assert ann.get(f"{address}/chart.svg?column=city").status_code == 400


def test_an_answer_is_for_who_asked_and_for_owners(app, ann, olga, open_client):
    address = ask(ann).headers["location"]
    assert olga.get(address).status_code == 200
    bob = sign_in(app, open_client(), "bob")
    for path in (address, f"{address}/chart.svg", f"{address}/answer.json"):
        assert bob.get(path).status_code == 403


def test_refusals_are_shown_beside_the_question(app, ann):
    refused = ask(ann, "SELECT agee FROM people")
    assert refused.status_code == 422
    assert "agee" in refused.text
    assert 'role="alert"' in refused.text
    over = ask(ann, COUNT, "2")
    assert over.status_code == 409
    assert count_charges(app) == 0


def test_the_preview_names_the_price_and_charges_nothing(app, ann):
    form = {"csrf": read_csrf(ann), "sql": BY_CITY, "epsilon": "0.2"}
    shown = ann.post("/datasets/clinic/ask:preview", data=form, headers=OWN).text
    assert "Spend ε = 0.2 and ask" in shown
    assert "Enter your guess" in shown
    guessed = ann.post("/datasets/clinic/ask:preview", data={**form, "assume": "200"}, headers=OWN).text
    assert "Enter your guess" not in guessed
    assert (
        "must be a number" in ann.post("/datasets/clinic/ask:preview", data={**form, "assume": "x"}, headers=OWN).text
    )
    assert count_charges(app) == 0


def test_the_preview_refuses_a_question_above_its_own_limit(clinic, app, ann):
    accounts = Accounts(clinic.accounts)
    accounts.set_grant("ann", "clinic", "1", per_query="0.2")
    form = {"csrf": read_csrf(ann), "sql": COUNT, "epsilon": "0.3"}
    shown = ann.post("/datasets/clinic/ask:preview", data=form, headers=OWN).text
    assert "A single question may cost at most ε = 0.2" in shown
    assert "Spend" not in shown
    accounts.close()


@pytest.mark.parametrize(("margin", "shown"), [
    (0.02541, "± 0.0254"), (59.91, "± 59.9"),
    (999.4, "± 999"), (999.6, "± 1,000"), (1995.9, "± 2,000"), (1234567, "± 1,230,000"),
])  # fmt: skip
def test_margins_are_read_without_an_exponent(margin, shown):
    assert show_margin(margin) == shown


def test_the_legend_of_a_chart_is_read_in_the_dark(ann):
    sql = "SELECT city, age > 40 AS old, COUNT(*) AS n FROM people GROUP BY city, age > 40"
    answered = ask(ann, sql)
    assert answered.status_code == 303, answered.text
    drawn = ann.get(f"{answered.headers['location']}/chart.svg?theme=dark").text
    words = re.findall(r"<text[^>]*>", drawn)
    assert len(words) > 5
    assert all('fill="#e8ebee"' in word for word in words)


def test_an_answer_of_somebody_else_costs_only_the_own_limit(app, ann, open_client):
    ask(ann, COUNT, "0.3")
    bob = sign_in(app, open_client(), "bob")
    form = {"csrf": read_csrf(bob), "sql": COUNT, "epsilon": "0.3"}
    shown = bob.post("/datasets/clinic/ask:preview", data=form, headers=OWN).text
    assert "Spend ε = 0.3 of your own limit and ask" in shown


def test_only_owners_see_the_ledger_of_others_and_the_load_report(ann, olga):
    ask(ann, "SELECT COUNT(*) AS secret_of_ann FROM people")
    assert "secret_of_ann" in olga.get("/datasets/clinic").text
    assert "Chain verified" in olga.get("/datasets/clinic").text
    ask(olga, "SELECT COUNT(*) AS secret_of_olga FROM people")
    shown = ann.get("/datasets/clinic").text
    assert "secret_of_olga" not in shown
    assert "Load report" not in shown
    assert "Grants" not in shown
    assert "secret-place" not in shown  # where the file is


def test_an_owner_is_told_how_to_see_the_load_report_again(olga, monkeypatch):
    """The process that read the sources has it, and it is not stored."""
    again = "sfumato prepare --all"
    assert again not in olga.get("/datasets/clinic").text
    monkeypatch.setattr(Curator, "load_report", None)
    assert again in olga.get("/datasets/clinic").text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Left: ε = 1, δ = 1e-7 of yours.", 'Left: ε = 1, δ = <span class="amount">1e-7</span> of yours.'),
        ("`diagnose` says so", "<code>diagnose</code> says so"),
        ("`<b>` & 1e-7<script>", '<code>&lt;b&gt;</code> &amp; <span class="amount">1e-7</span>&lt;script&gt;'),
        ("one-e-7 and `a", "one-e-7 and `a"),
    ],
)
def test_sentences_are_escaped_and_keep_amounts_in_one_line(text, shown):
    assert write_sentence(text) == shown


def test_a_column_asks_only_for_what_its_type_needs(olga):
    style = olga.get("/static/site.css").text
    for asked in ("nothing", "bounds", "values"):
        assert f'fieldset:has([data-asks="{asked}"]:checked)' in style


def test_an_owner_grants_and_removes(app, clinic, olga, ann):
    form = {"csrf": read_csrf(olga), "user": "ann", "epsilon": "2", "per_query": "0.5", "until": "2099-01-31"}
    granted = olga.post("/datasets/clinic/grants", data=form, headers=OWN)
    assert "ann may spend epsilon = 2." in granted.text
    assert "2099-01-31" in granted.text
    assert ask(ann, COUNT, "0.6").status_code == 403  # above the limit for one question
    refused = olga.post("/datasets/clinic/grants", data={**form, "until": "soon"}, headers=OWN)
    assert refused.status_code == 400
    assert "2027-06-30" in refused.text
    olga.post("/datasets/clinic/grants", data={**form, "action": "remove"}, headers=OWN)
    assert ann.get("/datasets/clinic").status_code == 404


def test_an_analyst_cannot_grant(ann):
    form = {"csrf": read_csrf(ann), "user": "ann", "epsilon": "100"}
    assert ann.post("/datasets/clinic/grants", data=form, headers=OWN).status_code == 403


def test_the_home_page_counts_questions_like_the_last(ann):
    assert "more question" not in ann.get("/").text
    ask(ann, COUNT, "0.25")
    assert "About 3 more questions like your last one." in ann.get("/").text


def test_values_of_a_question_are_escaped(ann):
    answered = ask(ann, 'SELECT COUNT(*) AS "<script>alert(1)</script>" FROM people')
    shown = ann.get(answered.headers["location"]).text if answered.status_code == 303 else answered.text
    assert "<script>alert" not in shown
    assert "<b>" not in ann.get("/datasets/clinic/ask?sql=%3Cb%3E").text


def test_pages_run_no_script_of_others(ann):
    policy = ann.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", ann.get("/datasets/clinic/ask").text)


def test_a_form_has_a_limit(olga):
    form = {"csrf": read_csrf(olga), "sql": "x" * 300_000, "epsilon": "0.1"}
    assert olga.post("/datasets/clinic/ask", data=form, headers=OWN).status_code == 400


def test_nothing_of_a_session_is_in_the_log(app, clinic, ann):
    ask(ann)
    secret, csrf = ann.cookies[COOKIE], read_csrf(ann)
    lines = str(app.state.accounts.list_log())
    assert "sign in" in lines
    assert secret not in lines
    assert csrf not in lines
