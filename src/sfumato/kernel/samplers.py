"""Exact samplers. One draw and a million draws use the same code. Tails are not cut, and no step rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import KernelFault
from sfumato.kernel.coins import BoolArray, Coins, flip_exp_neg
from sfumato.kernel.entropy import Entropy
from sfumato.kernel.exact import ExpNeg, Logistic, Probability, Rational

# int64; or object, holding Python integers, in the rare case that some drawn integer does not fit
IntArray = npt.NDArray[Any]
# the coins of each draw as the bits of a signed integer
Words = npt.NDArray[np.signedinteger[Any]]

ROWS_AT_ONCE = 1 << 15
NUMBERS_OF_DIGITS = (5, 13, 29, 61)  # with three more coins, the bits of a word of 1, 2, 4 or 8 bytes
LEAST_SCALE = Fraction(1, 1 << 10)
GREATEST_SCALE = Fraction(1 << 60)


def uniform_below(bound: int, size: int, entropy: Entropy) -> npt.NDArray[np.int64]:
    """Draw `size` independent integers, each of 0 .. bound - 1 equally likely.

    Claim: K-07. The distribution is exactly uniform: words outside a whole multiple of the range are drawn again.
    Requires: 1 <= bound <= 2**62 (checked here).
    Relies on: K-04 (fair bytes).
    Checked by: tests/kernel/test_samplers.py::test_uniform_mass_is_exact
    """
    if not 1 <= bound <= 1 << 62:
        raise KernelFault("uniform_below takes a bound from 1 to 2**62.")
    width = next(size_of for size_of in (1, 2, 4, 8) if 1 << 8 * size_of >= bound)
    last = np.uint64((1 << 8 * width) // bound * bound - 1)
    drawn = np.empty(size, np.int64)
    todo = np.arange(size)
    while todo.size:
        words = entropy.take(width * todo.size).view(f"<u{width}").astype(np.uint64)
        valid = words <= last
        drawn[todo[valid]] = words[valid] % np.uint64(bound)
        todo = todo[~valid]
    return drawn


@dataclass(frozen=True, slots=True)
class GeometricCoins:
    """The coins of a geometric variable G = R + 2**digits * K, and of what makes it two-sided.

    In order: the binary digits of R, least first; "K is at least one"; "not zero"; "negative".
    """

    digits: int
    coins: Coins
    tail: Coins

    @classmethod
    def make(cls, digits: Sequence[Probability], tail: Probability, nonzero: Probability) -> "GeometricCoins":
        if len(digits) not in NUMBERS_OF_DIGITS:
            raise KernelFault("The coins of one draw must fill one word.")
        return cls(len(digits), Coins((*digits, tail, nonzero, Rational(Fraction(1, 2)))), Coins((tail,)))


@lru_cache(maxsize=256, typed=True)
def make_geometric_coins(scale: Fraction) -> GeometricCoins:
    """The coins for the ratio x = exp(-1 / scale), with enough digits that K is rarely more than zero.

    Claim: K-08. P(digit i is one) = x^(2^i)/(1 + x^(2^i)), P(K >= 1) = x^(2^digits), P("not zero") = 2x/(1 + x).
    Requires: LEAST_SCALE <= scale <= GREATEST_SCALE (checked here); scale does not depend on the data (caller).
    Relies on: K-02.
    Checked by: tests/kernel/test_samplers.py::test_laplace_mass_is_exact
    """
    if not isinstance(scale, Fraction) or not LEAST_SCALE <= scale <= GREATEST_SCALE:
        raise KernelFault("The scale of the noise is no Fraction that the samplers carry.")
    digits = next(count for count in NUMBERS_OF_DIGITS if 1 << count >= 2 * scale)
    return GeometricCoins.make(
        [Logistic((1 << place) / scale) for place in range(digits)],
        ExpNeg((1 << digits) / scale),
        Logistic(1 / scale, numerator=2),
    )


def geometric(scale: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent integers G >= 0 with P(G = k) proportional to exp(-k / scale).

    Claim: K-08. The distribution is exact, with its whole tail, for every rational scale in range.
    Requires: LEAST_SCALE <= scale <= GREATEST_SCALE (checked here); scale does not depend on the data (caller).
    Relies on: K-05 (coins), make_geometric_coins.
    Checked by: tests/kernel/test_samplers.py::test_geometric_mass_is_exact
    """
    coins = make_geometric_coins(scale)
    return draw_in_chunks(size, lambda count: draw_one_sided(coins, count, entropy))


def discrete_laplace(scale: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent integers Z with P(Z = z) proportional to exp(-|z| / scale).

    Claim: K-09. The distribution is exact, with its whole tail, for every rational scale in range.
    Requires: LEAST_SCALE <= scale <= GREATEST_SCALE (checked here); scale does not depend on the data (caller).
    Relies on: K-08.
    Checked by: tests/kernel/test_samplers.py::test_laplace_mass_is_exact
    """
    coins = make_geometric_coins(scale)
    return draw_in_chunks(size, lambda count: draw_two_sided(coins, count, entropy))


def draw_one_sided(coins: GeometricCoins, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` variables G from the coins of one ratio x.

    Claim: K-08. P(G = k) = (1 - x) * x^k exactly.
    Requires: coins of one ratio x in (0, 1) (make_geometric_coins).
    Relies on: K-05.
    Checked by: tests/kernel/test_samplers.py::test_rational_ratio_gives_equal_fractions
    """
    words = _flip_words(coins, size, entropy)
    return _add_tail(words & ((1 << coins.digits) - 1), words, words * 0 + 1, coins, entropy)


def draw_two_sided(coins: GeometricCoins, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` variables Z that are 0, or else a fair sign times 1 + G, from the coins of one ratio x.

    Claim: K-09. P(Z = z) = (1 - x)/(1 + x) * x^|z| exactly.
    Requires: coins of one ratio x in (0, 1) (make_geometric_coins).
    Relies on: K-08.
    Checked by: tests/kernel/test_samplers.py::test_rational_ratio_gives_equal_fractions
    """
    words = _flip_words(coins, size, entropy)
    negative = words >> (coins.digits + 2)  # the sign bit and its copies: 0, or -1
    sign = (words >> (coins.digits + 1) & 1 ^ negative) - negative  # 0, 1 or -1: x ^ -1 is -x - 1
    return _add_tail(((words & ((1 << coins.digits) - 1)) + 1) * sign, words, sign, coins, entropy)


def _flip_words(coins: GeometricCoins, size: int, entropy: Entropy) -> Words:
    """Flip the coins of `size` draws: the coins of each are the bits of one signed integer, the last its sign bit."""
    return np.packbits(coins.coins.flip(size, entropy), bitorder="little").view(f"<i{(coins.digits + 3) // 8}")


def _add_tail(drawn: Words, words: Words, sign: Words, coins: GeometricCoins, entropy: Entropy) -> IntArray:
    """Add sign * 2**digits * K where K >= 1: one more for every further head of the tail's coin."""
    total: IntArray = drawn.astype(np.int64)
    places = np.flatnonzero(words & (1 << coins.digits))
    if not places.size:
        return total
    multiple: IntArray = np.ones(places.size, np.int64)
    going = np.arange(places.size)
    while going.size:
        going = going[coins.tail.flip(going.size, entropy)[:, 0]]
        multiple[going] += 1
    if (int(multiple.max()) + 1) << coins.digits > 1 << 62:
        total, multiple = total.astype(object), multiple.astype(object)
    total[places] += sign[places] * (multiple << coins.digits)
    return total


def discrete_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Draw `size` independent integers Z with P(Z = z) proportional to exp(-z**2 / (2 * variance)).

    Claim: K-10. The distribution is exact, with its whole tail, for every rational variance in range.
    Requires: LEAST_SCALE <= 2 * variance < GREATEST_SCALE**2 (checked here); no dependence on the data (caller).
    Relies on: K-06 (coins of exp(-x)), K-09.
    Checked by: tests/kernel/test_samplers.py::test_gaussian_mass_is_exact
    """
    if not LEAST_SCALE <= 2 * variance < GREATEST_SCALE**2:
        raise KernelFault("The variance of the noise lies outside what the samplers carry.")
    return draw_in_chunks(size, lambda count: _draw_gaussian(variance, count, entropy))


def _draw_gaussian(variance: Fraction, size: int, entropy: Entropy) -> IntArray:
    """Keep a discrete Laplace draw Y of integer scale t with probability exp(-(|Y| - variance/t)**2 / (2 variance))."""
    scale = isqrt(variance.numerator // variance.denominator) + 1
    shift, twice = variance / scale, 2 * variance

    def accept(distance: IntArray) -> BoolArray:
        approximate = (distance.astype(np.float64) - float(shift)) ** 2 / float(twice)
        return flip_exp_neg(approximate, lambda index: (int(distance[index]) - shift) ** 2 / twice, entropy)

    return draw_accepted(scale, size, accept, entropy)


def draw_accepted(scale: int, size: int, accept: Callable[[IntArray], BoolArray], entropy: Entropy) -> IntArray:
    """Draw `size` independent integers by rejection: discrete Laplace draws Y, kept where `accept` says so of |Y|.

    Claim: K-10. P(Y = y) is proportional to exp(-|y| / scale) times the probability that |y| is accepted.
    Requires: entries of `accept` are independent, and each depends on its own |Y| alone (caller).
    Relies on: K-09.
    Checked by: tests/kernel/test_samplers.py::test_gaussian_mass_is_exact
    """
    drawn: IntArray = np.empty(0, np.int64)
    while drawn.size < size:
        proposed = discrete_laplace(Fraction(scale), (size - drawn.size) * 3 // 2 + 8, entropy)
        drawn = np.concatenate((drawn, proposed[accept(np.abs(proposed))]))
    return drawn[:size]


def draw_in_box(units: Sequence[int], scale: Fraction, entropy: Entropy) -> list[int]:
    """Draw one vector Z of integers with P(Z = z) proportional to exp(-m(z) / scale).

    m(z) is the least m >= 0 with |z_i| <= m * units_i for every i: the number of the shell that z lies in.

    Claim: K-56. The distribution is exact, with its whole tail.
    Requires: units of at least 1, LEAST_SCALE <= scale <= GREATEST_SCALE (checked here); both public (caller).
    Relies on: K-04, K-08.
    Checked by: tests/kernel/test_products.py::test_the_mass_of_box_noise_is_enumerated
    """
    if min(units, default=0) < 1:
        raise KernelFault("The sides of a box are at least 1.")
    while True:
        shell = sum(map(int, geometric(scale, len(units) + 1, entropy)))
        drawn = [_draw_below(2 * unit * (shell + place), entropy) for place, unit in enumerate(units, 1)]
        if all(integer <= 2 * shell * unit for integer, unit in zip(drawn, units, strict=True)):
            return [integer - shell * unit for integer, unit in zip(drawn, units, strict=True)]


def _draw_below(bound: int, entropy: Entropy) -> int:
    """One of 0 .. bound - 1, equally likely, for a bound of any size (K-07)."""
    size = (bound.bit_length() + 7) // 8
    most = (1 << 8 * size) // bound * bound
    while (word := int.from_bytes(entropy.take(size).tobytes(), "little")) >= most:
        pass
    return word % bound


def draw_in_chunks(size: int, draw: Callable[[int], IntArray]) -> IntArray:
    """Draw in rows that fit the cache. If an integer of one part does not fit 64 bits, all become Python's own."""
    if size <= ROWS_AT_ONCE:
        return draw(size)
    return np.concatenate([draw(min(ROWS_AT_ONCE, size - start)) for start in range(0, size, ROWS_AT_ONCE)])
