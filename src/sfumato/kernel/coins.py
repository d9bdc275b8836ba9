"""Exact biased coins: compare a random byte with a byte of the probability's expansion; only ties need another."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.kernel.entropy import ByteArray, Entropy
from sfumato.kernel.exact import ExpNeg, Probability, find_leading_bits

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

FLOAT_SLACK = 2.0**-36
EXPONENT_SLACK = 2.0**-44


class Coins:
    """Independent coins, one for each probability, that are flipped together."""

    def __init__(self, probabilities: tuple[Probability, ...]) -> None:
        self.probabilities = probabilities
        self._digits: dict[int, ByteArray] = {}

    def _digit(self, level: int) -> ByteArray:
        """Byte number `level` of each coin's expansion. If two threads compute it at once, both get the same bytes."""
        if level not in self._digits:
            bits = 8 * level + 8
            self._digits[level] = np.array([find_leading_bits(p, bits) & 0xFF for p in self.probabilities], np.uint8)
        return self._digits[level]

    def flip(self, size: int, entropy: Entropy) -> BoolArray:
        """Flip every coin `size` times: an array of shape (size, coins), True for heads.

        Claim: K-05. Entries are independent, and coin j is heads with exactly its probability.
        Requires: the probabilities do not depend on the data (caller).
        Relies on: K-02 (certain digits), K-04 (fair bytes).
        Checked by: tests/kernel/test_coins.py::test_every_byte_of_a_flip_is_enumerated
        """
        width = len(self.probabilities)
        digits = self._digit(0) if size == 1 else np.tile(self._digit(0), size)
        drawn = entropy.take(size * width)
        heads = drawn < digits
        tied = (drawn == digits).nonzero()[0]
        level = 0
        while tied.size:
            level += 1
            digits = self._digit(level)[tied % width]
            drawn = entropy.take(tied.size)
            heads[tied] = drawn < digits
            tied = tied[drawn == digits]
        return heads.reshape(size, width)


def flip_exp_neg(approximate: FloatArray, exact: Callable[[int], Fraction], entropy: Entropy) -> BoolArray:
    """Flip one coin for each entry: coin i is heads with probability exp(-exact(i)).

    `approximate` holds the same exponents as floats; `exact` is asked only where floats cannot decide.

    Claim: K-06. Flips are independent, and coin i is heads with exactly its probability.
    Requires: |approximate[i] - exact(i)| <= EXPONENT_SLACK * (1 + exact(i)), and exact(i) >= 0 (caller).
    Relies on: K-02, K-04; numpy's exp being within 2**-40 of the truth, relatively.
    Checked by: tests/kernel/test_coins.py::test_float_decisions_are_the_exact_ones
    """
    words = entropy.take(8 * approximate.size).view(">u8")
    drawn = words.astype(np.float64) * 2.0**-64
    middle = np.exp(-approximate)
    heads = drawn < middle * (1 - FLOAT_SLACK) - 2.0**-60
    unsure = ~heads & (drawn <= middle * (1 + FLOAT_SLACK) + 2.0**-60)
    for index in np.flatnonzero(unsure):
        heads[index] = _settle(int(words[index]), ExpNeg(exact(int(index))), entropy)
    return heads


def _settle(word: int, probability: Probability, entropy: Entropy) -> bool:
    """Is the uniform number that begins with the 64 bits of `word` below the probability?"""
    bits = 64
    while True:
        digits = find_leading_bits(probability, bits)
        if word != digits:
            return word < digits
        word = word << 8 | int(entropy.take(1)[0])
        bits += 8
