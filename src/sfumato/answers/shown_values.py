"""Values with their intervals as text, tables and HTML: what a prompt or a notebook shows of an answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.drawing.cards import make_card, make_interval_table, make_note
from sfumato.drawing.text_tables import write_text_table

MOST_TEXT_ROWS, MOST_HTML_ROWS = 30, 100

Row = Mapping[str, Any]
Ends = Mapping[str, tuple[float, float]]


def format_value(value: object, ends: tuple[float, float] | None) -> str:
    """A value and its interval as text, rounded to the digits that the noise leaves."""
    return " ".join(part for part in format_parts(value, ends) if part)


def format_parts(value: object, ends: tuple[float, float] | None) -> tuple[str, str]:
    """The same, apart. The interval is empty where there is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or ends is None:
        return "NULL" if value is None else str(value), ""
    low, high = ends
    digits = 0 if isinstance(value, int) else _count_decimals((high - low) / 2)
    if digits and all(round(number, digits) == number for number in (value, low, high)):  # such as ROUND(x, 1)
        digits = next(fewer for fewer in range(digits + 1) if all(round(n, fewer) == n for n in (value, low, high)))
    return f"{value:,.{digits}f}", f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def _count_decimals(margin: float) -> int:
    """The number of decimals that shows two digits of the margin."""
    return next((places for places in range(7) if margin >= 10.0 ** (1 - places)), 7) if margin > 0 else 0


def write_rows(columns: Sequence[str], rows: Sequence[Row], intervals: Sequence[Ends], notes: Sequence[str]) -> str:
    """The rows as a table of text, and notes below it."""
    shown = [
        [format_value(row[name], ends.get(name)) for name in columns]
        for row, ends in zip(rows[:MOST_TEXT_ROWS], intervals, strict=False)
    ]
    table = write_text_table(columns, shown, _find_numbers(columns, rows))
    return "\n".join([table, *_count_hidden(len(rows), MOST_TEXT_ROWS), *(note for note in notes if note)])


def write_rows_html(
    columns: Sequence[str], rows: Sequence[Row], intervals: Sequence[Ends], warnings: Sequence[str], note: str
) -> str:
    """The rows as a piece of HTML, flagged warnings, and a note."""
    shown = [
        [format_parts(row[name], ends.get(name)) for name in columns]
        for row, ends in zip(rows[:MOST_HTML_ROWS], intervals, strict=False)
    ]
    return make_card(
        "",
        make_interval_table(columns, shown, _find_numbers(columns, rows)),
        *map(make_note, _count_hidden(len(rows), MOST_HTML_ROWS)),
        *(make_note(f"Warning: {warning}", "flag") for warning in warnings),
        make_note(note),
    )


def _find_numbers(columns: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """The places of the columns that hold numbers."""
    return [
        index
        for index, name in enumerate(columns)
        if any(isinstance(row[name], (int, float)) and not isinstance(row[name], bool) for row in rows)
    ]


def _count_hidden(rows: int, most: int) -> list[str]:
    return [f"… and {rows - most:,} more rows: see .rows or .to_pandas()"] if rows > most else []
