from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernel.exact import (
    ExpNeg,
    Logistic,
    Rational,
    enclose,
    enclose_exp_neg,
    enclose_log,
    find_decimal,
    find_leading_bits,
    round_up,
    sum_exactly,
    write_plain,
)
from sfumato.standalone.mechanisms.value_grid import sqrt_up

exponents = st.one_of(
    st.fractions(min_value=0, max_value=50),
    st.fractions(min_value=0, max_value=Fraction(1, 10**12)),
    st.integers(0, 10**6).map(Fraction),
)


def truth(value):
    """mpmath's own number, from a Fraction."""
    return mpmath.mpf(value.numerator) / value.denominator


@given(exponents, st.integers(0, 600))
def test_exp_neg_encloses_the_truth(exponent, bits):
    low, high = enclose_exp_neg(exponent, bits)
    with mpmath.workprec(2 * bits + 2200):
        exact = mpmath.exp(-truth(exponent)) * 2**bits
        assert low <= exact <= high
    assert high - low <= 2


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30).filter(bool), st.integers(0, 400))
def test_log_encloses_the_truth(argument, bits):
    low, high = enclose_log(argument, bits)
    with mpmath.workprec(bits + 400):
        assert low <= mpmath.log(truth(argument)) * 2**bits <= high
    assert high - low <= 3


@given(st.fractions(min_value=0, max_value=10**12))
def test_sqrt_up_is_never_below(argument):
    root = sqrt_up(argument)
    assert root * root >= argument
    assert root == 0 or (root - Fraction(1, 1 << 64)) ** 2 < argument


probabilities = st.one_of(
    st.fractions(min_value=0, max_value=1).map(Rational),
    exponents.map(ExpNeg),
    st.builds(Logistic, st.fractions(min_value=-40, max_value=40), st.integers(1, 10**6).map(Fraction)),
    st.builds(Logistic, st.fractions(min_value=0, max_value=3000), st.just(Fraction(1)), st.just(2)),
)


def value_of(probability):
    match probability:
        case Rational(value):
            return truth(value)
        case ExpNeg(exponent):
            return mpmath.exp(-truth(exponent))
        case Logistic(exponent, weight, numerator):
            return numerator / (1 + truth(weight) * mpmath.exp(truth(exponent)))


@given(probabilities, st.integers(1, 400))
def test_probabilities_are_enclosed(probability, bits):
    low, high = enclose(probability, bits)
    with mpmath.workprec(bits + 10_000):
        assert low <= value_of(probability) * 2**bits <= high
    assert high - low <= 3


@given(probabilities, st.integers(1, 100))
def test_leading_bits_are_certain(probability, count):
    found = find_leading_bits(probability, count)
    with mpmath.workprec(count + 10_000):
        scaled = value_of(probability) * 2**count
        expected = (1 << count) - 1 if scaled == 2**count else int(mpmath.floor(scaled))
    assert found == expected


def test_a_wrong_last_digit_would_be_seen():
    """Negative control: math.exp's 53 bits are not certain digits."""
    import math

    exponent = Fraction(1, 10)
    assert int(Fraction(math.exp(-0.1)) * 2**80) != find_leading_bits(ExpNeg(exponent), 80)


@given(st.fractions(min_value=0, max_value=10**9))
def test_decimal_up_is_never_below(value):
    up = round_up(value)
    assert Fraction(up) >= value
    assert Fraction(up) <= value * (1 + Fraction(1, 10**29))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12), st.integers(1, 10**6))
def test_exact_decimals_are_equal(number, count):
    exact = find_decimal(Fraction(number))
    assert exact == number
    assert sum_exactly(count * Fraction(number), number) == (count + 1) * Fraction(number)


def test_exactness_beyond_the_default_context():
    assert sum_exactly(Decimal("1e200"), Decimal("1e-200")) - Decimal("1e200") != 1
    assert Fraction(sum_exactly(Decimal("1e200"), Decimal("1e-200"))) == Fraction(10) ** 200 + Fraction(1, 10**200)
    assert find_decimal(Fraction(1, 3)) is None
    with pytest.raises(ValueError, match="finite decimals"):
        sum_exactly(Fraction(1, 3))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("0.5"), "0.5"),
        (Decimal("1E+2"), "100"),
        (Decimal("1e-9"), "1e-9"),
        (Fraction(1, 3), "1/3"),
        (Fraction(5, 2), "2.5"),
        (Fraction(0), "0"),
    ],
)
def test_plain_numbers(value, text):
    assert write_plain(value) == text


@pytest.mark.parametrize("function", [lambda: enclose_exp_neg(Fraction(-1), 8), lambda: enclose_log(Fraction(0), 8)])
def test_enclosures_refuse_what_they_cannot_enclose(function):
    with pytest.raises(ValueError, match="takes"):
        function()
    with pytest.raises(ValueError, match=">= 0"):
        round_up(Fraction(-1))
