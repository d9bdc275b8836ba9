"""Collusion: all students but one combine their grades with the published average."""

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Line, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of, protect_rows, read_setup
from sfumato.number_arguments import Number

STUDENTS = 20
LOWEST, HIGHEST = 1, 10
GRADES = HIGHEST - LOWEST + 1
DRAWN = 60  # classes in the figure


def collusion(*, epsilon: Number = 1, seed: int | None = None, trials: int = 200) -> AttackResult:
    """Let n - 1 students combine their grades with the average, to compute the grade of the last one."""
    setup = read_setup(epsilon, seed, trials)
    grades = setup.generator.integers(LOWEST, HIGHEST + 1, (setup.trials, STUDENTS))
    secrets, known = grades[:, 0], grades[:, 1:].sum(axis=1)
    naive_estimates = STUDENTS * grades.mean(axis=1) - known
    estimates = _ask_sums(grades, setup) - known
    naive = count_successes(_round_to_grades(naive_estimates), secrets)
    protected = count_successes(_round_to_grades(estimates), secrets)
    limit = limit_of(setup, values=GRADES)
    figure = Figure(
        "Collusion",
        (
            _show_estimates(secrets[:DRAWN], naive_estimates[:DRAWN], estimates[:DRAWN]),
            compare_rates(naive, protected, limit, 1 / GRADES),
        ),
        f"One dot for each of {min(DRAWN, setup.trials)} classes, moved a little sideways so that dots do not overlap.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="collusion",
        title="Collusion: n - 1 students and the average",
        story=Story(
            f"In a class of {STUDENTS}, {STUDENTS - 1} students tell each other their grades.",
            f"They multiply the published average by {STUDENTS} and subtract their own grades.",
            "From the exact average, the grade of the last student. From Sfumato's noisy sum, a number that may be far "
            "below the lowest or above the highest grade.",
        ),
        success=f"They name the last student's grade, one of {GRADES} equally likely ones.",
        figure=figure,
        notes=(
            "All classes are answered by one question with GROUP BY. A student is in one class, so it costs ε once.",
        ),
    )


def _ask_sums(grades: np.ndarray, setup: Setup) -> np.ndarray:
    """Sfumato's noisy sum of each class."""
    classes = len(grades)
    table = pa.table({"class": np.repeat(np.arange(classes), STUDENTS), "grade": grades.ravel()})
    columns = {"class": Integer(0, classes - 1), "grade": Integer(LOWEST, HIGHEST)}
    curator = protect_rows(table, columns, setup, rows=grades.size)
    answer = curator.ask("SELECT class, SUM(grade) AS total FROM people GROUP BY class", epsilon=setup.epsilon)
    curator.close()
    totals = {row["class"]: row["total"] for row in answer.rows}
    return np.array([totals[number] for number in range(classes)])


def _round_to_grades(estimates: np.ndarray) -> np.ndarray:
    rounded: np.ndarray = np.clip(np.rint(estimates), LOWEST, HIGHEST)
    return rounded


def _show_estimates(secrets: np.ndarray, naive: np.ndarray, protected: np.ndarray) -> Panel:
    low, high = min(-20.0, float(protected.min())), max(30.0, float(protected.max()))
    aside = np.linspace(-0.25, 0.25, len(secrets))
    return Panel(
        "What the colluders compute",
        "From the exact average, every estimate equals the grade. From Sfumato, estimates are spread widely.",
        Axis(
            "the last student's grade",
            LOWEST - 0.7,
            HIGHEST + 0.7,
            tuple((float(grade), str(grade)) for grade in range(1, 11)),
        ),
        Axis("the colluders' estimate", low - 2, high + 2),
        (
            Line(((LOWEST, LOWEST), (HIGHEST, HIGHEST)), "limit", "the truth", dashed=True),
            Dots(tuple(zip((secrets + aside).tolist(), protected.tolist(), strict=True)), "protected", "Sfumato"),
            Dots(tuple(zip((secrets + aside).tolist(), naive.tolist(), strict=True)), "naive", "naive", "square", 2.5),
        ),
    )
