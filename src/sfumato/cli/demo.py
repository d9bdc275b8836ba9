"""The demo: a clinic of made-up patients. It runs the same commands that it shows."""

import csv
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import typer
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from sfumato.cli.refusals import BUDGET, OTHER

PATIENTS = 1_000
WARDS = ("north", "south", "east", "west")
PLOT = "sfumato-demo.svg"
SMOKERS = "SELECT COUNT(*) AS smokers FROM patients WHERE smoker"
PAIN = "SELECT ward, COUNT(*) AS n, AVG(pain) AS pain FROM patients GROUP BY ward"

NEXT = (
    ("Your own data", "sfumato init clinic && sfumato -C clinic add visits visits.csv --unit patient_id"),
    ("Ask it at a prompt, with a preview before each question", "sfumato -C clinic shell"),
    ("Ask it in Python or a notebook", "import sfumato as sf; clinic = sf.open('clinic'); clinic.tables"),
    ("What an epsilon means for one person", "sfumato epsilon 1"),
    ("What goes wrong without noise", "sfumato lab"),
)

Command = Callable[[list[str]], int]


def make_up_patients() -> Iterator[dict[str, int | str]]:
    """Ages, wards, smokers and pain scores of made-up patients, by fixed arithmetic."""
    for index in range(PATIENTS):
        yield {
            "patient_id": f"p{index:04}",
            "age": 18 + (index * index * 7 + index * 31) % 67 + (index % 5) * 3,
            "ward": WARDS[(index * index + index // 7) % 11 % 4],
            "smoker": "true" if index * 13 % 100 < 27 else "false",
            "pain": 1 + 10 * (index * 37 % 100) ** 2 // 10_000,
        }


def write_clinic(folder: Path) -> None:
    """The patients as a CSV file."""
    with (folder / "patients.csv").open("w", newline="", encoding="utf-8") as file:
        rows = list(make_up_patients())
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run_demo(console: Console, command: Command, plot: Path | None) -> None:
    """Run the steps. Each shows its purpose, its command line and what the command prints."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as scratch, _keep_keys_in(Path(scratch) / "keys"):
        folder = Path(scratch) / "clinic"
        folder.mkdir()
        write_clinic(folder)
        tour = _Tour(console, command, folder)
        console.print(
            Panel(
                "A clinic holds 1,000 made-up patients. Its owner declares what is public; analysts ask in SQL. Each "
                "answer hides any one patient: with or without them, no answer becomes more than e^ε times likelier.",
                title="Sfumato",
                expand=False,
                width=min(console.width, 100),
            )
        )
        _play_owner(tour)
        _play_analyst(tour, plot)
        console.print()
        console.print(
            f"That was the tour. The clinic is deleted{f'; the plot is in {plot}' if plot else ''}.", markup=False
        )
        console.print(Rule(Text("What to do next", "bold"), align="left"))
        for purpose, line in NEXT:
            console.print(f"{purpose}:", markup=False)
            console.print(Text(f"  {line}", "cyan"), soft_wrap=True)


@contextmanager
def _keep_keys_in(folder: Path) -> Iterator[None]:
    """Keep the key of the demo's ledger in the demo's folder, so that nothing stays in the user's home."""
    before = os.environ.get("SFUMATO_HOME")
    os.environ["SFUMATO_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SFUMATO_HOME"]
        else:
            os.environ["SFUMATO_HOME"] = before


class _Tour:
    def __init__(self, console: Console, command: Command, folder: Path) -> None:
        self.console = console
        self._command = command
        self._folder = folder
        self._steps = 0

    def step(self, heading: str, words: str) -> None:
        self._steps += 1
        self.console.print()
        self.console.print(Rule(Text(f"{self._steps}. {heading}", "bold"), align="left"))
        self.console.print(words, markup=False)

    def run(self, *arguments: str, expected: int = 0) -> None:
        """Show the command line, and run it. End the tour if it does not do what the tour says."""
        shown = " ".join(map(_quote, ("sfumato", "-C", "clinic", *arguments)))
        self.console.print(Text(f"$ {shown}", "cyan"), soft_wrap=True)
        with redirect_stderr(sys.stdout):  # a refusal is part of the tour, in its place
            code = self._command(["-C", str(self._folder), *arguments])
        if code != expected:
            self.console.print("The demo ends here: this command failed. Please report this.")
            raise typer.Exit(code or OTHER)


def _play_owner(tour: _Tour) -> None:
    tour.step(
        "The owner declares",
        "The owner declares a budget for the whole population and bounds or values for each column.",
    )
    tour.run("init", ".", "--name", "clinic", "--epsilon", "2", "--delta", "0")
    columns = ("age:integer:0:120", f"ward:category:{','.join(WARDS)}", "smoker:boolean", "pain:integer:1:10")
    options = [part for column in columns for part in ("--column", column)]
    tour.run("add", "patients", "patients.csv", "--unit", "patient_id", *options)
    tour.run("check")


def _play_analyst(tour: _Tour, plot: Path | None) -> None:
    truth = sum(row["smoker"] == "true" for row in make_up_patients())
    tour.step("Preview", "How many patients smoke? The preview is free: it shows the cost and the margin.")
    tour.run("preview", SMOKERS, "--epsilon", "0.5")
    tour.step("Ask", "The ledger records the charge before the data is read. Then exact noise is added.")
    tour.run("ask", SMOKERS, "--epsilon", "0.5")
    tour.console.print(f"The truth is {truth}; the demo can show it because its patients do not exist.")
    tour.step(
        "Ask again",
        "The same question gets the stored answer. It costs nothing, and its noise cannot be averaged away.",
    )
    tour.run("ask", SMOKERS, "--epsilon", "0.5")
    tour.step("Groups and error bars", "Each number has a 95 % confidence interval for its noise.")
    tour.run("ask", PAIN, "--epsilon", "1", *(["--plot", str(plot)] if plot else []))
    tour.step(
        "The budget", "Sums of charges are exact. Entries are chained by hash and signed, so anybody can check them."
    )
    tour.run("budget")
    tour.run("ledger", "verify")
    tour.step("Overspend", "A question that exceeds the budget is refused and costs nothing.")
    tour.run("ask", "SELECT AVG(age) AS age FROM patients", "--epsilon", "1", expected=BUDGET)


def _quote(part: str) -> str:
    return f'"{part}"' if " " in part and not set(part) & set('"$`\\!') else shlex.quote(part)
