"""Differencing: compare the total before and after one person drops out."""

from itertools import count

import numpy as np
import pyarrow as pa

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import Integer
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Panel
from sfumato.kernel.exact import write_plain
from sfumato.kernel.neighbours import ROW
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of, read_setup
from sfumato.number_arguments import Number
from sfumato.opening import protect

TEAM = 10
LOWEST, STEP, GRADES = 30, 10, 10  # pay in thousands: 30, 40, ... 120
HIGHEST = LOWEST + STEP * (GRADES - 1)
_RUNS = count(1)


def differencing(*, epsilon: Number = 1, seed: int | None = None, trials: int = 200) -> AttackResult:
    """Compare the average before and after one person drops out."""
    setup = read_setup(epsilon, seed, trials)
    pay = LOWEST + STEP * setup.generator.integers(0, GRADES, (setup.trials, TEAM))
    secrets = pay[:, 0]  # the first of each team leaves
    naive_estimates = TEAM * pay.mean(axis=1) - (TEAM - 1) * pay[:, 1:].mean(axis=1)
    estimates = _ask_difference(pay, setup)
    naive = count_successes(_round_to_grades(naive_estimates), secrets)
    protected = count_successes(_round_to_grades(estimates), secrets)
    limit = limit_of(setup, values=GRADES)
    figure = Figure(
        "Differencing",
        (
            _show_errors(naive_estimates - secrets, estimates - secrets),
            compare_rates(naive, protected, limit, 1 / GRADES),
        ),
        "Left: how far the attacker's estimate is from the pay, over all teams. The last bars hold all larger errors.",
    )
    half = write_plain(setup.epsilon / 2)
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="differencing",
        title="Differencing: the average before and after one person leaves",
        story=Story(
            f"The average pay of a team of {TEAM}, and its average after one person left. Both are published.",
            "The attacker multiplies each average by its number of people and subtracts.",
            "From exact averages, the pay of the person who left. From Sfumato, the difference of two noisy numbers. "
            f"Both questions are charged to one budget, ε = {half} each, as both tables are about the same people.",
        ),
        success=f"The attacker names the pay grade, one of {GRADES} equally likely ones.",
        figure=figure,
        notes=("All teams are answered by one question with GROUP BY. A person is in one team, so it costs ε once.",),
    )


def _ask_difference(pay: np.ndarray, setup: Setup) -> np.ndarray:
    """The difference of Sfumato's two noisy sums of each team."""
    totals = []
    opened = []
    population = f"staff of the lab {next(_RUNS)}"  # both months have one budget in one ledger; no two runs share one
    for month, table in (("january", pay), ("february", pay[:, 1:])):
        teams, members = table.shape
        curator = protect(
            pa.table({"team": np.repeat(np.arange(teams), members), "pay": table.ravel()}),
            name=month,
            unit=ROW,
            columns={"team": Integer(0, teams - 1), "pay": Integer(LOWEST, HIGHEST)},
            budget=Budget(epsilon=setup.epsilon),
            population=population,
            neighbours="replace-one",
            rows=table.size,
        )
        opened.append(curator)
        answer = curator.ask(f"SELECT team, SUM(pay) AS total FROM {month} GROUP BY team", epsilon=setup.epsilon / 2)
        totals.append(np.array([row["total"] for row in sorted(answer.rows, key=lambda row: row["team"])]))
    for curator in opened:
        curator.close()
    difference: np.ndarray = totals[0] - totals[1]
    return difference


def _round_to_grades(estimates: np.ndarray) -> np.ndarray:
    rounded: np.ndarray = np.clip(LOWEST + STEP * np.rint((estimates - LOWEST) / STEP), LOWEST, HIGHEST)
    return rounded


def _show_errors(naive: np.ndarray, protected: np.ndarray) -> Panel:
    edges = np.arange(-1050, 1051, 100)
    shares = [np.histogram(np.clip(errors, -1049, 1049), edges)[0] * 100 / len(errors) for errors in (naive, protected)]
    bars = [
        tuple(
            (float(edge) + low, float(edge) + high, float(share)) for edge, share in zip(edges, heights, strict=False)
        )
        for heights, low, high in ((shares[0], 5, 50), (shares[1], 50, 95))
    ]
    return Panel(
        "The error of the attacker's estimate",
        "From exact averages, every error is 0. From Sfumato, errors of several hundred thousand are common.",
        Axis(
            "error in thousands (pay: 30 to 120)",
            -1050,
            1050,
            tuple((float(at), str(at)) for at in range(-1000, 1001, 500)),
        ),
        Axis("teams in %", 0, 104),
        (Bars(bars[0], "naive", "naive"), Bars(bars[1], "protected", "Sfumato")),
    )
