"""Load data at the command line: the options for reading a source, and the load report."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.show import print_table, printable, say, to_stderr, to_stdout

if TYPE_CHECKING:
    from sfumato.ingest.load_report import LoadReport

Encoding = Annotated[
    str | None, typer.Option("--encoding", help="The encoding of the file: utf-8, latin-1, cp1252 ...")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="The character between the fields of a CSV file.", metavar="CHARACTER")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help="The decimal mark of numbers: . or ,", metavar="MARK")]
DateFormat = Annotated[
    str | None, typer.Option("--date-format", help="The format of dates, such as %d/%m/%Y.", metavar="FORMAT")
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


def drop_missing(**options: str | bool | None) -> dict[str, Any]:
    """Keep the options that the user gave."""
    return {name: value for name, value in options.items() if value is not None}


def show_report(report: "LoadReport", hints: Mapping[str, str]) -> None:
    """The report on stdout, its warnings on stderr. Examples of values are shown at a terminal only.

    `hints`: for each table, the command that loads it again.
    """
    from sfumato.ingest.load_report import FOR_THE_OWNER, describe_rows, tabulate_columns  # noqa: PLC0415 - as all commands do

    for loaded in report:
        say(f"\nLoad report of {loaded.table}", "bold")
        headings, rows = tabulate_columns(loaded, examples=to_stdout().is_terminal)
        numbers = [index for index, heading in enumerate(headings) if index > 1 and not heading.endswith("example")]
        if rows:
            print_table(headings, rows, right=numbers)
        for sentence in describe_rows(loaded):
            say(sentence)
    if len(report):
        say(FOR_THE_OWNER, "dim")
    console = to_stderr()
    for loaded in report:
        for problem in loaded.problems:
            console.print(Text.assemble(("Warning:", "bold yellow"), " ", printable(problem.what)), soft_wrap=True)
            console.print(Text(f"  {printable(problem.advice)}"), soft_wrap=True)
        if loaded.problems and loaded.table in hints:
            again = f"After you correct the source or catalog.toml: {hints[loaded.table]}"
            console.print(Text(printable(again), "dim"), soft_wrap=True)
            options = (
                "It also takes --encoding, --delimiter, --decimal and --date-format, and writes them to catalog.toml."
            )
            console.print(Text(options, "dim"), soft_wrap=True)
