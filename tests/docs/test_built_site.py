"""The whole site builds in strict mode, its links lead somewhere, and a browser without a network shows it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from check_site import find_troubles
from playwright.sync_api import sync_playwright
from real_chromium import find_chromium

ROOT = Path(__file__).parents[2]
LOOKED_AT = (
    "index.html", "start.html", "tutorials/owner.html", "examples/lessons/01_definition.html",
    "reference/commands.html", "reference/python/asking.html", "how-to/migrate/opendp.html", "sql.html",
)  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", place]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return place


def test_links_lead_somewhere_and_nothing_comes_from_elsewhere(site):
    assert find_troubles(site) == []
    assert len(list(site.rglob("*.html"))) > 150


def test_a_browser_without_a_network_shows_the_site(site):
    """As files, in a narrow and in a wide window: no request leaves, no page is wider than the window, search works."""
    with sync_playwright() as player:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = player.chromium.launch(executable_path=find_chromium(), args=root)
        for width, scheme in ((390, "dark"), (1280, "light")):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
            page, asked, errors = context.new_page(), [], []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            for name in LOOKED_AT:
                page.goto((site / name).as_uri())
                page.wait_for_selector("article h1")
                wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert page.evaluate(wide) <= 0, name
            assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
            assert errors == []
        page.locator(".md-search__input").click()
        page.keyboard.type("contribution bound", delay=20)
        page.wait_for_selector(".md-search-result__item")
        browser.close()
