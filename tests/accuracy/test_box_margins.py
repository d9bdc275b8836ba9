"""Margins of box noise, beside exact sums over its shells: claim K-58."""

import math
from fractions import Fraction

import pytest

from sfumato.accuracy.box_margins import bound_box_deviation, compute_box_margin
from sfumato.kernel.mechanisms import BoxNoise

CASES = [((1,), 16), ((1, 1, 2), 20), ((1, 3) * 4, 40), ((2,) * 30, 200)]


def list_shells(noise):
    """The probability of each shell, as floats: the law of K-56, cut off far out in its tail."""
    scale = float(noise.scale)
    logs = [
        sum(math.log(2 * shell * unit + 1) for unit in noise.units) - shell / scale
        for shell in range(int(scale * (len(noise.units) + 40)))
    ]
    most = max(logs)
    weights = [math.exp(one - most) for one in logs]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(("units", "scale"), CASES, ids=str)
def test_the_deviation_is_bounded_closely(units, scale):
    noise = BoxNoise(units, Fraction(scale))
    shells = list_shells(noise)
    for unit in set(units):
        variance = sum(chance * shell * unit * (shell * unit + 1) / 3 for shell, chance in enumerate(shells))
        bound = bound_box_deviation(noise, unit)
        assert math.sqrt(variance) <= bound <= 1.1 * math.sqrt(variance)


@pytest.mark.parametrize(("units", "scale"), CASES, ids=str)
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4])
def test_margins_suffice(units, scale, miss):
    noise = BoxNoise(units, Fraction(scale))
    shells = list_shells(noise)

    def exceeds(margin, unit):
        steps = math.floor(margin)
        return sum(
            chance * max(shell * unit - steps, 0) * 2 / (2 * shell * unit + 1) for shell, chance in enumerate(shells)
        )

    for unit in set(units):
        margin = compute_box_margin(noise, unit, miss)
        assert exceeds(margin, unit) <= miss
        assert exceeds(0.8 * margin - unit * (len(units) + 1), unit) > miss  # and is not far from the least
