"""A notebook has a style of its own for tables. In it, words of our cards stay left and numbers right."""

import os

from playwright.sync_api import sync_playwright
from real_chromium import find_chromium

from sfumato.drawing.cards import make_card
from sfumato.drawing.pages import make_table

NOTEBOOK = """<style>
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th {padding: 0.5em}
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td, :not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon th {
  text-align: right}
.rendered_html td, .rendered_html th {text-align: right}
</style>"""  # as JupyterLab and the classic notebook have it


def test_cells_are_aligned_as_we_say():
    card = make_card("Columns", make_table(("column", "n"), [["age", "3"]], [1]))
    with sync_playwright() as player:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = player.chromium.launch(executable_path=find_chromium(), args=root)
        page = browser.new_page()
        page.set_content(f'{NOTEBOOK}<div class="jp-RenderedHTMLCommon rendered_html">{card}</div>')
        found = page.eval_on_selector_all("th, td", "cells => cells.map(cell => getComputedStyle(cell).textAlign)")
        browser.close()
    assert found == ["left", "right", "left", "right"]
