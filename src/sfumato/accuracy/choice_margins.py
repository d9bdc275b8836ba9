"""Margins of private choices: how far the chosen candidate may be from the best one."""

import math
from fractions import Fraction
from typing import assert_never

from sfumato.accuracy.noise_margins import find_miss_per_coordinate, round_up_to_float
from sfumato.accuracy.rank_margins import compute_even_rank_margin, compute_rank_margin, survival
from sfumato.kernel.bin_choice import ExtremeChoice, ModeChoice, QuantileChoice
from sfumato.kernel.tails import find_least_tail
from sfumato.number_arguments import Number, read_probability


def compute_score_margin(spread: Fraction, miss: Fraction, size: int) -> float:
    """The chosen score is at most this far below the best of `size`, but for a probability of `miss`.

    Claim: K-20. It holds for every list of scores; it is nearly tight for one best and the rest just beyond it.
    Requires: 0 < miss < 1 and size >= 1 (caller).
    Relies on: floats, with the result rounded up by one part in 10**9.
    Checked by: tests/kernel/test_choice.py::test_choice_margin_holds_in_the_worst_case
    """
    return float(spread) * -math.log(survival(miss, size)) * (1 + 1e-9) if size > 1 else 0.0


def compute_bin_margin(choice: QuantileChoice | ExtremeChoice | ModeChoice, confidence: Number = "0.95") -> float:
    """How much weight may lie between the chosen bins and the right ones, with the stated probability.

    The ends of intervals (K-83) are further from the wanted rank by what they are padded with.

    Quantiles: each chosen bin's ranks come within this much weight of the wanted rank, for all fractions of one cell
    at once. The ranks of a bin go from the weight before it to the weight up to its end. Extremes: at most this much
    weight lies strictly beyond the chosen bin. Modes: the j-th chosen bin holds at most this much less than the j-th
    fullest, for every j.

    Claim: K-31. It holds for every list of weights.
    Requires: 0 < confidence < 1 (checked here).
    Relies on: K-11, K-20, K-32, K-33; floats, with a slack of one part in 10**9.
    Checked by: tests/accuracy/test_choice_margins.py::test_quantile_margin_holds
    """
    miss = 1 - read_probability(confidence, "confidence")
    match choice:
        case QuantileChoice(fractions=fractions) if choice.miss is not None:
            once = find_miss_per_coordinate(miss, 2 * len(fractions))
            return choice.pads[0][0] + compute_score_margin(choice.spread, once, choice.bins)
        case QuantileChoice(fractions=fractions):
            once = find_miss_per_coordinate(miss, len(fractions))
            return max(compute_rank_margin(choice.spread, once, choice.bins, fraction) for fraction in fractions)
        case ExtremeChoice():
            return round_up_to_float(max(choice.target + find_least_tail(choice.spread, miss) - 2, 0))
        case ModeChoice(k=1):
            return compute_score_margin(choice.spread, miss, choice.bins)
        case ModeChoice(k=k):
            return round_up_to_float(compute_least_difference(choice.spread, miss / (k * (choice.bins - 1))) - 1)
        case _:
            assert_never(choice)


def compute_even_bin_margin(choice: QuantileChoice, confidence: Number = "0.95") -> float:
    """The margin of quantiles where the weight is spread evenly over all bins.

    Claim: K-31. As compute_even_rank_margin, for all fractions of one cell at once.
    Requires: 0 < confidence < 1 (checked here).
    Relies on: K-11 (find_miss_per_coordinate).
    Checked by: tests/accuracy/test_rank_margins.py::test_even_weights_miss_less
    """
    miss = find_miss_per_coordinate(1 - read_probability(confidence, "confidence"), len(choice.fractions))
    return min(compute_even_rank_margin(choice.spread, miss), compute_bin_margin(choice, confidence))


def compute_least_difference(scale: Fraction, chance: Fraction) -> int:
    """The least n >= 1, or one above it, with P(Z - Z' >= n) <= chance, for two discrete Laplace variables.

    Claim: K-33. n suffices.
    Requires: 0 < chance < 1 (caller).
    Relies on: floats, with a slack of one part in 10**9.
    Checked by: tests/accuracy/test_choice_margins.py::test_mode_margin_holds
    """
    rate = float(1 / scale)
    ratio, gap = math.exp(-rate), -math.expm1(-rate)
    limit = math.log(chance.numerator) - math.log(chance.denominator) - 1e-9
    level = ratio + (1 + ratio**2) / (1 + ratio)

    def is_rare(n: int) -> bool:  # P = x^n (n (1 - x) + x + (1 + x^2)/(1 + x)) / (1 + x)^2
        return math.log(n * gap + level) - n * rate - 2 * math.log1p(ratio) <= limit

    low, high = 0, 1
    while not is_rare(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_rare(middle) else (middle, high)
    return high
