"""Box noise before a release: the deviation of a term, and a bound that its size seldom exceeds.

Claim K-58. Let p be the number of terms and s the scale. The shell of a draw is, in distribution, at most p plus a sum
of p + 1 geometric variables, and each of these at most s times an exponential one. Given the shell k, a term with the
side u of the box is uniform on -ku .. ku.
"""

import math

import numpy as np

from sfumato.kernel.mechanisms import BoxNoise

HALVINGS = 60


def bound_box_deviation(noise: BoxNoise, unit: int) -> float:
    """An upper bound of the standard deviation of a term with this side, in steps.

    Claim: K-58. The bound holds; it is close where the scale is large.
    Checked by: tests/accuracy/test_box_margins.py::test_the_deviation_is_bounded_closely
    """
    terms, most = len(noise.units), float(noise.scale) + 1
    return math.sqrt((terms + 1) * (unit * unit * (terms + 2) * most**2 + unit * most) / 3)


def compute_box_margin(noise: BoxNoise, unit: int, miss: float) -> float:
    """A number of steps that a term with this side exceeds in size with probability at most `miss`.

    Claim: K-58. The margin suffices, up to the rounding of floats.
    Requires: 0 < miss < 1 (caller).
    Checked by: tests/accuracy/test_box_margins.py::test_margins_suffice
    """
    terms, low, high = len(noise.units), 0.0, 1.0
    while _find_tail(terms, high) > miss:
        high *= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _find_tail(terms, middle) > miss else (low, middle)
    return unit * (float(noise.scale) * high + terms + 1)


def _find_tail(terms: int, size: float) -> float:
    """P(UG > size), U uniform in [0, 1], G a gamma variable of terms + 1: E[max(1 - size/G, 0)]."""
    return _find_gamma_tail(terms + 1, size) - size / terms * _find_gamma_tail(terms, size)


def _find_gamma_tail(parts: int, size: float) -> float:
    """P(G > size) for the sum of so many exponential variables: a sum of Poisson probabilities."""
    if size <= 0:
        return 1.0
    counts = np.arange(parts)
    logs = counts * math.log(size) - size - np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, parts)))])
    return float(min(np.exp(logs).sum(), 1.0))
