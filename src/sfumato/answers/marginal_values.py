"""Marginals from the released blocks of a workload: their values, which agree with each other, and their noise.

Post-processing. Each residual is the mean of what the blocks say about it, weighted by precision; a marginal is the sum
of the residuals of its keys' subsets (planning/marginal_strategies.py).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sfumato.answers.simulated_noise import WeightedNoise, compute_variance
from sfumato.answers.unmixed_values import combine_cumulants, measure_spread
from sfumato.kernel.certify import Certified
from sfumato.kernel.mechanisms import GaussianNoise, LaplaceNoise
from sfumato.planning.marginal_strategies import Keys, MarginalStrategy, list_subsets
from sfumato.planning.range_strategies import RangeStrategy

Floats = npt.NDArray[np.float64]


def find_step(strategy: MarginalStrategy | RangeStrategy, number: int, certified: Certified) -> float:
    """What a step of a block's integers is worth: a residual's queries are multiplied by its numbers of values."""
    block = strategy.blocks[number]
    multiplied = math.prod(strategy.sizes[key] for key in block.keys) if block.centred else 1
    return 2.0**certified.exponent / multiplied


def find_residuals(strategy: MarginalStrategy, blocks: Sequence[Floats]) -> dict[Keys, Floats]:
    """The residuals of all subsets of keys that were measured. `blocks` have their values in units, cell by cell."""
    shaped = [
        values.reshape([strategy.sizes[key] for key in block.keys])
        for values, block in zip(blocks, strategy.blocks, strict=True)
    ]
    found: dict[Keys, Floats] = {}
    for keys, trusted in strategy.list_precisions().items():
        parts = [
            trust * _centre(_add_up(shaped[block], strategy.blocks[block].keys, keys))
            for block, trust in trusted.items()
        ]
        found[keys] = np.asarray(sum(parts[1:], parts[0]), np.float64)
    return found


def _add_up(values: Floats, keys: Keys, kept: Keys) -> Floats:
    """The marginal of fewer keys."""
    return np.asarray(values.sum(axis=tuple(place for place, key in enumerate(keys) if key not in kept)), np.float64)


def _centre(values: Floats) -> Floats:
    """What remains along every key after its mean is subtracted."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def add_residuals(strategy: MarginalStrategy, residuals: Mapping[Keys, Floats], keys: Keys) -> Floats:
    """The marginal of these keys, with an axis for each."""
    total = np.zeros([strategy.sizes[key] for key in keys])
    for part in list_subsets(keys):
        shape = [strategy.sizes[key] if key in part else 1 for key in keys]
        spread = math.prod(strategy.sizes[key] for key in keys if key not in part)
        total = total + residuals[part].reshape(shape) / spread
    return np.asarray(total, np.float64)


def find_marginal_noise(
    strategy: MarginalStrategy | RangeStrategy, certified: Sequence[Certified], keys: Keys, amount: float = 1.0
) -> WeightedNoise:
    """The noise of a cell, in units. `amount` multiplies the losses that the blocks were certified with."""
    variance = fourth = 0.0
    for weights in strategy.weigh(keys):
        one = certified[weights.block]
        if not isinstance(one.noise, LaplaceNoise | GaussianNoise):
            raise AssertionError("a block has additive noise")
        step = find_step(strategy, weights.block, one)
        less = amount**2 if isinstance(one.noise, LaplaceNoise) else amount
        rounding = (
            compute_variance(one.noise) - float(one.noise.variance) if isinstance(one.noise, GaussianNoise) else 0.0
        )
        variance += weights.square * ((compute_variance(one.noise) - rounding) / less + rounding) * step**2
        fourth += weights.fourth * (measure_spread(one.noise) * step) ** 4 / less**2
    return combine_cumulants(variance, fourth**0.25)
