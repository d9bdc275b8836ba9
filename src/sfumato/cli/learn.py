# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato learn`: plan private learning. It reads no data and costs nothing."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, say

if TYPE_CHECKING:
    from sfumato.learning.guarantee import Guarantee

learn = typer.Typer(help="Plan private learning: rows, tolerance, epsilon and queries. It reads no data.")


class LearnerName(StrEnum):
    """The learners that state a guarantee."""

    MONOTONE_CONJUNCTION = "monotone-conjunction"
    CONJUNCTION = "conjunction"
    THRESHOLD = "threshold"
    INTERVAL = "interval"
    STUMP = "stump"
    DECISION_LIST = "decision-list"


class NeighboursName(StrEnum):
    """The neighbouring relations."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


@learn.callback()
def describe_group() -> None:
    """Plan private learning: rows, tolerance, epsilon and queries. It reads no data."""


@learn.command()
def plan(
    *,
    k: Annotated[int | None, typer.Option("--k", "-k", help="The number of statistical queries.")] = None,
    tolerance: Annotated[str | None, typer.Option(help="How far an answer may be off.", metavar="T")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The privacy loss of all queries.", metavar="E")] = None,
    rows: Annotated[int | None, typer.Option(help="The number of rows.")] = None,
    beta: Annotated[str, typer.Option(help="The probability that some answer is off by more.", metavar="B")] = "0.05",
    class_size: Annotated[int | None, typer.Option(help="The size of the class, for adaptive queries.")] = None,
    neighbours: Annotated[NeighboursName, typer.Option(help="Add-remove: the number of rows is private.")] = (
        NeighboursName.REPLACE_ONE
    ),
    learner: Annotated[LearnerName | None, typer.Option(help="State the guarantee of a learner instead.")] = None,
    size: Annotated[int, typer.Option(help="Of a learner: the number of features, or of grid values.")] = 10,
    alpha: Annotated[str | None, typer.Option(help="Of a learner: the largest error.", metavar="A")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the missing one of --k, --tolerance, --epsilon and --rows, or state what a --learner needs."""
    with refusals(as_json):
        if learner is not None:
            if alpha is None or epsilon is None or any(given is not None for given in (k, tolerance, rows, class_size)):
                raise Usage("--learner takes --alpha, --epsilon, --beta and --size only, and needs the first two.")
            _show_guarantee(_find_guarantee(learner, size, alpha, beta, epsilon), as_json)
            return
        given = {"k": k, "tolerance": tolerance, "epsilon": epsilon, "rows": rows}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) != 1:
            raise Usage("Give three of --k, --tolerance, --epsilon and --rows: the fourth is computed.")
        found = _find_missing(missing[0], k, tolerance, epsilon, rows, beta, class_size, neighbours.value)
        whole = {**given, missing[0]: found, "beta": beta, "class_size": class_size, "neighbours": neighbours.value}
        if as_json:
            print_json({**whole, "found": missing[0]})
            return
        number = f"{found:,}" if isinstance(found, int) else f"{found}"
        say(f"{missing[0]} = {number}", "bold")
        say(
            f"K = {whole['k']} queries are all within ±{whole['tolerance']} with probability 1 - {beta}, on "
            f"{whole['rows']} rows ({neighbours.value}), at ε = {whole['epsilon']} in all."
        )


def _find_missing(  # noqa: PLR0917 - one caller
    missing: str,
    k: int | None,
    tolerance: str | None,
    epsilon: str | None,
    rows: int | None,
    beta: str,
    class_size: int | None,
    neighbours: str,
) -> int | float | str:
    from sfumato.learning import find_epsilon, find_queries, find_tolerance, sample_size

    queries, held, wanted, loss = k or 0, rows or 0, tolerance or "", epsilon or ""
    match missing:
        case "rows":
            return sample_size(queries, wanted, beta, loss, class_size=class_size, neighbours=neighbours)
        case "tolerance":
            return find_tolerance(queries, held, beta, loss, class_size=class_size, neighbours=neighbours)
        case "epsilon":
            return str(find_epsilon(queries, wanted, beta, held, class_size=class_size, neighbours=neighbours))
        case _:
            return find_queries(wanted, beta, loss, held, class_size=class_size, neighbours=neighbours)


def _find_guarantee(name: LearnerName, size: int, alpha: str, beta: str, epsilon: str) -> "Guarantee":
    from sfumato.learning import Conjunction, DecisionList, DecisionStump, Interval, Threshold

    features, grid = tuple(f"x{number}" for number in range(size)), tuple(map(float, range(size)))
    match name:
        case LearnerName.MONOTONE_CONJUNCTION:
            return Conjunction(features, "y", monotone=True).guarantee(alpha, beta, epsilon)
        case LearnerName.CONJUNCTION:
            return Conjunction(features, "y").guarantee(alpha, beta, epsilon)
        case LearnerName.THRESHOLD:
            return Threshold("x", "y", grid).guarantee(alpha, beta, epsilon)
        case LearnerName.INTERVAL:
            return Interval("x", "y", grid).guarantee(alpha, beta, epsilon)
        case LearnerName.STUMP:
            return DecisionStump(dict.fromkeys(features), "y").guarantee(alpha, beta, epsilon)
        case LearnerName.DECISION_LIST:
            return DecisionList(features, "y").guarantee(alpha, beta, epsilon)


def _show_guarantee(found: "Guarantee", as_json: bool) -> None:
    if as_json:
        numbers = {"k": found.k, "tolerance": found.tolerance, "rows": found.m, "class_size": found.class_size}
        print_json({**numbers, "alpha": found.alpha, "beta": found.beta, "epsilon": str(found.epsilon)})
        return
    say(str(found))
