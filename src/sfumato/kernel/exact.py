"""Exact numbers: enclosures by integer interval arithmetic, and as many certain digits of a probability as needed."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import assert_never

Enclosure = tuple[int, int]

SIGNIFICANT_DIGITS = 30
_EXACT = Context(prec=50_000, Emin=-99_999, Emax=99_999, traps=[Inexact, InvalidOperation])


def enclose_exp_neg(exponent: Fraction, bits: int) -> Enclosure:
    """Integers (low, high) with low <= 2**bits * exp(-exponent) <= high.

    Claim: K-01. The enclosure holds for every rational exponent >= 0 and every bits >= 0; its width is at most 2.
    Requires: exponent >= 0 (checked here).
    Relies on: Python's unbounded integers.
    Checked by: tests/kernel/test_exact.py::test_exp_neg_encloses_the_truth
    """
    if exponent < 0:
        raise ValueError("enclose_exp_neg takes an exponent >= 0")
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:
        return 0, 1
    halvings = (2 * exponent.numerator // exponent.denominator + 1).bit_length()
    work = bits + halvings + 32
    small = (exponent.numerator << (work - halvings)) // exponent.denominator
    term = total = 1 << work
    count = 0
    while term:
        count += 1
        term = (term * small >> work) // count
        total += -term if count % 2 else term
    slack = 2 * count + 8
    low, high = total - slack, total + slack
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    return low >> (work - bits), -(-high >> (work - bits))


def enclose_log(argument: Fraction, bits: int) -> Enclosure:
    """Integers (low, high) with low <= 2**bits * ln(argument) <= high.

    Claim: K-01. The enclosure holds for every rational argument > 0 and every bits >= 0.
    Requires: argument > 0 (checked here).
    Relies on: Python's unbounded integers.
    Checked by: tests/kernel/test_exact.py::test_log_encloses_the_truth
    """
    if argument <= 0:
        raise ValueError("enclose_log takes an argument > 0")
    power = argument.numerator.bit_length() - argument.denominator.bit_length()
    mantissa = argument / Fraction(2) ** power
    work = bits + abs(power).bit_length() + 32
    low, high = _enclose_twice_artanh((mantissa - 1) / (mantissa + 1), work)
    low_two, high_two = _enclose_twice_artanh(Fraction(1, 3), work)
    ends = power * low_two, power * high_two
    low, high = low + min(ends), high + max(ends)
    return low >> (work - bits), -(-high >> (work - bits))


def _enclose_twice_artanh(argument: Fraction, work: int) -> Enclosure:
    """Enclose 2**work * 2 artanh(argument) for |argument| <= 1/3, by its power series."""
    small = (abs(argument.numerator) << work) // argument.denominator
    square = small * small >> work
    power, total, count = small, 0, 0
    while power:
        total += power // (2 * count + 1)
        power = power * square >> work
        count += 1
    slack = 4 * count + 8
    low, high = 2 * (total - slack), 2 * (total + slack)
    return (low, high) if argument >= 0 else (-high, -low)


@dataclass(frozen=True, slots=True)
class Rational:
    """The probability `value`."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class ExpNeg:
    """The probability exp(-exponent)."""

    exponent: Fraction


@dataclass(frozen=True, slots=True)
class Logistic:
    """The probability numerator / (1 + weight * exp(exponent))."""

    exponent: Fraction
    weight: Fraction = Fraction(1)
    numerator: int = 1


Probability = Rational | ExpNeg | Logistic


def enclose(probability: Probability, bits: int) -> Enclosure:
    """Integers (low, high) with low <= 2**bits * probability <= high.

    Claim: K-01. The enclosure holds, closes in as bits grow, and is a point for a rational p with 2**bits * p whole.
    Requires: the probability lies in [0, 1] (constructors' callers).
    Relies on: enclose_exp_neg.
    Checked by: tests/kernel/test_exact.py::test_probabilities_are_enclosed
    """
    match probability:
        case Rational(value):
            return _divide(value.numerator << bits, value.denominator)
        case ExpNeg(exponent):
            return enclose_exp_neg(exponent, bits)
        case Logistic(exponent, weight, numerator):
            whole, ends = 1 << bits + 32, enclose_exp_neg(abs(exponent), bits + 32)
            # numerator / (1 + weight * E) falls as E = exp(-|exponent|) grows; numerator * E / (E + weight) grows
            sides = [(whole, end) if exponent < 0 else (end, whole) for end in ends]
            top, bottom = weight.denominator, weight.numerator
            found = [_divide(numerator * top * one << bits, top * one + bottom * two) for one, two in sides]
            return min(found)[0], max(found)[1]
        case _:
            assert_never(probability)


def _divide(numerator: int, denominator: int) -> Enclosure:
    return numerator // denominator, -(-numerator // denominator)


def find_leading_bits(probability: Probability, bits: int) -> int:
    """The first `bits` binary digits of a probability, as the integer floor(2**bits * p); probability 1 gives all ones.

    Claim: K-02. Every digit is certain: both ends of an enclosure have the same digits.
    Requires: the probability lies in [0, 1] (constructors' callers).
    Relies on: K-01.
    Checked by: tests/kernel/test_exact.py::test_leading_bits_are_certain
    """
    guard = 32
    while True:  # ends: a non-dyadic p is strictly between two candidates, and the enclosure of a dyadic p is a point
        low, high = enclose(probability, bits + guard)
        if low >> guard == high >> guard:
            return min(low >> guard, (1 << bits) - 1)
        guard *= 2


def round_up(value: Fraction) -> Decimal:
    """The least decimal of SIGNIFICANT_DIGITS digits that is not below `value`.

    Claim: K-01. The result is never below the value, and above it by at most one part in 10**29.
    Requires: value >= 0 (checked here).
    Relies on: Python's decimal module (its correctly rounded division).
    Checked by: tests/kernel/test_exact.py::test_decimal_up_is_never_below
    """
    if value < 0:
        raise ValueError("round_up takes a value >= 0")
    context = Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_CEILING, Emin=-9999, Emax=9999)
    return _shorten(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def find_decimal(value: Fraction) -> Decimal | None:
    """The finite decimal equal to `value`, or None where there is none.

    Claim: K-01. A result is equal to the value; sums and whole multiples of finite decimals always have one.
    Relies on: Python's decimal module (its Inexact trap).
    Checked by: tests/kernel/test_exact.py::test_exact_decimals_are_equal
    """
    places = value.denominator.bit_length()  # 2**a * 5**b divides 10**places, because a and b are at most that
    digits, rest = divmod(value.numerator * 10**places, value.denominator)
    return None if rest else _shorten(_EXACT.scaleb(Decimal(digits), -places))


def sum_exactly(*terms: Fraction | Decimal) -> Decimal:
    """The exact sum of finite decimals.

    Claim: K-01. No digit is lost, however far apart the terms are.
    Requires: every term is a finite decimal (checked here).
    Relies on: find_decimal.
    Checked by: tests/kernel/test_exact.py::test_exact_decimals_are_equal
    """
    total = find_decimal(sum((Fraction(term) for term in terms), Fraction(0)))
    if total is None:
        raise ValueError("sum_exactly takes finite decimals")
    return total


def _shorten(value: Decimal) -> Decimal:
    """The same number without trailing zeros, and without an exponent where it is whole."""
    shortest = value.normalize(_EXACT)
    return shortest.quantize(Decimal(1), context=_EXACT) if shortest == shortest.to_integral_value() else shortest


def write_plain(value: Decimal | Fraction) -> str:
    """Write the number as a person would: 0.5, 3, 1e-9, 1/3. No digit is lost."""
    if isinstance(value, Fraction):
        exact = find_decimal(value)
        if exact is None:
            return str(value)
        value = exact
    return f"{value:f}" if not value or -6 <= value.adjusted() <= 20 else f"{value:e}"
