"""Which of two libraries is better, row by row: the signed-rank test over paired seeds, with Holm's correction."""

from collections.abc import Sequence

import numpy as np

LEVEL = 0.01


def compute_p_value(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Wilcoxon's signed-rank test, both sides, with the exact distribution also when differences are equal.

    Pairs without a difference are left out. Given the sizes of the others, every pattern of signs has the same chance
    under the null hypothesis, so the distribution of the sum of positive ranks is a product of (1 + x^rank) / 2.
    """
    differences = np.round(np.subtract(ours, theirs), 12)  # equal differences of shares are equal
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    _, place, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    doubled = (2 * ends - counts + 1)[place]  # twice the middle rank of equal sizes: a whole number
    chances = np.ones(1)
    for rank in doubled:
        moved = np.zeros(len(chances) + rank)
        moved[: len(chances)] += chances / 2
        moved[rank:] += chances / 2
        chances = moved
    positive = int(doubled[differences > 0].sum())
    return float(min(1.0, 2 * min(chances[: positive + 1].sum(), chances[positive:].sum())))


def correct_for_many(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: each adjusted value can be compared with LEVEL."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for tested, place in enumerate(np.argsort(p_values, kind="stable")):
        highest = max(highest, min(1.0, (len(p_values) - tested) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def find_verdict(ours: Sequence[float], theirs: Sequence[float], adjusted: float) -> str:
    """better, worse or tie. The signed ranks say in which direction."""
    if adjusted > LEVEL:
        return "tie"
    return "better" if np.median(np.subtract(ours, theirs)) > 0 else "worse"


def count_needed_seeds(rows: int) -> int:
    """With fewer seeds, no row can be significant: the least p-value of s pairs is 2 / 2**s."""
    return int(np.ceil(1 + np.log2(rows / LEVEL)))
