"""Guesses, mostly by floats, of how much noise is enough. The kernel starts from a guess and checks what it uses.

No proof depends on them: a wrong guess gives more noise than needed, or a search that does not end.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import exp, log, log1p, sqrt
from statistics import NormalDist

NORMAL = NormalDist()


def guess_order(rho: Fraction, delta: Fraction) -> Fraction:
    """The order minus 1 at which rho-zCDP implies the least epsilon for this delta."""
    log_delta = log(delta.denominator) - log(delta.numerator)
    rate = exp(min(700.0, log(rho.numerator) - log(rho.denominator)))

    def bound(offset: float) -> float:
        beyond = exp(offset)
        return (1 + beyond) * rate + (log_delta - log1p(beyond)) / beyond + offset - log1p(beyond)

    low, high = -40.0, 700.0
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) <= bound(right) else (left, high)
    return Fraction(exp(low))


def guess_mu(epsilon: float) -> float:
    """The least mu for which every epsilon-DP mechanism is mu-GDP."""
    if epsilon <= 1e-4:
        return sqrt(1.5707963267948968) * epsilon
    return -2 * NORMAL.inv_cdf(exp(-epsilon) / (1 + exp(-epsilon)))


def find_last(function: Callable[[Fraction], Fraction], most: Fraction, most_of_range: Fraction) -> Fraction:
    """About the last argument, from 0 on, at which a growing function is at most `most`.

    The range ends at the first power of two at which the function exceeds `most_of_range`; 40 halvings follow.
    """
    low, high = Fraction(0), Fraction(1)
    while function(high) <= most_of_range:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) <= most else (low, middle)
    return low


def guess_threshold(deviation: float, weights_and_chances: Iterable[tuple[float, Fraction]]) -> Fraction:
    """The threshold that each of these weights, with Gaussian noise, reaches with its probability or a smaller one."""
    return Fraction(max(weight - deviation * NORMAL.inv_cdf(float(chance)) for weight, chance in weights_and_chances))
