"""`sfumato lab`: attacks and explanations on generated data. To add a command, add a line to COMMANDS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from sfumato.cli import lab_explanations
from sfumato.cli.lab_results import Html, show_result
from sfumato.cli.refusals import refusals
from sfumato.cli.show import AsJson, print_table, say, working
from sfumato.lab.attack_names import ATTACKS, AttackName

Epsilon = Annotated[str, typer.Option(help="The privacy loss of the protected release.")]
Seed = Annotated[int | None, typer.Option(help="Fixes the data and the naive noise; never Sfumato's noise.")]
Trials = Annotated[int | None, typer.Option(help="How often the attack is tried. Each attack has its own default.")]

lab = typer.Typer(help="Attacks and explanations on generated data: see what differential privacy prevents.")


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


COMMANDS: tuple[LabCommand, ...] = (
    *(LabCommand(attack.name, make_attack_command(attack), "Attacks") for attack in ATTACKS),
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
