"""Clopper-Pearson limits: exact confidence limits of a probability, from the number of times an event happened."""

import math

ROUNDING = 1e-7  # relative: the limits are moved outward by more than the float error of the tails
_STEPS = 5_000  # of the continued fraction; it needs about sqrt(trials)
_TINY = 1e-300


def find_lower_limit(hits: int, trials: int, error: float) -> float:
    """The largest p0 that `hits` of `trials` rejects: P(X >= hits | p) < error for every p < p0.

    P(limit > p) <= error for every p: the limit exceeds p only if hits lies in a tail of probability below `error`.
    """
    if hits == 0:
        return 0.0
    target = error * (1 - ROUNDING)
    low, high = 0.0, hits / trials
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if compute_tail(hits, trials, middle) <= target else (low, middle)
    return low


def find_upper_limit(hits: int, trials: int, error: float) -> float:
    """The smallest p0 such that P(X <= hits | p) < error for every p > p0. P(limit < p) <= error for every p."""
    return 1.0 - find_lower_limit(trials - hits, trials, error)


def compute_tail(hits: int, trials: int, rate: float) -> float:
    """P(X >= hits) for X binomial: the incomplete beta function I_rate(hits, trials - hits + 1)."""
    if hits <= 0:
        return 1.0
    if rate <= 0 or hits > trials:
        return 0.0
    if rate >= 1:
        return 1.0
    above, below = float(hits), float(trials - hits + 1)
    log_front = (
        math.lgamma(above + below)
        - math.lgamma(above)
        - math.lgamma(below)
        + above * math.log(rate)
        + below * math.log1p(-rate)
    )
    front = math.exp(log_front)
    if rate < (above + 1) / (above + below + 2):  # where the fraction converges fast
        return min(1.0, front * _evaluate_fraction(above, below, rate) / above)
    return max(0.0, 1.0 - front * _evaluate_fraction(below, above, 1 - rate) / below)


def _evaluate_fraction(one: float, two: float, rate: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    upper, lower = 1.0, 1.0 - (one + two) * rate / (one + 1)
    lower = 1 / (lower if abs(lower) > _TINY else _TINY)
    value = lower
    for step in range(1, _STEPS):
        even = step * (two - step) * rate / ((one + 2 * step - 1) * (one + 2 * step))
        odd = -(one + step) * (one + two + step) * rate / ((one + 2 * step) * (one + 2 * step + 1))
        change = 1.0
        for term in (even, odd):
            lower, upper = 1 + term * lower, 1 + term / upper
            lower = 1 / (lower if abs(lower) > _TINY else _TINY)
            upper = upper if abs(upper) > _TINY else _TINY
            change = lower * upper
            value *= change
        if abs(change - 1) < 1e-15:
            break
    return value
