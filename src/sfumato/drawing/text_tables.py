"""Tables and gauges as plain text, for a Python prompt."""

import unicodedata
from collections.abc import Sequence

GAUGE = 24  # letters


def measure_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def write_text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned columns. Those with the indexes `right` are aligned to the right. Control characters are replaced."""
    lines = [[clean_text(cell) for cell in line] for line in (headings, *rows)]
    widths = [max(measure_width(line[index]) for line in lines) for index in range(len(headings))]
    written = []
    for line in lines:
        cells = []
        for index, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - measure_width(cell))
            cells.append(space + cell if index in right else cell + space)
        written.append("  ".join(cells).rstrip())
    return "\n".join(written)


def write_text_gauge(share: float) -> str:
    """A bar that is filled by a share between 0 and 1. Anything above 0 shows."""
    filled = min(GAUGE, max(round(GAUGE * share), int(share > 0)))
    return f"[{'#' * filled}{'.' * (GAUGE - filled)}]"


def clean_text(text: str) -> str:
    """A text in one line, without control characters."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text.replace("\n", " "))
