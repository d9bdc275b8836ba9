"""Averaging: repeat one question until the average of the answers is the truth."""

import numpy as np
import pyarrow as pa

from sfumato.catalog.columns import Integer
from sfumato.curator import Curator
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Line, Panel, Rule
from sfumato.errors import BudgetExceeded
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of, protect_rows, read_setup
from sfumato.number_arguments import Number

REPEATS = 4_000
VARIANTS = 5  # that the attacker tries; the budget pays for four
AFFORDED = 4
OTHERS = 6  # people who are counted in every town, besides the target
SQL = "SELECT town, COUNT(*) AS n FROM people WHERE ill >= {least} GROUP BY town"


def averaging(*, epsilon: Number = 1, seed: int | None = None, trials: int = 400) -> AttackResult:
    """Repeat one question against a naive release until the average is the truth."""
    setup = read_setup(epsilon, seed, trials)
    secrets = setup.generator.integers(0, 2, setup.trials)  # is the target of each town ill?
    truth = OTHERS + secrets
    noise = setup.generator.laplace(0, setup.naive_scale * AFFORDED, (setup.trials, REPEATS))
    naive_means = truth + noise.mean(axis=1)
    answers, refused = _ask_variants(truth, setup)
    naive = count_successes(naive_means > OTHERS + 0.5, secrets)
    protected = count_successes(answers.mean(axis=0) > OTHERS + 0.5, secrets)
    limit = limit_of(setup)
    running = truth[0] + np.cumsum(noise[0]) / np.arange(1, REPEATS + 1)
    figure = Figure(
        "Averaging",
        (_show_running(running, answers[:, 0], int(truth[0])), compare_rates(naive, protected, limit, 0.5)),
        f"Left: the average of the first answers, for one town. Sfumato returns the stored answer when a question is "
        f"repeated, and refuses new variants when the budget is spent: {AFFORDED} of {VARIANTS} are answered.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="averaging",
        title="Averaging: the same question again and again",
        story=Story(
            f"{OTHERS} people of a town are ill. The attacker does not know whether the target is ill too.",
            f"The attacker asks for the number of ill people {REPEATS:,} times and averages the answers. Then the "
            "attacker tries variants of the question that mean the same.",
            "From fresh noise each time, the exact number. Sfumato returns the stored answer for a repeated question, "
            f"and pays for each variant from one budget: {refused} of {VARIANTS} variants are refused.",
        ),
        success="The attacker says correctly whether the target is ill.",
        figure=figure,
        notes=(
            f"Each answer costs a quarter of ε. The naive release would have spent {REPEATS // AFFORDED} ε.",
            "Each question answers all towns with GROUP BY. A person is in one town, so it costs its price once.",
        ),
    )


def _ask_variants(truth: np.ndarray, setup: Setup) -> tuple[np.ndarray, int]:
    """The answers that Sfumato gives, one row for each variant, and the number of refused variants."""
    towns = len(truth)
    table = pa.table({"town": np.repeat(np.arange(towns), truth), "ill": np.ones(truth.sum(), dtype=int)})
    curator = protect_rows(table, {"town": Integer(0, towns - 1), "ill": Integer(0, 1)}, setup)
    answers: list[np.ndarray] = []
    refused = 0
    for variant in range(VARIANTS):
        try:
            answers.append(_ask(curator, variant, setup))
        except BudgetExceeded:
            refused += 1
    repeated = _ask(curator, 0, setup)  # free: the stored answer
    if not np.array_equal(repeated, answers[0]):
        raise AssertionError("a repeated question got another answer")
    curator.close()
    return np.stack(answers), refused


def _ask(curator: Curator, variant: int, setup: Setup) -> np.ndarray:
    sql = SQL.format(least=f"{1 - variant / 10:g}")  # ill >= 1, ill >= 0.9, ...: the same rows
    answer = curator.ask(sql, epsilon=setup.epsilon / AFFORDED)
    return np.array([row["n"] for row in sorted(answer.rows, key=lambda row: row["town"])])


def _show_running(running: np.ndarray, answers: np.ndarray, truth: int) -> Panel:
    places = [number for number in range(1, REPEATS + 1) if number <= 20 or number % 10 == 0]
    naive = tuple((float(number), float(running[number - 1])) for number in places)
    mean = float(answers.mean())
    steps = [(float(number), float(answers[: min(number, AFFORDED)].mean())) for number in range(1, AFFORDED + 1)]
    values = [value for _, value in (*naive, *steps)]
    return Panel(
        "The average of the answers so far",
        f"The naive average approaches the truth, {truth}. Sfumato's average stops changing after {AFFORDED} answers.",
        Axis("number of questions", 1, REPEATS, log=True),
        Axis("average answer", min(*values, truth - 2) - 1, max(*values, truth + 2) + 1),
        (
            Rule("limit", y=truth, text="the truth"),
            Line(naive, "naive", "naive"),
            Line((*steps, (float(REPEATS), mean)), "protected", "Sfumato"),
        ),
    )
