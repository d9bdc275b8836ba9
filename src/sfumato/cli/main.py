"""`sfumato`: the commands."""

import codecs
import io
import json
import math
import sys
from decimal import Decimal
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import sfumato
from sfumato.cli.demo import run_demo
from sfumato.errors import SfumatoError
from sfumato.kernel.exact import plain

REFUSED = 2

app = typer.Typer(
    help="Answers that are clear about the crowd and say provably little about any one person.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def run() -> None:
    """The program: as the app, on terminals that may not know Greek letters."""
    codecs.register_error("plain-words", _in_plain_words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain-words")
    try:
        app()
    except OSError:  # the terminal or file that is written to
        sys.exit("The output could not be written.")


def _in_plain_words(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join({"ε": "e", "δ": "d", "±": "+"}.get(letter, "?") for letter in letters), error.end


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {sfumato.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Commands for owners and analysts of private data."""


@app.command()
def demo() -> None:
    """A two-minute tour on made-up patients: counts, means, histograms, a maximum, a survey, and what they cost."""
    run_demo(Console())


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1 is a value, and gets its answer
def epsilon(
    value: Annotated[str, typer.Argument(help="A privacy loss, such as 0.5 or 1.")],
    people: Annotated[int, typer.Option(help="Also for a group of this many people.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What an epsilon means, in odds: how much an answer can change anyone's guess about one person."""
    console = Console()
    try:
        loss = sfumato.PureDP(value)
        group = loss.group(people)
    except SfumatoError as refusal:
        Console(stderr=True).print(f"[red]Refused:[/red] {refusal}")
        raise typer.Exit(REFUSED) from None
    rows = [
        {"prior": prior, "one_person": _posterior(prior, loss.epsilon), "group": _posterior(prior, group.epsilon)}
        for prior in (0.01, 0.1, 0.5)
    ]
    if as_json:
        typer.echo(json.dumps({"epsilon": str(loss.epsilon), "people": people, "guesses": rows}))
        return
    console.print(
        f"With epsilon {plain(loss.epsilon)}, no answer is more than [bold]{_factor(loss.epsilon)}[/bold] times "
        f"likelier because you are in the data; for a group of {people}, {_factor(group.epsilon)} times."
    )
    table = Table("A guess about you that was", "can become at most", f"about all {people} of your group")
    for row in rows:
        table.add_row(*(f"{share:.1%}" for share in (row["prior"], row["one_person"], row["group"])))
    console.print(table)


def _posterior(prior: float, epsilon: Decimal) -> float:
    """The most that a guess of probability `prior` can rise to, by Bayes' rule."""
    return prior / (prior + (1 - prior) * math.exp(-min(epsilon, Decimal(700))))


def _factor(epsilon: Decimal) -> str:
    return f"{math.exp(epsilon):,.4g}" if epsilon < 700 else "astronomically many"
