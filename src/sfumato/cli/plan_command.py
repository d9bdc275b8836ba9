"""`sfumato plan`: several questions for one charge, and the smallest loss for all of their margins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.answering.entry_words import write_loss_as_json
from sfumato.cli.ask_commands import Analyst, Confidence, Epsilon, Rho, parse_amounts, require_one_price
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.reported_charges import charging
from sfumato.cli.show import AsJson, print_answer, print_json, print_table, say, working
from sfumato.shown_amounts import write_amounts

if TYPE_CHECKING:
    from sfumato.answering.workload import Wanted, Workload
    from sfumato.curator import Curator

Questions = Annotated[list[str], typer.Argument(metavar="SQL...", help="The questions, each in quotes.")]
WantedMargin = Annotated[
    list[str] | None,
    typer.Option(
        help="A margin that you want: n=20 for the column n of every question that has one, or 20 for all columns.",
        metavar="[COLUMN=]WIDTH",
    ),
]


def plan(
    context: typer.Context,
    questions: Questions,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    margin: WantedMargin = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = "analyst",
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the questions, on one charge: all are paid, or none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan several questions together: the smallest loss for their margins, or the best split of one loss. Free."""
    with refusals(as_json):
        require_one_price(epsilon=epsilon, rho=rho, margin=margin)
        with charging(context.obj, as_json) as curator:
            with working("Planning"):
                wanted: Wanted = questions if margin is None else _match_margins(curator, questions, margin)
                planned = curator.plan(wanted, confidence, epsilon=epsilon, rho=rho)
            if not ask:
                _show_plan(curator, planned, as_json)
                return
            with working("Asking"):
                answers = curator.ask_all(planned, analyst=analyst)
            if as_json:
                print_json({"cost": planned.cost.as_text(), "answers": [answer.to_dict() for answer in answers]})
                return
            for share, answer in zip(planned.shares, answers, strict=True):
                say(share.sql, "bold")
                print_answer(answer)
                say("")


def _match_margins(curator: "Curator", questions: list[str], margins: list[str]) -> list[tuple[str, dict[str, float]]]:
    """The margins of each question: of the columns that it has."""
    named = parse_amounts("margin", [margin if "=" in margin else f"={margin}" for margin in margins], nameless=True)
    matched = []
    used: set[str] = set()
    for sql in questions:
        columns = curator.preview(sql, 1).margins
        own = {name: named[name] if name in named else named[""] for name in columns if name in named or "" in named}
        if not own:
            hint = f"Its columns are {', '.join(columns)}. Give a margin for one of them, or a number for all."
            raise Usage(f"There is no margin for this question: {sql}", hint)
        matched.append((sql, own))
        used |= own.keys()
    strange = named.keys() - used - {""}
    if strange:
        raise Usage(f"--margin {min(strange)}: no question has this column.", "Check the names after AS.")
    return matched


def _show_plan(curator: "Curator", planned: "Workload", as_json: bool) -> None:
    shown = [_write_share(curator, planned, at) for at in range(len(planned.shares))]
    if as_json:
        print_json({"cost": planned.cost.as_text(), "questions": shown})
        return
    rows = []
    for share in shown:
        widths = [
            f"{name} {'unknown' if width is None else f'±{width:,.4g}'}" for name, width in share["margins"].items()
        ]
        cost = write_amounts(share["cost"]) + (" together" if share["together"] else "")
        rows.append([cost, ", ".join(widths), share["sql"]])
    print_table(["cost", "margins", "question"], rows)
    say(f"Cost of all: {planned.cost}. Nothing was spent. To ask them: the same command with --ask.")


def _write_share(curator: "Curator", planned: "Workload", at: int) -> dict[str, Any]:
    """One question of a plan. Questions that are measured together have their cost in common."""
    share = planned.shares[at]
    group = next((group for group in planned.together if at in group.places), None)
    loss = share.loss if group is None else group.loss
    if group is not None:
        margins: Mapping[str, float | None] = group.margins[group.places.index(at)]
    elif share.epsilon is not None:
        margins = curator.preview(share.sql, share.epsilon, confidence=planned.confidence).margins
    else:
        margins = curator.preview(share.sql, rho=share.rho, confidence=planned.confidence).margins
    return {
        "sql": share.sql,
        "cost": write_loss_as_json(loss),
        "together": None if group is None else list(group.places),
        "margins": dict(margins),
    }
