"""A game between two worlds: the target's record is in the data, or it is not. The attacker knows both exact values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.curator import Curator
from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of
from sfumato.lab.success_rate import SuccessRate

ONE_TRIAL_EACH = "Each trial is answered at ε by a throwaway curator whose budget pays for all trials."


@dataclass(frozen=True, slots=True)
class World:
    """The naive value and Sfumato's curator of one world, and the value that the attacker expects from it."""

    naive_value: float
    true_value: float
    curator: Curator


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of data: without and with the target. `sql` has a place for a number that selects all rows."""

    name: str
    sensitivity: float  # what the naive release claims, and what Sfumato certifies
    sql: str
    absent: World
    present: World

    @property
    def naive_change(self) -> float:
        """How much the target changes the naive value, in claimed sensitivities."""
        return abs(self.present.naive_value - self.absent.naive_value) / self.sensitivity


def play(case: Case, setup: Setup) -> tuple[SuccessRate, SuccessRate]:
    """Both success rates: against numpy's Laplace noise on the naive value, and against Sfumato."""
    secrets = setup.generator.integers(0, 2, setup.trials)
    worlds = [case.present if secret else case.absent for secret in secrets]
    noise = setup.generator.laplace(0, case.sensitivity * setup.naive_scale, setup.trials)
    naive_outputs = np.array([world.naive_value for world in worlds]) + noise
    outputs = np.array(
        [
            world.curator.ask(case.sql.format(number), epsilon=setup.epsilon).rows[0]["value"]
            for number, world in enumerate(worlds)
        ],
        dtype=float,
    )
    naive_guesses = _guess(naive_outputs, case.absent.naive_value, case.present.naive_value)
    guesses = _guess(outputs, case.absent.true_value, case.present.true_value)
    return count_successes(naive_guesses, secrets), count_successes(guesses, secrets)


def attack_cases(
    setup: Setup,
    part: Setup,
    cases: Sequence[Case],
    *,
    name: str,
    title: str,
    story: Story,
    success: str,
    panel: Panel,
    caption: str,
) -> AttackResult:
    """The result of an attack with several kinds of data. `part` is the setup of each of them."""
    naive, protected = play_cases(cases, part)
    limit = limit_of(setup)
    figure = Figure(name.capitalize(), (panel, compare_rates(naive, protected, limit, 0.5)), caption)
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name=name,
        title=title,
        story=story,
        success=success,
        figure=figure,
        notes=(ONE_TRIAL_EACH,),
    )


def play_cases(cases: Sequence[Case], setup: Setup) -> tuple[SuccessRate, SuccessRate]:
    """Both success rates over all cases, which are closed."""
    rates = [play(case, setup) for case in cases]
    close(cases)
    return add_rates([naive for naive, _ in rates]), add_rates([protected for _, protected in rates])


def add_rates(rates: Sequence[SuccessRate]) -> SuccessRate:
    """All trials together."""
    return SuccessRate(sum(rate.successes for rate in rates), sum(rate.trials for rate in rates))


def close(cases: Sequence[Case]) -> None:
    """Close all curators."""
    for case in cases:
        case.absent.curator.close()
        case.present.curator.close()


def _guess(outputs: np.ndarray, absent: float, present: float) -> np.ndarray:
    """The world with the nearer value. Only the present world can make the output NaN."""
    is_present = np.isnan(outputs) if np.isnan(present) else np.abs(outputs - present) < np.abs(outputs - absent)
    guesses: np.ndarray = is_present.astype(int)
    return guesses
