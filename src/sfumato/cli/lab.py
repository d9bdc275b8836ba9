# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato lab`: attacks and explanations on generated data. To add a command, add a line to COMMANDS."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sfumato.cli import lab_explanations
from sfumato.cli.lab_results import Html, show_result
from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_json, print_table, say, working
from sfumato.lab.attack_names import ATTACKS, AttackName

Epsilon = Annotated[str, typer.Option(help="The privacy loss of the protected release.")]
Seed = Annotated[int | None, typer.Option(help="Fixes the data and the naive noise; never Sfumato's noise.")]
Trials = Annotated[int | None, typer.Option(help="How often the attack is tried. Each attack has its own default.")]


class LabGroup(TyperGroup):
    """The commands of the lab. An unknown name is refused with all names; typer adds the closest one."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own types are private
        if cmd_name not in self.commands and not cmd_name.startswith("-"):
            ctx.fail(f"No such name {cmd_name!r}. The names are {', '.join(self.commands)}.")
        return self.commands.get(cmd_name)


lab = typer.Typer(
    cls=LabGroup, help="Attacks and explanations on generated data: see what differential privacy prevents."
)


@dataclass(frozen=True, slots=True)
class LabCommand:
    """A command of the lab. Its first line of help is the first line of the function's docstring."""

    name: str
    function: Callable[..., None]
    panel: str

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").partition("\n")[0]


def make_attack_command(attack: AttackName) -> Callable[..., None]:
    """The command of one attack."""

    def run(
        epsilon: Epsilon = "1",
        seed: Seed = None,
        trials: Trials = None,
        html: Html = None,
        as_json: AsJson = False,
    ) -> None:
        with refusals(as_json):
            with working(f"Running the attack {attack.name}."):
                options = {} if trials is None else {"trials": trials}
                result = attack.load()(epsilon=epsilon, seed=seed, **options)
            show_result(result, html, as_json)

    run.__doc__ = attack.summary
    return run


def run_all(
    epsilon: Epsilon = "1",
    seed: Seed = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page for each attack, and index.html, to this folder.", metavar="FOLDER"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run every attack and compare the success rates."""
    from sfumato.lab.index_page import save_pages
    from sfumato.lab.success_rate import show_share

    with refusals(as_json):
        results = []
        for attack in ATTACKS:
            with working(f"Running the attack {attack.name}."):
                results.append(attack.load()(epsilon=epsilon, seed=seed))
        index = None if html is None else save_pages(results, html)
        if as_json:
            print_json([result.to_dict() for result in results])
            return
        rows = [
            [result.name, show_share(result.naive.share), str(result.protected), show_share(result.limit)]
            for result in results
        ]
        print_table(["attack", "naive", "Sfumato (95 % interval)", "limit"], rows, right=(1, 3))
        beyond = [result.name for result in results if result.exceeds_limit]
        say(f"Beyond the limit: {', '.join(beyond)}." if beyond else "All are within the limit, up to sampling error.")
        if index is not None:
            say(f"The pages are in {index}.")


COMMANDS: tuple[LabCommand, ...] = (
    *(LabCommand(attack.name, make_attack_command(attack), "Attacks") for attack in ATTACKS),
    LabCommand("all", run_all, "Attacks"),
    LabCommand("mechanism", lab_explanations.mechanism, "Explanations"),
    LabCommand("neighbours", lab_explanations.neighbours, "Explanations"),
    LabCommand("error", lab_explanations.error, "Explanations"),
    LabCommand("randomized-response", lab_explanations.randomized_response, "Explanations"),
    # (name, function, heading in the help)
)

for _command in COMMANDS:
    lab.command(_command.name, rich_help_panel=_command.panel)(_command.function)


@lab.callback(invoke_without_command=True)
def list_commands(context: typer.Context) -> None:
    """Attacks and explanations on generated data: see what differential privacy prevents."""
    if context.invoked_subcommand is None:
        print_table(["name", "what it shows"], [[command.name, command.summary] for command in COMMANDS])
        say("Run one with: sfumato lab NAME. Its options: sfumato lab NAME --help.")
