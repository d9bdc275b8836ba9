"""The tail of discrete Laplace noise: where a threshold must lie."""

import math
from fractions import Fraction
from functools import lru_cache

from sfumato.kernel.exact import ExpNeg, enclose, enclose_log

_BITS = 128


@lru_cache(maxsize=1024)
def find_least_tail(scale: Fraction, chance: Fraction) -> int:
    """The least k >= 1 with P(Z >= k) <= chance, for discrete Laplace noise Z.

    Claim: K-11. k is exact: x^k/(1 + x) <= chance with x = exp(-1/scale), and k - 1 is 0 or does not satisfy it.
    Requires: 0 < chance < 1 (caller).
    Relies on: K-01.
    Checked by: tests/kernel/test_tails.py::test_least_tail_is_the_least
    """
    bits = _BITS
    while True:
        low, high = enclose(ExpNeg(1 / scale), bits)
        one = 1 << bits
        # x^k <= chance * (1 + x)  <=>  k >= scale * ln(1 / (chance * (1 + x)))
        least = scale * Fraction(enclose_log(1 / (chance * Fraction(one + high, one)), bits)[0], one)
        most = scale * Fraction(enclose_log(1 / (chance * Fraction(one + low, one)), bits)[1], one)
        if math.ceil(least) == math.ceil(most):
            return max(math.ceil(most), 1)
        bits *= 2
