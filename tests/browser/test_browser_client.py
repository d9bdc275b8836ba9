"""The JavaScript client in a real Chromium: two tabs, workers and kills never give a second report or lose a charge."""

import json
import time

import pytest
from make_vectors import FixedKey
from playwright.sync_api import sync_playwright
from real_chromium import Chromium, Site

from sfumato.local.survey.new_survey import Renewal, new_survey

RACES = 25
KEY = FixedKey()


def make_survey(number, **options):
    return new_survey(f"Which? {number}", epsilon="0.05", key=KEY, labels=list("abcdef"), **options).manifest


@pytest.fixture(scope="module")
def sites():
    documents = {f"/race-{number}.json": make_survey(number).to_bytes() for number in range(RACES)}
    weekly = {"period_days": 7, "renewal": Renewal("0.1", 52)}
    documents |= {f"/kept-{number}.json": make_survey(number, **weekly).to_bytes() for number in range(RACES)}
    pages, collector = Site(documents), Site()
    endpoint = collector.at("/reports", "127.0.0.1")
    pages.documents |= {
        f"/sent-{name}.json": make_survey(name, endpoint=endpoint).to_bytes()
        for name in ("cors", "plain", "down", "busy", "refused", "page", "worker")
    }
    yield pages, collector
    pages.close()
    collector.close()


@pytest.fixture(scope="module")
def playwright():
    with sync_playwright() as found:
        yield found


@pytest.fixture
def chromium(playwright, tmp_path):
    found = Chromium(playwright, tmp_path / "profile")
    yield found
    found.kill()


def open_tab(chromium, address):
    tab = chromium.tab(address)
    tab.wait_for_function("window.ready === true")
    return tab


REPORT_AT = """async ([names, start]) => {
  const surveys = await Promise.all(names.map((name) => load(name)));
  const found = [];
  for (let place = 0; place < surveys.length; place += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, start + 40 * place - Date.now())));
    found.push((await surveys[place].report("abcdef"[Math.floor(Math.random() * 6)])).id);
  }
  return found;
}"""


def race(tabs, names):
    """Let the tabs report at the same moments; return what each of them got."""
    start = tabs[0].evaluate("Date.now() + 700")
    for tab in tabs[1:]:
        tab.evaluate(f"(given) => {{ window.raced = ({REPORT_AT})(given); }}", [names, start])
    first = tabs[0].evaluate(REPORT_AT, [names, start])
    return [first, *(tab.evaluate("raced") for tab in tabs[1:])]


@pytest.mark.parametrize("kind", ["race", "kept"])
def test_two_tabs_make_one_report_for_one_charge(chromium, sites, kind):
    address = sites[0].at()
    names = [f"/{kind}-{number}.json" for number in range(RACES)]
    tabs = [open_tab(chromium, address) for _ in range(2)]
    first, second = race(tabs, names)
    assert first == second
    assert len(set(first)) == RACES
    spent = tabs[0].evaluate(
        "async (name) => { const s = await load(name); return s.device.spent(s.manifest); }", names[0]
    )
    price = float(tabs[0].evaluate("async (name) => (await load(name)).longitudinalEpsilon", names[0]))
    assert float(spent["lifetime"]) == pytest.approx(RACES * price)


NAIVE = """class {
  async update(change) {
    const [text, result] = await change(localStorage.getItem("naive"));
    await new Promise((resolve) => setTimeout(resolve, 30));
    localStorage.setItem("naive", text);
    return result;
  }
}"""


def test_the_race_catches_a_store_without_a_lock(chromium, sites):
    """Negative control."""
    tabs = [open_tab(chromium, sites[0].at()) for _ in range(2)]
    device = f"new client.Device(new ({NAIVE})())"
    wrong = f"(name) => load(name).then((survey) => {{ survey.device = {device}; return survey; }})"
    for tab in tabs:
        tab.evaluate(f"() => {{ const right = window.load; const load = right; window.load = {wrong}; }}")
    first, second = race(tabs, [f"/race-{number}.json" for number in range(5)])
    assert first != second


def test_a_race_for_the_last_of_a_cap_is_won_once(chromium, sites):
    tabs = [open_tab(chromium, sites[0].at()) for _ in range(2)]
    tabs[0].evaluate("async () => (await load('/race-0.json')).device.caps({ perMonth: '0.06' })")
    spend = "async (name) => code(async () => (await load(name)).report('a'))"
    tabs[1].evaluate(f"() => {{ window.raced = ({spend})('/race-1.json'); }}")
    assert sorted([tabs[0].evaluate(spend, "/race-0.json"), tabs[1].evaluate("raced")], key=str) == [
        None, "budget-exceeded",
    ]  # fmt: skip


def test_a_kill_right_after_a_report_loses_no_charge(chromium, sites):
    seen = {}
    for number in range(3):
        name = f"/race-{number}.json"
        tab = open_tab(chromium, sites[0].at())
        seen[name] = tab.evaluate(
            """async (name) => {
                localStorage.setItem(name, "written before the report");
                return (await (await load(name)).report("a")).id;
            }""", name,
        )  # fmt: skip
        chromium.kill()
        chromium.restart()
    tab = open_tab(chromium, sites[0].at())
    again = "async (name) => { const { id, repeated } = await (await load(name)).report('b'); return [id, repeated]; }"
    for name, made in seen.items():
        assert tab.evaluate(again, name) == [made, True]
    assert (
        tab.evaluate("(names) => names.map((name) => localStorage.getItem(name))", list(seen)) == [None] * 3
    )  # control


def test_a_page_and_a_worker_share_one_ledger(chromium, sites):
    tab = open_tab(chromium, sites[0].at())
    ids = tab.evaluate(
        """async () => {
            const worker = new Worker("/worker.js", { type: "module" });
            const theirs = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
            worker.postMessage(["/race-0.json", "a"]);
            const [own, other] = await Promise.all([(await load("/race-0.json")).report("b"), theirs]);
            return [own.id, other.id, own.repeated !== other.repeated];
        }"""
    )
    assert ids[0] == ids[1]
    assert ids[2]


def test_a_ledger_of_an_earlier_version_is_taken_over(chromium, sites):
    """The charges of a worker and of the earlier version both count, and the earlier version refuses from then on."""
    tab = open_tab(chromium, sites[0].at())
    digest = tab.evaluate("async () => (await load('/race-0.json')).manifest.digest")
    record = {
        "survey": json.loads(sites[0].documents["/race-0.json"])["survey"]["id"],
        "period": 0,
        "id": "ab" * 16,
        "report": 3,
    }
    charge = {"survey": digest, "period": 0, "day": 20_000, "epsilon": "0.05"}
    other = {"survey": "00" * 32, "period": 0, "day": 20_001, "epsilon": "1.5"}
    caps = {"perSurvey": "4", "perMonth": "7", "lifetime": "32"}
    earlier = {
        "format": "sfumato-device 1", "secret": "11" * 32, "caps": caps, "charges": [charge, other], "permanent": {},
        "reports": {digest: {"0": record}},
    }  # fmt: skip
    tab.evaluate(
        """async () => {
            const worker = new Worker("/worker.js", { type: "module" });
            await new Promise((resolve) => {
              worker.onmessage = resolve;
              worker.postMessage(["/race-1.json", "a"]);
            });
        }"""
    )
    tab.evaluate("(text) => localStorage.setItem('sfumato-device', text)", json.dumps(earlier))
    tab.reload()
    tab.wait_for_function("window.ready === true")
    made = tab.evaluate("async () => (await load('/race-0.json')).report('a')")
    assert (made["id"], made["repeated"], made["state"]) == ("ab" * 16, True, "handed")
    spent = tab.evaluate("async () => { const s = await load('/race-1.json'); return s.device.spent(s.manifest); }")
    assert 1.59 < float(spent["lifetime"]) < 1.6 + 1e-9
    assert (
        json.loads(tab.evaluate("localStorage.getItem('sfumato-device')"))["format"]
        == "sfumato-device moved to IndexedDB"
    )


@pytest.mark.parametrize(
    ("host", "broken", "code"),
    [
        ("insecure.test", "", "store-insecure"),
        ("localhost", "Object.defineProperty(navigator, 'locks', { value: undefined });", "store-locks"),
        ("localhost", "Object.defineProperty(window, 'indexedDB', { value: undefined });", "store-blocked"),
        ("localhost", "indexedDB.open = () => { throw new DOMException('', 'SecurityError'); };", "store-blocked"),
        (
            "localhost",
            "const real = IDBDatabase.prototype.transaction;"
            "IDBDatabase.prototype.transaction = function (table, mode) { return real.call(this, table, mode); };",
            "store-durability",
        ),
    ],
)  # fmt: skip
def test_without_a_durable_store_there_is_a_reason_and_no_report(shared_chromium, sites, host, broken, code):
    tab = open_tab(shared_chromium, sites[0].at(host=host))
    tab.evaluate(f"() => {{ {broken} }}")
    report = "new client.Device(new client.BrowserStore(`s${Math.random()}`)).caps({ lifetime: '3' })"
    assert tab.evaluate(f"() => code(async () => {report})") == code
    tab.close()


@pytest.fixture(scope="module")
def shared_chromium(playwright, tmp_path_factory):
    found = Chromium(playwright, tmp_path_factory.mktemp("profile"))
    yield found
    found.kill()


SEND = """async (name) => {
  const survey = await load(name);
  const { id } = await survey.report("a");
  return [id, await survey.send()];
}"""
NOTHING = {"sent": 0, "unconfirmed": 0, "refused": 0, "waiting": 0}


def test_reports_are_sent_across_origins_without_credentials_and_referrer(chromium, sites):
    pages, collector = sites
    chromium.context.add_cookies([{"name": "session", "value": "secret", "domain": "127.0.0.1", "path": "/"}])
    tab = open_tab(chromium, pages.at("/private/page?user=ann"))
    for name, headers, outcome in (
        ("cors", {"Access-Control-Allow-Origin": "*"}, "sent"),
        ("plain", {}, "unconfirmed"),
    ):
        collector.posted.clear()
        collector.answer = (204, headers)
        made, found = tab.evaluate(SEND, f"/sent-{name}.json")
        assert found == {**NOTHING, outcome: 1}
        assert {json.loads(body)["id"] for _, _, body in collector.posted} == {made}
        assert {body for _, _, body in collector.posted} == {collector.posted[0][2]}  # the same report, byte for byte
        for path, sent, _ in collector.posted:
            assert path == "/reports"
            assert not {"Cookie", "Referer", "Authorization"} & sent.keys()
            assert "ann" not in json.dumps(sent)
        assert tab.evaluate("async (name) => (await load(name)).send()", f"/sent-{name}.json") == NOTHING
    assert "session=secret" in tab.evaluate("document.cookie")  # there was something to leak


def test_reports_that_could_not_be_sent_survive_a_kill_and_are_the_same_report(chromium, sites):
    pages, collector = sites
    collector.posted.clear()
    tab = open_tab(chromium, pages.at())
    collector.answer = (503, {"Access-Control-Allow-Origin": "*"})
    made, found = tab.evaluate(SEND, "/sent-down.json")
    assert found == {**NOTHING, "waiting": 1}
    chromium.kill()
    chromium.restart()
    tab = open_tab(chromium, pages.at())
    tab.context.set_offline(True)
    assert tab.evaluate("() => client.sendWaiting(new client.Device(new client.BrowserStore()))") == {
        **NOTHING,
        "waiting": 1,
    }
    tab.context.set_offline(False)
    collector.answer = (204, {"Access-Control-Allow-Origin": "*"})
    assert tab.evaluate("() => client.sendWaiting(new client.Device(new client.BrowserStore()))") == {
        **NOTHING,
        "sent": 1,
    }
    assert {json.loads(body)["id"] for _, _, body in collector.posted} == {made}


def test_what_the_collector_says_about_a_report_is_kept(shared_chromium, sites):
    pages, collector = sites
    tab = open_tab(shared_chromium, pages.at())
    collector.answer = (
        429,
        {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After", "Retry-After": "600"},
    )
    assert tab.evaluate(SEND, "/sent-busy.json")[1] == {**NOTHING, "waiting": 1}
    collector.posted.clear()
    assert tab.evaluate("async () => (await load('/sent-busy.json')).send()") == {**NOTHING, "waiting": 1}
    assert collector.posted == []  # it waits as it was told
    collector.answer = (400, {"Access-Control-Allow-Origin": "*"})
    assert tab.evaluate(SEND, "/sent-refused.json")[1] == {**NOTHING, "refused": 1}
    assert tab.evaluate("async () => (await load('/sent-refused.json')).send()") == NOTHING
    tab.close()


def test_the_ledger_says_which_origin_it_belongs_to(shared_chromium, sites):
    """Two origins of one site have two ledgers: caps are per origin."""
    where = "async () => (await load('/race-0.json')).device.where()"
    name, other = (open_tab(shared_chromium, sites[0].at(host=host)) for host in ("localhost", "127.0.0.1"))
    assert name.evaluate(where)["origin"] == sites[0].at("", "localhost")
    assert other.evaluate(where)["origin"] == sites[0].at("", "127.0.0.1")
    report = "async () => (await (await load('/race-9.json')).report('a')).id"
    assert name.evaluate(report) != other.evaluate(report)


def test_the_examples_work(shared_chromium, sites):
    """A plain page, and a service worker that sends what a page made."""
    pages, collector = sites
    collector.answer = (204, {"Access-Control-Allow-Origin": "*"})
    collector.posted.clear()
    tab = shared_chromium.tab(pages.at(f"/examples/plain-page.html?survey=/sent-page.json&key={KEY.public_key}"))
    tab.get_by_label("b", exact=True).check()
    tab.get_by_role("button").click()
    tab.get_by_text("Thank you.").wait_for()
    assert len(collector.posted) == 1
    tab = open_tab(shared_chromium, pages.at())
    made = tab.evaluate(
        """async ([address, key]) => {
            const { answer } = await import("/examples/service-worker/page.js");
            return (await answer(new URL(address, location.href), key, "c")).id;
        }""", ["/sent-worker.json", KEY.public_key],
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while len(collector.posted) < 2 and time.monotonic() < deadline:
        tab.wait_for_timeout(100)
    assert {json.loads(body)["id"] for _, _, body in collector.posted[1:]} == {made}
