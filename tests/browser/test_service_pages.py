"""The pages of `sfumato serve --demo` in a real Chromium: an owner grants, an analyst previews, asks and is refused."""

import os
import re
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from real_chromium import Chromium
from test_survey_pages import find_port

WIDTHS = (390, 800, 1280)


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
    """Nothing overflows at three widths, and axe finds no serious fault."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 850})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], name


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
