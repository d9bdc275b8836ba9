import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, SfumatoError, describe_kind
from sfumato.number_arguments import (
    read_nonnegative_decimal,
    read_positive_decimal,
    read_positive_fraction,
    read_privacy_amount,
    read_probability,
    read_whole_number,
)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, "0.1"),
        (1, "1"),
        ("0.1", "0.1"),
        (" 3e-2 ", "0.03"),
        (Decimal("0.10"), "0.1"),
        (Fraction(1, 8), "0.125"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.1), "0.1"),
        (np.int16(7), "7"),
        (5e-324, "5e-324"),
        (1e-17, "1e-17"),
    ],
)
def test_shortest_decimal_is_meant(value, meant):
    assert read_positive_decimal(value, "epsilon") == Decimal(meant)
    assert read_nonnegative_decimal(value, "epsilon") == Decimal(meant)
    assert read_positive_fraction(value, "sensitivity") == Fraction(meant)
    if Fraction(meant) < 1:
        assert read_probability(value, "delta") == Fraction(meant)


@given(st.decimals(min_value=-5, max_value=10**9, places=4) | st.decimals())
def test_a_decimal_is_read_as_its_own_text_is(value):
    """A loss that is a Decimal already is not read again; the result is written in the same way."""

    def read(given):
        try:
            return read_nonnegative_decimal(given, "epsilon").as_tuple()
        except InvalidParameter as refused:
            return refused.message

    if not value.is_finite():
        assert isinstance(read(value), str)
    elif abs(value.adjusted()) <= 400:
        assert read(value) == read(str(value))


@pytest.mark.parametrize(
    "value", ["1e-30", "1e30", "0." + "3" * 60, "3" * 30 + "." + "3" * 30, 0.1, 7, "0.50" + "0" * 90]
)
def test_privacy_amounts_are_what_was_written(value):
    assert read_privacy_amount(value, "rho") == Decimal(str(value))


@pytest.mark.parametrize(
    "value",
    ["0." + "3" * 61, "0." + "3" * 3990, "1e-31", "9.9e-31", "1.1e30", "1e31", Decimal("1e-40"), Fraction(1, 2**90)],
)
def test_privacy_amounts_are_short(value):
    with pytest.raises(InvalidParameter, match="rho must have at most 60 digits and lie between 1e-30 and 1e30"):
        read_privacy_amount(value, "rho")


BAD = [
    0,
    -1,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    np.float64("nan"),
    True,
    np.True_,
    None,
    "",
    "abc",
    "1/3",
    "0x1",
    "1_0",
    "nan",
    "inf",
    "1e999999999",
    "9" * 5000,
    10**5000,
    Fraction(1, 10**5000),
    Decimal("1e-5000"),
    1e308 * 10,
    [1],
    b"1",
    1j,
    np.timedelta64(1),
    np.timedelta64(1, "D"),
    object(),
]


@pytest.mark.parametrize("read", [read_positive_decimal, read_positive_fraction, read_probability])
@pytest.mark.parametrize("value", BAD, ids=lambda value: type(value).__name__)
def test_bad_numbers_are_refused_by_name_and_kind(read, value):
    with pytest.raises(SfumatoError) as caught:
        read(value, "epsilon")
    assert caught.value.parameter == "epsilon"
    assert caught.value.message.startswith("epsilon must")
    assert "got " in caught.value.message
    assert isinstance(caught.value, ValueError)


def test_zero_is_a_legal_loss_and_an_illegal_request():
    assert read_nonnegative_decimal(0, "epsilon") == 0
    with pytest.raises(InvalidParameter, match="zero"):
        read_positive_decimal("0.00", "epsilon")


def test_a_third_is_no_epsilon_but_is_a_sensitivity():
    assert read_positive_fraction(Fraction(1, 3), "sensitivity") == Fraction(1, 3)
    with pytest.raises(InvalidParameter, match="finite decimal"):
        read_positive_decimal(Fraction(1, 3), "epsilon")


@pytest.mark.parametrize("value", [1, 1.5, "1", 2])
def test_probabilities_stay_inside(value):
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        read_probability(value, "delta")


def test_whole_numbers():
    assert read_whole_number(np.int8(3), "people", 1) == 3
    assert read_positive_fraction(Fraction(np.int64(3)), "sensitivity") == 3
    for bad in (np.timedelta64(3), 0, -1, 1.0, "1", True, None, 1 << 63):
        with pytest.raises(InvalidParameter, match="people"):
            read_whole_number(bad, "people", 1)


def test_messages_do_not_carry_the_value():
    for value in (-12345.678, "secret", float("nan"), [98765]):
        with pytest.raises(InvalidParameter) as caught:
            read_positive_decimal(value, "epsilon")
        assert not any(part in str(caught.value) for part in ("12345", "secret", "98765"))
    assert describe_kind("secret") == "text"
    assert describe_kind(None) == "nothing (None)"
    assert describe_kind([1]) == "a list"
    assert describe_kind(1) == "an int"


@pytest.mark.parametrize(
    ("computed", "meant"),
    [
        (0.1 + 0.2, "0.3"),
        (1.1 + 2.2, "3.3"),
        (0.7 + 0.1, "0.8"),
        (sum([0.1] * 10), "1"),
        (1 - 0.9, "0.1"),
        (4.35 * 100, "435"),
    ],
)
@pytest.mark.parametrize("read", [read_positive_decimal, read_nonnegative_decimal])
def test_an_amount_that_floats_left_beside_a_decimal_is_refused_with_the_decimal(read, computed, meant):
    with pytest.raises(InvalidParameter) as refused:
        read(computed, "epsilon")
    assert f"Pass {meant}, or '{meant}'" in str(refused.value)
    assert repr(computed) in str(refused.value)
    assert read(meant, "epsilon") == Decimal(meant)


@pytest.mark.parametrize(
    "exact", [0.3, 1 / 3, 2 / 3, 1 / 7, math.pi, math.log(2), 0.1, 1e-300, 123456.789, 5e-324, 1 / 1024, 1e14, 1e15]
)
def test_a_float_that_is_near_no_short_decimal_is_meant_as_it_is(exact):
    assert read_positive_decimal(exact, "epsilon") == Decimal(repr(exact))


@pytest.mark.parametrize("text", ["0.30000000000000004", Decimal("0.30000000000000004")])
def test_digits_that_somebody_wrote_are_meant(text):
    assert read_positive_decimal(text, "epsilon") == Decimal("0.30000000000000004")
