"""The pages of `sfumato serve --demo` in a real Chromium: an owner grants, an analyst previews, asks and is refused."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from urllib.request import urlopen

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from real_chromium import Chromium
from served_clinic import make_clinic
from test_survey_pages import find_port

from sfumato.service.api import make_app
from sfumato.service.asking import Asking
from sfumato.service.service_settings import ServiceSettings

WIDTHS = (360, 768, 1280)


class Demo:
    """`sfumato serve --demo`, as a process of its own."""

    def __init__(self):
        self.port = find_port()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "serve", "--demo", "--port", str(self.port)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        self.links = {}
        while len(self.links) < 2:
            line = self._process.stdout.readline()
            assert line, "the demo ended"
            found = re.search(r"(Ann|Olga).*(http\S+/signin/\S+)", line)
            if found:
                self.links[found[1]] = found[2]
        deadline = time.monotonic() + 90
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/v1/health"):
                    return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def at(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def stop(self):
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(30)
        self._process.stdout.close()


@pytest.fixture
def demo():
    found = Demo()
    yield found
    found.stop()


@pytest.fixture
def chromium(tmp_path):
    with sync_playwright() as playwright:
        found = Chromium(playwright, tmp_path / "profile")
        yield found
        found.kill()


def sign_in(demo, browser, who):
    page = browser.new_page()
    page.goto(demo.links[who])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("h1:has-text('Your datasets')")
    return page


def check_page(page, folder, name):
    """Nothing overflows at three widths, and axe finds no serious fault, in both themes."""
    page.wait_for_load_state("load")  # a text can be there before the style sheet
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.evaluate("Promise.all([...document.images].map((image) => image.decode()))")  # a chart has two themes
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 850})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            page.screenshot(path=folder / f"{name}-{theme}-{width}.png", full_page=True)
        found = Axe().run(page).response["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], (name, theme)


def test_a_newcomer_asks_and_an_owner_grants(demo, chromium, tmp_path):
    page = sign_in(demo, chromium.context, "Ann")
    faults = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    check_page(page, tmp_path, "home")
    page.get_by_role("link", name="Ask a question").click()
    page.wait_for_selector("#preview dd")
    assert page.locator(".editor pre .keyword").first.inner_text() == "SELECT"  # it is coloured
    check_page(page, tmp_path, "ask")

    page.fill("#sql", "SELECT COUNT(*) AS n FROM pat")  # completion by keyboard
    page.locator("#sql").press("Control+Space")
    page.wait_for_selector(".completions:not([hidden])")
    page.locator("#sql").press("Enter")
    assert page.input_value("#sql") == "SELECT COUNT(*) AS n FROM patients"
    page.fill("#epsilon", "0.25")
    page.wait_for_selector("button:has-text('Spend ε = 0.25 and ask')")  # the preview follows what is typed
    page.locator("#sql").press("Control+Enter")
    page.wait_for_selector("h1:has-text('Answer')")
    assert "Cost: ε = 0.25." in page.inner_text("main")
    assert page.locator("img.chart").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    address = page.url
    check_page(page, tmp_path, "answer")

    page.goto(demo.at("/datasets/clinic/ask"))
    page.fill("#sql", "SELECT COUNT(*) AS n FROM patients")
    page.fill("#epsilon", "0.25")
    page.wait_for_selector("button:has-text('asked before, free')")
    page.fill("#sql", "SELECT SUM(pain) AS s FROM patients")
    page.fill("#epsilon", "0.5")
    page.wait_for_selector("button:has-text('Spend ε = 0.5 and ask')")
    page.get_by_role("button", name="Spend").click()
    page.wait_for_selector("h1:has-text('Answer')")
    page.goto(demo.at("/datasets/clinic/ask"))
    page.fill("#epsilon", "0.4")  # 0.25 is left of her grant
    page.wait_for_selector("text=This costs more than is left.")
    assert page.locator("button[value=ask]").is_disabled()
    page.goto(demo.at("/datasets/clinic"))
    check_page(page, tmp_path, "dataset")

    other = chromium.context.browser.new_context()
    owner = sign_in(demo, other, "Olga")
    owner.goto(demo.at("/datasets/clinic"))
    assert "Chain verified" in owner.inner_text("main")
    owner.fill("input[name=epsilon]", "2")
    owner.get_by_role("button", name="Grant", exact=True).click()
    owner.wait_for_selector("text=ann may spend epsilon = 2.")
    check_page(owner, tmp_path, "owner")
    owner.goto(address)
    assert "asked by ann" in owner.inner_text("main")
    page.goto(demo.at("/datasets/clinic/ask"))
    page.fill("#epsilon", "0.4")
    page.wait_for_selector("button:has-text('Spend ε = 0.4 and ask')")  # the new grant holds at once
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("h1:has-text('Sign in')")
    check_page(page, tmp_path, "signin")
    assert faults == []


def test_the_pages_work_without_scripts(demo, chromium, tmp_path):
    context = chromium.context.browser.new_context(java_script_enabled=False)
    page = sign_in(demo, context, "Ann")
    page.goto(demo.at("/datasets/clinic/ask"))
    page.fill("#epsilon", "0.3")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Spend ε = 0.3 and ask").click()
    page.wait_for_selector("h1:has-text('Answer')")


def watch(page, faults):
    """Collect what a browser complains about: blocked scripts and styles, failed requests, errors of scripts."""
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))


def test_an_owner_registers_a_dataset_and_builds_a_question(demo, chromium, tmp_path):
    page, faults = sign_in(demo, chromium.context, "Olga"), []
    watch(page, faults)
    rows = "\n".join(f"{i % 80},{20 + i % 60},{'Rome' if i % 3 else 'Oslo'},{i % 500}.5" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"pid,age,city,cost\n{rows}\n")
    page.get_by_role("link", name="Register").click()
    check_page(page, tmp_path, "register")
    page.fill("#dataset", "hospital")
    page.fill("#table", "visits")
    page.get_by_role("button", name="Begin").click()
    page.set_input_files("#file", str(tmp_path / "visits.csv"))
    check_page(page, tmp_path, "register-source")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.select_option("#unit", "pid")
    page.fill("#max_rows", "5")
    check_page(page, tmp_path, "register-people")
    page.get_by_role("button", name="Continue").click()
    for place, kind, low, high in ((1, "integer", "0", "120"), (3, "real", "0", "300")):
        page.select_option(f"[name=kind-{place}]", kind)
        page.fill(f"[name=lower-{place}]", low)
        page.fill(f"[name=upper-{place}]", high)
    page.select_option("[name=kind-2]", "category")
    page.fill("[name=values-2]", "Rome, Oslo")
    page.get_by_role("button", name="Load and show the report").click()
    page.wait_for_selector("text=400 records read")
    assert page.input_value("[name=values-2]") == "Rome, Oslo"
    check_page(page, tmp_path, "register-columns")
    page.get_by_role("button", name="Load and continue").click()
    page.wait_for_selector("#epsilon")
    page.wait_for_load_state("load")  # before that, no script hears what is typed
    page.fill("#epsilon", "2")
    page.wait_for_selector("text=at most 88.1")  # the odds follow what is typed
    check_page(page, tmp_path, "register-budget")
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("pre:has-text('max_rows_per_unit = 5')")
    check_page(page, tmp_path, "register-review")
    page.get_by_role("button", name="Register hospital").click()
    page.wait_for_selector("text=Registered.")
    page.get_by_role("link", name="Ask a question").click()
    page.wait_for_selector(".builder:not([hidden])")
    page.select_option("[name=build-what]", "AVG cost")
    page.select_option("[name=build-key]", "city")
    page.select_option("[name=build-where]", "age")
    page.select_option("[name=build-compare]", ">")
    page.fill("[name=build-value]", "40")
    written = "SELECT city, COUNT(*) AS n, AVG(cost) AS mean\nFROM visits\nWHERE age > 40\nGROUP BY city"
    assert page.input_value("#sql") == written
    page.fill("#epsilon", "0.3")
    page.get_by_role("button", name="Spend ε = 0.3 and ask").click()
    page.wait_for_selector("h1:has-text('Answer')")
    check_page(page, tmp_path, "answer-built")
    assert faults == []


def test_an_owner_makes_a_survey_and_a_respondent_answers_it(demo, chromium, tmp_path):
    page, faults = sign_in(demo, chromium.context, "Olga"), []
    watch(page, faults)
    page.get_by_role("link", name="Surveys").click()
    page.get_by_role("link", name="New survey").click()
    page.fill("#question", "Do you have a pet?")
    page.fill("#labels", "none\na cat\na dog")
    page.fill("[name=minimum]", "1")
    page.get_by_role("button", name="Compare mechanisms").click()
    page.wait_for_selector("h2:has-text('Mechanisms')")
    check_page(page, tmp_path, "survey-new")
    page.get_by_role("button", name="Open the survey").click()
    page.wait_for_selector("text=The survey is open.")
    check_page(page, tmp_path, "survey")
    address = page.inner_text("main pre")
    person = chromium.context.browser.new_context().new_page()
    watch(person, faults)
    person.goto(address)
    person.wait_for_selector("#answer:not([hidden])")
    person.get_by_label("a cat").check()
    person.get_by_role("button", name="Randomise my answer").click()
    person.get_by_role("button", name="Send this report").click()
    person.wait_for_selector("text=Your report was sent.")
    check_page(person, tmp_path, "respondent")
    assert person.context.cookies() == []
    page.reload()
    page.get_by_role("button", name="Publish").click()
    page.wait_for_selector("text=answered “a cat”")
    check_page(page, tmp_path, "survey-results")
    assert faults == []


def test_the_lab_has_a_slider_and_attacks_in_dark_and_light(demo, chromium, tmp_path):
    page, faults = sign_in(demo, chromium.context, "Ann"), []
    watch(page, faults)
    page.get_by_role("link", name="Lab").click()
    assert page.locator("#curves").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    check_page(page, tmp_path, "lab")
    page.locator("#epsilon").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-fact=ratio]:has-text('3.67')")  # e to the 1.3
    page.get_by_role("button", name="Run differencing").click()
    page.wait_for_selector("h2:has-text('How often it succeeds (ε = 1.3)')")
    assert page.locator("img.figure").evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    check_page(page, tmp_path, "attack")
    assert faults == []


@contextmanager
def serve_here(clinic):
    """A service in this process, where a question becomes a job at once. Gives its address and its application."""
    app, port = make_app([clinic.folder], clinic.accounts, ServiceSettings((), "", wait_seconds=0.1)), find_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}", app
    finally:
        server.should_exit = True
        thread.join(30)


def test_a_long_question_has_a_page_until_it_is_answered_or_cancelled(chromium, tmp_path, monkeypatch):
    go_on, faults, answer = threading.Event(), [], Asking.answer

    def wait(*given):
        go_on.wait(60)
        return answer(*given)

    monkeypatch.setattr(Asking, "answer", wait)
    with serve_here(make_clinic(tmp_path / "clinic")) as (address, app):
        page = chromium.context.browser.new_context().new_page()
        watch(page, faults)
        page.goto(f"{address}/signin/{app.state.sessions.make_link('ann')}")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("h1:has-text('Your datasets')")
        for outcome in ("cancelled", "answered"):
            page.goto(f"{address}/datasets/clinic/ask")
            page.fill("#epsilon", "0.1")
            page.get_by_role("button", name="Spend ε = 0.1 and ask").click()
            page.wait_for_selector("[data-job]")
            if outcome == "cancelled":
                check_page(page, tmp_path, "job-running")
                page.get_by_role("button", name="Cancel").click()
                page.wait_for_selector("text=Cancelling does not undo a charge")
                check_page(page, tmp_path, "job-cancelled")
            else:
                go_on.set()
                page.wait_for_selector("h1:has-text('Answer')")  # the page follows its job
        go_on.set()
    assert faults == []
