"""Simulated noise at fixed points, for intervals: a stored answer must have the same intervals every time.

The points fill the unit cube evenly, so a few thousand give quantiles as precise as a hundred thousand random draws.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise

Floats = npt.NDArray[np.float64]
SMOOTH = 100.0
APART = 1e-3
CLOSE = 1e-9
MOST_SMOOTH = 3  # summands: the exponentials of more nearly equal scales would cancel
LEAST_PART = 1e-6  # of the widest scale: a narrower part does not change a margin
LEAST_TAIL = 1e-8  # for smaller tails, rounding errors exceed the difference of exponentials
TIMES = 1 << 16
WIDE = 1 << 10  # steps: for larger scales the lattice can be ignored
MOST_MIXED = 25.0  # the largest ratio of a Gaussian deviation to a Laplace scale that does not overflow
KNOTS = 17
MOST_EVEN = 8  # in more dimensions, even points are no better than random ones


@dataclass(frozen=True, slots=True)
class WeightedNoise:
    """The noise of several releases of one question, combined with these weights."""

    parts: tuple[tuple[float, Noise], ...]

    def margin(self, miss: Fraction) -> float:
        """The margin: |noise| exceeds it with a probability of at most `miss`."""
        scales = [abs(weight) * float(noise.scale) for weight, noise in self.parts if isinstance(noise, LaplaceNoise)]
        smooth = len(self.parts) <= MOST_SMOOTH and all(
            isinstance(noise, LaplaceNoise) and noise.scale >= SMOOTH for _, noise in self.parts
        )
        if smooth:
            wide = max(scales)
            return _compute_smooth_margin(tuple(scale / wide for scale in scales), float(miss)) * wide
        if stands_for_many(self.parts):
            variance = sum(weight**2 * compute_variance(noise) for weight, noise in self.parts)
            scale = sum(width**4 for width in scales) ** 0.25
            return _compute_mixed_margin(scale, math.sqrt(max(variance - 2 * scale**2, 0.0)), float(miss))
        return _draw_margin(self, miss)


def stands_for_many(parts: Sequence[tuple[float, Noise]]) -> bool:
    """Does this noise summarise many releases: a Gaussian and perhaps Laplace variables without a visible lattice?

    Two cumulants are then enough (answers/combined_releases.py).
    """
    gaussian = any(isinstance(noise, GaussianNoise) for _, noise in parts)
    return gaussian and all(compute_variance(noise) >= WIDE**2 for _, noise in parts)


def compute_smooth_margins(scales: Floats, miss: float) -> Floats:
    """Compute the margins of sums of Laplace variables, one sum per row of `scales`. Tails are sums of exponentials."""
    wide = scales.max(axis=1)
    unit = np.where(wide > 0, wide, 1.0)  # a sum without noise has a margin of 0
    apart, weights = _expand_exponentials(np.where(wide[:, None] > 0, scales / unit[:, None], 1.0))
    terms = scales.shape[1]
    union = apart[:, -1] * terms * math.log(terms / miss)  # an upper limit by the union bound
    if miss < LEAST_TAIL:
        return np.asarray(union * wide)
    low, high = np.zeros_like(union), union
    while bool((high - low > CLOSE * high).any()):
        middle = (low + high) / 2
        met = (weights * np.exp(-middle[:, None] / apart)).sum(axis=1) <= miss
        low, high = np.where(met, low, middle), np.where(met, middle, high)
    return np.asarray(high * wide)


@lru_cache(maxsize=1024)
def _compute_smooth_margin(scales: tuple[float, ...], miss: float) -> float:
    """The margin of one sum whose largest scale is 1, cached: similar questions differ only in that scale."""
    return float(compute_smooth_margins(np.array([scales]), miss)[0])


def compute_smooth_tail(scales: Floats, at: Floats) -> Floats:
    """P(sum >= at) for one sum of Laplace variables."""
    (apart,), (weights,) = _expand_exponentials(scales[None, :])
    beyond = np.exp(-np.abs(at)[..., None] / apart) @ weights / 2
    return np.asarray(np.where(at >= 0, beyond, 1 - beyond))


def _expand_exponentials(scales: Floats) -> tuple[Floats, Floats]:
    """P(|sum| > z) = sum of weight * exp(-z / scale). Equal scales are made slightly larger, so that they differ."""
    apart = np.sort(scales, axis=1)
    apart = np.maximum(apart, apart[:, -1:] * LEAST_PART)
    for place in range(1, apart.shape[1]):
        apart[:, place] = np.maximum(apart[:, place], apart[:, place - 1] * (1 + APART))
    squares = apart**2
    gaps = squares[:, :, None] - squares[:, None, :]
    ratios = np.divide(squares[:, :, None], gaps, out=np.ones_like(gaps), where=gaps != 0)
    return apart, ratios.prod(axis=2)


def _compute_mixed_margin(scale: float, deviation: float, miss: float) -> float:
    """The margin of a Laplace plus a Gaussian variable without a lattice, from the closed form of the tail."""
    ratio = deviation / scale if scale else math.inf
    if ratio > MOST_MIXED:  # the Laplace part is negligible, and its terms would overflow
        return math.hypot(deviation, math.sqrt(2) * scale) * compute_normal_margin(miss)

    if not ratio:
        return scale * math.log(1 / miss)

    def compute_tail(at: float) -> float:
        """P(|sum| > at deviations)."""
        far = math.exp(ratio * (ratio / 2 - at)) * math.erfc((ratio - at) / math.sqrt(2))
        near = math.exp(min(ratio * (ratio / 2 + at), 700.0)) * math.erfc((ratio + at) / math.sqrt(2))
        return math.erfc(at / math.sqrt(2)) + (far - near) / 2

    return deviation * _bisect_tail(compute_tail, 40.0 + 40.0 / ratio, miss)


def compute_many_margins(deviations: Floats, scales: Floats, miss: float) -> Floats:
    """Margins of sums with these standard deviations, whose fourth cumulants are 12 scale^4: for sums of many releases.

    A sum with deviation 1 has a margin that depends on its scale alone, and smoothly; so few are worked out.
    """
    shares = np.minimum(scales / np.where(deviations > 0, deviations, 1.0), math.sqrt(0.5))
    knots = np.linspace(0, float(shares.max()), KNOTS)
    found = [_compute_mixed_margin(share, math.sqrt(max(1 - 2 * share**2, 0.0)), miss) for share in knots.tolist()]
    return np.asarray(deviations * np.interp(shares, knots, found))


def compute_normal_margin(miss: float) -> float:
    """The margin of a standard normal variable."""
    return _bisect_tail(lambda at: math.erfc(at / math.sqrt(2)), 40.0, miss)


def _bisect_tail(tail: Callable[[float], float], high: float, miss: float) -> float:
    """Find where a falling tail reaches `miss`, rounded up."""
    low = 0.0
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= miss else (middle, high)
    return high


@lru_cache(maxsize=256)
def _draw_margin(noise: "WeightedNoise", miss: Fraction) -> float:
    drawn = np.sort(np.abs(imitate_noises((noise,), TIMES)[0]))
    return float(drawn[min(math.ceil((1 - float(miss)) * TIMES), TIMES - 1)])


def compute_variance(noise: Noise) -> float:
    if isinstance(noise, GaussianNoise):
        return float(noise.variance) + (1 / 12 if noise.rounded else 0.0)  # at most: what rounding adds
    return 2 * float(noise.scale) ** 2


def imitate_noises(noises: Sequence[Noise | WeightedNoise], times: int) -> list[Floats]:
    """For each noise, `times` values that together behave like independent draws."""
    parts = [
        part for noise in noises for part in (noise.parts if isinstance(noise, WeightedNoise) else ((1.0, noise),))
    ]
    drawn = iter(_draw([noise for _, noise in parts], times))
    return [
        sum((weight * next(drawn) for weight, _ in noise.parts), np.zeros(times))
        if isinstance(noise, WeightedNoise)
        else next(drawn)
        for noise in noises
    ]


def _draw(noises: Sequence[Noise], times: int) -> list[Floats]:
    made = []
    at = 0
    points = _make_points(sum(2 if isinstance(noise, GaussianNoise) else 1 for noise in noises), times)
    for noise in noises:
        if isinstance(noise, GaussianNoise):
            spread = math.sqrt(noise.variance)
            normal = spread * np.sqrt(-2 * np.log(points[at])) * np.cos(2 * math.pi * points[at + 1])
            made.append(np.rint(normal) if spread < SMOOTH else normal)
            at += 2
        else:
            made.append(_draw_laplace(float(noise.scale), points[at]))
            at += 1
    return made


def _draw_laplace(scale: float, uniform: Floats) -> Floats:
    """The inverse distribution function: of the discrete noise for small scales, of the continuous one for large."""
    if scale >= SMOOTH:
        centred = uniform - 0.5
        smooth: Floats = -scale * np.sign(centred) * np.log1p(-2 * np.abs(centred))
        return smooth
    ratio = math.exp(-1 / scale) if scale > 1e-2 else 0.0
    if not ratio:
        return np.zeros_like(uniform)
    below = np.ceil(scale * np.log(uniform * (1 + ratio)))
    above = np.ceil(-scale * np.log((1 - uniform) * (1 + ratio))) - 1
    steps: Floats = np.where(uniform <= ratio / (1 + ratio), below, np.maximum(above, 0))
    return steps


@lru_cache(maxsize=64)
def _make_points(dimensions: int, times: int) -> Floats:
    """`times` points in the unit cube, one row per dimension: multiples of powers of a generalised golden ratio."""
    if dimensions > MOST_EVEN:
        words = np.frombuffer(hashlib.shake_256(b"points").digest(8 * dimensions * times), "<u8")
        scattered = ((words >> np.uint64(11)) * 2.0**-53 + 2.0**-54).reshape(dimensions, times)
        return np.asarray(scattered, np.float64)
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = np.array([root ** -(index + 1) for index in range(dimensions)])
    points = (0.5 + np.outer(steps, np.arange(1, times + 1))) % 1 * (1 - 2.0**-52) + 2.0**-54
    return np.asarray(points, np.float64)
