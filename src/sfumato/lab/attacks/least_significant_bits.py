"""The least significant bits of floating-point Laplace noise reveal the exact value (Mironov, 2012)."""

import math

import numpy as np

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Dots, Line, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Setup, compare_rates, conclude, count_successes, limit_of, read_setup
from sfumato.lab.attacks.numpy_laplace import is_reachable
from sfumato.lab.guess_limits import limit_guess
from sfumato.lab.success_rate import SuccessRate, show_share
from sfumato.number_arguments import Number
from sfumato.standalone.additive import Laplace

VALUES = (0.0, 1.0)
FIRST_DRAWN = 0.7  # the figure shows the doubles from here on
DRAWN = 40
EPSILONS = ("0.1", "0.3", "1", "3")
CALIBRATION = 200  # releases of a known value, to find the grid
SWEPT = 400  # trials for each epsilon of the figure


def least_significant_bits(*, epsilon: Number = 1, seed: int | None = None, trials: int = 2_000) -> AttackResult:
    """Read the exact value from the least significant bits of floating-point Laplace noise."""
    setup = read_setup(epsilon, seed, trials)
    secrets = setup.generator.integers(0, 2, setup.trials)
    naive, guns = _attack_numpy(secrets, setup)
    protected, safe_guns = _attack_sfumato(secrets, setup)
    limit = limit_of(setup)
    figure = Figure(
        "Least significant bits",
        (
            _show_outputs(setup.naive_scale),
            compare_rates(naive, protected, limit, 0.5),
            _show_epsilons(setup.seed),
        ),
        "First: which of 40 consecutive doubles numpy can output for f = 0 and for f = 1. A cross is a smoking gun: it "
        "is possible under one of them only. Last: success against numpy hardly depends on ε.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="least-significant-bits",
        title="Least significant bits: floating-point noise has holes",
        story=Story(
            "The true count is 0 or 1. The attacker knows which doubles numpy's Laplace generator can produce. It "
            "takes the logarithm of one of 2^53 equally spaced numbers, so it skips most doubles.",
            "The attacker tests whether the released number is f plus a possible noise, for f = 0 and for f = 1.",
            f"{show_share(guns.share)} of numpy's outputs are possible for one value only: a smoking gun. "
            f"{show_share(safe_guns.share)} of Sfumato's are: it releases multiples of a public grid.",
        ),
        success="The attacker names the count. Without a smoking gun, the attacker takes the nearer one.",
        figure=figure,
        notes=(
            "Mironov (CCS 2012) breaks textbook Laplace noise with just a few questions at any ε. numpy's success rate "
            "hardly depends on ε either, as the third panel shows.",
            "Jin et al. (2022) report success rates up to 92.56 % for this kind of attack on Gaussian noise.",
        ),
    )


def _attack_numpy(secrets: np.ndarray, setup: Setup) -> tuple[SuccessRate, SuccessRate]:
    outputs = secrets + setup.generator.laplace(0, setup.naive_scale, len(secrets))
    possible = [[is_reachable(float(output), value, setup.naive_scale) for value in VALUES] for output in outputs]
    return _attack(outputs, possible, secrets)


def _attack_sfumato(secrets: np.ndarray, setup: Setup) -> tuple[SuccessRate, SuccessRate]:
    mechanism = Laplace(sensitivity=1, epsilon=setup.epsilon, of="reals")
    outputs = np.array([mechanism.release(int(secret)) for secret in secrets])
    step = _find_step([mechanism.release(0) for _ in range(CALIBRATION)])
    possible = [[((output - value) / step).is_integer() for value in VALUES] for output in outputs.tolist()]
    return _attack(outputs, possible, secrets)


def _find_step(outputs: list[float]) -> float:
    """The step of the public grid, which the attacker finds with a copy of the program: all outputs are multiples."""
    finest = max(output.as_integer_ratio()[1] for output in outputs)
    together = math.gcd(*(int(output * finest) for output in outputs))  # exact: the denominators are powers of two
    return together / finest


def _attack(outputs: np.ndarray, possible: list[list[bool]], secrets: np.ndarray) -> tuple[SuccessRate, SuccessRate]:
    """The success rate, and how often there is a smoking gun. `possible` says it for f = 0 and f = 1."""
    guesses = [
        int(output > 0.5) if zero == one else int(one) for output, (zero, one) in zip(outputs, possible, strict=True)
    ]
    guns = sum(zero != one for zero, one in possible)
    return count_successes(guesses, secrets), SuccessRate(guns, len(outputs))


def _show_outputs(scale: float) -> Panel:
    """Consecutive doubles, and under which value each of them can be released."""
    outputs = [FIRST_DRAWN]
    while len(outputs) < DRAWN:
        outputs.append(math.nextafter(outputs[-1], math.inf))
    shared: list[tuple[float, float]] = []
    guns: list[tuple[float, float]] = []
    for place, output in enumerate(outputs):
        possible = [is_reachable(output, value, scale) for value in VALUES]
        rows = [(float(place), float(row)) for row, here in enumerate(possible) if here]
        (shared if all(possible) else guns).extend(rows)
    return Panel(
        "Doubles that numpy can release",
        f"Of {DRAWN} consecutive doubles after {FIRST_DRAWN}, {len(guns)} are possible under f = 0 or f = 1 only, "
        f"{len(shared) // 2} under both, and the others never.",
        Axis(f"consecutive doubles after {FIRST_DRAWN}", -1, DRAWN),
        Axis("", -0.7, 1.7, ((0.0, "f = 0"), (1.0, "f = 1"))),
        (
            Dots(tuple(shared), "plain", "possible under both", size=3),
            Dots(tuple(guns), "naive", "smoking gun", "cross", size=3.5),
        ),
        height=160,
    )


def _show_epsilons(seed: int | None) -> Panel:
    """The success rate for several epsilons."""
    naive, protected = [], []
    for epsilon in EPSILONS:
        setup = read_setup(epsilon, seed, SWEPT)
        secrets = setup.generator.integers(0, 2, SWEPT)
        naive.append((float(epsilon), 100 * _attack_numpy(secrets, setup)[0].share))
        protected.append((float(epsilon), 100 * _attack_sfumato(secrets, setup)[0].share))
    exponents = np.linspace(-1, math.log10(3), 40)
    limits = tuple((10**power, 100 * limit_guess(f"{10**power:.6f}")) for power in exponents)
    return Panel(
        "Success for several epsilons",
        "The success rate against numpy stays above 85 % for every epsilon. Against Sfumato it stays below the limit.",
        Axis("ε", 0.09, 3.4, tuple((float(epsilon), epsilon) for epsilon in EPSILONS), log=True),
        Axis("success in %", 40, 104),
        (
            Line(limits, "limit", "limit", dashed=True),
            Line(tuple(naive), "naive", "naive"),
            Dots(tuple(naive), "naive", shape="square"),
            Dots(tuple(protected), "protected", "Sfumato", size=4),
        ),
    )
