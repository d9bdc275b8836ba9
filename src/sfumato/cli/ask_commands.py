# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""The analyst's commands: preview, ask, explain."""

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.lab_results import Html
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.reported_charges import charging
from sfumato.cli.show import AsJson, print_answer, print_json, print_preview, say, working
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.answering.preview import Preview
    from sfumato.answers.answer import Answer

PLOTS = (".svg", ".png")
TABLES = (".parquet", ".csv")

Sql = Annotated[str, typer.Argument(metavar="SQL", help="A question, such as 'SELECT COUNT(*) AS n FROM people'.")]
Epsilon = Annotated[str | None, typer.Option(help="The epsilon to spend, such as 0.5.", metavar="E")]
Rho = Annotated[str | None, typer.Option(help="The rho to spend, under zCDP accounting.", metavar="R")]
Delta = Annotated[
    str | None, typer.Option(help="The delta for undeclared keys. Default: a hundredth of the budget's.", metavar="D")
]
Margin = Annotated[
    list[str] | None,
    typer.Option(
        help="A margin that you want: n=20. Sfumato takes the smallest epsilon that gives it.", metavar="COLUMN=WIDTH"
    ),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        help="The number of rows that you expect in each group, for margins that depend on it (AVG): n=500.",
        metavar="n=COUNT",
    ),
]
Confidence = Annotated[str, typer.Option(help="The confidence level of the intervals.", metavar="P")]
Analyst = Annotated[str, typer.Option(help="Who asks. The ledger records the name.", metavar="NAME")]
MaxRows = Annotated[
    int | None,
    typer.Option(help="Bound the rows of one person once more, after the joins of the question.", min=1, metavar="N"),
]
MaxGroups = Annotated[int | None, typer.Option(help="Bound the groups in which one person counts.", min=1, metavar="N")]
IntervalShare = Annotated[
    str | None,
    typer.Option(help="The part of a quantile's cost that pays for its interval in value, such as 0.5.", metavar="S"),
]
People = Annotated[
    int, typer.Option(help="Also state the privacy loss for a group of this many people.", min=1, metavar="T")
]
Plot = Annotated[Path | None, typer.Option(help="Save a plot: .svg or .png.", metavar="FILE")]
Out = Annotated[Path | None, typer.Option(help="Save the rows with their intervals: .parquet or .csv.", metavar="FILE")]


def preview(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    margin: Margin = None,
    assume: Assume = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = "analyst",
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    interval_share: IntervalShare = None,
    as_json: AsJson = False,
) -> None:
    """Show what a question would cost and how accurate its answer would be. Free: no row is read."""
    with refusals(as_json):
        wanted = parse_amounts("margin", margin)
        assumed = _parse_assumed(assume)
        require_one_price(epsilon=epsilon or _states_epsilon(sql), rho=rho, margin=margin)
        from sfumato.answers.interval_terms import BIAS
        from sfumato.opening import open_folder

        with working("Previewing"), open_folder(context.obj) as curator:
            found = curator.preview(
                sql, epsilon, rho=rho, delta=delta, margin=wanted or None, assume=assumed, confidence=confidence,
                analyst=analyst, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
            )  # fmt: skip
        if as_json:
            print_json(
                {
                    "cost": found.cost.as_text(),
                    "fits": found.fits,
                    "margins": found.margins,
                    "reasons": found.reasons,
                    "confidence": found.confidence,
                    "margin_note": f"Margins cover the noise only. {BIAS}",
                    "one_person_changes": {output.column: output.one_person_changes for output in found.sensitivities},
                    "suggestions": [suggestion.as_json() for suggestion in found.suggestions],
                    "warnings": list(found.warnings),
                    "questions_left_by_delta": found.questions_left_by_delta,
                    **(_describe_stored(found) if found.cached else {}),
                }
            )
            return
        print_preview(found)


def ask(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    margin: Margin = None,
    assume: Assume = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = "analyst",
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    interval_share: IntervalShare = None,
    people: People = 1,
    plot: Plot = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question and pay for it from the privacy budget. A stored answer is free."""
    with refusals(as_json):
        wanted = parse_amounts("margin", margin)
        assumed = _parse_assumed(assume)
        require_one_price(epsilon=epsilon or _states_epsilon(sql), rho=rho, margin=margin)
        _require_writable("plot", plot, PLOTS)  # before anything is spent
        _require_writable("out", out, TABLES)
        from sfumato.answers.group_loss import describe_loss

        with charging(context.obj, as_json) as curator:
            with working("Asking"):
                answer = curator.ask(
                    sql, epsilon, rho=rho, delta=delta, margin=wanted or None, assume=assumed, confidence=confidence,
                    analyst=analyst, max_rows=max_rows, max_groups=max_groups, interval_share=interval_share,
                )  # fmt: skip
            if as_json:
                print_json(answer.to_dict(people))
            else:
                print_answer(answer)
                if people > 1:
                    say(describe_loss(answer.loss, answer.neighbours, people), "dim")
            for path, save in ((plot, _save_plot), (out, _save_table)):
                if path is not None:
                    with working(f"Saving {path}"):
                        save(answer, path)
                    if not as_json:
                        say(f"Saved {path}.")


def explain(
    context: typer.Context,
    sql: Sql,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    confidence: Confidence = "0.95",
    people: People = 1,
    analyst: Analyst = "analyst",
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Explain how a question would be answered: what is measured, what one person can change, and the noise."""
    with refusals(as_json):
        require_one_price(epsilon=epsilon or _states_epsilon(sql), rho=rho)
        from sfumato.answers.answer import write_loss_json
        from sfumato.opening import open_folder

        with working("Explaining"), open_folder(context.obj) as curator:
            found = curator.preview(sql, epsilon, rho=rho, delta=delta, confidence=confidence, analyst=analyst)
        if html is not None:
            from sfumato.drawing.pages import make_page

            title = "How this question would be answered"
            page = f'<h1>{title}</h1><pre style="white-space:pre-wrap">{escape(sql)}</pre>{found.explain_html(people)}'
            html.write_text(make_page(title, page), encoding="utf-8")
        if as_json:
            print_json(
                {
                    "cost": found.cost.as_text(),
                    "loss": write_loss_json(found.loss, people),
                    "asked": [asdict(output) for output in found.sensitivities],
                    "measurements": [asdict(measurement) for measurement in found.measurements],
                    "text": found.explain(people),
                }
            )
            return
        for line in found.explain(people).splitlines():
            say(line)
        if html is not None:
            say(f"The page is in {html}. Its links lead to docs/claims, next to it.")


def _describe_stored(found: "Preview") -> dict[str, object]:
    """The fields of the JSON that describe a stored answer."""
    return {"cached": True, "population_cost": found.population_cost.as_text()}


def _states_epsilon(sql: str) -> bool:
    """Does the SQL state its own epsilon? query/dp_options.py reads it."""
    words = sql.upper().split()
    return "DIFFERENTIAL_PRIVACY" in words and "EPSILON" in sql.upper()


def require_one_price(**given: object) -> None:
    """Refuse a question unless it has exactly one price."""
    names = [f"--{name}" for name in given]
    stated = [f"--{name}" for name, value in given.items() if value]
    if len(stated) > 1:
        raise Usage(f"Give one price of the question, not {' and '.join(stated)}.", "For example --epsilon 0.5 alone.")
    if not stated:
        raise Usage(
            f"Give the price of the question: {' or '.join(names)}, and only one.", "For example --epsilon 0.5."
        )


def parse_amounts(option: str, pairs: Sequence[str] | None, *, nameless: bool = False) -> dict[str, float]:
    """Parse repeated options of the form name=number. `nameless`: the name may be empty."""
    amounts: dict[str, float] = {}
    for pair in pairs or ():
        name, _, number = pair.rpartition("=")
        try:
            amounts[name] = float(number)
        except ValueError:
            amounts[name] = 0
        if not (name or nameless) or not 0 < amounts[name] < float("inf"):
            raise Usage(f"--{option} takes a name and a number above zero.", f"For example --{option} n=20.")
    return amounts


def _parse_assumed(pairs: Sequence[str] | None) -> dict[str, float] | None:
    """Parse --assume n=500; None if it is not given."""
    assumed = parse_amounts("assume", pairs)
    if assumed.keys() - {"n"}:
        raise Usage("--assume takes n, the number of rows.", "For example --assume n=500.")
    return assumed or None


def _require_writable(option: str, path: Path | None, endings: tuple[str, ...]) -> None:
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise Usage(f"--{option} takes a file that ends in {' or '.join(endings)}.", "Nothing was spent.")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise Usage(f"--{option}: there is no folder to write {path.name} in.", "Nothing was spent.")


def _save_plot(answer: "Answer", path: Path) -> None:
    if not any(answer.intervals):
        hint = "The answer is stored; asking again is free."
        raise SfumatoError("plot", "The answer has no number to plot.", hint)
    answer.plot().save(str(path), format="png" if path.suffix.lower() == ".png" else "svg")


def _save_table(answer: "Answer", path: Path) -> None:
    from pyarrow import csv, parquet

    table = answer.to_arrow(intervals=True)
    if path.suffix.lower() == ".csv":
        csv.write_csv(table, str(path))
    else:
        parquet.write_table(table, str(path))
