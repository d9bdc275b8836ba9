from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scripted import Exhausted, Scripted, enumerate_mass

from sfumato.kernel.coins import EXPONENT_SLACK, Coins, flip_exp_neg
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import ExpNeg, Logistic, Rational

PROBABILITIES = [
    (Rational(Fraction(1, 3)), lambda: mpmath.mpf(1) / 3),
    (Rational(Fraction(1, 2)), lambda: mpmath.mpf("0.5")),
    (Rational(Fraction(1)), lambda: mpmath.mpf(1)),
    (Rational(Fraction(0)), lambda: mpmath.mpf(0)),
    (Rational(Fraction(1, 10**9)), lambda: mpmath.mpf(10) ** -9),
    (Rational(1 - Fraction(1, 10**9)), lambda: 1 - mpmath.mpf(10) ** -9),
    (ExpNeg(Fraction(0)), lambda: mpmath.mpf(1)),
    (ExpNeg(Fraction(1)), lambda: mpmath.exp(-1)),
    (ExpNeg(Fraction(1, 1000)), lambda: mpmath.exp(-mpmath.mpf(1) / 1000)),
    (ExpNeg(Fraction(40)), lambda: mpmath.exp(-40)),
    (ExpNeg(Fraction(10**5)), lambda: mpmath.exp(-(10**5))),
    (Logistic(Fraction(1, 10)), lambda: 1 / (1 + mpmath.exp(mpmath.mpf(1) / 10))),
    (Logistic(Fraction(-1), Fraction(9)), lambda: 1 / (1 + 9 * mpmath.exp(-1))),
    (Logistic(Fraction(1, 7), numerator=2), lambda: 2 / (1 + mpmath.exp(mpmath.mpf(1) / 7))),
]


@pytest.mark.parametrize(
    ("probability", "truth"), PROBABILITIES, ids=lambda value: "" if callable(value) else str(value)
)
def test_every_byte_of_a_flip_is_enumerated(probability, truth):
    coins = Coins((probability,))
    heads, undecided = enumerate_mass(lambda entropy: coins.flip(1, entropy)[0, 0])
    with mpmath.workprec(400):
        low, high = (mpmath.mpf(mass.numerator) / mass.denominator for mass in (heads, heads + undecided))
        assert low <= truth() <= high


def test_the_enumeration_can_fail():
    """Negative control: a coin that is off in the sixth byte is caught."""
    wrong = Coins((Rational(Fraction(1, 3) + Fraction(2, 256**6)),))
    heads, _ = enumerate_mass(lambda entropy: wrong.flip(1, entropy)[0, 0])
    assert heads > Fraction(1, 3)


def test_many_coins_are_flipped_as_one_by_one():
    """A flip of n rows uses row after row, then the ties of each level in the same order."""
    coins = Coins(tuple(probability for probability, _ in PROBABILITIES))
    width, size = len(PROBABILITIES), 4000
    script = SYSTEM.take(size * width + 20_000)
    heads = coins.flip(size, Scripted(script)).reshape(-1)

    pointer = size * width
    pending = [(index, int(byte)) for index, byte in enumerate(script[:pointer])]
    expected = np.zeros(size * width, bool)
    level = 0
    while pending:
        tied = []
        for index, byte in pending:
            digit = int(coins._digit(level)[index % width])
            expected[index] = byte < digit
            if byte == digit:
                tied.append(index)
        level += 1
        pending = [(index, int(script[pointer + place])) for place, index in enumerate(tied)]
        pointer += len(tied)
    assert (heads == expected).all()


def test_sizes_may_grow_and_shrink():
    coins = Coins((Rational(Fraction(1, 4)), Rational(Fraction(3, 4))))
    for size in (1, 5, 2, 0, 700, 3):
        assert coins.flip(size, SYSTEM).shape == (size, 2)


EXPONENTS = [
    Fraction(0),
    Fraction(1, 10**9),
    Fraction(1, 3),
    Fraction(1),
    Fraction(17, 2),
    Fraction(43),
    Fraction(70),
    Fraction(900),
]


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_float_decisions_are_the_exact_ones(exponent):
    """The 64-bit word at which heads turns to tails is the certain one, and only it looks at more bytes."""
    approximate = np.array([float(exponent)])

    def flip(word, more=()):
        return bool(flip_exp_neg(approximate, lambda _: exponent, Scripted([*word.to_bytes(8, "big"), *more]))[0])

    with mpmath.workprec(2000):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        edge = min(int(mpmath.floor(exact * 2**64)), 2**64 - 1)
        byte = min(int(mpmath.floor(exact * 2**72)), 2**72 - 1) & 255
    for word in {0, edge // 2, max(edge - 1, 0)} - {edge}:
        assert flip(word)
    for word in {min(edge + 1, 2**64 - 1), (edge + 2**64) // 2, 2**64 - 1} - {edge}:
        assert not flip(word)
    with pytest.raises(Exhausted):
        flip(edge)
    if byte:
        assert flip(edge, [byte - 1])
    if byte < 255:
        assert not flip(edge, [byte + 1])


def test_float_slack_is_wide_enough_for_this_machines_exp():
    """numpy's exp is trusted to 2**-40: here it is checked to be far inside that."""
    points = np.concatenate((np.linspace(0, 64, 4001), SYSTEM.take(8 * 4000).view("<u8") / 2.0**58))
    with mpmath.workprec(200):
        worst = max(abs(mpmath.mpf(float(np.exp(-x))) / mpmath.exp(-mpmath.mpf(float(x))) - 1) for x in points)
    assert worst < mpmath.mpf(2) ** -50


def test_slightly_wrong_approximations_change_nothing():
    """Exponents as floats may be off by the stated slack: the same words fall the same way."""
    exact = [Fraction(k, 7) for k in range(1, 300)]
    script = bytes(SYSTEM.take(8 * len(exact)))
    flips = []
    for error in (-1, 0, 1):
        approximate = np.array([float(x) + error * 2.0**-45 * (1 + float(x)) for x in exact])
        flips.append(flip_exp_neg(approximate, exact.__getitem__, Scripted(script + bytes(64))))
    assert (flips[0] == flips[1]).all()
    assert (flips[1] == flips[2]).all()


@pytest.mark.parametrize("exponent", [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(17, 2)], ids=str)
@pytest.mark.parametrize("error", [-1, 0, 1])
def test_words_near_the_edge_are_decided_exactly(exponent, error):
    """An exponent may be off by the stated slack: then floats alone would decide thousands of words wrongly."""
    off = error * EXPONENT_SLACK * (1 + float(exponent))
    approximate = np.array([float(exponent) + off])
    with mpmath.workprec(300):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        edge = int(mpmath.floor(exact * 2**64))
        moved = int(abs(exact - mpmath.exp(-mpmath.mpf(float(approximate[0])))) * 2**64)
    assert moved > 1000 or not error
    for distance in (2, *((moved // 3, moved // 2, 2 * moved) if error else ())):
        for word, heads in ((edge - distance, True), (edge + distance, False)):
            script = Scripted(word.to_bytes(8, "big"))
            assert bool(flip_exp_neg(approximate, lambda _: exponent, script)[0]) is heads
