"""How an object shows itself in a notebook: a heading, tables, a gauge and notes. No script and no network."""

from collections.abc import Sequence
from html import escape
from typing import Literal

from sfumato.drawing.pages import add_style

CARD_STYLE = """<style>
.sf-lab .sf-head{font-weight:600;margin:.2rem 0}
.sf-lab .sf-interval{color:var(--faint);font-size:.9em;white-space:nowrap}
.sf-lab .sf-flag{border-left:3px solid var(--naive);padding-left:.6rem}
.sf-lab .sf-gauge{background:var(--grid);border-radius:4px;height:.6rem;max-width:24rem;overflow:hidden;margin:.3rem 0}
.sf-lab .sf-gauge div{background:var(--protected);height:100%}
.sf-lab pre.sf-sql{white-space:pre-wrap;font-family:ui-monospace,monospace;font-size:.9em}
.sf-lab pre.sf-sql{background:none;color:var(--ink);margin:.4rem 0}
.sf-lab details{margin:.3rem 0}.sf-lab summary{cursor:pointer}
</style>"""


def make_card(title: str, *pieces: str) -> str:
    """A piece of HTML with its style. The pieces are HTML; the title is text."""
    heading = f'<div class="sf-head">{escape(title)}</div>' if title else ""
    return add_style(f"{CARD_STYLE}{heading}{''.join(pieces)}")


def make_note(text: str, kind: Literal["plain", "faint", "flag"] = "faint") -> str:
    """A paragraph: plain, faint, or flagged as a warning."""
    css = {"plain": "", "faint": ' class="sf-note"', "flag": ' class="sf-flag"'}[kind]
    return f"<p{css}>{escape(text)}</p>" if text else ""


def make_gauge(share: float, words: str) -> str:
    """A bar that is filled by a share between 0 and 1, with its words."""
    percent = 100 * min(1.0, max(0.0, share))
    bar = (
        f'<div class="sf-gauge" role="img" aria-label="{escape(words)}"><div style="width:{percent:.1f}%"></div></div>'
    )
    return f"{bar}{make_note(words)}"


def make_code(text: str) -> str:
    """SQL, as it is."""
    return f'<pre class="sf-sql">{escape(text)}</pre>'


def make_details(summary: str, inside: str) -> str:
    """What opens when its summary is clicked. `inside` is HTML."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def make_interval_table(
    headings: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]], numbers: Sequence[int]
) -> str:
    """A table of texts, each with its interval. The columns with the indexes `numbers` are aligned to the right."""
    css = [' class="sf-number"' if index in numbers else "" for index in range(len(headings))]
    head = "".join(f"<th{kind}>{escape(text)}</th>" for kind, text in zip(css, headings, strict=True))
    body = []
    for row in rows:
        cells = "".join(
            f"<td{kind}>{escape(text)}{_make_ends(ends)}</td>" for kind, (text, ends) in zip(css, row, strict=True)
        )
        body.append(f"<tr>{cells}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="sf-scroll">{table}</div>'


def _make_ends(ends: str) -> str:
    return f' <span class="sf-interval">{escape(ends)}</span>' if ends else ""
