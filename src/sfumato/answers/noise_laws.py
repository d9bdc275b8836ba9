"""Distributions of sums of noises: the tails of one sum, and the margins of many sums of the same noises."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.answers.simulated_noise import (
    MOST_SMOOTH,
    TIMES,
    compute_many_margins,
    compute_normal_margin,
    compute_smooth_margins,
    compute_smooth_tail,
    compute_variance,
    imitate_noises,
    stands_for_many,
)
from sfumato.answers.simulated_noise import WeightedNoise as Weighted
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise

Floats = npt.NDArray[np.float64]
FEW_TIMES = 1 << 12
OFTEN = 50  # the least number of draws beyond a margin
ROUNDING = 1e-9  # of a step
SUMMED = 64.0  # steps: the largest standard deviation for which the tail of a discrete Gaussian is summed
SEEN = 1e-3  # smaller tails are extrapolated as exponentials, because too few draws lie beyond them
_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The distribution of a sum of independent symmetric noises. `step` is its lattice, or 0 without one."""

    parts: tuple[tuple[float, Noise], ...]

    @property
    def step(self) -> float:
        return abs(self.parts[0][0]) if len(self.parts) == 1 else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation."""
        return math.sqrt(sum(weight**2 * compute_variance(noise) for weight, noise in self.parts))

    def compute_tail_from(self, at: Floats) -> Floats:
        """P(noise >= at)."""
        if len(self.parts) > 1:
            return _compute_sum_tail(self.parts, at)
        ((weight, noise),) = self.parts
        return _compute_lattice_tail(noise, np.ceil(at / abs(weight) - ROUNDING))

    def compute_tail_beyond(self, at: Floats) -> Floats:
        """P(noise > at)."""
        if len(self.parts) > 1:
            return _compute_sum_tail(self.parts, at)
        ((weight, noise),) = self.parts
        return _compute_lattice_tail(noise, np.floor(at / abs(weight) + ROUNDING) + 1)


def add_noises(parts: Sequence[tuple[float, Noise | Weighted]]) -> NoiseLaw:
    """The distribution of a weighted sum. A noise that combines several releases is split into its parts."""
    made: list[tuple[float, Noise]] = []
    for weight, noise in parts:
        if isinstance(noise, Weighted):
            made += [(weight * inner, part) for inner, part in noise.parts]
        else:
            made.append((weight, noise))
    return NoiseLaw(tuple(made))


def compute_margins(weights: Floats, noises: Sequence[Noise | Weighted], miss: Fraction) -> Floats:
    """Compute, for each row of weights, the margin of that weighted sum of noises."""
    flat = add_noises([(1.0, noise) for noise in noises]).parts
    owner = [
        place for place, noise in enumerate(noises) for _ in (noise.parts if isinstance(noise, Weighted) else (1,))
    ]
    spreads = np.abs(weights[:, owner]) * np.array([abs(inner) for inner, _ in flat])
    if all(isinstance(noise, GaussianNoise) for _, noise in flat):
        deviation = np.sqrt((spreads**2) @ np.array([float(compute_variance(noise)) for _, noise in flat]))
        return np.asarray(compute_normal_margin(float(miss)) * deviation)
    if len(flat) <= MOST_SMOOTH and all(isinstance(noise, LaplaceNoise) for _, noise in flat):
        scales = spreads * np.array([float(noise.scale) for _, noise in flat if isinstance(noise, LaplaceNoise)])
        return compute_smooth_margins(scales, float(miss))
    if stands_for_many(flat):
        variances = (spreads**2) @ np.array([float(compute_variance(noise)) for _, noise in flat])
        widths = np.array([float(noise.scale) if isinstance(noise, LaplaceNoise) else 0.0 for _, noise in flat])
        return compute_many_margins(np.sqrt(variances), ((spreads * widths) ** 4).sum(axis=1) ** 0.25, float(miss))
    times = min(max(FEW_TIMES, int(OFTEN / float(miss))), TIMES)
    drawn = np.array(imitate_noises(tuple(noises), times))
    most = min(math.ceil((1 - float(miss)) * times), times - 1)
    return np.array([np.sort(np.abs(row @ drawn))[most] for row in weights])


def _compute_normal_tail(deviations: Floats) -> Floats:
    return np.asarray(_erfc(deviations / math.sqrt(2)), np.float64) / 2


def _compute_lattice_tail(noise: Noise, at: Floats) -> Floats:
    """P(Z >= at) of one noise, for whole numbers of steps."""
    if isinstance(noise, LaplaceNoise):
        rate = float(1 / noise.scale)
        far = np.exp(-rate * np.where(at >= 1, at, 1 - at)) / (1 + math.exp(-rate))
        return np.where(at >= 1, far, 1 - far)
    deviation = math.sqrt(noise.variance)
    if deviation > SUMMED or noise.rounded:
        return _compute_normal_tail((at - 0.5) / deviation)
    table = _tabulate_gaussian_tails(float(noise.variance))
    reach = len(table) - 1
    far = table[np.clip(np.where(at >= 1, at, 1 - at), 0, reach).astype(np.int64)]
    return np.where(at >= 1, far, 1 - far)


@lru_cache(maxsize=64)
def _tabulate_gaussian_tails(variance: float) -> Floats:
    """P(Z >= k) for k = 0, 1, ..."""
    reach = math.ceil(math.sqrt(variance) * 36) + 2
    mass = np.exp(-(np.arange(reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    return np.asarray(np.cumsum(mass[::-1])[::-1] / (mass[0] + 2 * mass[1:].sum()))


def _compute_sum_tail(parts: tuple[tuple[float, Noise], ...], at: Floats) -> Floats:
    if all(isinstance(noise, GaussianNoise) for _, noise in parts):
        return _compute_normal_tail(at / NoiseLaw(parts).spread)
    scales = [abs(weight) * float(noise.scale) for weight, noise in parts if isinstance(noise, LaplaceNoise)]
    if len(scales) == len(parts) <= MOST_SMOOTH:
        return compute_smooth_tail(np.array(scales), at)
    drawn = _sort_draws(parts)
    size = np.abs(at)
    seen = 1 - np.searchsorted(drawn, size) / len(drawn)
    last = drawn[int((1 - SEEN) * len(drawn))]
    rate = max(scales, default=NoiseLaw(parts).spread)
    beyond = np.where(size > last, SEEN * np.exp(-(size - last) / rate), seen) / 2
    return np.where(at >= 0, beyond, 1 - beyond)


@lru_cache(maxsize=64)
def _sort_draws(parts: tuple[tuple[float, Noise], ...]) -> Floats:
    return np.sort(np.abs(imitate_noises((Weighted(parts),), TIMES)[0]))
