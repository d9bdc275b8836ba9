"""Real numbers between two rationals. Arithmetic rounds outwards, so an enclosure always holds the true number."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.errors import InvalidParameter
from sfumato.kernel.exact import enclose_exp_neg
from sfumato.standalone.mechanisms.value_grid import sqrt_up

SIGNIFICANT_BITS = 256  # of the ends of an enclosure that is no point
_SERIES_BITS = 192  # of a fresh exponential, relative to its size
_MOST_BITS = 8192  # an exponential below 2**-8192 is enclosed by 0 and that
_PI_BITS = 320


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A real number that lies between `low` and `high`. It is known exactly where both are equal."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InvalidParameter("low", "must not be above high", "a larger number")

    @property
    def exact(self) -> bool:
        return self.low == self.high

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)

    def __str__(self) -> str:
        return str(self.low) if self.exact and self.low.denominator < 10**6 else f"{float(self):.10g}"

    def __repr__(self) -> str:
        return f"<{'exactly ' if self.exact else ''}{self}>"

    def __add__(self, other: "Enclosed | Fraction | int") -> "Enclosed":
        more = as_enclosed(other)
        return _round_outwards(self.low + more.low, self.high + more.high)

    __radd__ = __add__

    def __sub__(self, other: "Enclosed | Fraction | int") -> "Enclosed":
        less = as_enclosed(other)
        return _round_outwards(self.low - less.high, self.high - less.low)

    def __rsub__(self, other: "Fraction | int") -> "Enclosed":
        return as_enclosed(other) - self

    def __mul__(self, other: "Enclosed | Fraction | int") -> "Enclosed":
        factor = as_enclosed(other)
        ends = [mine * theirs for mine in (self.low, self.high) for theirs in (factor.low, factor.high)]
        return _round_outwards(min(ends), max(ends))

    __rmul__ = __mul__

    def __truediv__(self, other: "Enclosed | Fraction | int") -> "Enclosed":
        divisor = as_enclosed(other)
        if divisor.low <= 0 <= divisor.high:
            raise InvalidParameter("divisor", "must be known to differ from zero", "one that may be zero")
        return self * Enclosed(1 / divisor.high, 1 / divisor.low)

    def __rtruediv__(self, other: "Fraction | int") -> "Enclosed":
        return as_enclosed(other) / self

    def clamp(self, least: int, most: int) -> "Enclosed":
        """The part of the enclosure between two numbers that the true number is known to lie between."""
        return Enclosed(max(self.low, Fraction(least)), min(self.high, Fraction(most)))


ZERO = Enclosed(Fraction(0), Fraction(0))
ONE = Enclosed(Fraction(1), Fraction(1))


def as_enclosed(number: Enclosed | Fraction | int) -> Enclosed:
    """A rational number as the enclosure that is this point."""
    return number if isinstance(number, Enclosed) else Enclosed(Fraction(number), Fraction(number))


def greater(first: Enclosed, second: Enclosed) -> Enclosed:
    """The greater of two numbers."""
    return Enclosed(max(first.low, second.low), max(first.high, second.high))


def enclose_exp(exponent: Fraction) -> Enclosed:
    """e to the power of any rational exponent, to about 57 significant digits."""
    if exponent > 0:
        return 1 / enclose_exp(-exponent)
    return _enclose_exp_neg(-exponent)


@lru_cache(maxsize=4096)
def _enclose_exp_neg(exponent: Fraction) -> Enclosed:
    if exponent == 0:
        return ONE
    bits = min(_SERIES_BITS + math.ceil(exponent * 3 / 2), _MOST_BITS)
    low, high = enclose_exp_neg(exponent, bits)
    return Enclosed(Fraction(low, 1 << bits), Fraction(high, 1 << bits))


def enclose_sqrt(argument: Fraction) -> Enclosed:
    """The square root of a rational number above zero."""
    above = sqrt_up(argument, SIGNIFICANT_BITS)
    return Enclosed(argument / above, above)


@lru_cache(maxsize=1)
def enclose_pi() -> Enclosed:
    """Pi, by Machin's formula: 16 arctan(1/5) - 4 arctan(1/239)."""
    return 16 * _arctan_of_reciprocal(5) - 4 * _arctan_of_reciprocal(239)


def _arctan_of_reciprocal(divisor: int) -> Enclosed:
    """The series alternates and its terms fall, so two sums that follow each other enclose the limit."""
    total, sign, power = Fraction(0), 1, divisor
    for term in range(1, _PI_BITS, 2):
        before = total
        total += Fraction(sign, term * power)
        sign, power = -sign, power * divisor * divisor
    return Enclosed(min(before, total), max(before, total))


def _round_outwards(low: Fraction, high: Fraction) -> Enclosed:
    """Keep SIGNIFICANT_BITS of the ends, so that long computations stay fast. A point stays a point."""
    if low == high:
        return Enclosed(low, high)
    return Enclosed(_keep_bits(low, up=False), _keep_bits(high, up=True))


def _keep_bits(value: Fraction, *, up: bool) -> Fraction:
    if value.denominator.bit_length() <= 2 * SIGNIFICANT_BITS:
        return value
    size = value.numerator.bit_length() - value.denominator.bit_length()
    places = SIGNIFICANT_BITS - size
    if places <= 0:
        return Fraction(math.ceil(value) if up else math.floor(value))
    scaled = value.numerator << places
    return Fraction(-(-scaled // value.denominator) if up else scaled // value.denominator, 1 << places)
