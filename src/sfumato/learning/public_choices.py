"""Choices that follow from a public seed: which test a tree has, where a search begins.

They need no secrecy: they do not depend on the data, and privacy rests on the noise alone. They are a hash of the seed,
so that the same seed gives the same choices on every machine. Without a seed, each fit draws a new one. Never use them
for noise.
"""

import hashlib
from itertools import count

import numpy as np

from sfumato.kernel.entropy import SYSTEM
from sfumato.learning.row_cells import Floats, Integers
from sfumato.number_arguments import read_whole_number

SEED_BYTES = 16  # of the system's randomness: no byte of it is given out twice, so noise does not depend on them


class PublicChoices:
    """A sequence of choices for one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = count()

    def choose_fractions(self, size: int) -> Floats:
        """Numbers in [0, 1)."""
        name = f"sfumato public choices, seed {self._seed}, call {next(self._calls)}"
        words = np.frombuffer(hashlib.shake_256(name.encode()).digest(8 * size), "<u8")
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def choose_order(self, size: int) -> Integers:
        """An order of 0 to size - 1."""
        return np.argsort(self.choose_fractions(size), kind="stable").astype(np.int64)

    def choose_weighted(self, weights: Floats) -> int:
        """A place, with a chance in proportion to its weight. The weights are not negative, and one is above zero."""
        ends = np.cumsum(weights)
        place = np.searchsorted(ends, self.choose_fractions(1)[0] * ends[-1], side="right")
        return int(min(place, np.flatnonzero(weights)[-1]))


def read_choices(random_state: object) -> PublicChoices:
    """The choices of an estimator's `random_state`: a whole number, or None for a new seed at each fit."""
    if random_state is None:
        return PublicChoices(int.from_bytes(SYSTEM.take(SEED_BYTES).tobytes(), "big"))
    return PublicChoices(read_whole_number(random_state, "random_state", 0))
