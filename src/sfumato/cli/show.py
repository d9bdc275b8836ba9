# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""Print results: colour and tables at a terminal, plain aligned text in a pipe, JSON with --json."""

import json
import math
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from sfumato.json_values import replace_infinite
from sfumato.shown_amounts import describe_weakness

if TYPE_CHECKING:
    from sfumato.answering.preview import Preview
    from sfumato.answers.answer import Answer

PATIENCE = 1.0  # seconds before a spinner
BAR = 32  # letters of a drawn interval
WORD = re.compile(r"\[[^\]]*\]|\S+")  # an interval is one word

AsJson = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]


def to_stdout() -> Console:
    return Console(highlight=False)


def to_stderr() -> Console:
    return Console(stderr=True, highlight=False)


def is_interactive() -> bool:
    """Is the program interactive, so that it can ask?"""
    return sys.stdin.isatty()


def print_json(result: object) -> None:
    """Print JSON. Infinity and NaN become null, because JSON has neither."""
    typer.echo(json.dumps(replace_infinite(result), allow_nan=False, default=str))


def say(text: str, style: str = "") -> None:
    """Print text. It is wrapped at a terminal and stays one line in a pipe."""
    console = to_stdout()
    console.print(Text(printable(text), style), soft_wrap=not console.is_terminal)


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    below: Sequence[str] = (),
    indent: int = 0,
) -> None:
    """Print a table. The columns with the indexes `right` are aligned to the right.

    `below` has a line for each row that is printed below it, indented; an empty one is left out.
    """
    console = to_stdout()
    cells = [[printable(cell) for cell in row] for row in rows]
    titles = [printable(heading) for heading in headings]
    if console.is_terminal:
        words = [max(_measure_longest_word(line[index]) for line in (titles, *cells)) for index in range(len(titles))]
        whole = _measure_columns([titles, *cells])
        if (sum(whole) + 2 * len(whole) if below else sum(words) + 3 * len(words) + 1) > console.width:
            _print_records(titles, cells, below, console.width)
            return
        if not below and sum(whole) + 3 * len(whole) + 1 > console.width:
            cells = [[_put_intervals_below(cell) for cell in row] for row in cells]
            whole = _measure_columns([titles, *cells])
    if console.is_terminal and not below:
        table = Table(header_style="bold")
        widths = _share_width(words, whole, console.width - 3 * len(titles) - 1)
        for index, heading in enumerate(titles):
            justify: Literal["left", "right"] = "right" if index in right else "left"
            table.add_column(Text(heading), justify=justify, overflow="fold", width=widths[index])
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    lines = [titles, *cells]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(headings))]
    for line, text in zip(lines, ["", *(below or [""] * len(rows))], strict=True):
        padded = (
            " " * (width - cell_len(cell)) + cell if index in right else cell + " " * (width - cell_len(cell))
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        typer.echo("  ".join(padded).rstrip())
        if text:
            typer.echo(" " * indent + printable(text))


def _measure_columns(lines: Sequence[Sequence[str]]) -> list[int]:
    """The columns of the terminal that each column of a table needs, if no line is wrapped."""
    return [max(cell_len(part) for cell in column for part in cell.split("\n")) for column in zip(*lines, strict=True)]


def _share_width(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """A width for each column: what it wants, made narrower where it can be until all fit the room."""
    widths = list(wanted)
    while sum(widths) > room and any(map(int.__gt__, widths, least)):
        slack = [width - word for width, word in zip(widths, least, strict=True)]
        widths[slack.index(max(slack))] -= 1
    return widths


def _measure_longest_word(text: str) -> int:
    """The columns that a text needs at least, if it is wrapped between words. An interval is one word."""
    return max(map(cell_len, WORD.findall(text)), default=0)


def _put_intervals_below(text: str) -> str:
    """A value with its interval on the next line: `41.2 [39.9, 42.5]` must not break inside the brackets."""
    return re.sub(r" (\[[^\]]*\])", r"\n\1", text)


def _wrap_words(text: str, width: int) -> str:
    """A text in lines of at most `width` columns. An interval is one word, unless it is longer than a line."""
    lines = [""]
    for word in WORD.findall(text):
        for part in [word] if cell_len(word) <= width else word.split():
            longer = f"{lines[-1]} {part}".lstrip()
            if cell_len(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(part)
    return "\n".join(lines)


def _print_records(titles: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[str], width: int) -> None:
    """Print each row as lines of `heading: value`, where a table does not fit the terminal."""
    for number, row in enumerate(rows):
        if number:
            say("")
        for title, cell in zip(titles, row, strict=True):
            if cell.strip():
                say(_wrap_words(f"{title}: {cell}" if title else cell, width))
        if below and below[number]:
            say(below[number])


def print_answer(answer: "Answer") -> None:
    """Print the rows with their intervals (at a terminal also as bars), then the cost."""
    from sfumato.answers.shown_values import format_value

    measured = [name for name in answer.columns if any(name in ends for ends in answer.intervals)]
    rows = [
        [format_value(row[name], ends.get(name)) for name in answer.columns]
        for row, ends in zip(answer.rows, answer.intervals, strict=True)
    ]
    headings = list(answer.columns)
    right = [index for index, name in enumerate(answer.columns) if name in measured]
    console = to_stdout()
    needed = sum(max(cell_len(row[index]) for row in [headings, *rows]) + 3 for index in range(len(headings))) + 1
    if console.is_terminal and measured and len(rows) > 1 and needed + BAR + 3 <= console.width:
        drawn = _list_intervals(answer, measured[0], console.options.ascii_only)
        headings.append(f"{measured[0]} (interval)")
        rows = [[*row, bar] for row, bar in zip(rows, drawn, strict=True)]
    print_table(headings, rows, right=right)
    say(f"{answer.price()} {answer.interval_note}".rstrip(), "dim")
    for warning in answer.warnings:
        say(f"Warning: {warning}", "yellow")


def print_preview(found: "Preview") -> None:
    """Print the margins, the cost, and what would make a margin smaller."""
    from sfumato.answers.interval_terms import BIAS

    changes = {output.column: output.formula for output in found.sensitivities}
    margins = {name: "unknown" if half is None else f"±{half:,.4g}" for name, half in found.margins.items()}
    rows = [[name, text, changes.get(name, "")] for name, text in margins.items()]
    print_table(["column", f"margin ({100 * found.confidence:.4g} %)", "one person changes"], rows, right=[1, 2])
    for reason in dict.fromkeys(found.reasons.values()):
        names = ", ".join(name for name, own in found.reasons.items() if own == reason)
        say(f"{names}: {reason}")
    say(f"Margins cover the noise only. {BIAS}", "dim")
    before = "It was answered before. " if found.cached else ""
    if found.cost != found.population_cost:
        before = "Another analyst has this answer: it counts against your own limit only. "
    fits = "fits" if found.fits else "does not fit"
    say(f"Cost: {found.cost}, which {fits} the budget. {before}Nothing was spent.")
    for note in filter(None, (describe_weakness(found.cost.epsilon), found.delta_note)):
        say(note)
    for suggestion in found.suggestions:
        say(str(suggestion), "dim")
    for warning in found.warnings:
        say(f"Warning: {warning}", "yellow")


def _list_intervals(answer: "Answer", name: str, ascii_only: bool) -> list[str]:
    """Each row's interval as a bar on one common scale."""
    line, dot = ("-", "o") if ascii_only else ("─", "●")
    ends = [row.get(name, (math.nan, math.nan)) for row in answer.intervals]
    values = [row[name] for row in answer.rows]
    known = [end for pair in ends for end in pair if math.isfinite(end)]
    if not known:
        return [""] * len(values)
    low, high = min(known), max(known)
    step = (high - low) / (BAR - 1) or 1.0

    def place(value: float) -> int:
        return min(BAR - 1, max(0, round((value - low) / step)))

    bars = []
    for value, (least, most) in zip(values, ends, strict=True):
        if not isinstance(value, int | float) or not all(map(math.isfinite, (value, least, most))):
            bars.append("")
            continue
        start, end = place(least), place(most)
        letters = [" "] * start + [line] * (end - start + 1)
        letters[place(min(max(value, least), most))] = dot
        bars.append("".join(letters))
    return bars


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on stderr while this takes long, if stderr is a terminal."""
    console = to_stderr()
    if not console.is_terminal:
        yield
        return
    status = Status(what, console=console)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting just now
        status.stop()


def printable(text: str) -> str:
    """Remove control characters from a text, except line ends."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text)
