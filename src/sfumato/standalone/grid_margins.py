"""Margins of the additive mechanisms, where values are rounded to a grid too."""

import math
from fractions import Fraction

from sfumato.accuracy.noise_margins import compute_noise_margin, find_miss_per_coordinate, round_up_to_float
from sfumato.number_arguments import Number, read_probability, read_whole_number
from sfumato.standalone.mechanisms.additive_noise import Additive, choose_grid_and_noise


def compute_margin_on_grid(mechanism: Additive, confidence: Number, size: int) -> int | float:
    """The margin of the noise, plus half a grid step where values are rounded, for all `size` entries at once.

    Claim: K-11. The result is never below the true margin, for releases of up to 2**53 grid steps.
    Requires: 0 < confidence < 1, size >= 1 (checked here).
    Relies on: K-12.
    Checked by: tests/kernel/test_mechanisms.py::test_margin_is_within_the_textbook_bound
    """
    size = read_whole_number(size, "size", 1)
    miss = find_miss_per_coordinate(1 - read_probability(confidence, "confidence"), size)
    exponent, noise = choose_grid_and_noise(mechanism, size)
    if mechanism.noise_is_whole(size):
        return compute_noise_margin(noise, miss)
    exact = (compute_noise_margin(noise, miss) + Fraction(1, 2)) * Fraction(2) ** exponent
    if mechanism.of == "integers":  # rounded again: a whole error of at most `exact` and a half
        return math.floor(exact + Fraction(1, 2))
    return round_up_to_float(exact)
