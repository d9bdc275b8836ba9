"""The tour: a clinic of patients who do not exist, asked by the very commands that are shown."""

import csv
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

PATIENTS = 1_000
WARDS = ("north", "south", "east", "west")
PLOT = "sfumato-demo.svg"
SMOKERS = "SELECT COUNT(*) AS smokers FROM patients WHERE smoker"
PAIN = "SELECT ward, COUNT(*) AS n, AVG(pain) AS pain FROM patients GROUP BY ward"

Command = Callable[[list[str]], int]


def made_up_patients() -> Iterator[dict[str, int | str]]:
    """Ages, wards, smokers and pain scores of patients who do not exist: fixed arithmetic, no chance."""
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
        rows = list(made_up_patients())
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run_demo(console: Console, command: Command, plot: Path | None) -> None:
    """Each step: what it is for, the command line that does it, and what that prints."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as scratch, _keys_in(Path(scratch) / "keys"):
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
        _owner(tour)
        _analyst(tour, plot)
        console.print()
        console.print(
            f"That was all of it. The clinic is gone{f'; the plot is in {plot}' if plot else ''}.", markup=False
        )
        console.print("Your own data: sfumato init DIR, then sfumato -C DIR add NAME SOURCE --unit COLUMN")


@contextmanager
def _keys_in(folder: Path) -> Iterator[None]:
    """The key of the made-up clinic's ledger goes with the clinic: nothing of it stays in the user's home."""
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

    def run(self, *arguments: str) -> None:
        """Show the command line, and run it."""
        shown = " ".join(map(_quoted, ("sfumato", "-C", "clinic", *arguments)))
        self.console.print(Text(f"$ {shown}", "cyan"), soft_wrap=True)
        with redirect_stderr(sys.stdout):  # a refusal is part of the tour, in its place
            self._command(["-C", str(self._folder), *arguments])


def _owner(tour: _Tour) -> None:
    tour.step("The owner declares", "A budget for the whole population, and for each column what it can hold.")
    tour.run("init", ".", "--name", "clinic", "--epsilon", "2", "--delta", "0")
    columns = ("age:integer:0:120", f"ward:category:{','.join(WARDS)}", "smoker:boolean", "pain:integer:1:10")
    options = [part for each in columns for part in ("--column", each)]
    tour.run("add", "patients", "patients.csv", "--unit", "patient_id", *options)
    tour.run("check")


def _analyst(tour: _Tour, plot: Path | None) -> None:
    truth = sum(row["smoker"] == "true" for row in made_up_patients())
    tour.step("Preview", "How many smoke? First, for free: what would it cost, and how wide would the answer be?")
    tour.run("preview", SMOKERS, "--epsilon", "0.5")
    tour.step("Ask", "The charge is written down before the data is touched; then exact noise is added.")
    tour.run("ask", SMOKERS, "--epsilon", "0.5")
    tour.console.print(f"The truth is {truth}; it is told only because nobody here is real.")
    tour.step("Ask again", "The same question is the same answer: nothing to average away, and nothing to pay.")
    tour.run("ask", SMOKERS, "--epsilon", "0.5")
    tour.step("Groups and error bars", "Every number comes with the interval that its noise leaves.")
    tour.run("ask", PAIN, "--epsilon", "1", *(["--plot", str(plot)] if plot else []))
    tour.step("The budget", "Sums are exact, and every charge is in a chain that anybody can check.")
    tour.run("budget")
    tour.run("ledger", "verify")
    tour.step("Overspend", "A question that no longer fits is refused, and costs nothing.")
    tour.run("ask", "SELECT AVG(age) AS age FROM patients", "--epsilon", "1")


def _quoted(part: str) -> str:
    return f'"{part}"' if " " in part and not set(part) & set('"$`\\!') else shlex.quote(part)
