"""Precision: the spacing of floating-point outputs reveals a large value (Haney et al., 2022)."""

import numpy as np

from sfumato.drawing.figure import Figure
from sfumato.drawing.marks import Axis, Bars, Panel
from sfumato.lab.attack_result import AttackResult, Story
from sfumato.lab.attack_setup import Limit, Setup, compare_rates, conclude, read_setup
from sfumato.lab.success_rate import SuccessRate
from sfumato.number_arguments import Number
from sfumato.standalone.additive import Laplace

FORTUNE = 1_000_000.0  # what one person may add to the sum: its sensitivity
MOST_ZEROS = 12  # trailing zeros in the figure


def precision(*, epsilon: Number = 1, seed: int | None = None, trials: int = 10_000) -> AttackResult:
    """Tell a large value plus noise from noise alone by the spacing of the floating-point outputs."""
    setup = read_setup(epsilon, seed, trials)
    naive_outputs = _release_naively(0.0, setup)
    outputs = _release(0.0, setup)
    naive, protected = _count_proofs(naive_outputs), _count_proofs(outputs)
    limit = Limit(0.0, "e^ε · P(proof | million)")
    figure = Figure(
        "Precision",
        (
            _show_zeros(naive_outputs, _release_naively(FORTUNE, setup)),
            compare_rates(naive, protected, limit),
        ),
        "Left: rounding to the coarser spacing of the fortune leaves zeros at the end of an output. Outputs without "
        "enough zeros prove that the fortune was not added.",
    )
    return conclude(
        setup,
        limit,
        naive,
        protected,
        name="precision",
        title="Precision: the spacing of outputs reveals a large value",
        story=Story(
            "A sum is 0, or one rich person's million. Doubles near a million are 2^33 times coarser than doubles near "
            "0.0001: a number that results from adding a million is rounded to the coarser spacing.",
            "The attacker computes the noise that a million would need to give the released number, and tests whether "
            "the number is a multiple of that noise's spacing.",
            "From numpy's noise, often a proof that the rich person is not in the data. From Sfumato, never: the "
            "spacing of its outputs follows from the declared parameters.",
        ),
        success="The sum is 0, and the output proves that no million was added.",
        figure=figure,
        notes=(
            "Haney, Desfontaines, Hartman, Shrestha and Hay (2022) found this fault in several libraries.",
            "Under ε-differential privacy, what is impossible with one value is impossible with every neighbour.",
        ),
    )


def _release_naively(value: float, setup: Setup) -> np.ndarray:
    noisy: np.ndarray = value + setup.generator.laplace(0, FORTUNE * setup.naive_scale, setup.trials)
    return noisy


def _release(value: float, setup: Setup) -> np.ndarray:
    mechanism = Laplace(sensitivity=FORTUNE, epsilon=setup.epsilon, of="reals")
    return np.array([mechanism.release(value) for _ in range(setup.trials)])


def _count_proofs(outputs: np.ndarray) -> SuccessRate:
    """How many outputs cannot be a million plus a double.

    The million is a multiple of the noise's spacing. So fl(million + noise) is one too.
    """
    own = np.spacing(np.where(outputs == 0, FORTUNE, np.abs(outputs)))  # 0 is a multiple of every spacing
    needed = np.abs(outputs - FORTUNE) * (1 - 1e-9)  # a bit less, because this difference is rounded too
    spacing = np.spacing(needed)
    impossible = (spacing > own) & (np.mod(outputs / own, spacing / own) != 0)
    return SuccessRate(int(impossible.sum()), len(outputs))


def _count_zeros(outputs: np.ndarray) -> np.ndarray:
    """The number of zeros at the end of the 53 binary digits of each output."""
    digits = np.rint(np.abs(outputs) / np.spacing(np.abs(outputs))).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    zeros: np.ndarray = np.log2(lowest).astype(int)
    return zeros


def _show_zeros(absent: np.ndarray, present: np.ndarray) -> Panel:
    bars = []
    for outputs, low, high in ((absent, 0.08, 0.5), (present, 0.5, 0.92)):
        zeros = np.minimum(_count_zeros(outputs), MOST_ZEROS)
        shares = np.bincount(zeros, minlength=MOST_ZEROS + 1) * 100 / len(outputs)
        bars.append(tuple((place + low, place + high, float(share)) for place, share in enumerate(shares)))
    ticks = tuple(
        (place + 0.5, f"{place}" if place < MOST_ZEROS else f"{place}+") for place in range(0, MOST_ZEROS + 1, 2)
    )
    return Panel(
        "Zeros at the end of numpy's outputs",
        "Outputs with the fortune end in many zeros more often than outputs of noise alone.",
        Axis("binary zeros at the end", 0, MOST_ZEROS + 1, ticks),
        Axis("outputs in %", 0, 60),
        (Bars(bars[0], "first", "the sum is 0"), Bars(bars[1], "second", "the sum is a million")),
    )
