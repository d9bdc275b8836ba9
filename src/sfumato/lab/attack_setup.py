"""What all attacks share: their arguments, the throwaway curator, their result, and the panel of success rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from sfumato.catalog.budget import Budget
from sfumato.catalog.columns import ColumnDeclaration
from sfumato.curator import Curator
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Mark, Panel, Rule, Strokes
from sfumato.errors import InvalidParameter
from sfumato.kernel.neighbours import ROW
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.guess_limits import limit_guess, name_limit
from sfumato.lab.success_rate import SuccessRate, show_share
from sfumato.number_arguments import Number, read_privacy_amount, read_whole_number
from sfumato.opening import protect

MOST_TRIALS = 20_000


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments of an attack, checked, with the generator of its data and of the naive noise."""

    epsilon: Decimal
    seed: int | None
    trials: int
    generator: np.random.Generator

    @property
    def naive_scale(self) -> float:
        """The scale of textbook Laplace noise for sensitivity 1."""
        return 1 / float(self.epsilon)


@dataclass(frozen=True, slots=True)
class Limit:
    """A theoretical limit on the success rate, with its formula."""

    rate: float
    formula: str


def read_setup(epsilon: Number, seed: int | None, trials: int, *, most: int = MOST_TRIALS) -> Setup:
    """Check the arguments of an attack that can be tried `most` times."""
    chosen = None if seed is None else read_whole_number(seed, "seed", 0)
    if read_whole_number(trials, "trials", 1) > most:
        raise InvalidParameter("trials", f"must be at most {most:,} for this attack", "a larger number")
    return Setup(read_privacy_amount(epsilon, "epsilon"), chosen, int(trials), np.random.default_rng(chosen))


def limit_of(setup: Setup, values: int = 2) -> Limit:
    """The limit for a secret with equally likely values."""
    return Limit(limit_guess(setup.epsilon, values=values), name_limit(values=values))


def count_successes(guesses: object, secrets: object) -> SuccessRate:
    """How many guesses equal their secrets."""
    right = np.asarray(guesses) == np.asarray(secrets)
    return SuccessRate(int(right.sum()), right.size)


def protect_rows(
    table: object,
    columns: Mapping[str, ColumnDeclaration],
    setup: Setup,
    *,
    questions: int = 1,
    rows: int | None = None,
) -> Curator:
    """A throwaway curator of a table `people`, with a ledger in memory and a budget for `questions` questions.

    With `rows`, the number of rows is public, and neighbours differ in one row's values.
    """
    return protect(
        table,
        name="people",
        unit=ROW,
        columns=columns,
        budget=Budget(epsilon=setup.epsilon * questions),
        neighbours="add-remove" if rows is None else "replace-one",
        rows=rows,
    )


def conclude(
    setup: Setup,
    limit: Limit,
    naive: SuccessRate,
    protected: SuccessRate,
    *,
    name: str,
    title: str,
    story: Story,
    success: str,
    figure: Figure,
    notes: tuple[str, ...] = (),
) -> AttackResult:
    """The result of an attack."""
    return AttackResult(
        name=name,
        title=title,
        story=story,
        success=success,
        naive=naive,
        protected=protected,
        limit=limit.rate,
        formula=limit.formula,
        epsilon=setup.epsilon,
        seed=setup.seed,
        figure=figure,
        notes=notes,
    )


def compare_rates(naive: SuccessRate, protected: SuccessRate, limit: Limit, chance: float = 0.0) -> Panel:
    """The panel that every attack has: both success rates with their intervals, the limit and blind guessing."""
    marks: list[Mark] = [
        Bars(((0.1, 0.9, 100 * naive.share),), "naive"),
        Bars(((1.1, 1.9, 100 * protected.share),), "protected"),
        Rule("limit", y=100 * limit.rate, text=f"limit {show_share(limit.rate)}"),
    ]
    for place, rate in ((0.5, naive), (1.5, protected)):
        low, high = rate.interval()
        marks.append(Strokes((place,), 100 * low, 100 * high, "plain", width=2))
    words = f"The naive release: {naive}. Sfumato: {protected}. The limit is {show_share(limit.rate)}."
    if chance:
        marks.append(Rule("limit", y=100 * chance, text=f"blind guess {show_share(chance)}", below=True))
        words += f" A blind guess succeeds in {show_share(chance)}."
    ticks = ((0.5, f"naive {show_share(naive.share)}"), (1.5, f"Sfumato {show_share(protected.share)}"))
    across = Axis("upright strokes: 95 % confidence intervals", 0, 3.3, ticks)  # the right third is for the texts
    return Panel("How often the attack succeeds", words, across, Axis("success in %", 0, 104, PERCENTS), tuple(marks))


PERCENTS = tuple((float(percent), f"{percent}") for percent in range(0, 101, 20))
