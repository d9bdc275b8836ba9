"""Margins of sums of noises are compared with many draws."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.answers.simulated_noise import WeightedNoise
from sfumato.kernel.mechanisms import LaplaceNoise


@pytest.mark.parametrize("weights", [(1, 1), (1, 1, 1), (1, 0.5, 0.25), (3, 0.01), (1,) * 5, (1,) * 10, (1,) * 40])
@pytest.mark.parametrize("scale", [3, 10_000])
def test_margins_of_sums_are_those_of_draws(weights, scale):
    noise = WeightedNoise(tuple((float(weight), LaplaceNoise(Fraction(scale))) for weight in weights))
    rng = np.random.default_rng(5)
    drawn = sum(weight * rng.laplace(0, scale, 400_000) for weight in weights)
    for miss in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)):
        wanted = np.quantile(np.abs(drawn), 1 - float(miss))
        assert noise.margin(miss) == pytest.approx(wanted, rel=0.05, abs=1.5)
    assert noise.margin(Fraction(1, 20)) < 0.9 * noise.margin(Fraction(1, 100))


def test_rare_misses_are_not_lost_in_rounding():
    noise = WeightedNoise(((1.0, LaplaceNoise(Fraction(10_000))), (1.0, LaplaceNoise(Fraction(10_000)))))
    margins = [noise.margin(Fraction(1, 10**power)) for power in range(1, 15)]
    assert margins == sorted(margins)
    assert margins[-1] < 100 * 10_000
