# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The commands of `sfumato lab` that explain: a mechanism, neighbours, errors, a class poll. Also `sfumato epsilon`."""

from typing import Annotated

import typer

from sfumato.cli.lab_results import Html, show_result
from sfumato.cli.refusals import USAGE, Usage, refusals, tell
from sfumato.cli.show import AsJson, working
from sfumato.errors import SfumatoError

Epsilon = Annotated[str, typer.Option(help="The privacy loss.", metavar="E")]


def mechanism(
    epsilon: Epsilon = "1",
    sensitivity: Annotated[str, typer.Option(help="The most that one person changes the value.", metavar="S")] = "1",
    delta: Annotated[str | None, typer.Option(help="Gaussian noise for this delta.", metavar="D")] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Two neighbours' curves and their ratio: the sliding property."""
    from sfumato.lab.explanations.sliding_property import mechanism as view

    with refusals(as_json):
        show_result(view(epsilon, sensitivity, delta), html, as_json)


def neighbours(  # noqa: PLR0917 - typer passes them by name
    query: Annotated[str, typer.Option(help="average, maximum, count, sum or histogram.")] = "average",
    data: Annotated[str | None, typer.Option(help="heights, integers or diseases; each query has its own.")] = None,
    relation: Annotated[str | None, typer.Option(help="add-remove or replace-one; both without it.")] = None,
    rows: Annotated[str | None, typer.Option(help="Other rows, such as 3,5,7.", metavar="N,N,...")] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """All neighbours of a small table, and the one that changes most."""
    from sfumato.lab.explanations.neighbour_view import neighbours as view

    with refusals(as_json):
        show_result(view(query, data, relation, _read_rows(rows)), html, as_json)


def _read_rows(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise Usage("--rows takes whole numbers with commas between them.", "For example --rows 3,5,7.") from None


def error(  # noqa: PLR0917 - typer passes them by name
    query: Annotated[str, typer.Option(help="count, sum or average.")] = "count",
    epsilon: Epsilon = "1",
    rows: Annotated[int, typer.Option(help="The number of generated students.")] = 100,
    repeats: Annotated[int, typer.Option(help="How often the question is asked.")] = 100,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """The errors of many answers, against (Δ/ε) ln(1/β)."""
    from sfumato.lab.explanations.repeated_errors import error as view

    with refusals(as_json):
        with working(f"Asking {repeats} times."):
            found = view(query, epsilon, rows, repeats)
        show_result(found, html, as_json)


def randomized_response(  # noqa: PLR0917 - typer passes them by name
    students: Annotated[int, typer.Option(help="The size of the class.")] = 100,
    share: Annotated[str, typer.Option(help="The true share of yes.")] = "0.3",
    epsilon: Annotated[str | None, typer.Option(help="Other coins than the two fair ones.", metavar="E")] = None,
    repeats: Annotated[int, typer.Option(help="How many polls the errors are measured from.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Fixes all coins and noise, for slides.")] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """A class poll with coins: an error of √n, against O(1) with a curator."""
    from sfumato.lab.explanations.class_poll import randomized_response as view

    with refusals(as_json):
        show_result(view(students, share, epsilon, repeats, seed), html, as_json)


def epsilon(
    value: Annotated[str, typer.Argument(help="A privacy loss, such as 0.5 or 1.")],
    people: Annotated[int, typer.Option(help="Also for a group of this many people.")] = 4,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show what an epsilon means: how much an answer can change anyone's guess about one person."""
    from sfumato.lab.explanations.epsilon_meaning import epsilon as view

    with refusals(as_json):
        try:
            found = view(value, people)
        except SfumatoError as refusal:
            tell(refusal, as_json)
            raise typer.Exit(USAGE) from None
        show_result(found, html, as_json)
