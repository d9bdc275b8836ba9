"""From counts of support to shares of people: unbiased with an interval, consistent, and what fakes could do."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.kernel.parameters import Number, probability_inside
from sfumato.local.mechanisms.report_forms import Counts
from sfumato.local.randomisers.tally import Tally

FloatArray = npt.NDArray[np.float64]
_ROWS_SHOWN = 20


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The share of people in each category.

    `frequency` is unbiased: it may fall outside [0, 1], and nothing is clipped. `consistent` is its projection on the
    shares that are possible (none negative, sum 1): better as a picture, no longer unbiased. `low` and `high` are an
    interval for the population from which the people were drawn, for each category alone, or for all at once.
    """

    frequency: FloatArray
    low: FloatArray
    high: FloatArray
    consistent: FloatArray
    error_asked: FloatArray  # standard error for the people asked: their answers are fixed, only the coins vary
    error_population: FloatArray  # standard error for the population: the draw of the people varies too
    people: int
    confidence: float
    simultaneous: bool
    tally: Tally
    support: tuple[Fraction, Fraction]

    def without_fakes(self, share: Number) -> tuple[FloatArray, FloatArray]:
        """If up to this share of the reports were made up, where the estimate from the honest ones lies: low, high."""
        fakes = _fakes(share, self.people)
        honest = self.people - fakes
        supporting = self.tally.counts
        return (
            _unbiased(np.maximum(supporting - fakes, 0) / honest, self.support),
            _unbiased(np.minimum(supporting, honest) / honest, self.support),
        )

    def moved_by(self, share: Number) -> FloatArray:
        """How far this share of made-up reports, the worst ones, could have moved each frequency."""
        low, high = self.without_fakes(share)
        return np.maximum(self.frequency - low, high - self.frequency)

    def __str__(self) -> str:
        scope = "all intervals hold together" if self.simultaneous else "each interval by itself"
        lines = [
            f"{self.people:,} reports; {100 * self.confidence:g} % intervals for the population, {scope}",
            f"{'category':>10}{'unbiased':>11}{'low':>10}{'high':>10}{'consistent':>12}",
        ]
        for index in range(min(self.frequency.size, _ROWS_SHOWN)):
            row = (self.frequency[index], self.low[index], self.high[index])
            lines.append(f"{index:>10}{row[0]:>11.4f}{row[1]:>10.4f}{row[2]:>10.4f}{self.consistent[index]:>12.4f}")
        if self.frequency.size > _ROWS_SHOWN:
            lines.append(f"{'...':>10} {self.frequency.size - _ROWS_SHOWN} more")
        if self.people > 1:
            moved = float(self.moved_by("0.01").max())
            lines.append(f"If 1 % of the reports were made up, a share could have moved by up to {moved:.4f}.")
        return "\n".join(lines)


def estimate_shares(
    tally: Tally, support: tuple[Fraction, Fraction], confidence: Number, simultaneous: bool
) -> Estimate:
    """Undo the randomisation of each count: p of the people inside a category support it, and q of the others.

    The interval is Wilson's for the share of supporting reports, which is binomial when the people are drawn from a
    population, carried through the estimate. For all categories at once, each misses with 1/k of the probability.
    """
    if not tally.people:
        raise InvalidParameter("reports", "must hold at least one report", "none")
    level = probability_inside(confidence, "confidence")
    quantile = normal_quantile((1 - level) / (tally.counts.size if simultaneous else 1))
    observed = tally.counts / tally.people
    frequency = _unbiased(observed, support)
    shares = np.clip(frequency, 0, 1)
    low, high = wilson(observed, tally.people, quantile)
    return Estimate(
        frequency=frequency,
        low=_unbiased(low, support),
        high=_unbiased(high, support),
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
    """n times the variance of an estimate about the people who were asked."""
    true, other = support
    slope = true - other
    return float(other * (1 - other) / slope**2) + share * float((1 - true - other) / slope)


def variance_population(support: tuple[Fraction, Fraction], share: FloatArray) -> FloatArray:
    """n times the variance of an estimate about the population from which the people were drawn."""
    true, other = support
    supporting = float(other) + share * float(true - other)
    return supporting * (1 - supporting) / float(true - other) ** 2


def project_on_simplex(values: FloatArray) -> FloatArray:
    """The nearest point, by Euclid, whose entries are not negative and sum to 1: values less one amount, held at 0."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, values.size + 1)
    level = float(excess[np.flatnonzero(descending > excess)[-1]])
    return np.maximum(values - level, 0)


def wilson(observed: FloatArray, size: int | Counts, quantile: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for a probability, from the share observed in `size` trials."""
    weight = 1 + quantile**2 / size
    centre = (observed + quantile**2 / (2 * size)) / weight
    reach = quantile / weight * np.sqrt(observed * (1 - observed) / size + quantile**2 / (4 * size**2))
    return centre - reach, centre + reach


def normal_quantile(miss: Fraction) -> float:
    """How many standard deviations hold all but `miss`, two-sided."""
    return -NormalDist().inv_cdf(max(float(miss / 2), 1e-300))


def _unbiased(observed: FloatArray, support: tuple[Fraction, Fraction]) -> FloatArray:
    true, other = support
    return (observed - float(other)) / float(true - other)


def _fakes(share: Number, people: int) -> int:
    fakes = math.ceil(probability_inside(share, "share") * people)
    if fakes >= people:
        raise InvalidParameter("share", "must leave at least one honest report", "more")
    return fakes
