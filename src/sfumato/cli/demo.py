"""The tour: a first private answer from each mechanism, on patients who do not exist."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import sfumato as sf

PATIENTS = 1_000
OLDEST = 120
WORST = 150
BANDS = ("0-29", "30-59", "60-89", "90-119")


def made_up_patients() -> dict[str, npt.NDArray[np.int64]]:
    """Ages, smokers and pain scores of patients who do not exist: fixed arithmetic, no chance."""
    index = np.arange(PATIENTS, dtype=np.int64)
    age = 18 + (index * index * 7 + index * 31) % 67 + (index % 5) * 3
    pain = 1 + 10 * (index * 37 % 100) ** 2 // 10_000
    return {"age": age, "smoker": (index * 13 % 100 < 27).astype(np.int64), "pain": pain}


def run_demo(console: Console) -> None:
    """Ask, show, and add up the price."""
    people = made_up_patients()
    console.print(
        Panel(
            "A clinic holds 1,000 made-up patients. Each answer below hides any one of them: replace one patient by "
            "another, and no answer becomes more than e^ε times likelier. The truth is shown only because nobody here "
            "is real. ± holds in 95 of 100 releases.",
            title="Sfumato",
            expand=False,
        )
    )
    spent = sf.PureDP(0)
    table = Table(title="What the analyst sees")
    for heading in ("Question", "Answer", "±", "Truth", "ε"):
        table.add_column(heading, overflow="fold")

    count = sf.Laplace(sensitivity=1, epsilon="0.5")
    smokers = int(people["smoker"].sum())
    table.add_row("How many smoke?", str(count.release(smokers)), str(count.margin(0.95)), str(smokers), "0.5")
    spent = spent.compose(count.loss)

    mean = sf.Laplace(sensitivity=Fraction(OLDEST, PATIENTS), epsilon="0.5")
    age = float(people["age"].mean())
    table.add_row("Their mean age?", f"{mean.release(age):.2f}", f"{mean.margin(0.95):.2f}", f"{age:.2f}", "0.5")
    spent = spent.compose(mean.loss)

    reached = np.array([int((people["pain"] >= score).sum()) for score in range(1, 11)])
    scores = -np.abs(reached - WORST)  # one patient moves each by at most 1
    worst = sf.PrivateChoice(sensitivity=1, epsilon="0.5")
    truth = int(np.argmax(scores)) + 1
    table.add_row(f"Pain (1-10) that the worst {WORST} reach?", str(worst.release(scores) + 1), "", str(truth), "0.5")
    spent = spent.compose(worst.loss)

    histogram = sf.Laplace(sensitivity=2, epsilon="0.5")  # one patient may leave a band and enter another
    truths = np.bincount(people["age"] // 30, minlength=len(BANDS))
    released = np.asarray(histogram.release(truths))
    margin = histogram.margin(0.95)
    for band, noisy, exact in zip(BANDS, released, truths, strict=True):
        table.add_row(
            f"Aged {band}?", str(noisy), str(margin), str(exact), "0.5 for all four" if band == BANDS[0] else ""
        )
    spent = spent.compose(histogram.loss)
    console.print(table)

    _show_survey(console, people["smoker"] == 1)
    family = spent.group(4)
    console.print(
        f"Spent on the clinic's data: [bold]ε = {spent.epsilon}[/bold], exactly; for a family of 4, {family.epsilon}. "
        "Asked again and again, any of these answers would average to the truth: that is why data has a budget."
    )


def _show_survey(console: Console, smokers: npt.NDArray[np.bool_]) -> None:
    coins = sf.RandomizedResponse(truth=Fraction(3, 4))
    estimate = coins.estimate(coins.randomise(smokers))
    console.print(
        f"Without a curator: each patient flips two coins before answering (ε = ln 3 each). From 1,000 such reports: "
        f"{estimate.value:.1%} smoke, between {estimate.low:.1%} and {estimate.high:.1%}; the truth is "
        f"{smokers.mean():.1%}."
    )
