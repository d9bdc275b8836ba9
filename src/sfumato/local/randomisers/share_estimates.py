"""Estimate the shares of people from counts of supporting reports, with confidence intervals.

Estimates are post-processing of randomised reports: no privacy proof rests on this file.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.report_forms import Counts
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_probability

FloatArray = npt.NDArray[np.float64]
_ROWS_SHOWN = 20


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The estimated share of people in each category.

    `frequency` is unbiased and not clipped, so it can fall outside [0, 1]. `consistent` is its projection on the
    possible shares (none negative, sum 1): better for a picture, but biased. `low` and `high` are confidence intervals
    for the population, each alone or all simultaneously. They cover the randomisation and the sampling of the people;
    they do not cover people who do not answer, or fake reports.
    """

    frequency: FloatArray
    low: FloatArray
    high: FloatArray
    consistent: FloatArray
    error_asked: FloatArray  # standard error for the people asked: only the coins vary
    error_population: FloatArray  # standard error for the population: coins and draw of the people
    people: int
    confidence: float
    simultaneous: bool
    tally: Tally
    support: tuple[Fraction, Fraction]

    def honest_range(self, share: Number) -> tuple[FloatArray, FloatArray]:
        """If up to this share of the reports are fake: the least and the greatest estimates from the honest reports."""
        fakes = count_fakes(share, self.people)
        honest = self.people - fakes
        supporting = self.tally.counts
        return (
            remove_bias(np.maximum(supporting - fakes, 0) / honest, self.support),
            remove_bias(np.minimum(supporting, honest) / honest, self.support),
        )

    def worst_shift(self, share: Number) -> FloatArray:
        """By how much this share of fake reports can have moved each frequency, at worst."""
        low, high = self.honest_range(share)
        return np.maximum(self.frequency - low, high - self.frequency)

    def __str__(self) -> str:
        scope = "simultaneous for all categories" if self.simultaneous else "for each category alone"
        lines = [
            f"{self.people:,} reports. {100 * self.confidence:g} % confidence intervals for the population, {scope}.",
            "The intervals cover the randomisation and the sampling of the people. They do not cover fake reports.",
            f"{'category':>10}{'unbiased':>11}{'low':>10}{'high':>10}{'consistent':>12}",
        ]
        for index in range(min(self.frequency.size, _ROWS_SHOWN)):
            row = (self.frequency[index], self.low[index], self.high[index])
            lines.append(f"{index:>10}{row[0]:>11.4f}{row[1]:>10.4f}{row[2]:>10.4f}{self.consistent[index]:>12.4f}")
        if self.frequency.size > _ROWS_SHOWN:
            lines.append(f"{'...':>10} {self.frequency.size - _ROWS_SHOWN} more")
        if self.people > 1:
            moved = float(self.worst_shift("0.01").max())
            lines.append(f"If 1 % of the reports are fake, they can have moved a share by up to {moved:.4f}.")
        return "\n".join(lines)


def estimate_shares(
    tally: Tally, support: tuple[Fraction, Fraction], confidence: Number, simultaneous: bool
) -> Estimate:
    """Estimate each category's share f from its count c of supporting reports, out of n.

    The expected c/n is q + f (p - q), so (c/n - q) / (p - q) is unbiased. For people drawn from a population, c is
    binomial; the interval is Wilson's for its rate, mapped through the estimate. Simultaneous intervals for k
    categories each use 1/k of the error probability.
    """
    if not tally.people:
        raise InvalidParameter("reports", "must hold at least one report", "none")
    level = read_probability(confidence, "confidence")
    quantile = compute_normal_quantile((1 - level) / (tally.counts.size if simultaneous else 1))
    observed = tally.counts / tally.people
    frequency = remove_bias(observed, support)
    shares = np.clip(frequency, 0, 1)
    low, high = compute_wilson_interval(observed, tally.people, quantile)
    return Estimate(
        frequency=frequency,
        low=remove_bias(low, support),
        high=remove_bias(high, support),
        consistent=project_on_simplex(frequency),
        error_asked=np.sqrt(variance_asked(support, shares) / tally.people),
        error_population=np.sqrt(variance_population(support, shares) / tally.people),
        people=tally.people,
        confidence=float(level),
        simultaneous=simultaneous,
        tally=tally,
        support=support,
    )


def variance_asked(support: tuple[Fraction, Fraction], share: FloatArray) -> FloatArray:
    """n times the variance of an estimate for the people who were asked: (f p (1-p) + (1-f) q (1-q)) / (p - q)**2."""
    true, other = support
    slope = true - other
    return float(other * (1 - other) / slope**2) + share * float((1 - true - other) / slope)


def variance_population(support: tuple[Fraction, Fraction], share: FloatArray) -> FloatArray:
    """n times the variance of an estimate for the population from which the people were drawn."""
    true, other = support
    supporting = float(other) + share * float(true - other)
    return supporting * (1 - supporting) / float(true - other) ** 2


def project_on_simplex(values: FloatArray) -> FloatArray:
    """The nearest point, in Euclidean distance, whose entries are not negative and sum to 1."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, values.size + 1)
    level = float(excess[np.flatnonzero(descending > excess)[-1]])
    return np.maximum(values - level, 0)


def compute_wilson_interval(observed: FloatArray, size: int | Counts, quantile: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for a probability, from the share observed in `size` trials."""
    weight = 1 + quantile**2 / size
    centre = (observed + quantile**2 / (2 * size)) / weight
    reach = quantile / weight * np.sqrt(observed * (1 - observed) / size + quantile**2 / (4 * size**2))
    return centre - reach, centre + reach


def compute_normal_quantile(miss: Fraction) -> float:
    """The number of standard deviations that a normal variable exceeds with probability `miss`, on either side."""
    return -NormalDist().inv_cdf(max(float(miss / 2), 1e-300))


def remove_bias(observed: FloatArray, support: tuple[Fraction, Fraction]) -> FloatArray:
    """The share whose expected share of supporting reports is `observed`."""
    true, other = support
    # (observed - q) / (p - q), rewritten around its fixed point: q and p - q can differ by many magnitudes
    slope, fixed = float(true - other), float(other / (1 - (true - other))) if true - other != 1 else 0.0
    return (observed - fixed) / slope + fixed


def count_fakes(share: Number, people: int) -> int:
    """The number of fake reports in this share of all. At least one report must be honest."""
    fakes = math.ceil(read_probability(share, "share") * people)
    if fakes >= people:
        raise InvalidParameter("share", "must leave at least one honest report", "more")
    return fakes
