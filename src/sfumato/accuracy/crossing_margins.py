"""Noise and margin of a sequence of questions against one threshold."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.kernel.above_threshold import AboveThreshold, CrossingNoise
from sfumato.kernel.mechanisms import check_scale
from sfumato.number_arguments import Number, read_probability, read_whole_number

_SLACK = 1e-9
_RISK = 1 / 40  # the noise is balanced for a margin of 95 %: this much on either side


def balance_noise(sensitivity: Fraction, epsilon: Decimal, monotonic: bool, queries: int) -> CrossingNoise:
    """Split epsilon between threshold and values so that the margin for so many questions is about the least.

    The kernel checks that the noise pays for epsilon.

    Claim: K-34. With c = 1 if monotonic, else 2: sensitivity/threshold_scale + c * sensitivity/value_scale = epsilon.
    Requires: public parameters only (caller).
    Checked by: tests/kernel/test_above_threshold.py::test_the_split_spends_epsilon_and_no_more
    """
    shifts = 1 if monotonic else 2
    once, often = math.log(1 / _RISK), math.log(queries / _RISK)
    share = Fraction(round(100 / (1 + math.sqrt(shifts * often / once))), 100)
    threshold_scale = check_scale(sensitivity / (share * Fraction(epsilon)), "epsilon")
    value_scale = check_scale(shifts * sensitivity / ((1 - share) * Fraction(epsilon)), "epsilon")
    rarer = math.log(value_scale / (threshold_scale + value_scale))
    rise = round((float(value_scale) * (often + rarer) - float(threshold_scale) * once) / 2)
    return CrossingNoise(threshold_scale, value_scale, rise)


def compute_crossing_margin(sequence: AboveThreshold, confidence: Number, queries: int) -> int:
    """The least a for which the following holds with the stated probability, over `queries` questions.

    Every value answered False is at most threshold + a, and the one answered True is at least threshold - a.

    Claim: K-34. It holds for every sequence of values.
    Requires: 0 < confidence < 1, queries >= 1 (checked here).
    Relies on: floats, with a slack of one part in 10**9.
    Checked by: tests/kernel/test_above_threshold.py::test_margin_holds
    """
    miss = 1 - read_probability(confidence, "confidence")
    count = read_whole_number(queries, "queries", 1)
    noise = sequence.noise
    raising, helping = float(1 / noise.threshold_scale), float(1 / noise.value_scale)
    limit = math.log(miss.numerator) - math.log(miss.denominator) - _SLACK
    meeting = math.log(count) + math.log(math.expm1(-raising) / math.expm1(-raising - helping))

    def is_rare(margin: int) -> bool:
        missed, early = margin + 2 - noise.rise, margin + 1 + noise.rise
        if min(missed, early) < 0:
            return False
        return float(np.logaddexp(-raising * missed, meeting - helping * early)) <= limit

    low, high = -1, 0
    while not is_rare(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_rare(middle) else (middle, high)
    return high
