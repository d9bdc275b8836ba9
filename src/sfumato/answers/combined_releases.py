"""Several releases of one question combined: a running weighted mean, and the moments of its noise.

Each release is weighted by the inverse of its variance. The record has the same size for any number of releases, so
adding the two-hundredth takes as long as adding the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.answers.released_values import Reading, ReleasedVector
from sfumato.answers.simulated_noise import Floats, WeightedNoise, compute_variance
from sfumato.answers.unmixed_values import combine_cumulants, measure_spread
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise, Noise

WIDER = 1.01  # a factor on the margin of many releases: without it, two cumulants would miss in 5.1 % of cases, not 5 %
MOST_PARTS = 8  # releases whose noises are recorded one by one; for more, two cumulants are recorded


@dataclass(frozen=True, slots=True)
class RunningMean:
    """The weighted mean of one released vector, in units. `precision` and `fourth` describe its noise, in steps.

    `precision` is the sum of the inverse variances p, `fourth` that of (p b)^4 over Laplace noises of scale b. The
    noise of the mean has variance 1 / precision and fourth cumulant 12 fourth / precision^4. `noises` is None once
    there are many.
    """

    name: str
    values: Floats
    step: float
    precision: float
    fourth: float
    noises: tuple[Noise, ...] | None

    def noise(self) -> Noise | WeightedNoise:
        """The noise of the mean: exact for few releases; for many, with the same variance and fourth cumulant.

        A Laplace variable takes all of the fourth cumulant, a Gaussian one the rest of the variance. The sum's tail is
        heavier than the true one far out, since the one scale is larger than each true one.
        """
        if self.noises is not None:
            if len(self.noises) == 1:
                return self.noises[0]
            return WeightedNoise(tuple((1 / compute_variance(noise) / self.precision, noise) for noise in self.noises))
        return combine_cumulants(1 / self.precision, self.fourth**0.25 / self.precision, WIDER)


@dataclass(frozen=True, slots=True)
class RunningMeans:
    """The combined releases of one question: a running mean per released vector."""

    means: tuple[RunningMean, ...]

    @classmethod
    def start(cls, reading: Reading) -> "RunningMeans":
        """Start with one release."""
        return cls(tuple(_start_mean(vector) for vector in reading.measured))

    def add(self, reading: Reading) -> "RunningMeans":
        """Add a release of the same question."""
        pairs = zip(self.means, reading.measured, strict=True)
        return RunningMeans(tuple(_merge_means(mean, _start_mean(vector)) for mean, vector in pairs))

    def to_reading(self) -> Reading:
        """The combined values and noises, in the form of one release."""
        return Reading(tuple(ReleasedVector(mean.name, mean.values, mean.noise(), mean.step) for mean in self.means))

    def to_json(self) -> list[dict[str, Any]]:
        """The JSON that is stored with an answer. It reads back to exactly the same numbers."""
        return [
            {
                "name": mean.name,
                "values": mean.values.tolist(),
                "step": mean.step,
                "precision": mean.precision,
                "fourth": mean.fourth,
                "noises": None if mean.noises is None else [_write_noise(noise) for noise in mean.noises],
            }
            for mean in self.means
        ]

    @classmethod
    def from_json(cls, kept: Sequence[dict[str, Any]]) -> "RunningMeans":
        """Read what `to_json` wrote."""
        means = []
        for written in kept:
            noises = None if written["noises"] is None else tuple(_read_noise(noise) for noise in written["noises"])
            values = np.array(written["values"], np.float64)
            means.append(
                RunningMean(written["name"], values, written["step"], written["precision"], written["fourth"], noises)
            )
        return cls(tuple(means))


def _start_mean(vector: ReleasedVector) -> RunningMean:
    match vector.noise:
        case LaplaceNoise(scale):
            precision = 1 / compute_variance(vector.noise)
            return RunningMean(
                vector.name, vector.values, vector.step, precision, (precision * float(scale)) ** 4, (vector.noise,)
            )
        case GaussianNoise():
            return RunningMean(
                vector.name, vector.values, vector.step, 1 / compute_variance(vector.noise), 0.0, (vector.noise,)
            )
        case WeightedNoise(parts):  # of one release of a strategy: its two cumulants
            precision = 1 / sum(weight**2 * compute_variance(noise) for weight, noise in parts)
            fourth = sum((precision * weight * measure_spread(noise)) ** 4 for weight, noise in parts)
            return RunningMean(vector.name, vector.values, vector.step, precision, fourth, None)
        case _:
            raise AssertionError("choices are not combined")


def _merge_means(mean: RunningMean, one: RunningMean) -> RunningMean:
    precision = mean.precision + one.precision
    noises = None if mean.noises is None or one.noises is None else (*mean.noises, *one.noises)
    return replace(
        mean,
        values=mean.values + (one.values - mean.values) * (one.precision / precision),
        precision=precision,
        fourth=mean.fourth + one.fourth,
        noises=None if noises is None or len(noises) > MOST_PARTS else noises,
    )


def _write_noise(noise: Noise) -> list[str]:
    match noise:
        case LaplaceNoise(scale):
            return ["laplace", str(scale)]
        case GaussianNoise(variance, rounded):
            return ["rounded gaussian" if rounded else "gaussian", str(variance)]


def _read_noise(kept: Sequence[str]) -> Noise:
    kind, amount = kept
    if kind == "laplace":
        return LaplaceNoise(Fraction(amount))
    return GaussianNoise(Fraction(amount), rounded=kind == "rounded gaussian")
