"""Reconstruction: recover every secret bit from many noisy subset sums (Dinur and Nissim, 2003)."""

import math

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Line, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import (
    PERCENTS,
    Setup,
    compare_rates,
    conclude,
    count_successes,
    limit_of,
    protect_rows,
    read_setup,
)
from sfumato.lab.success_rate import SuccessRate
from sfumato.number_arguments import Number

QUESTIONS_PER_PERSON = 4
DRAWN = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # questions for each person, in the figure
ASKED = (0.5, QUESTIONS_PER_PERSON)  # those of them that Sfumato is asked


def reconstruction(*, epsilon: Number = 1, seed: int | None = None, trials: int = 64) -> AttackResult:
    """Recover every secret bit from many noisy sums over random subsets, by least squares."""
    setup = read_setup(epsilon, seed, trials, most=200)
    people = setup.trials
    secrets = setup.generator.integers(0, 2, people)
    subsets = setup.generator.integers(0, 2, (QUESTIONS_PER_PERSON * people, people))
    noisy_sums = subsets @ secrets + setup.generator.laplace(0, setup.naive_scale, len(subsets))
    naive_curve = {
        share: _solve(subsets, noisy_sums[: math.ceil(share * people)], secrets, setup.naive_scale) for share in DRAWN
    }
    curve = {}
    for share in ASKED:
        sums = _ask_sums(subsets, secrets, share, setup)
        curve[share] = _solve(subsets, sums, secrets, setup.naive_scale * len(sums))
    naive, protected = naive_curve[QUESTIONS_PER_PERSON], curve[QUESTIONS_PER_PERSON]
    limit = limit_of(setup)
    questions = len(subsets)
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="reconstruction",
        title="Reconstruction: every bit from many subset sums",
        story=Story(
            f"Who is in the table of {people} people, but nobody's secret bit.",
            f"The attacker asks for the sum of the bits over {questions} random subsets, and solves the equations by "
            "least squares. The naive release answers each question with fresh noise of scale 1/ε. Sfumato charges "
            "every question: ε for all of them means noise of scale "
            f"{questions}/ε for each.",
            "From the naive answers, almost every bit: noise that is small next to the square root of the number of "
            "people cancels out. From Sfumato, hardly more than by guessing.",
        ),
        success="A person's bit is recovered.",
        figure=Figure(
            "Reconstruction",
            (_show_questions(naive_curve, curve), compare_rates(naive, protected, limit, 0.5)),
            "Left: the share of recovered bits, for growing numbers of questions.",
        ),
        notes=(
            "The limit holds for each person. Guesses about one table are not independent, so the interval is rough.",
        ),
    )


def _solve(subsets: np.ndarray, sums: np.ndarray, secrets: np.ndarray, scale: float) -> SuccessRate:
    """Least squares on as many questions as there are sums.

    Bits are centred at 0 with variance 1/4, and the noise has variance 2 * scale^2: their ratio keeps the solution
    short where the questions say little.
    """
    asked = subsets[: len(sums)].astype(float)
    targets = sums - asked.sum(axis=1) / 2
    ratio = 8 * scale**2
    estimates = np.linalg.solve(asked.T @ asked + ratio * np.eye(len(secrets)), asked.T @ targets)
    return count_successes(estimates > 0, secrets)


def _ask_sums(subsets: np.ndarray, secrets: np.ndarray, share: float, setup: Setup) -> np.ndarray:
    """Sfumato's noisy sums over the first questions, for ε together."""
    people = len(secrets)
    used = math.ceil(share * people)
    table = pa.table({"seat": np.arange(people), "bit": secrets})
    columns = {"seat": Integer(0, people - 1), "bit": Integer(0, 1)}
    curator = protect_rows(table, columns, setup, rows=people)
    price = f"{float(setup.epsilon) / used * (1 - 1e-9):.12g}"  # a bit less, so that the sum fits the budget
    sums = []
    for subset in subsets[:used]:
        seats = ", ".join(map(str, np.flatnonzero(subset))) or "-1"
        answer = curator.ask(f"SELECT SUM(bit) AS total FROM people WHERE seat IN ({seats})", epsilon=price)
        sums.append(answer.rows[0]["total"])
    curator.close()
    return np.array(sums, dtype=float)


def _show_questions(naive: dict[float, SuccessRate], protected: dict[float, SuccessRate]) -> Panel:
    line = tuple((share, 100 * rate.share) for share, rate in naive.items())
    dots = tuple((share, 100 * rate.share) for share, rate in protected.items())
    return Panel(
        "Recovered bits",
        "The naive release gives away more bits with every question. Sfumato's answers get noisier instead.",
        Axis("questions per person", 0, QUESTIONS_PER_PERSON + 0.2),
        Axis("recovered bits in %", 0, 104, PERCENTS),
        (
            Line(line, "naive", "naive"),
            Dots(line, "naive", shape="square"),
            Line(dots, "protected", "Sfumato"),
            Dots(dots, "protected", size=4),
        ),
    )
