"""Loading data at the command line: the options of reading, and how a load report looks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.show import print_table, printable, say, to_stderr, to_stdout

if TYPE_CHECKING:
    from sfumato.ingest.load_report import LoadReport

Encoding = Annotated[
    str | None, typer.Option("--encoding", help="How the file writes letters: utf-8, latin-1, cp1252 ...")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates the fields of a CSV file.", metavar="CHARACTER")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="The decimal mark of numbers: . or ,", metavar="MARK")]
DateFormat = Annotated[
    str | None, typer.Option("--date-format", help="How dates are written, as %d/%m/%Y.", metavar="FORMAT")
]
OnError = Annotated[
    str | None,
    typer.Option(
        "--on-error",
        help="What happens to malformed records of a CSV file: refuse (the load fails), or skip (they are dropped and "
        "counted; needs --no-quoted-newlines).",
        metavar="refuse|skip",
    ),
]
QuotedNewlines = Annotated[
    bool | None,
    typer.Option(
        "--quoted-newlines/--no-quoted-newlines",
        help="May quoted fields of a CSV file hold line breaks? By default yes, but no line that is itself a record.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse the load if it gives a warning.")]


def given(**options: str | bool | None) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def show_report(report: "LoadReport", hints: Mapping[str, str]) -> None:
    """The report on stdout, its warnings on stderr. Examples of values are shown at a terminal only.

    `hints`: for each table, the command that loads it again.
    """
    from sfumato.ingest.load_report import FOR_THE_OWNER, column_table, sentences  # noqa: PLC0415 - as all commands do

    for each in report:
        say(f"\nLoad report of {each.table}", "bold")
        headings, rows = column_table(each, examples=to_stdout().is_terminal)
        numbers = [index for index, heading in enumerate(headings) if index > 1 and not heading.endswith("example")]
        if rows:
            print_table(headings, rows, right=numbers)
        for sentence in sentences(each):
            say(sentence)
    if len(report):
        say(FOR_THE_OWNER, "dim")
    console = to_stderr()
    for each in report:
        for problem in each.problems:
            console.print(Text.assemble(("Warning:", "bold yellow"), " ", printable(problem.what)), soft_wrap=True)
            console.print(Text(f"  {printable(problem.advice)}"), soft_wrap=True)
        if each.problems and each.table in hints:
            again = f"After a correction of the source or of catalog.toml: {hints[each.table]}"
            console.print(Text(printable(again), "dim"), soft_wrap=True)
            options = "It also takes --encoding, --delimiter, --decimal and --date-format, and writes them down."
            console.print(Text(options, "dim"), soft_wrap=True)
