"""Steps of a fit from noisy gradients: damped by how much the features repeat each other, shrunk by the noise.

All of this is post-processing of noisy sums.
"""

from collections.abc import Sequence

import numpy as np

from sfumato.learning.row_cells import Floats

DAMPING = 0.4  # of a step for all features together, where the steps so far say nothing else
MOST_DAMPING = 0.6
MOST_STEP = 2.0  # of one value in one round


class Curvature:
    """How much the features repeat each other: what the last step changed, beside what it was to change."""

    def __init__(self, gradients: Sequence[Floats], most: float = MOST_DAMPING) -> None:
        """`gradients` are those at zero, which the first release gave."""
        self._least, self._most = 1 / max(len(gradients), 1), most
        self._before = [
            (np.zeros_like(gradient), gradient) for gradient in gradients
        ]  # values and gradients, by column

    def choose_damping(self, values: Sequence[Floats], gradients: Sequence[Floats], weights: Sequence[Floats]) -> float:
        """The step along the last direction that would have been right (Barzilai and Borwein), within bounds."""
        before, self._before = self._before, list(zip(values, gradients, strict=True))
        if self._least == 1:
            return 1.0
        meant = changed = 0.0
        for (now, gradient), (then, old_gradient), weight in zip(self._before, before, weights, strict=True):
            move = now - then
            meant += float((move**2 * weight).sum())
            changed += float((move * (old_gradient - gradient)).sum())
        if changed <= 0 or meant <= 0:
            return max(DAMPING, self._least)
        return float(np.clip(0.8 * meant / changed, self._least, self._most))


def take_step(  # noqa: PLR0917 - two callers
    held: tuple[Floats, Floats], gradient: Floats, weight: Floats, variance: Floats, damping: float, prior: float
) -> tuple[Floats, Floats]:
    """Values and the variances of their noise, after a damped Newton step.

    `weight` is the second derivative, `variance` that of the gradient's noise. Values are shrunk as if they had a
    normal prior with the deviation `prior`. The noise of damped steps is averaged over the rounds, so only
    damping / (2 - damping) of it counts.
    """
    values, variances = held
    ridge = variance * damping / (2 - damping) / (weight * prior**2)
    step = np.clip((gradient - ridge * values) / (weight + ridge), -MOST_STEP, MOST_STEP)
    left = (1 - damping * weight / (weight + ridge)) ** 2 * variances
    return values + damping * step, left + damping**2 * variance / (weight + ridge) ** 2
