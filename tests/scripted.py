"""Entropy that tests write themselves, byte by byte."""

from fractions import Fraction

import numpy as np

DEPTH = 6


class Exhausted(Exception):
    """Raised if the code asks for more bytes than were scripted."""


class Scripted:
    """Gives out the scripted bytes in order."""

    def __init__(self, script):
        self.left = np.frombuffer(bytes(script), np.uint8)

    def take(self, count):
        if count > self.left.size:
            raise Exhausted
        taken, self.left = self.left[:count], self.left[count:]
        return taken


class Forced:
    """Makes a row of coins fall as wanted: zeros for heads, ones for tails, again for every tie.

    `expansion(coin, level)` is the test's own knowledge of each probability's bytes; further coins fall tails.
    """

    def __init__(self, wanted, expansion):
        self.wanted = np.asarray(wanted, bool)
        self.expansion = expansion
        self.level = -1
        self.tied = np.arange(self.wanted.size)

    def take(self, count):
        if not self.tied.size:
            return np.full(count, 255, np.uint8)
        assert count == self.tied.size
        self.level += 1
        bytes_ = np.where(self.wanted.reshape(-1)[self.tied], 0, 255).astype(np.uint8)
        width = self.wanted.shape[1]
        digits = np.array([self.expansion(coin, self.level) for coin in range(width)])[self.tied % width]
        self.tied = self.tied[bytes_ == digits]
        return bytes_


def enumerate_mass(flip):
    """(sure heads, undecided) as Fractions, by trying every byte at each of DEPTH levels of ties."""
    prefix, heads = [], Fraction(0)
    for level in range(1, DEPTH + 1):
        tied = []
        for byte in range(256):
            try:
                heads += Fraction(bool(flip(Scripted([*prefix, byte]))), 256**level)
            except Exhausted:
                tied.append(byte)
        assert len(tied) == 1, "exactly one byte in 256 must look further"
        prefix += tied
    return heads, Fraction(1, 256**DEPTH)
