"""Numbers of people are parsed exactly, or refused with a reason."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.local.randomisers.given_values import read_values


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        [1.0, float("-inf")],
        np.array([1, np.nan]),
        True,
        [True, False],
        None,
        "5",
        ["5"],
        1 << 63,
        -(1 << 63),
        np.int64(-(1 << 63)),
        np.uint64((1 << 63) + 1),
        [1 << 70],
        [[1], [1, 2]],
        {"a": 1},
        Decimal(1),
        Fraction(1, 2),
        1j,
        object(),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.ma.array([1, 10**9], mask=[0, 1]),
        [1, np.ma.masked],
        np.longdouble(2) ** 51,
        [2**61 + 255, 0.0],
        [2**63 + 1023, -1],
        [[1.5, 2**53 + 1]],
        np.array([1, 2], object),
        type("", (), {})(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_refused(value):
    with pytest.raises(InvalidParameter) as caught:
        read_values(value)
    assert caught.value.parameter == "value"


@pytest.mark.parametrize(
    ("value", "whole", "shape"),
    [
        (3, True, None),
        (np.int8(3), True, None),
        (np.array(3), True, None),
        (3.5, False, None),
        (np.float32(3.5), False, None),
        ([1, 2], True, (2,)),
        ((1, 2.5), False, (2,)),
        (np.ones((2, 3)), False, (2, 3)),
        (np.ones((2, 3), np.uint8), True, (2, 3)),
        ([], True, (0,)),
        (np.array([], float), False, (0,)),
    ],
    ids=repr,
)
def test_values_that_are_read(value, whole, shape):
    values = read_values(value)
    assert (values.flat.dtype == np.int64) is whole
    assert values.shape == shape


def test_messages_blame_the_right_parameter_for_the_right_reason():
    with pytest.raises(InvalidParameter, match="scores") as caught:
        read_values(None, "scores")
    assert caught.value.parameter == "scores"
    with pytest.raises(InvalidParameter, match="array of something else"):
        read_values(np.array([1, None], object))


def test_lists_of_exact_numbers_are_read_exactly():
    assert read_values([2**53, 0.5]).flat.tolist() == [2.0**53, 0.5]
    assert read_values([1e300, 1]).flat.tolist() == [1e300, 1.0]
