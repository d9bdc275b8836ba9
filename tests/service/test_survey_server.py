"""The survey server over HTTP: what it takes, refuses, limits, publishes and shows."""

import asyncio
import gzip
import json
import sqlite3
import threading
from datetime import UTC, datetime, timedelta

import pytest
from make_vectors import FixedKey
from starlette.testclient import TestClient

from sfumato.local.collect import collector as collector_module
from sfumato.local.collect.collector import Collector
from sfumato.local.survey.key_ring import TrustedKey
from sfumato.local.survey.new_survey import new_survey
from sfumato.service.request_limits import NotGzip, RateLimit, TooLarge, decompress
from sfumato.service.survey_app import make_survey_app
from sfumato.service.survey_relay import Relay, RelaySettings, make_relay_app, shuffle
from sfumato.service.survey_settings import SurveySettings, place_of, read_settings

KEY = FixedKey()
OWNER = {"Authorization": "Bearer secret"}


def make(tmp_path, name="survey", **changes):
    options = {"labels": ["no", "yes"], "epsilon": 1, "minimum_batch": 10, **changes}
    manifest = new_survey(f"Do you have a pet? {name}", key=KEY, **options).manifest
    path = tmp_path / f"{manifest.id}.json"
    path.write_bytes(manifest.to_bytes())
    return path, manifest


@pytest.fixture(params=["sqlite", "postgres"])
def state(request, tmp_path):
    """Where reports are kept: the same tests run on both."""
    if request.param == "sqlite":
        return str(tmp_path / "state")
    return request.getfixturevalue("postgres_server").make_address()


def serve(tmp_path, *paths, state=None, **changes):
    settings = SurveySettings(tuple(map(str, paths)), state or str(tmp_path / "state"), "secret", **changes)
    return TestClient(make_survey_app(settings), follow_redirects=False)


@pytest.fixture
def one(tmp_path, state):
    path, manifest = make(tmp_path)
    return serve(tmp_path, path, state=state, requests_per_second=0), manifest


def lines_of(manifest, count, first=0, **changes):
    return [
        json.dumps({"survey": manifest.id, "period": 0, "id": f"{number:032x}", "report": number % 2, **changes})
        for number in range(first, first + count)
    ]


def test_single_reports_have_their_fate_as_status(one):
    server, manifest = one
    (line,) = lines_of(manifest, 1)
    assert server.post("/reports", content=line).json()["accepted"] == 1
    assert server.post("/reports", content=line).json()["duplicate"] == 1
    other = json.loads(line) | {"report": 1}
    for body, status, code in (
        (json.dumps(other), 409, "conflict"),
        (line.replace(manifest.id, "0" * 32), 404, "foreign"),
        (line[:-1] + ', "report": 0}', 400, "malformed"),
        ("nonsense", 400, "malformed"),
        ("", 400, "empty"),
    ):
        answer = server.post("/reports", content=body)
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "pet" not in answer.text
    counts = {"accepted": 1, "duplicate": 1, "malformed": 2, "foreign": 1, "conflict": 1, "untimely": 0, "withdrawn": 0}
    metrics = server.get("/metrics", headers=OWNER).text
    for fate, count in counts.items():
        assert f'sfumato_reports_total{{survey="{manifest.id}",fate="{fate}"}} {count}\n' in metrics
    assert server.get("/health").json() == {"status": "ok"}


def test_a_batch_is_counted_also_compressed(one):
    server, manifest = one
    lines = lines_of(manifest, 30)
    assert server.post("/reports", content="\n".join([*lines[:20], "x"])).json() == {
        "accepted": 20, "duplicate": 0, "malformed": 1, "foreign": 0, "conflict": 0, "untimely": 0, "withdrawn": 0,
    }  # fmt: skip
    packed = gzip.compress("\n".join(lines[10:]).encode())
    answer = server.post("/reports", content=packed, headers={"Content-Encoding": "gzip"}).json()
    assert (answer["accepted"], answer["duplicate"]) == (10, 10)


def test_requests_over_a_limit_are_refused_before_they_are_read(tmp_path):
    path, manifest = make(tmp_path)
    server = serve(tmp_path, path, most_bytes=2000, most_decoded_bytes=5000, most_reports=8, requests_per_second=0)
    bomb = gzip.compress(b"\n" * 1_000_000)
    assert len(bomb) < 2000
    for body, headers, status in (
        (b"x" * 2001, {}, 413),
        (bomb, {"Content-Encoding": "gzip"}, 413),
        (b"x", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"x") + b"more", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"x")[:-3], {"Content-Encoding": "gzip"}, 400),
        (b"x", {"Content-Encoding": "br"}, 415),
        (b"x\n" * 9, {}, 413),
    ):
        assert server.post("/reports", content=body, headers=headers).status_code == status
    assert server.post("/reports", content="\n".join(lines_of(manifest, 8))).json()["accepted"] == 8


def test_decompression_stops_at_its_limit():
    assert decompress(gzip.compress(b"a" * 100), 100) == b"a" * 100
    with pytest.raises(TooLarge):
        decompress(gzip.compress(b"a" * 101), 100)
    with pytest.raises(NotGzip):
        decompress(b"", 100)


def test_one_address_cannot_flood(tmp_path, monkeypatch):
    path, manifest = make(tmp_path)
    server = serve(tmp_path, path, requests_per_second=1)
    answers = [server.post("/reports", content=line) for line in lines_of(manifest, 6)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 2
    assert answers[-1].headers["Retry-After"] == "5"
    clock = [0.0]
    monkeypatch.setattr("sfumato.service.request_limits.time.monotonic", lambda: clock[0])
    rate = RateLimit(2)
    assert [rate.allows("a") for _ in range(9)] == [True] * 8 + [False]
    assert rate.allows("b")
    clock[0] = 0.5
    assert [rate.allows("a") for _ in range(2)] == [True, False]


def test_reports_for_other_periods_are_not_accepted(tmp_path):
    path, manifest = make(
        tmp_path, period_days=7, lifetime_epsilon=60, begins=datetime.now(UTC) - timedelta(days=24)
    )  # the fourth week
    server = serve(tmp_path, path, requests_per_second=0)
    fates = [
        server.post("/reports", content=lines_of(manifest, 1, week, period=week)[0]).status_code for week in range(6)
    ]
    assert fates == [409, 409, 200, 200, 409, 409]
    generous = serve(tmp_path, path, requests_per_second=0, late_periods=3)
    assert generous.post("/reports", content=lines_of(manifest, 1, 0, period=0)[0]).status_code == 200


def test_withdrawal_until_the_batch_is_published(one):
    server, manifest = one
    server.post("/reports", content="\n".join(lines_of(manifest, 11)))

    def withdraw(number, **changes):
        return server.post(
            "/reports/withdraw", content=json.dumps({"survey": manifest.id, "id": f"{number:032x}", **changes})
        )

    assert withdraw(3).json() == {"withdrawn": True}
    assert server.post("/reports", content=lines_of(manifest, 1, 3)[0]).status_code == 410
    assert server.get("/owner/results.json", headers=OWNER).status_code == 404
    assert server.post("/owner/publish", content=f"survey={manifest.id}", headers=OWNER).status_code == 303
    assert server.get("/owner/results.json", headers=OWNER).json()["people"] == 10
    assert (withdraw(4).status_code, withdraw(4).json()["error"]) == (409, "published")
    for wrong in ({"survey": "0" * 32}, {"id": "zz"}, {"id": 3}, {"more": 1}):
        assert withdraw(5, **wrong).status_code == 400
    assert server.post("/reports/withdraw", content="[" * 5000).status_code == 400


def test_results_are_the_owners_and_need_a_batch(one):
    server, manifest = one
    server.post("/reports", content="\n".join(lines_of(manifest, 9)))
    for address in ("/owner", "/owner/results.json"):
        assert server.get(address).status_code == 403
        assert server.get(address, headers={"Authorization": "Bearer other"}).status_code == 403
        assert server.get(address, headers={"Cookie": "sfumato_owner=other"}).status_code == 403
    assert server.post("/owner/publish", content=f"survey={manifest.id}").status_code == 403
    opened = server.get("/owner?token=secret")
    assert opened.status_code == 303
    assert "HttpOnly" in opened.headers["Set-Cookie"]
    assert "SameSite=strict" in opened.headers["Set-Cookie"]
    assert "token" not in opened.headers["Location"]
    server.post("/owner/publish", content=f"survey={manifest.id}", headers=OWNER)
    assert "Nothing is published yet" in server.get("/owner", headers=OWNER).text
    server.post("/reports", content=lines_of(manifest, 1, 9)[0])
    assert "Nothing is published yet" in server.get("/owner", headers=OWNER).text  # looking publishes nothing
    server.post("/owner/publish", content=f"survey={manifest.id}", headers=OWNER)
    page = server.get("/owner", headers=OWNER).text
    assert "answered “yes”" in page  # with its interval, or that ten reports are too few
    assert "(95 % confidence)." in page
    assert "1 % of the reports are fake" in page
    assert "The shuffler passes on only the reports" in page


def test_pages_and_documents(one):
    server, manifest = one
    home = server.get("/")
    assert home.headers["Location"].endswith(manifest.id)
    page = server.get(f"/s/{manifest.id}")
    assert "Do you have a pet?" in page.text
    assert "at most 74 % sure of it" in page.text
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert server.get(f"/s/{manifest.id}/survey.json").content == manifest.to_bytes()
    assert manifest.digest in server.get(f"/s/{manifest.id}/manifest").text
    for address in (
        f"/s/{'0' * 32}",
        f"/s/{'0' * 32}/manifest",
        f"/s/{'0' * 32}/survey.json",
        f"/s/{manifest.id}/period.json",
    ):
        assert server.get(address).status_code == 404
    for asset in ("respondent.js", "sfumato-survey.js", "survey.css"):
        assert server.get(f"/static/{asset}").status_code == 200
    assert server.get("/static/../survey_app.py").status_code == 404


def test_questions_are_shown_as_text(tmp_path):
    path, manifest = make(tmp_path, "<script>alert(1)</script>", labels=["<b>", "b"])
    text = serve(tmp_path, path).get(f"/s/{manifest.id}").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_several_surveys_consent_and_announcements(tmp_path):
    paths = [make(tmp_path, name)[0] for name in ("one", "two")]
    (tmp_path / "consent.txt").write_text("We are the pet club.\n\nWrite to us.")
    (tmp_path / "said").mkdir()
    server = serve(
        tmp_path, *paths, consent=str(tmp_path / "consent.txt"), announcements=str(tmp_path / "said"),
        requests_per_second=0,
    )  # fmt: skip
    from sfumato.local.survey.manifest import read_manifest

    manifests = [read_manifest(path.read_bytes()) for path in paths]
    body = "\n".join([*lines_of(manifests[0], 3), *lines_of(manifests[1], 4), "x"])
    found = server.post("/reports", content=body).json()
    assert (found["accepted"], found["malformed"]) == (7, 1)
    assert "<p>We are the pet club.</p>" in server.get(f"/s/{manifests[1].id}").text
    said = KEY.announce(manifests[0])
    (tmp_path / "said" / f"{manifests[0].id}.json").write_bytes(said)
    assert server.get(f"/s/{manifests[0].id}/period.json").content == said
    counts = [Collector(m, place_of(str(tmp_path / "state"), m.id)).count_received().accepted for m in manifests]
    assert counts == [3, 4]


def test_the_page_of_a_survey_says_what_became_of_its_key(tmp_path):
    path, manifest = make(tmp_path)
    begins, ends = manifest.created - timedelta(days=1), manifest.created + timedelta(days=1)
    ring = tmp_path / "ring.json"
    for key, words in (
        (TrustedKey(KEY.public_key, begins, ends), "may sign surveys from"),
        (TrustedKey(KEY.public_key, begins, ends, revoked=True), "was revoked: do not answer"),
        (TrustedKey(KEY.public_key, begins, manifest.created), "this survey is from another time"),
        (TrustedKey("ab" * 32, begins, ends), "is not in the team"),
    ):
        ring.write_bytes(KEY.sign_ring(0, [key]))
        server = serve(tmp_path, path, keys=str(ring))
        assert words in server.get(f"/s/{manifest.id}/manifest").text
        assert server.get("/keys.json").content == ring.read_bytes()
    assert serve(tmp_path, path).get("/keys.json").status_code == 404


def test_settings_reach_the_workers():
    settings = SurveySettings(("a.json", "b.json"), "postgresql://x/y", "t", late_periods=2)
    assert read_settings(settings.to_json()) == settings
    assert place_of(settings.state, "id") == "postgresql://x/y"


def test_a_collector_that_cannot_write_asks_for_a_later_attempt(tmp_path):
    path, manifest = make(tmp_path)
    server = serve(tmp_path, path, requests_per_second=0)
    place = tmp_path / "state" / f"{manifest.id}.db"
    with sqlite3.connect(place) as state:
        state.execute("DROP TABLE reports")
    state.close()
    answer = server.post("/reports", content=lines_of(manifest, 1)[0])
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


# the relay


def test_a_relay_strips_batches_and_shuffles(tmp_path, monkeypatch):
    _, manifest = make(tmp_path)
    sent = []
    relay = Relay(RelaySettings("http://localhost:1/reports", 20, str(tmp_path / "relay.db")))
    monkeypatch.setattr(relay, "_post", lambda lines: sent.append(lines))
    lines = lines_of(manifest, 40)
    spelled = [
        json.dumps({"id": json.loads(line)["id"], **json.loads(line)}, indent=1).replace("\n", "") for line in lines
    ]
    assert relay.take([line.encode() for line in [*spelled[:19], "x", spelled[0]]]) == (20, 1)
    assert relay.pass_on() == 0  # nineteen different reports are no batch
    relay.take([line.encode() for line in spelled[19:]])
    assert relay.pass_on() == 40
    (passed,) = sent
    compact = [json.dumps(json.loads(line), separators=(",", ":")) for line in lines]
    assert sorted(passed) == sorted(compact)
    assert passed != compact
    assert relay.pass_on() == 0


def test_what_a_relay_cannot_deliver_waits(tmp_path, monkeypatch):
    _, manifest = make(tmp_path)
    relay = Relay(RelaySettings("http://localhost:1/reports", 5, str(tmp_path / "relay.db")))
    relay.take([line.encode() for line in lines_of(manifest, 6)])
    with pytest.raises(OSError, match="refused"):
        relay.pass_on()
    again = Relay(relay.settings)  # also after a restart
    sent = []
    monkeypatch.setattr(again, "_post", lambda lines: sent.append(lines))
    assert again.pass_on() == 6


def test_every_order_of_a_shuffle_is_as_likely():
    """24 orders of four, 4,800 draws: each count is within 6 standard deviations of 200 (false alarm below 1e-6)."""
    found = {}
    for _ in range(4800):
        order = tuple(shuffle(4))
        found[order] = found.get(order, 0) + 1
    assert len(found) == 24
    assert all(abs(count - 200) < 6 * 14 for count in found.values())


def test_a_relay_takes_reports_over_http(tmp_path):
    _, manifest = make(tmp_path)
    app = TestClient(make_relay_app(RelaySettings("http://localhost:1/r", 5, str(tmp_path / "r.db"), 4000, 4000, 2)))
    body = "\n".join(lines_of(manifest, 3))
    assert app.post("/reports", content=body).json() == {"taken": 3, "malformed": 0}
    assert (
        app.post("/reports", content=gzip.compress(body.encode()), headers={"Content-Encoding": "gzip"}).status_code
        == 200
    )
    assert app.post("/reports", content="nonsense").status_code == 400
    assert app.post("/reports", content="x" * 4001).status_code == 413
    assert app.options("/reports").status_code == 204
    assert [app.post("/reports", content=body).status_code for _ in range(6)][-1] == 429


def test_metrics_are_for_operators(tmp_path):
    path, _ = make(tmp_path)
    closed = serve(tmp_path, path)
    assert closed.get("/metrics").status_code == 403
    assert "Bearer" in closed.get("/metrics").text
    assert closed.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
    assert closed.get("/metrics", headers=OWNER).status_code == 200
    token = serve(tmp_path, path, metrics_token="scrape")
    assert token.get("/metrics", headers={"Authorization": "Bearer scrape"}).status_code == 200
    assert token.get("/metrics", headers={"Authorization": "Bearer scrap"}).status_code == 403
    assert token.get("/owner", headers={"Authorization": "Bearer scrape"}).status_code == 403
    settings = SurveySettings((str(path),), str(tmp_path / "state"), "secret", open_metrics=True)
    near = TestClient(make_survey_app(settings), client=("127.0.0.1", 5))
    assert near.get("/metrics").status_code == 200
    assert near.get("/metrics", headers={"X-Forwarded-For": "203.0.113.1"}).status_code == 403  # passed on by a proxy
    far = TestClient(make_survey_app(settings), client=("203.0.113.1", 5))
    assert far.get("/metrics").status_code == 403


def test_ids_that_were_made_up_cannot_fill_the_file(one, monkeypatch):
    monkeypatch.setattr(collector_module, "MOST_UNKNOWN_WITHDRAWN", 3)
    server, manifest = one
    lines = lines_of(manifest, 4)
    server.post("/reports", content="\n".join(lines))

    def withdraw(number):
        return server.post("/reports/withdraw", json={"survey": manifest.id, "id": f"{number:032x}"}).status_code

    statuses = [withdraw(number) for number in range(100, 110)]
    assert statuses == [200] * 7 + [503] * 3  # three, and one for each report that was counted
    assert withdraw(100) == 200  # known already
    assert [withdraw(number) for number in range(4)] == [200] * 4  # reports that are here can always be withdrawn


def test_a_relay_forgets_what_is_withdrawn_and_keeps_no_more_than_its_limit(tmp_path):
    settings = RelaySettings("http://localhost:9/reports", 100, str(tmp_path / "relay.db"), most_waiting=5)
    _, manifest = make(tmp_path)
    with TestClient(make_relay_app(settings)) as relay:
        assert relay.post("/reports", content="\n".join(lines_of(manifest, 5))).json()["taken"] == 5
        full = relay.post("/reports", content=lines_of(manifest, 1, first=9)[0])
        assert (full.status_code, full.json()["error"]) == (503, "full")
        taken_back = relay.post("/reports/withdraw", json={"survey": manifest.id, "id": f"{2:032x}"})
        assert taken_back.json() == {"withdrawn": True}
        assert relay.post("/reports", content=lines_of(manifest, 1, first=9)[0]).json()["taken"] == 1
        unknown = relay.post("/reports/withdraw", json={"survey": manifest.id, "id": "f" * 32})
        assert unknown.status_code == 503  # the collector is not there
        for body in ("x", "{}", json.dumps({"survey": manifest.id, "id": "x"}), "x" * 5000):
            assert relay.post("/reports/withdraw", content=body).status_code == 400


def test_a_report_that_is_withdrawn_while_it_is_passed_on_is_withdrawn_at_the_collector(tmp_path, monkeypatch):
    _, manifest = make(tmp_path)
    relay = Relay(RelaySettings("http://localhost:9/reports", 5, str(tmp_path / "relay.db")))
    relay.take([line.encode() for line in lines_of(manifest, 5)])
    begun, go_on, told = threading.Event(), threading.Event(), []
    monkeypatch.setattr(relay, "_post", lambda _: (begun.set(), go_on.wait(30)))
    monkeypatch.setattr(relay, "pass_withdrawal", lambda _, name: (told.append(name), 200)[1])

    async def withdraw_meanwhile():
        sending = asyncio.create_task(relay.pass_on_alone())
        await asyncio.to_thread(begun.wait, 30)
        status = await relay.withdraw(manifest.id, f"{3:032x}")  # it waits here, and has left
        go_on.set()
        await sending
        return status

    assert asyncio.run(withdraw_meanwhile()) == 200
    assert told == [f"{3:032x}"]
    relay.take([line.encode() for line in lines_of(manifest, 1, first=8)])
    assert asyncio.run(relay.withdraw(manifest.id, f"{8:032x}")) == 200
    assert told == [f"{3:032x}"]  # one that only waits is forgotten, and nobody is told


def test_a_withdrawal_with_repeated_names_is_refused(one, tmp_path):
    server, manifest = one
    body = f'{{"survey":"{manifest.id}","id":"{0:032x}","id":"{1:032x}"}}'
    assert server.post("/reports/withdraw", content=body).status_code == 400
    with TestClient(
        make_relay_app(RelaySettings("http://localhost:9/reports", 5, str(tmp_path / "relay.db")))
    ) as relay:
        assert relay.post("/reports/withdraw", content=body).status_code == 400
