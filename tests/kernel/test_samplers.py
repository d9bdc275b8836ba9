"""Exact laws: every way the coins can fall is played through the samplers, and the masses are added up."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

import mpmath
import numpy as np
import pytest
from scripted import Exhausted, Forced, Scripted, enumerate_mass

from sfumato.errors import KernelFault
from sfumato.kernel import samplers
from sfumato.kernel.entropy import SYSTEM
from sfumato.kernel.exact import ExpNeg, Logistic, Rational
from sfumato.kernel.samplers import (
    GeometricCoins,
    discrete_gaussian,
    discrete_laplace,
    draw_one_sided,
    draw_two_sided,
    geometric,
    make_geometric_coins,
    uniform_below,
)
from sfumato.local.mechanisms.biased_coins import bernoulli

SCALES = [
    Fraction(1, 1024),
    Fraction(1, 100),
    Fraction(1, 7),
    Fraction(1, 2),
    Fraction(5, 7),
    Fraction(1),
    Fraction(99, 98),
    Fraction(3, 2),
    Fraction(22, 7),
    Fraction(10),
    Fraction(16),
    Fraction(16) + Fraction(1, 10**9),
    Fraction(1000, 3),
    Fraction(10**9 + 7, 10**6),
    Fraction(1 << 12),
    Fraction(10**5),
    Fraction(3 << 20, 7),
    Fraction(10 << 20),
    Fraction(123456789, 10),
    Fraction(10**11, 7),
    Fraction(10**13),
    Fraction(1 << 50),
    Fraction(10**17),
    Fraction(1 << 60),
]


def oracle(coin, ratio_exponent, digits):
    """The probability of a coin, by mpmath: digits, then "K >= 1", "not zero", "negative"."""
    x = mpmath.exp(-ratio_exponent)
    match coin - digits:
        case 0:
            return x ** (2**digits)
        case 1:
            return 2 * x / (1 + x)
        case 2:
            return mpmath.mpf("0.5")
        case _:
            return 1 / (1 + mpmath.exp(ratio_exponent * 2**coin))


def expansion_of(probabilities):
    @lru_cache(None)
    def byte(coin, level):
        return int(mpmath.floor(probabilities[coin] * mpmath.mpf(256) ** (level + 1))) & 255

    return byte


def falls(width, digits, probabilities=None):
    """The ways the coins can fall: all of them if they are few, else those that keep the upper digits zero.

    A coin of less than 2**-1000 stays tails: to see its heads, a test would have to script a hundred ties.
    """
    varied = list(range(width)) if width <= 8 else [0, 1, 2, 3, 4, *range(digits, width)]
    varied = [coin for coin in varied if probabilities is None or probabilities[coin] > mpmath.mpf(2) ** -1000]
    wanted = np.zeros((2 ** len(varied), width), bool)
    wanted[:, varied] = np.array(list(product((False, True), repeat=len(varied))))
    return wanted


def masses(sample, coins, probabilities):
    """P(value) for each value that `sample` gives, over the chosen ways to fall; K is one where its coin fell."""
    wanted = falls(len(probabilities), coins.digits, probabilities)
    drawn = sample(coins, len(wanted), Forced(wanted, expansion_of(probabilities)))
    mass = defaultdict(lambda: mpmath.mpf(0))
    stop = 1 - probabilities[coins.digits]
    zero_whatever_the_rest = sample is draw_two_sided
    for fall, value in zip(wanted, drawn.tolist(), strict=True):
        if zero_whatever_the_rest and not fall[coins.digits + 1]:
            assert value == 0
            continue
        weight = mpmath.mpf(1)
        for probability, head in zip(probabilities, fall, strict=True):
            weight *= probability if head else 1 - probability
        mass[value] += weight * (stop if fall[coins.digits] else 1)
    if zero_whatever_the_rest:
        assert not mass[0]
        mass[0] = 1 - probabilities[coins.digits + 1]
    return mass


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_mass_is_exact(scale):
    coins = make_geometric_coins(scale)
    width = coins.digits + 3
    with mpmath.workprec(2000):
        inverse = mpmath.mpf(scale.denominator) / scale.numerator
        probabilities = [oracle(coin, inverse, coins.digits) for coin in range(width)]
        mass = masses(draw_two_sided, coins, probabilities)
        x = mpmath.exp(-inverse)
        reach = 2**5  # beyond, the left-out digits and K > 1 add more
        while mass[reach] < mpmath.mpf(2) ** -900:
            reach -= 1
        for z in range(-reach, reach + 1):
            exact = (1 - x) / (1 + x) * x ** abs(z)
            assert abs(mass[z] / exact - 1) < mpmath.mpf(10) ** -30, z
        for z in range(-reach, reach):  # the privacy inequality, tight
            assert mpmath.exp(-inverse) - mpmath.mpf(10) ** -30 <= mass[z] / mass[z + 1]
            assert mass[z] / mass[z + 1] <= mpmath.exp(inverse) * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("scale", SCALES[::3], ids=str)
def test_the_coins_really_have_these_probabilities(scale):
    """What the masses above assume of each coin: enumerated byte by byte through the real flips."""
    coins = make_geometric_coins(scale)
    for coin, probability in enumerate(coins.coins.probabilities):
        heads, undecided = enumerate_mass(lambda entropy, p=probability: bernoulli(p, 1, entropy)[0])
        with mpmath.workprec(400):
            exact = oracle(coin, mpmath.mpf(scale.denominator) / scale.numerator, coins.digits)
            low = mpmath.mpf(heads.numerator) / heads.denominator
            assert low <= exact <= low + mpmath.mpf(undecided.numerator) / undecided.denominator


@pytest.mark.parametrize("scale", SCALES[1::4], ids=str)
def test_geometric_mass_is_exact(scale):
    coins = make_geometric_coins(scale)
    with mpmath.workprec(2000):
        inverse = mpmath.mpf(scale.denominator) / scale.numerator
        probabilities = [oracle(coin, inverse, coins.digits) for coin in range(coins.digits + 3)]
        mass = masses(draw_one_sided, coins, probabilities)
        for k in range(2**5 if scale > Fraction(1, 20) else 2):
            exact = (1 - mpmath.exp(-inverse)) * mpmath.exp(-inverse * k)
            assert abs(mass[k] / exact - 1) < mpmath.mpf(10) ** -30, k


def rational_coins(x, digits=5):
    powers = [x ** (2**place) for place in range(digits)]
    return GeometricCoins.make(
        [Rational(power / (1 + power)) for power in powers], Rational(x ** (2**digits)), Rational(2 * x / (1 + x))
    )


class WithTail:
    """Forced coins, and then so many further heads of the tail's coin."""

    def __init__(self, wanted, expansion, heads, tail_expansion):
        self.forced, self.heads, self.tail_expansion, self.level = Forced(wanted, expansion), heads, tail_expansion, 0

    def take(self, count):
        if self.forced.tied.size:
            return self.forced.take(count)
        byte = 0 if self.heads else 255
        tied = self.tail_expansion(self.level) == byte
        self.level = self.level + 1 if tied else 0
        self.heads -= 0 if tied or not self.heads else 1
        return np.full(count, byte, np.uint8)


@pytest.mark.parametrize(
    "ratio", [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10), Fraction(99, 100), Fraction(1, 1000)], ids=str
)
def test_rational_ratio_gives_equal_fractions(ratio):
    """With a rational ratio the masses are Fractions, and equal to the formula: no enclosure, no rounding."""
    coins = rational_coins(ratio)
    probabilities = [probability.value for probability in coins.coins.probabilities]

    def expansion(coin, level):
        return int(probabilities[coin] * 256 ** (level + 1)) % 256

    tail = probabilities[coins.digits]
    laplace, one = defaultdict(Fraction), defaultdict(Fraction)
    wanted = falls(8, 5)
    for extra in range(3):  # K = 1 + extra where the tail's coin fell
        for sample, mass in ((draw_two_sided, laplace), (draw_one_sided, one)):
            entropy = WithTail(wanted, expansion, extra, lambda level: expansion(coins.digits, level))
            for fall, value in zip(wanted, sample(coins, len(wanted), entropy).tolist(), strict=True):
                if extra and not fall[coins.digits]:
                    continue  # counted with extra = 0
                more = tail**2 if extra == 2 and value == 0 else tail**extra * (1 - tail)  # zero, however large K is
                weight = more if fall[coins.digits] else Fraction(1)
                for probability, head in zip(probabilities, fall, strict=True):
                    weight *= probability if head else 1 - probability
                mass[value] += weight
    reach = 4 * 32
    for z in range(-reach, reach + 1):
        assert laplace[z] == (1 - ratio) / (1 + ratio) * ratio ** abs(z)
    for z in range(-reach, reach):
        assert laplace[z] * ratio <= laplace[z + 1] <= laplace[z] / ratio
    for k in range(reach):
        assert one[k] == (1 - ratio) * ratio**k


def test_a_biased_digit_would_be_seen():
    """Negative control: one digit a hair too likely, and the fractions differ."""
    ratio = Fraction(2, 3)
    good = rational_coins(ratio)
    digits = list(good.coins.probabilities[:5])
    digits[2] = Rational(digits[2].value + Fraction(1, 2**80))
    bad = GeometricCoins.make(digits, good.coins.probabilities[5], good.coins.probabilities[6])
    probabilities = [probability.value for probability in bad.coins.probabilities]
    wanted = falls(8, 5)
    expansion = lambda coin, level: int(probabilities[coin] * 256 ** (level + 1)) % 256  # noqa: E731
    drawn = draw_two_sided(bad, len(wanted), Forced(wanted, expansion))
    mass = Fraction(0)
    for fall, value in zip(wanted, drawn.tolist(), strict=True):
        if value == 3:
            weight = Fraction(1)
            for probability, head in zip(probabilities, fall, strict=True):
                weight *= probability if head else 1 - probability
            mass += weight
    assert mass != (1 - ratio) / (1 + ratio) * ratio**3


@pytest.mark.parametrize(
    "probability", [Rational(Fraction(2, 7)), ExpNeg(Fraction(5, 3)), Logistic(Fraction(-1, 2), Fraction(6))], ids=str
)
def test_bernoulli_mass_is_exact(probability):
    heads, undecided = enumerate_mass(lambda entropy: bernoulli(probability, 1, entropy)[0])
    with mpmath.workprec(300):
        exact = {
            Rational: lambda: mpmath.mpf(2) / 7,
            ExpNeg: lambda: mpmath.exp(-mpmath.mpf(5) / 3),
            Logistic: lambda: 1 / (1 + 6 * mpmath.exp(mpmath.mpf(-1) / 2)),
        }[type(probability)]()
        low = mpmath.mpf(heads.numerator) / heads.denominator
        assert low <= exact <= low + mpmath.mpf(undecided.numerator) / undecided.denominator


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100, 255, 256])
def test_uniform_mass_is_exact(bound):
    counts = np.zeros(bound, int)
    again = 0
    for byte in range(256):
        try:
            counts[uniform_below(bound, 1, Scripted([byte]))[0]] += 1
        except Exhausted:
            again += 1
    assert len(set(counts)) == 1
    assert counts.sum() + again == 256
    assert again < bound


@pytest.mark.parametrize("bound", [257, 1000, 65536, 65537, (1 << 32) - 1, 1 << 62])
def test_uniform_in_wider_words(bound):
    width = next(size for size in (2, 4, 8) if 256**size >= bound)
    last = 256**width // bound * bound
    for word in {0, 1, bound - 1, last - 1}:
        assert uniform_below(bound, 1, Scripted(word.to_bytes(width, "little")))[0] == word % bound
    if last < 256**width:
        with pytest.raises(Exhausted):
            uniform_below(bound, 1, Scripted(last.to_bytes(width, "little")))
        again = Scripted(last.to_bytes(width, "little") + (5).to_bytes(width, "little"))
        assert uniform_below(bound, 1, again)[0] == 5


@pytest.mark.parametrize("bound", [0, -1, (1 << 62) + 1])
def test_uniform_bounds(bound):
    with pytest.raises(KernelFault):
        uniform_below(bound, 1, SYSTEM)


VARIANCES = [
    Fraction(1, 2000),
    Fraction(1, 3),
    Fraction(1),
    Fraction(5, 2),
    Fraction(100),
    Fraction(10**9, 7),
    Fraction(1 << 100),
]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_gaussian_mass_is_exact(variance):
    """P(Y = y) P(keep | y) is proportional to exp(-y^2/(2 variance)): the exponents differ by one constant."""
    seen = {}

    def recorded(approximate, exact, entropy):
        for index in range(approximate.size):
            seen[index] = exact(index)
            assert abs(Fraction(float(approximate[index])) - seen[index]) <= Fraction(1, 1 << 44) * (1 + seen[index])
        return np.ones(approximate.size, bool)

    original, samplers.flip_exp_neg = samplers.flip_exp_neg, recorded
    try:
        drawn = discrete_gaussian(variance, 200, SYSTEM)
    finally:
        samplers.flip_exp_neg = original
    scale = int(mpmath.floor(mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator))) + 1
    constants = {
        abs(int(y)) * Fraction(1, scale) + seen[index] - Fraction(int(y) ** 2) / (2 * variance)
        for index, y in enumerate(drawn)
    }
    assert len(constants) == 1


def test_gaussian_keeps_what_its_coin_says():
    """Proposals and acceptance words are scripted: an accepted proposal is returned unchanged, a rejected one never."""
    variance, scale = Fraction(4), 3
    proposals = discrete_laplace(Fraction(scale), 9, Scripted(script := bytes(SYSTEM.take(100))))
    kept = [0, 255, 0, 0, 255, 255, 0, 255, 0]
    used = len(script) - Scripted(script).left.size
    source = Scripted(script)
    discrete_laplace(Fraction(scale), 9, source)
    used = len(script) - source.left.size
    words = b"".join(bytes([first] * 8) for first in kept)
    drawn = discrete_gaussian(variance, 1, Scripted(script[:used] + words))
    assert drawn[0] == next(y for y, word in zip(proposals, kept, strict=True) if word == 0)


def test_tails_beyond_int64_are_python_integers():
    """The last digit's multiple K is forced up: no wrap-around, no cut."""
    scale = Fraction(1 << 60)
    coins = make_geometric_coins(scale)

    class UpToThree:
        def __init__(self):
            self.calls = 0

        def take(self, count):
            self.calls += 1
            return np.full(count, 0 if self.calls <= 4 else 255, np.uint8)

    drawn = draw_two_sided(coins, 1, UpToThree())
    assert drawn.dtype == object
    assert abs(int(drawn[0])) >= 3 << coins.digits
    assert abs(int(drawn[0])) > 2**63


@pytest.mark.parametrize("scale", [Fraction(1, 1025), Fraction((1 << 60) + 1), Fraction(1, 10**50)])
def test_scales_outside_are_refused(scale):
    with pytest.raises(KernelFault):
        discrete_laplace(scale, 1, SYSTEM)
    with pytest.raises(KernelFault):
        geometric(scale, 1, SYSTEM)
    with pytest.raises(KernelFault):
        discrete_gaussian(scale**2 / 2, 1, SYSTEM)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000, samplers.ROWS_AT_ONCE + 1])
def test_any_size(size):
    for scale in (Fraction(1, 3), Fraction(7), Fraction(10**4), Fraction(10**6), Fraction(10**12)):
        assert discrete_laplace(scale, size, SYSTEM).shape == (size,)
        assert geometric(scale, size, SYSTEM).shape == (size,)
    assert discrete_gaussian(Fraction(9), size, SYSTEM).shape == (size,)
    assert bernoulli(Rational(Fraction(1, 3)), size, SYSTEM).shape == (size,)
    assert uniform_below(10, size, SYSTEM).shape == (size,)


def test_a_chunk_that_overflows_makes_the_whole_result_python_integers(monkeypatch):
    parts = iter([np.array([1, 2]), np.array([3, 2**70], object), np.array([5])])
    monkeypatch.setattr(samplers, "ROWS_AT_ONCE", 2)
    assert samplers.draw_in_chunks(5, lambda count: next(parts)).tolist() == [1, 2, 3, 2**70, 5]


def test_coins_must_fill_a_word():
    with pytest.raises(KernelFault):
        GeometricCoins.make([Rational(Fraction(1, 3))] * 6, Rational(Fraction(1, 9)), Rational(Fraction(1, 9)))


class Falls:
    """Coins that fall as scripted, row by row."""

    def __init__(self, *rows):
        self.rows = list(rows)

    def flip(self, size, entropy):
        row = self.rows.pop(0)
        return np.tile(np.array(row, bool), (size, 1))


@pytest.mark.parametrize("heads", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [1, 3])
def test_every_head_of_the_tail_coin_adds_one_multiple(heads, size):
    """R + K * 2**digits: K is 1 and the number of further heads."""
    coins = make_geometric_coins(Fraction(7))
    low = [place in (0, 2) for place in range(coins.digits)]  # R = 5
    for sided, sign_coins, wanted in (
        (draw_one_sided, [True, False], 5),
        (draw_two_sided, [True, False], 6),
        (draw_two_sided, [True, True], -6),
    ):
        fixed = replace(coins, coins=Falls([*low, True, *sign_coins]), tail=Falls(*[[True]] * heads, [False]))
        drawn = sided(fixed, size, None)
        steps = (1 + heads) << coins.digits
        assert drawn.tolist() == [wanted + (steps if wanted > 0 else -steps)] * size
