"""Figures and pages of the lab are self-contained, have text alternatives, and follow light and dark mode."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Band, Bars, Dots, Label, Line, Panel, Rule, Strokes
from sfumato.drawing.pages import make_page, make_table
from sfumato.drawing.svg import choose_ticks

EVERY_MARK = (
    Line(((0, 0), (1, 1)), "naive", "a line"),
    Dots(((0.5, 0.5),), "protected", "dots", shape="cross"),
    Dots(((0.5, 0.5),), "protected", "squares", shape="square"),
    Bars(((0, 0.5, 0.7),), "first", "bars"),
    Band(((0, 0.1, 0.2), (1, 0.3, 0.4)), "second", "a band"),
    Strokes((0.1, 0.9), 0, 1, "naive", "strokes"),
    Rule("limit", y=0.7, text="a limit <&>"),
    Rule("limit", x=0.7, text="a place"),
    Label(0.5, 0.5, "a label"),
)
PANEL = Panel("A <title> & more", "What it shows.", Axis("across", 0, 1), Axis("up", 0, 1), EVERY_MARK)
FIGURE = Figure("A figure", (PANEL, PANEL, PANEL), "A caption.")
OUTSIDE = re.compile(r"<script|<link|@import|src=|url\(|https?://(?!www\.w3\.org/2000/svg)")


def check_self_contained(text):
    assert not OUTSIDE.search(text)
    assert "prefers-color-scheme:dark" in text


def test_an_svg_file_is_well_formed_and_self_contained():
    text = FIGURE.svg()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "A figure"
    assert "What it shows." in root.find("{http://www.w3.org/2000/svg}desc").text
    check_self_contained(text)


def test_a_page_is_self_contained_and_fits_a_phone(tmp_path):
    FIGURE.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    check_self_contained(text)
    assert 'name="viewport" content="width=device-width' in text
    assert text.count('role="img"') == 3
    assert "A caption." in text
    FIGURE.save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text() == FIGURE.svg()


def test_a_notebook_gets_the_style_too():
    check_self_contained(FIGURE._repr_html_())


@pytest.mark.parametrize("outside", ['<script src="x">', "@import 'x'", 'href="https://example.org"', "url(x)"])
def test_the_search_for_outside_files_can_find_something(outside):
    with pytest.raises(AssertionError):
        check_self_contained(make_page("x", outside))


def test_texts_are_escaped():
    assert "<b>" not in make_table(["<b>"], [["<b>"]])
    assert "<title> &" not in FIGURE.svg()


def test_ticks_are_round_numbers():
    assert [text for _, text in choose_ticks(Axis("", 0, 1))] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [text for _, text in choose_ticks(Axis("", -3, 7000))] == ["0", "2,000", "4,000", "6,000"]
    assert [text for _, text in choose_ticks(Axis("", 1, 1000, log=True))] == ["1", "10", "100", "1,000"]
    assert choose_ticks(Axis("", 0, 1, ((0.5, "half"),))) == ((0.5, "half"),)
