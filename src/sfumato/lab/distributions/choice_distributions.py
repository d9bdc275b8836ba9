"""Probabilities of private choices: permute-and-flip, and the choices among public bins."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import assert_never

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.lab.distributions.crossings import find_first_crossing
from sfumato.lab.distributions.enclosed import ZERO, Enclosed, enclose_exp
from sfumato.lab.distributions.finite_distribution import FiniteDistribution
from sfumato.lab.distributions.fullest_bins import distribute_fullest
from sfumato.number_arrays import read_numbers
from sfumato.standalone.mechanisms.score_choice import GREATEST_SCORE
from sfumato.standalone.private_choice import PrivateChoice

MOST_CANDIDATES = 200
_BITS = 256
_GREATEST = Fraction(GREATEST_SCORE)


def distribute_choice(choice: PrivateChoice, scores: object) -> FiniteDistribution:
    """The probability of each index."""
    values = read_numbers(scores, "scores")
    if values.shape is None or len(values.shape) != 1 or not values.flat.size:
        raise InvalidParameter("scores", "must be one list of at least one score", "another shape")
    exact = [max(-_GREATEST, min(_GREATEST, _read_score(score))) for score in values.flat.tolist()]
    chances = permute_and_flip_chances([(max(exact) - score) / choice.spread for score in exact])
    return FiniteDistribution(tuple(range(len(chances))), tuple(chances))


def distribute_bins(choice: QuantileChoice | ExtremeChoice | ModeChoice, weights: object) -> FiniteDistribution:
    """The probability of each bin (or tuple of bins), for the weights in the bins of one cell."""
    held = _read_weights(weights, choice.bins)
    match choice:
        case ModeChoice(k=1):
            chances = permute_and_flip_chances([(max(held) - weight) / choice.spread for weight in held])
            return FiniteDistribution(tuple((place,) for place in range(choice.bins)), tuple(chances))
        case ModeChoice(k=k):
            return distribute_fullest(choice.spread, held, k)
        case ExtremeChoice(largest=largest):
            inward = held[::-1] if largest else held
            reached = [sum(inward[: place + 1]) for place in range(choice.bins)]
            chances = find_first_crossing(reached[:-1], choice.target, choice.spread, choice.spread)
            return FiniteDistribution(tuple(range(choice.bins)), tuple(chances[::-1] if largest else chances))
        case QuantileChoice():
            return _distribute_quantiles(choice, held)
        case _:
            assert_never(choice)


def _distribute_quantiles(choice: QuantileChoice, held: list[int]) -> FiniteDistribution:
    """Each fraction is chosen by itself; the bins come out in ascending order, but for the ends of intervals."""
    found = choice.list_misses(np.array([held], object))
    if choice.bins ** len(found) > 1 << 16:
        raise InvalidParameter("fractions", "must give at most 65,536 outcomes", "more", "Use fewer fractions or bins.")
    alone = [permute_and_flip_chances([miss / spread for miss in misses[0].tolist()]) for misses, spread in found]
    together: dict[tuple[int, ...], Enclosed] = {}
    for bins in product(range(choice.bins), repeat=len(alone)):
        chance = Enclosed(Fraction(1), Fraction(1))
        for chances, place in zip(alone, bins, strict=True):
            chance = chance * chances[place]
        outcome = tuple(sorted(bins)) if choice.miss is None else bins
        together[outcome] = together.get(outcome, ZERO) + chance
    return FiniteDistribution(tuple(together), tuple(together.values()))


def permute_and_flip_chances(exponents: Sequence[Fraction]) -> list[Enclosed]:
    """P(candidate i is picked), if candidate j survives with probability exp(-exponents[j]).

    It is P(i survives) times the mean of 1/(1 + N), where N of the other candidates survive. Candidates with equal
    exponents have equal chances.
    """
    if len(exponents) > MOST_CANDIDATES:
        raise InvalidParameter("scores", f"must be at most {MOST_CANDIDATES} for exact probabilities", "more")
    found: dict[Fraction, Enclosed] = {}
    for index, exponent in enumerate(exponents):
        if exponent not in found:
            others = [*exponents[:index], *exponents[index + 1 :]]
            found[exponent] = enclose_exp(-exponent) * _mean_share(others)
    return [found[exponent] for exponent in exponents]


def _mean_share(exponents: Sequence[Fraction]) -> Enclosed:
    """The mean of 1/(1 + N) for N survivors, in integers of 2**-256 that are rounded outwards."""
    one = 1 << _BITS
    low, high = [one], [one]  # P(N = 0), P(N = 1), ...
    for exponent in exponents:
        survives = enclose_exp(-exponent)
        least, most = int(survives.low * one), min(-int(-survives.high * one // 1), one)
        low = [(stay * (one - most) + grow * least) >> _BITS for stay, grow in zip([*low, 0], [0, *low], strict=True)]
        high = [
            ((stay * (one - least) + grow * most) >> _BITS) + 1
            for stay, grow in zip([*high, 0], [0, *high], strict=True)
        ]
    ends = (
        sum((Fraction(weight, (count + 1) << _BITS) for count, weight in enumerate(weights)), Fraction(0))
        for weights in (low, high)
    )
    return Enclosed(*ends)


def _read_score(score: int | float | Fraction) -> Fraction:
    if isinstance(score, float) and math.isinf(score):
        return _GREATEST if score > 0 else -_GREATEST
    return Fraction(score)


def _read_weights(weights: object, bins: int) -> list[int]:
    held = read_numbers(weights, "weights").flat.tolist()
    if len(held) != bins or any(weight != int(weight) or weight < 0 for weight in held):
        raise InvalidParameter("weights", f"must be {bins} whole numbers, one for each bin", "others")
    return [int(weight) for weight in held]
