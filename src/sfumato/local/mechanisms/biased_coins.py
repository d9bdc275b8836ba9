"""Exact coins of one probability, for the device's answers. Part of the trusted perimeter."""

from functools import lru_cache

import numpy as np

from sfumato.kernel.coins import BoolArray, Coins
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import Probability
from sfumato.kernel.samplers import ROWS_AT_ONCE


def bernoulli(probability: Probability, size: int, entropy: Entropy) -> BoolArray:
    """Flip one coin `size` times.

    Claim: K-05. Flips are independent, and heads has exactly the stated probability: rational, exp(-x) or logistic.
    Requires: the probability does not depend on the data (caller).
    Relies on: Coins.flip.
    Checked by: tests/kernel/test_samplers.py::test_bernoulli_mass_is_exact
    """
    coins = _make_single_coin(probability)
    heads = np.empty(size, np.bool_)
    for start in range(0, size, ROWS_AT_ONCE):
        flips = coins.flip(min(ROWS_AT_ONCE, size - start), entropy)
        heads[start : start + len(flips)] = flips[:, 0]
    return heads


@lru_cache(maxsize=256)
def _make_single_coin(probability: Probability) -> Coins:
    return Coins((probability,))
