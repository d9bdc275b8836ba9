# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato`: the commands."""

import codecs
import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sfumato.cli import (
    account_commands,
    ask_commands,
    audit_command,
    budget_commands,
    improve,
    lab,
    lab_explanations,
    learn,
    ledger_commands,
    ledger_files,
    owner,
    pinning,
    plan_command,
    serve_commands,
    shell_command,
    survey_commands,
)
from sfumato.cli.program import FOLDER, Program

PLAIN = {  # for terminals that have only ASCII: what stands for a letter, and for the blocks of a drawing
    "ε": "e", "δ": "d", "β": "b", "Δ": "D", "±": "+", "√": "sqrt ", "█": "#", "═": "=", "●": "o", "·": ".",
}  # fmt: skip

app = typer.Typer(
    cls=Program,
    help="Answers that are clear about the crowd and say provably little about any one person.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def run() -> None:
    """Run the program, also on terminals without Greek letters."""
    codecs.register_error("plain-words", _replace_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain-words")
    try:
        app()
    except OSError:  # the terminal or file that is written to
        sys.exit("The output could not be written.")


def _replace_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in letters), error.end


def _show_version(wanted: bool) -> None:
    if wanted:
        import sfumato

        typer.echo(f"sfumato {sfumato.__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Option(FOLDER, help="The dataset's folder, with its catalog.toml. It may stand anywhere.", metavar="DIR"),
    ] = Path(),
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Commands for owners and analysts of private data."""
    context.obj = folder


@app.command(rich_help_panel="Learn")
def demo(
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Save a plot in this folder.")] = True,
) -> None:
    """A two-minute tour on made-up patients: declare, preview, ask, plot, and run out of budget."""
    from sfumato.cli.demo import PLOT, run_demo

    run_demo(Console(highlight=False), _run_command, Path(PLOT) if plot else None)


def _run_command(arguments: list[str]) -> int:
    """Run one command as a shell would, and return its exit code."""
    return int(app(arguments, standalone_mode=False) or 0)


app.command(rich_help_panel="Own")(owner.init)
app.command(rich_help_panel="Own")(owner.add)
app.command(rich_help_panel="Own")(pinning.check)
app.command(rich_help_panel="Own")(pinning.prepare)
app.command(rich_help_panel="Serve many analysts")(serve_commands.serve)
app.add_typer(account_commands.users, name="user", rich_help_panel="Serve many analysts")
app.add_typer(account_commands.grants, name="grant", rich_help_panel="Serve many analysts")
app.command(rich_help_panel="Ask")(ask_commands.preview)
app.command(rich_help_panel="Ask")(ask_commands.ask)
app.command(rich_help_panel="Ask")(ask_commands.explain)
app.command(rich_help_panel="Ask")(plan_command.plan)
app.command(rich_help_panel="Ask")(shell_command.shell)
app.command(rich_help_panel="Ask")(improve.upgrade)
app.command(rich_help_panel="Ask")(improve.diagnose)
app.command(rich_help_panel="Own")(improve.bounds)
app.command(rich_help_panel="Own")(improve.cap)
app.add_typer(budget_commands.budget, name="budget", rich_help_panel="Budget and ledger")
ledger_files.add_to(ledger_commands.ledger)
app.add_typer(ledger_commands.ledger, name="ledger", rich_help_panel="Budget and ledger")
app.add_typer(survey_commands.survey, name="survey", rich_help_panel="Survey without a curator")
app.command(rich_help_panel="Learn")(audit_command.audit)
app.add_typer(lab.lab, name="lab", rich_help_panel="Learn")
app.add_typer(learn.learn, name="learn", rich_help_panel="Ask")


app.command(
    context_settings={"ignore_unknown_options": True},  # so that -1 is a value, and gets its answer
    rich_help_panel="Learn",
)(lab_explanations.epsilon)
