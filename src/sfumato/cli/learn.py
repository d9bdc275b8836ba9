# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato learn`: plan private learning. It reads no data and costs nothing."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.show import AsJson, print_json, say

if TYPE_CHECKING:
    from sfumato.learning.guarantee import Guarantee

MOST_SIZE = 999
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


FOUR = "Give three of these: the fourth is computed"
OF_LEARNER = "Or state what a learner needs"


@learn.command()
def plan(
    *,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries", "-k", "--k", min=1, metavar="K", help="How many statistical queries.", rich_help_panel=FOUR
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="How far each answer may be from the mean of the distribution: above 0, below 1.",
            rich_help_panel=FOUR,
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The privacy loss of everything together.", rich_help_panel=FOUR)
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, metavar="M", help="How many rows.", rich_help_panel=FOUR)] = None,
    beta: Annotated[str, typer.Option(metavar="B", help="The probability that the promise is missed.")] = "0.05",
    class_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For queries that are chosen from earlier answers: how many there are to choose from. "
            "Without it, the K queries are fixed in advance.",
        ),
    ] = None,
    neighbours: Annotated[
        NeighboursName, typer.Option(help="With replace-one the number of rows is public, with add-remove private.")
    ] = NeighboursName.REPLACE_ONE,
    learner: Annotated[
        LearnerName | None,
        typer.Option(help="The learner. Give --alpha and --epsilon too.", rich_help_panel=OF_LEARNER),
    ] = None,
    alpha: Annotated[
        str | None, typer.Option(metavar="A", help="The largest error of the rule.", rich_help_panel=OF_LEARNER)
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(metavar="D", help="How many features (conjunction, stump, list).", rich_help_panel=OF_LEARNER),
    ] = None,
    grid_values: Annotated[
        int | None,
        typer.Option(metavar="G", help="How many grid values (threshold, interval).", rich_help_panel=OF_LEARNER),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan statistical queries: how many rows, which tolerance, which epsilon or how many queries. It reads no data.

    For example: sfumato learn plan --queries 10 --tolerance 0.05 --epsilon 1
    """
    with refusals(as_json):
        of_learner = {"alpha": alpha, "features": features, "grid-values": grid_values}
        given = {"k": queries, "tolerance": tolerance, "epsilon": epsilon, "rows": rows}
        if learner is not None:
            _refuse_given(learner, {**given, "epsilon": None, "class-size": class_size})
            if alpha is None or epsilon is None:
                raise Usage("A --learner needs --alpha and --epsilon.", EXAMPLE)
            size = _choose_size(learner, features, grid_values)
            _show_guarantee(_find_guarantee(learner, size, alpha, beta, epsilon, neighbours.value), neighbours, as_json)
            return
        unused = [f"--{name}" for name, value in of_learner.items() if value is not None]
        if unused:
            raise Usage(f"{', '.join(unused)} belongs to a --learner.", EXAMPLE)
        missing = [name for name, value in given.items() if value is None]
        if len(missing) != 1:
            count = "All four are given" if not missing else f"{len(given) - len(missing)} of four are given"
            message = f"Give three of --queries, --tolerance, --epsilon and --rows: the fourth is computed. {count}."
            raise Usage(message, "For example: sfumato learn plan --queries 10 --tolerance 0.05 --epsilon 1")
        found = _find_missing(missing[0], queries, tolerance, epsilon, rows, beta, class_size, neighbours.value)
        whole = {**given, missing[0]: found, "beta": beta, "class_size": class_size, "neighbours": neighbours.value}
        if as_json:
            print_json({**whole, "found": missing[0]})
            return
        _show_plan(whole, missing[0])


EXAMPLE = "For example: sfumato learn plan --learner threshold --grid-values 16 --alpha 0.1 --epsilon 1"
ON_A_GRID = (LearnerName.THRESHOLD, LearnerName.INTERVAL)


def _refuse_given(learner: LearnerName, unused: dict[str, object]) -> None:
    """Refuse options that are computed for a learner."""
    names = [f"--{'queries' if name == 'k' else name}" for name, value in unused.items() if value is not None]
    if names:
        message = f"--learner {learner.value} computes {', '.join(names)} itself."
        raise Usage(message, f"Leave {'it' if len(names) == 1 else 'them'} out.")


def _choose_size(learner: LearnerName, features: int | None, grid_values: int | None) -> int:
    """The number of features or grid values, whichever the learner has."""
    needed, other, size, left = ("grid-values", "features", grid_values, features)
    if learner not in ON_A_GRID:
        needed, other, size, left = other, needed, left, size
    if size is None or left is not None:
        raise Usage(f"--learner {learner.value} needs --{needed}, and takes no --{other}.", EXAMPLE)
    if not 1 <= size <= MOST_SIZE:
        raise Usage(f"--{needed} must be from 1 to {MOST_SIZE:,}.")
    return size


def _show_plan(plan: Mapping[str, int | float | str | None], found: str) -> None:
    """The number that was computed, and what it means."""
    value = plan[found]
    if found == "k" and value == 0:
        say("Not even one query is within this tolerance.", "yellow")
        say("Raise the tolerance, beta or epsilon, or use more rows.")
        return
    number = f"{value:,}" if isinstance(value, int) else _round_up(value) if isinstance(value, float) else f"{value}"
    tolerance = number if found == "tolerance" else plan["tolerance"]
    say(f"{'queries (K)' if found == 'k' else found} = {number}", "bold")
    if found == "tolerance" and value == 1:
        say(
            "A tolerance of 1 says nothing: there are too few rows. Raise beta or epsilon, or ask fewer queries.",
            "yellow",
        )
    chosen = "fixed in advance" if plan["class_size"] is None else f"from a class of {plan['class_size']:,}"
    say(
        f"K = {plan['k']:,} queries, {chosen}, are all within ±{tolerance} of the distribution's means with "
        f"probability 1 - {plan['beta']}, on {plan['rows']:,} rows ({plan['neighbours']}), "
        f"at ε = {plan['epsilon']} in all."
    )


def _round_up(value: float) -> str:
    """Four digits, rounded up: a tolerance that is promised is never too small."""
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(value):f}"


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


def _find_guarantee(  # noqa: PLR0917 - one caller
    name: LearnerName, size: int, alpha: str, beta: str, epsilon: str, neighbours: str
) -> "Guarantee":
    from sfumato.learning import Conjunction, DecisionList, DecisionStump, Interval, Threshold

    features, grid = tuple(f"x{number}" for number in range(size)), tuple(map(float, range(size)))
    match name:
        case LearnerName.MONOTONE_CONJUNCTION:
            return Conjunction(features, "y", monotone=True).guarantee(alpha, beta, epsilon, neighbours)
        case LearnerName.CONJUNCTION:
            return Conjunction(features, "y").guarantee(alpha, beta, epsilon, neighbours)
        case LearnerName.THRESHOLD:
            return Threshold("x", "y", grid).guarantee(alpha, beta, epsilon, neighbours)
        case LearnerName.INTERVAL:
            return Interval("x", "y", grid).guarantee(alpha, beta, epsilon, neighbours)
        case LearnerName.STUMP:
            return DecisionStump(dict.fromkeys(features), "y").guarantee(alpha, beta, epsilon, neighbours)
        case LearnerName.DECISION_LIST:
            return DecisionList(features, "y").guarantee(alpha, beta, epsilon, neighbours)


def _show_guarantee(found: "Guarantee", neighbours: NeighboursName, as_json: bool) -> None:
    if as_json:
        numbers = {"k": found.k, "tolerance": found.tolerance, "rows": found.m, "class_size": found.class_size}
        amounts = {"alpha": found.alpha, "beta": found.beta, "epsilon": str(found.epsilon)}
        print_json({**numbers, **amounts, "neighbours": neighbours.value})
        return
    say(f"{found} ({neighbours.value})")
