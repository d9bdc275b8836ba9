"""Estimates of a weighted sum of shares, such as a margin of a cross-tab, a distribution function or a mean of bins.

A report that supports categories S counts Y = sum of the weights in S. Its expected value, given the answer x, is
q W + (p - q) w(x), where W is the sum of all weights. Its variance needs the probability that a report supports two
categories; both are exact for the table.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.local.mechanisms.kary import Kary
from sfumato.local.mechanisms.subset import Subset
from sfumato.local.mechanisms.two_stage import TwoStage
from sfumato.local.mechanisms.unary import Unary
from sfumato.local.randomisers.category_randomisers import Randomiser
from sfumato.local.randomisers.category_tables import blanket_support_of
from sfumato.local.randomisers.share_estimates import FloatArray, compute_normal_quantile
from sfumato.local.randomisers.tally import Tally
from sfumato.number_arguments import Number, read_probability


@dataclass(frozen=True, slots=True)
class WeightedEstimate:
    """An unbiased estimate with a confidence interval for the population, by the normal approximation."""

    value: float
    low: float
    high: float


def find_pair_supports(table: Randomiser) -> tuple[Fraction, Fraction]:
    """The probability that a report supports its own category and another given one, and two given others."""
    true, other = table.support
    alone, both = blanket_support_of(table.mechanism)
    match table.mechanism:
        case Kary() | TwoStage(permanent=Kary()):
            return Fraction(0), Fraction(0)
        case Unary() | TwoStage(permanent=Unary()):
            return true * other, other**2
        case Subset(k, size):
            three = both * Fraction(size - 2, k - 2) if k > 2 else Fraction(0)
            high, low = true / alone, (1 - true) / (1 - alone)
            return high * both, low * (both - three) + high * three
        case _:
            raise InvalidParameter(
                "mechanism",
                "must be krr, subset, oue or sue for sums of categories",
                table.name,
                "Make the survey with mechanism='subset'.",
            )


def estimate_weighted(
    table: Randomiser, tally: Tally, weights: FloatArray, confidence: Number = "0.95"
) -> WeightedEstimate:
    """Estimate the population's mean of the weight of a person's category."""
    true, other = (float(probability) for probability in table.support)
    own_pair, other_pair = (float(probability) for probability in find_pair_supports(table))
    people = max(tally.people, 1)
    rates = tally.counts / people
    shares = table.estimate(tally).consistent
    whole, squares = float(weights.sum()), float((weights**2).sum())
    value = float((weights @ rates - other * whole) / (true - other))
    rest = whole - weights  # of each category as the answer
    second = (
        other * (squares - weights**2)
        + true * weights**2
        + 2 * own_pair * weights * rest
        + other_pair * (rest**2 - (squares - weights**2))
    )
    first = other * whole + (true - other) * weights
    variance = float(shares @ second - (shares @ first) ** 2) / (true - other) ** 2
    spread = compute_normal_quantile(1 - read_probability(confidence, "confidence")) * math.sqrt(
        max(variance, 0.0) / people
    )
    return WeightedEstimate(value, value - spread, value + spread)


def estimate_distribution(table: Randomiser, tally: Tally, confidence: Number = "0.95") -> tuple[WeightedEstimate, ...]:
    """For each category in its order: the share of people in this category or an earlier one."""
    steps = np.tri(table.k)
    return tuple(estimate_weighted(table, tally, steps[place], confidence) for place in range(table.k))
