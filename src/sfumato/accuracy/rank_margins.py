"""How far in rank a private quantile may be from the wanted one: for any data, and for evenly spread data.

`survival` also serves other private choices.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

_SLACK = 1e-9
_RARE = Fraction(1, 10**6)


def survival(miss: Fraction, size: int) -> float:
    """The greatest p such that, if all but the best of `size` candidates survive with p, few of them are picked.

    Claim: K-20. With p, or less, one of them is picked with a probability of `miss` at most.
    Requires: 0 < miss < 1 and size >= 2 (caller).
    Relies on: floats, with `miss` lowered by one part in 10**9.
    Checked by: tests/kernel/test_choice.py::test_choice_margin_holds_in_the_worst_case
    """
    if miss >= _RARE:
        return _compute_survival(float(miss) * (1 - _SLACK), size)
    return float(2 * miss / (size - 1))  # P(bad) <= (size - 1) p / 2, which is nearly P(bad) for a p this small


def _compute_survival(miss: float, size: int) -> float:
    """The largest p at which P(bad) = 1 - (1 - (1 - p)**size)/(size * p) is at most `miss`; 1 if none exceeds it."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        bad = 1 + math.expm1(size * math.log1p(-middle)) / (size * middle) if middle < 1 else 1 - 1 / size
        low, high = (middle, high) if bad <= miss else (low, middle)
    return low


@lru_cache(maxsize=1024)
def compute_rank_margin(spread: Fraction, miss: Fraction, bins: int, fraction: Fraction) -> float:
    """The chosen bin's ranks come within this much weight of the wanted rank, but for a probability of `miss`.

    Claim: K-31. It holds for every list of weights, and is the least, nearly, for two full bins that meet at the
        wanted rank while all others are empty.
    Requires: 0 < miss < 1, bins >= 1, 0 < fraction < 1 (caller).
    Relies on: floats, with the result rounded up by one part in 10**9.
    Checked by: tests/accuracy/test_rank_margins.py::test_no_weights_miss_more_often
    """
    if bins == 1:
        return 0.0
    smaller = min(fraction, 1 - fraction)
    depth = -math.log(survival(miss, bins)) / (1 + float(smaller / (1 - smaller)))
    if bins > 2:
        depth = max(depth, -math.log(_compute_survival_of_two(miss, bins - 2)))
    return float(spread) * depth * (1 + _SLACK)


def compute_even_rank_margin(spread: Fraction, miss: Fraction) -> float:
    """The same where all bins hold the same weight: spread * ln(1/miss).

    Claim: K-31. It holds for every weight that all bins have, and any number of bins.
    Requires: 0 < miss < 1 (caller).
    Relies on: K-20; permute-and-flip being never worse than the exponential mechanism (McKenna and Sheldon, 2020).
    Checked by: tests/accuracy/test_rank_margins.py::test_even_weights_miss_less
    """
    return float(spread) * (math.log(miss.denominator) - math.log(miss.numerator)) * (1 + _SLACK)


def _compute_survival_of_two(miss: Fraction, others: int) -> float:
    """The largest p at which E[N/(N + 2)] is at most `miss`, for N binomial(others, p); 1 if none exceeds it."""
    if miss < _RARE:
        return min(float(3 * miss / others), 1.0)  # N/(N + 2) <= N/3
    wanted = float(miss) * (1 - _SLACK)
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _compute_pick_beside_two(others, middle) <= wanted else (low, middle)
    return low


def _compute_pick_beside_two(others: int, chance: float) -> float:
    """E[N/(N + 2)] for N binomial(others, chance), or a bit more: what is not added up counts as 1."""
    if chance >= 1:
        return others / (others + 2)
    mean = others * chance
    most = min(others, math.ceil(mean + 12 * math.sqrt(mean)) + 40)
    steps = np.arange(1, most + 1)
    odds = math.log(chance) - math.log1p(-chance)
    masses = np.exp(others * math.log1p(-chance) + np.cumsum(np.log((others - steps + 1) / steps) + odds))
    nobody = math.exp(others * math.log1p(-chance))
    return float(masses @ (steps / (steps + 2)) + max(1 - nobody - masses.sum(), 0))
