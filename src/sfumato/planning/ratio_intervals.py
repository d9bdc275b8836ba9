"""Intervals of a ratio of two noisy sums, such as a mean: exact for any count, however small (Fieller's method).

If w is the true ratio, top - w * bottom is noise alone, whose law is known. So w is in the interval if that is no
larger than its margin. The interval is as likely to hold for a count of 2 as for one of a million.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.kernel.mechanisms import Noise
from sfumato.planning.likeness import WeightedNoise
from sfumato.planning.noise_laws import Floats, law_of, margins
from sfumato.planning.possible import Ends

Truths = npt.NDArray[np.bool_]
ANGLES = 129
HALVINGS = 44
DOUBLINGS = 40

Weights = tuple[tuple[float, ...], tuple[float, ...]]  # of each noise, in the top and in the bottom


def ratio_ends(  # noqa: PLR0917
    top: Floats, bottom: Floats, weights: Weights, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction,
    within: tuple[float, float],
) -> Ends:  # fmt: skip
    """The ratios w with |top - w * bottom| within its margin, and all between them, inside of what is possible.

    Where none is, the nearest possible one stands for the estimate: the interval is that of a release at its edge.
    """
    table = _margins_by_angle(weights, noises, miss)
    lengths = _lengths(weights, noises)

    def margin(at: Floats) -> Floats:
        size = np.hypot(lengths[0], lengths[1] * at)
        angle = np.arctan2(lengths[1] * at, lengths[0]) % math.pi
        return size * np.interp(angle, np.linspace(0, math.pi, ANGLES), table)

    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.clip(np.where(bottom == 0, 0.0, top / bottom), *within)
    estimate = np.nan_to_num(estimate)
    left_over = np.abs(top - estimate * bottom)

    def accepted(at: Floats) -> Truths:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.abs(top - at * bottom) - left_over <= margin(at))

    low, high = within
    return _end(estimate, accepted, low, -1.0, margin), _end(estimate, accepted, high, 1.0, margin)


def _end(
    estimate: Floats,
    accepted: Callable[[Floats], Truths],
    limit: float,
    sign: float,
    margin: Callable[[Floats], Floats],
) -> Floats:
    """The last accepted ratio on one side; beyond a rejected one all are rejected, or the limit is accepted too."""
    if math.isfinite(limit):
        out = np.full_like(estimate, limit)
        endless = accepted(out)
    else:
        distance = np.maximum(margin(estimate), np.abs(estimate)) + 1e-300
        for _ in range(DOUBLINGS):
            distance = np.where(accepted(estimate + sign * distance), 2 * distance, distance)
        out = estimate + sign * distance
        endless = accepted(out)
    inside = estimate
    for _ in range(HALVINGS):
        middle = (inside + out) / 2
        met = accepted(middle)
        inside, out = np.where(met, middle, inside), np.where(met, out, middle)
    return np.where(endless, limit, out)


@lru_cache(maxsize=128)
def _margins_by_angle(weights: Weights, noises: tuple[Noise | WeightedNoise, ...], miss: Fraction) -> Floats:
    """Margins of cos(angle) * top - sin(angle) * bottom, each scaled to length 1, for angles from 0 to pi."""
    top, bottom = (np.array(each) / length for each, length in zip(weights, _lengths(weights, noises), strict=True))
    angles = np.linspace(0, math.pi, ANGLES)[:, None]
    return margins(np.cos(angles) * top - np.sin(angles) * bottom, noises, miss)


def _lengths(weights: Weights, noises: tuple[Noise | WeightedNoise, ...]) -> list[float]:
    """Standard deviations of the top's and the bottom's noise."""
    spreads = [law_of([(1.0, each)]).spread for each in noises]
    return [
        math.hypot(*(weight * spread for weight, spread in zip(each, spreads, strict=True))) or 1.0 for each in weights
    ]
