"""Timing: the running time of a sampler reveals its noise (Jin et al., 2022)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import compare_rates, conclude, count_successes, limit_of, read_setup
from sfumato.number_arguments import Number
from sfumato.standalone.additive import Laplace

STEPS = 1_000  # the scale of the noise, and so the average number of coin flips of the naive sampler
BETWEEN = 50  # releases between two calibrations
CALIBRATION = 50  # draws with known noise, on a machine of the attacker's own
DRAWN = 150  # draws in the figure


@dataclass(frozen=True, slots=True)
class Draws:
    """Releases of values: outputs and the nanoseconds that each took."""

    values: np.ndarray
    outputs: np.ndarray
    times: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """The size of the noise."""
        sizes: np.ndarray = np.abs(self.outputs - self.values)
        return sizes


@dataclass(frozen=True, slots=True)
class Clock:
    """How the attacker reads times: start + slope * |noise|, times a factor of e^(+-spread)."""

    start: float
    slope: float
    spread: float

    def predict(self, sizes: np.ndarray) -> np.ndarray:
        """The time of draws with noise of these sizes."""
        times: np.ndarray = np.maximum(self.start + self.slope * sizes, 1.0)
        return times


def timing(*, epsilon: Number = 1, seed: int | None = None, trials: int = 1_000) -> AttackResult:
    """Measure the running time of a sampler, and compute its noise from it."""
    setup = read_setup(epsilon, seed, trials)
    secrets = setup.generator.integers(0, 2, setup.trials)
    most = max(1, round(STEPS * setup.epsilon))  # the sum is 0 or this: its sensitivity
    scale = most / float(setup.epsilon)
    mechanism = Laplace(sensitivity=most, epsilon=setup.epsilon)
    flip = setup.generator.random
    naive_draws, naive_guesses = _attack(lambda value: value + draw_naively(scale, flip), most * secrets, scale)
    draws, guesses = _attack(lambda value: int(mechanism.release(value)), most * secrets, scale)
    naive, protected = count_successes(naive_guesses, most * secrets), count_successes(guesses, most * secrets)
    limit = limit_of(setup)
    naive_correlation, correlation = _correlate(naive_draws), _correlate(draws)
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="timing",
        title="Timing: the time of a draw reveals the noise",
        story=Story(
            f"A sum is 0 or {most:,}. The attacker sees the noisy sum and the processor time of the draw.",
            "The naive sampler counts coin flips until the first head, so its time grows with the noise. The attacker "
            "measures it on a machine of their own, computes the size of the noise from the time, and subtracts it.",
            "From the naive sampler, the sum. Sfumato draws the digits of the noise independently: it takes the same "
            "number of steps for small and for large noise.",
        ),
        success="The attacker names the sum.",
        figure=Figure(
            "Timing",
            (
                _show_times("Naive sampler", "naive", naive_draws),
                _show_times("Sfumato", "protected", draws),
                compare_rates(naive, protected, limit, 0.5),
            ),
            "One dot for each draw. Draws that the machine interrupted are left out of the first two panels.",
        ),
        notes=(
            f"Rank correlation of time and noise: {naive_correlation:.2f} for the naive sampler, {correlation:.2f} for "
            "Sfumato. Times are processor times on this machine, now. They differ from run to run, also with a seed.",
            "Sfumato claims that the time of a draw does not depend on what is drawn, except for ties of bytes and the "
            "far tail. It does not claim that Python takes constant time (docs/threat-model.md).",
            "Jin et al. (2022) report up to 99.65 % for a sum protected with discrete Laplace noise.",
        ),
    )


def draw_naively(scale: float, flip: Callable[[], float]) -> int:
    """Discrete Laplace noise, by counting coin flips until the first head."""
    stop = -math.expm1(-1 / scale)
    while True:
        size = 0
        while flip() >= stop:
            size += 1
        if flip() < 0.5:
            return size
        if size:  # otherwise 0 would be drawn twice as often
            return -size


def _attack(release: Callable[[int], int], values: np.ndarray, scale: float) -> tuple[Draws, np.ndarray]:
    """Guess each value, 0 or the largest, from an output and its time.

    The clock is calibrated again and again, because machines vary.
    """
    for _ in range(50):  # the first calls are slow
        release(0)
    draws, guesses, most = [], [], int(values.max()) or 1
    for part in np.array_split(values, -(-len(values) // BETWEEN)):
        clock = _calibrate(_time_releases(release, np.zeros(CALIBRATION, dtype=int)))
        draws.append(_time_releases(release, part))
        scores = []
        for value in (0, most):
            sizes = np.abs(draws[-1].outputs - value)
            surprise = np.abs(np.log(draws[-1].times / clock.predict(sizes))) / clock.spread
            scores.append(-sizes / scale - np.minimum(surprise, 20.0))
        guesses.append(np.where(scores[1] > scores[0], most, 0))
    fields = (np.concatenate(columns) for columns in zip(*((d.values, d.outputs, d.times) for d in draws), strict=True))
    return Draws(*fields), np.concatenate(guesses)


def _time_releases(release: Callable[[int], int], values: np.ndarray) -> Draws:
    outputs, times = [], []
    for value in values.tolist():
        start = time.thread_time_ns()
        output = release(value)
        times.append(time.thread_time_ns() - start)
        outputs.append(output)
    return Draws(values, np.array(outputs, dtype=float), np.array(times, dtype=float))


def _calibrate(draws: Draws) -> Clock:
    """A line through the times of known noise. Slow outliers are left out."""
    usual = _find_usual(draws)
    slope, start = np.polyfit(draws.sizes[usual], draws.times[usual], 1)
    clock = Clock(float(start), float(slope), 1.0)
    spread = float(np.median(np.abs(np.log(draws.times / clock.predict(draws.sizes)))))
    return replace(clock, spread=max(spread, 0.001))


def _find_usual(draws: Draws) -> np.ndarray:
    """Draws that were not interrupted: in each tenth of the sizes, no more than three times the median time."""
    usual = np.zeros(len(draws.times), dtype=bool)
    for part in np.array_split(np.argsort(draws.sizes), 10):
        if len(part):
            usual[part] = draws.times[part] <= 3 * np.median(draws.times[part])
    return usual


def _correlate(draws: Draws) -> float:
    """Spearman's rank correlation of time and size of the noise."""
    times, sizes = (np.argsort(np.argsort(numbers)).astype(float) for numbers in (draws.times, draws.sizes))
    return float(np.corrcoef(times, sizes)[0, 1]) if len(times) > 1 else 0.0


def _show_times(title: str, role: str, draws: Draws) -> Panel:
    usual = np.flatnonzero(_find_usual(draws))[:DRAWN]
    sizes, times = draws.sizes[usual], draws.times[usual] / 1000
    points = tuple(zip(sizes.tolist(), times.tolist(), strict=True))
    return Panel(
        f"{title}: time of a draw",
        "Each dot is one draw: size of the noise, and time. "
        + ("Time grows with the noise." if role == "naive" else "Time does not grow with the noise."),
        Axis("size of the noise", 0, max(float(sizes.max(initial=1)), 1.0) * 1.05),
        Axis("microseconds", 0, max(float(times.max(initial=1)), 1.0) * 1.1),
        (Dots(points, "naive" if role == "naive" else "protected", size=2.5),),
    )
