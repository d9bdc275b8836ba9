"""Intervals of a ratio of two noisy sums, such as a mean: exact for any count, however small (Fieller's method).

If w is the true ratio, top - w * bottom is noise with a known distribution. The interval contains each w for which this
difference is within its margin. Its confidence is the same for a count of 2 and for a count of a million.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.answers.interval_inversion import Acceptance, find_last_accepted
from sfumato.answers.noise_laws import Floats, add_noises, compute_margins
from sfumato.answers.possible_ranges import Ends
from sfumato.answers.simulated_noise import WeightedNoise
from sfumato.kernel.mechanisms import Noise

ANGLES = 129
TURN = np.linspace(0, math.pi, ANGLES)

Weights = tuple[tuple[float, ...], tuple[float, ...]]  # of each noise: in the numerator, in the denominator


def find_ratio_ends(  # noqa: PLR0917 - its caller names what it passes
    top: Floats, bottom: Floats, weights: Weights, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction,
    within: tuple[float, float],
) -> Ends:  # fmt: skip
    """Find the ratios w with |top - w * bottom| within its margin, and all between them, clipped to `within`.

    An impossible estimate is replaced by the nearest possible ratio, so the interval is never empty.
    """
    table = _tabulate_margins(weights, noises, miss)
    lengths = _compute_deviations(weights, noises)

    def margin(at: Floats) -> Floats:
        size = np.hypot(lengths[0], lengths[1] * at)
        angle = np.arctan2(lengths[1] * at, lengths[0]) % math.pi
        return np.asarray(size * np.interp(angle, TURN, table))

    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.nan_to_num(np.clip(np.where(bottom == 0, 0.0, top / bottom), *within))
    steepest = lengths[1] * float(table[ANGLES // 2]) if any(weights[1]) else 0.0
    test = Acceptance(best, np.abs(bottom), np.zeros_like(best), margin, steepest)
    low, high = (np.full_like(best, end) for end in within)
    return find_last_accepted(test, low, -1.0), find_last_accepted(test, high, 1.0)


@lru_cache(maxsize=128)
def _tabulate_margins(weights: Weights, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction) -> Floats:
    """Margins of cos(angle) * top - sin(angle) * bottom, each scaled to length 1, for angles from 0 to pi."""
    top, bottom = (
        np.array(side) / length for side, length in zip(weights, _compute_deviations(weights, noises), strict=True)
    )
    angles = TURN[:, None]
    return compute_margins(np.cos(angles) * top - np.sin(angles) * bottom, noises, miss)


def _compute_deviations(weights: Weights, noises: tuple[Noise | WeightedNoise, ...]) -> list[float]:
    """Standard deviations of the top's and the bottom's noise."""
    spreads = [add_noises([(1.0, noise)]).spread for noise in noises]
    return [
        math.hypot(*(weight * spread for weight, spread in zip(side, spreads, strict=True))) or 1.0 for side in weights
    ]
