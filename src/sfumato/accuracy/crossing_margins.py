"""The margin of a sequence of questions against one threshold."""

import math

import numpy as np

from sfumato.kernel.above_threshold import AboveThreshold
from sfumato.kernel.parameters import Number, probability_inside, whole_number

_SLACK = 1e-9


def crossing_margin(sequence: AboveThreshold, confidence: Number = "0.95", queries: int | None = None) -> int:
    """The least a for which the following holds with the stated probability, over `queries` questions.

    Every value answered False is at most threshold + a, and the one answered True is at least threshold - a.

    Claim: K-34. It holds for every sequence of values.
    Requires: 0 < confidence < 1, queries >= 1 (checked here).
    Relies on: floats, with a slack of one part in 10**9.
    Checked by: tests/kernel/test_above_threshold.py::test_margin_holds
    """
    miss = 1 - probability_inside(confidence, "confidence")
    count = sequence.queries if queries is None else whole_number(queries, "queries", 1)
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
