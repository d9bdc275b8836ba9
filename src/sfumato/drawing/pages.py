"""Self-contained HTML: panels, tables and whole pages. No script, no font file, no network."""

from collections.abc import Sequence
from html import escape

from sfumato.drawing.marks import Panel
from sfumato.drawing.svg import STYLE, draw_panel

PAGE_STYLE = """
:root{color-scheme:light dark}
body{margin:0}
main.sf-lab{max-width:62rem;margin:0 auto;padding:1rem}
html:has(main.sf-lab),body:has(main.sf-lab){background:#fff}
@media (prefers-color-scheme:dark){html:has(main.sf-lab),body:has(main.sf-lab){background:#14181d}}
"""
# A notebook aligns the cells of tables to the right: rules for cells name the class twice, so that they win.
PIECE_STYLE = """
.sf-lab{color:var(--ink);line-height:1.5;overflow-wrap:break-word}
.sf-lab h1{font-size:1.5rem;line-height:1.25;margin:.4rem 0}
.sf-lab h2{font-size:1.15rem;margin:1.4rem 0 .3rem}
.sf-lab p{max-width:44rem;margin:.5rem 0}
.sf-lab a{color:var(--protected)}
.sf-lab .sf-panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem;
margin:1rem 0}
.sf-lab .sf-panel{width:100%;max-width:32rem;height:auto;display:block;border:1px solid var(--grid);border-radius:6px}
.sf-lab .sf-caption,.sf-lab .sf-note{color:var(--faint);font-size:.9rem}
.sf-lab .sf-scroll{overflow-x:auto}
.sf-lab table{border-collapse:collapse;margin:.8rem 0;color:inherit}
.sf-lab.sf-lab table th,.sf-lab.sf-lab table td{padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;
background:none;border-bottom:1px solid var(--grid)}
.sf-lab.sf-lab table .sf-number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.sf-lab.sf-lab table th.sf-number{white-space:normal}
"""


def place_panels(panels: Sequence[Panel], caption: str = "") -> str:
    """Panels side by side, or below each other on a narrow screen, and a caption below."""
    drawn = "".join(draw_panel(panel) for panel in panels)
    words = f'<figcaption class="sf-caption">{escape(caption)}</figcaption>' if caption else ""
    return f'<figure class="sf-figure" style="margin:0"><div class="sf-panels">{drawn}</div>{words}</figure>'


def make_table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of texts. The columns with the indexes `numbers` are aligned to the right."""
    head = "".join(
        f'<th class="sf-number">{escape(heading)}</th>' if index in numbers else f"<th>{escape(heading)}</th>"
        for index, heading in enumerate(headings)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="sf-number">{escape(cell)}</td>' if index in numbers else f"<td>{escape(cell)}</td>"
            for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="sf-scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def add_style(piece: str) -> str:
    """A piece of HTML with its style, for a notebook. It follows the reader's light or dark mode."""
    box = "background:var(--page);padding:.5rem 1rem;border-radius:6px"
    return f'<div class="sf-lab" style="{box}"><style>{STYLE}{PIECE_STYLE}</style>{piece}</div>'


def make_page(title: str, piece: str) -> str:
    """A whole HTML page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{PIECE_STYLE}{PAGE_STYLE}</style></head>"
        f'<body><main class="sf-lab">{piece}</main></body></html>\n'
    )
