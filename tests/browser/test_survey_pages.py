"""One command serves a survey. A real Chromium answers it in two tabs, is killed and starts again; all agree."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from make_vectors import FixedKey
from playwright.sync_api import sync_playwright
from real_chromium import Chromium

from sfumato.local.collect.collector import Collector
from sfumato.local.survey.new_survey import new_survey

KEY = FixedKey()


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def playwright():
    with sync_playwright() as found:
        yield found


class Server:
    """`sfumato survey serve`, as a process of its own."""

    def __init__(self, folder, *surveys, workers=1):
        self.port = find_port()
        self.folder = folder
        command = [sys.executable, "-m", "sfumato", "survey", "serve", *map(str, surveys), "--port", str(self.port)]
        quiet = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            [*command, "--state", str(folder / "state"), "--workers", str(workers), "--rate", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=quiet, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 90
        while True:
            try:
                with urlopen(self.at("/health")):
                    break
            except OSError:
                assert self._process.poll() is None, self._process.stdout.read()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        self.token = (folder / "state" / "owner-token").read_text()

    def at(self, path):
        return f"http://localhost:{self.port}{path}"

    def read(self, path, body=None):
        request = Request(self.at(path), body, {"Authorization": f"Bearer {self.token}"})
        with urlopen(request) as answer:
            return answer.read().decode()

    def stop(self):
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(30)
        self._process.stdout.close()


def make(tmp_path, name="pet", **changes):
    options = {"labels": ["no", "yes"], "epsilon": 1, "minimum_batch": 3, **changes}
    manifest = new_survey("Do you have a pet?", key=KEY, **options).manifest
    path = tmp_path / f"{name}.json"
    path.write_bytes(manifest.to_bytes())
    return path, manifest


def wait_until_it_says(tab, words):
    tab.locator("#status", has_text=words).wait_for()


def answer_in(tab, label):
    tab.wait_for_selector("#answer:not([hidden])")
    tab.get_by_label(label, exact=True).check()
    tab.get_by_role("button", name="Randomise my answer").click()
    tab.wait_for_selector("#made:not([hidden])")
    return json.loads(tab.inner_text("#line"))


def test_two_tabs_a_kill_and_a_restart_agree_with_the_collector_and_the_result(playwright, tmp_path):
    path, manifest = make(tmp_path)
    server = Server(tmp_path, path)
    chromium = Chromium(playwright, tmp_path / "profile")
    try:
        page = server.at(f"/s/{manifest.id}")
        first, second = chromium.tab(page), chromium.tab(page)
        made = answer_in(first, "yes")
        assert answer_in(second, "no") == made  # the second tab gets the report of the first
        assert set(made) == {"survey", "period", "id", "report"}
        assert first.inner_text("#cost") == "Making it cost ε = 1 of your privacy budget on this site."
        assert first.inner_text("#left").endswith("ε = 0 is left.")
        chromium.kill()
        chromium.restart()
        third = chromium.tab(page)
        third.wait_for_selector("#made:not([hidden])")
        assert json.loads(third.inner_text("#line")) == made
        third.get_by_role("button", name="Send this report").click()
        wait_until_it_says(third, "Your report was sent")
        spent = third.evaluate(
            """async () => {
                const { Survey, Device, BrowserStore } = await import("/static/sfumato-survey.js");
                const bytes = new Uint8Array(await (await fetch(location.pathname + "/survey.json")).arrayBuffer());
                const survey = await Survey.load(bytes);
                return survey.device.spent(survey.manifest);
            }"""
        )
        assert spent["lifetime"] == str(manifest.price)
        collector = Collector(manifest, tmp_path / "state" / f"{manifest.id}.db")
        assert collector.count_received().to_dict() == {
            "accepted": 1, "duplicate": 0, "malformed": 0, "foreign": 0, "conflict": 0, "untimely": 0, "withdrawn": 0,
        }  # fmt: skip
        others = "\n".join(json.dumps({**made, "id": f"{number:032x}", "report": 0}) for number in range(2))
        server.read("/reports", others.encode())
        server.read("/owner/publish", f"survey={manifest.id}".encode())
        assert json.loads(server.read("/owner/results.json"))["people"] == 3
        (_, tally) = collector.select_tally(publish=False)
        assert tally.people == 3
        assert int(tally.counts[1]) == made["report"]  # krr of two: the only report that may be 1
        third.get_by_role("button", name="Withdraw my report").click()
        wait_until_it_says(third, "not withdrawn")
    finally:
        chromium.kill()
        server.stop()


def test_a_person_withdraws_with_the_keyboard_alone_and_on_a_phone(playwright, tmp_path):
    pet, manifest = make(tmp_path)
    hours, numbers = make(tmp_path, "hours", labels=None, bounds=(0, 24))
    many, questions = make(tmp_path, "many", labels=None, questions=["I smoke", "I drink"])
    server = Server(tmp_path, pet, hours, many, workers=2)
    chromium = Chromium(playwright, tmp_path / "profile")
    try:
        tab = chromium.context.new_page()
        faults = []
        tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        tab.goto(server.at(f"/s/{manifest.id}"))
        tab.set_viewport_size({"width": 360, "height": 740})
        tab.wait_for_selector("#answer:not([hidden])")
        for key in ("Tab", "ArrowDown", "Tab", "Enter"):
            tab.keyboard.press(key)
        tab.wait_for_selector("#made:not([hidden])")
        assert tab.evaluate("document.activeElement.id") == "made"
        for key in ("Tab", "Tab", "Enter"):  # the report, then the button
            tab.keyboard.press(key)
        wait_until_it_says(tab, "Your report was sent")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert Axe().run(tab).response["violations"] == []
        tab.get_by_role("button", name="Withdraw my report").click()
        wait_until_it_says(tab, "Your report was withdrawn")
        collector = Collector(manifest, tmp_path / "state" / f"{manifest.id}.db")
        assert collector.periods() == {}
        tab.goto(server.at(f"/s/{numbers.id}"))
        tab.get_by_label("A number from 0 to 24").fill("7.5")
        tab.get_by_role("button", name="Randomise my answer").click()
        tab.wait_for_selector("#made:not([hidden])")
        tab.get_by_role("button", name="Do not send it").click()
        wait_until_it_says(tab, "Your report was withdrawn")
        tab.goto(server.at(f"/s/{questions.id}"))
        tab.get_by_label("I drink").check()
        tab.get_by_role("button", name="Randomise my answer").click()
        tab.wait_for_selector("#made:not([hidden])")
        assert json.loads(tab.inner_text("#line"))["survey"] == questions.id
        for place in (f"/s/{manifest.id}/manifest", f"/owner?token={server.token}"):
            tab.goto(server.at(place))
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
            assert Axe().run(tab).response["violations"] == [], place
        assert faults == []
    finally:
        chromium.kill()
        server.stop()


def test_the_bundle_of_the_pages_is_built_from_the_client(tmp_path):
    from test_javascript import CLIENT, run

    done = run("build.mjs", str(tmp_path / "built.js"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ bytes, \d+ compressed\nintegrity=\"sha384-[A-Za-z0-9+/]{64}\"", done.stdout)
    static = Path(CLIENT).parents[1] / "src" / "sfumato" / "service" / "static" / "sfumato-survey.js"
    assert static.read_bytes() == (tmp_path / "built.js").read_bytes(), f"run: node clients/js/build.mjs {static}"


def test_a_person_reports_a_word_and_sees_what_is_left_of_it(playwright, tmp_path):
    path, manifest = make(
        tmp_path, "word", labels=None, words=6, alphabet="abcdefghijklmnopqrstuvwxyz", minimum_batch=1
    )
    server = Server(tmp_path, path)
    chromium = Chromium(playwright, tmp_path / "profile")
    try:
        tab = chromium.tab(server.at(f"/s/{manifest.id}"))
        tab.set_viewport_size({"width": 360, "height": 640})
        field = tab.get_by_label("Your word")
        field.wait_for()
        field.fill(" Pizzeria ")
        assert tab.inner_text("#kept") == "This word will be randomised: “pizzer”"
        field.fill("pizza!")
        assert not tab.evaluate("() => document.querySelector('#answer').checkValidity()")
        field.fill("pizza")
        assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#made:not([hidden])")
        made = json.loads(tab.inner_text("#line"))
        assert len(made["report"]) == 2 * manifest.table.form.bytes
        assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        tab.get_by_role("button", name="Send this report").click()
        wait_until_it_says(tab, "Your report was sent")
        collector = Collector(manifest, tmp_path / "state" / f"{manifest.id}.db")
        assert collector.count_received().accepted == 1
        lines = [
            json.dumps({**made, "id": f"{number:032x}", "report": report})
            for number, report in enumerate(manifest.table.form.encode(manifest.table.randomise(["pizza"] * 4000)))
        ]
        server.read("/reports", "\n".join(lines).encode())
        server.read("/owner/publish", f"survey={manifest.id}".encode())
        page = server.read("/owner")
        assert "answered “pizza”" in page
        assert "all together" in page
        assert json.loads(server.read("/owner/results.json"))["estimates"][0]["label"] == "pizza"
    finally:
        chromium.kill()
        server.stop()


def test_a_survey_with_a_delta_needs_the_persons_permission(playwright, tmp_path):
    path, manifest = make(
        tmp_path, "hours", labels=None, bounds=(0, 24), mechanism="gaussian", epsilon=2, delta="1e-4", minimum_batch=1
    )
    server = Server(tmp_path, path)
    chromium = Chromium(playwright, tmp_path / "profile")
    try:
        tab = chromium.tab(server.at(f"/s/{manifest.id}"))
        tab.get_by_label("A number from 0 to 24").fill("8")
        assert "With a probability of up to δ = 0.0001," in tab.inner_text(".lead")
        tab.get_by_role("button", name="Randomise my answer").click()
        wait_until_it_says(tab, "your caps do not allow")
        tab.get_by_role("button", name="Allow a probability of up to δ = 0.0001 for one answer to this survey").click()
        wait_until_it_says(tab, "You can answer now")
        tab.get_by_role("button", name="Randomise my answer").click()
        tab.wait_for_selector("#made:not([hidden])")
        assert 0 <= json.loads(tab.inner_text("#line"))["report"] < manifest.table.form.count
        assert tab.locator("#allow").is_hidden()
        assert tab.inner_text("#cost") == "Making it cost ε = 2 and δ = 0.0001 of your privacy budget on this site."
        assert tab.inner_text("#left").startswith("One answer costs ε = 2 and δ = 0.0001.")
        tab.get_by_role("button", name="Send this report").click()
        wait_until_it_says(tab, "Your report was sent")
        server.read("/owner/publish", f"survey={manifest.id}".encode())
        page = server.read("/owner")
        assert "and a δ of 0.0000999" in page
        assert "no smaller loss than the local one" in page
    finally:
        chromium.kill()
        server.stop()


def test_one_of_many_labels_is_typed_and_picked(playwright, tmp_path):
    labels = [f"site {number}" for number in range(100_000)]
    path, manifest = make(tmp_path, "many", labels=labels, minimum_batch=1)
    server = Server(tmp_path, path)
    chromium = Chromium(playwright, tmp_path / "profile")
    try:
        tab = chromium.tab(server.at(f"/s/{manifest.id}"))
        tab.set_viewport_size({"width": 360, "height": 640})
        field = tab.get_by_label("Your answer, one of 100,000")
        field.wait_for()
        assert tab.locator("#choices option").count() == 50
        field.fill("site 9999")
        assert tab.locator("#choices option").first.get_attribute("value") == "site 9999"
        field.fill("site 999999")
        assert not tab.evaluate("() => document.querySelector('#answer').checkValidity()")
        field.fill("site 99999")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#made:not([hidden])")
        report = json.loads(tab.inner_text("#line"))["report"]
        assert manifest.table.form.decode([report])[1] == 0
    finally:
        chromium.kill()
        server.stop()
