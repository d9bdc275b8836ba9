from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.kernel.saturating_sums import LARGEST, add_saturating, saturate, saturate_cells
from sfumato.number_arrays import MOST_EXPONENT, read_numbers
from sfumato.standalone.mechanisms.value_grid import choose_step, from_grid, one_to_grid, to_grid, to_integers

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
steps = st.integers(-LARGEST, LARGEST)


@given(finite, st.integers(-10, 60))
@example(0.49999999999999994, 0)  # floor(x + 0.5) in doubles gives 1
@example(-0.5, 0)
@example(0.5, 0)
@example(1.5, 0)
@example(2.5, 0)  # half-even would give 2
@example(-1e-320, 5)
@example(4503599627370497.5, 0)
def test_rounding_is_exact(value, exponent):
    exact = (Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2)).__floor__()
    assert int(to_grid(np.array([value]), exponent)[0]) == exact
    assert int(to_grid(np.array([Fraction(value)]), exponent)[0]) == exact
    assert one_to_grid(value, exponent) == exact


numbers = st.one_of(st.integers(-LARGEST, LARGEST), st.integers(-(2**53), 2**53), st.floats(allow_nan=False))


@given(numbers, st.integers(-MOST_EXPONENT, MOST_EXPONENT))
@example(2**62, 63)
@example(-(2**62), 63)
@example(-LARGEST, 64)
@example(1, -62)
@example(1, -63)
@example(-1, -MOST_EXPONENT)
@example(float(2**63), 0)
@example(float("inf"), MOST_EXPONENT)
def test_every_number_has_its_place_on_every_grid(value, exponent):
    """Exact, held at the ends, and the same for an integer, a float and a fraction of one value."""
    if value in (float("inf"), float("-inf")):
        exact = LARGEST if value > 0 else -LARGEST
    else:
        exact = saturate((Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2)).__floor__())
    forms = [value, np.array([value]), np.array([value], object), [value, 0.5], (value, Decimal(1))]
    if isinstance(value, int) and abs(value) <= 2**53:
        forms += [float(value), np.array([value], np.float64)]
    for form in forms:
        assert int(to_grid(read_numbers(form).flat, exponent)[0]) == exact
        if type(form) in (int, float):
            assert one_to_grid(form, exponent) == exact
    if isinstance(value, int):
        nearest = saturate((Fraction(value) * Fraction(2) ** exponent + Fraction(1, 2)).__floor__())
        assert int(to_integers(np.array([value], np.int64), exponent)[0]) == nearest


def test_numbers_are_read_by_value_alone():
    """Neither their type nor the other entries of the list matter."""
    for other in (0.5, 1, Decimal("0.1"), np.float32(3), 2**70, float("nan"), True):
        for value, wanted in ((2**53 + 1, 2**53 + 1), (np.uint64(2**64 - 1), LARGEST), (-(2**63), -LARGEST), (3.0, 3)):
            assert int(to_grid(read_numbers([value, other]).flat, 0)[0]) == wanted
    for missing in (None, pd.NA, pd.NaT, float("nan"), Decimal("NaN"), np.float32("nan")):
        assert to_grid(read_numbers([missing, 5]).flat, 0).tolist() == [0, 5]
        assert to_grid(read_numbers(missing).flat, 0).tolist() == [0]
    assert to_grid(read_numbers(pd.Series([1, None, 3], dtype="Int64")).flat, 0).tolist() == [1, 0, 3]
    for value in ("5", ["5"], 1j, {"a": 1}, object(), np.array(["2020-01-01"], "datetime64[D]"), [1, "x"]):
        with pytest.raises(InvalidParameter):
            read_numbers(value)
    with pytest.raises(InvalidParameter, match="masked"):
        read_numbers(np.ma.array([1, 10**9], mask=[0, 1]))


def test_the_rounding_of_doubles_would_be_seen():
    """Negative control: the naive sum is wrong at this point."""
    assert np.floor(0.49999999999999994 + 0.5) == 1
    assert to_grid(np.array([0.49999999999999994]), 0)[0] == 0


@given(st.lists(steps, min_size=1), st.integers(-200, 200))
def test_outputs_are_multiples_of_the_grid(values, exponent):
    step = Fraction(2) ** exponent
    for given_steps, value in zip(values, from_grid(np.array(values, np.int64), exponent), strict=True):
        assert (Fraction(float(value)) / step).denominator == 1
        assert abs(Fraction(float(value)) / step - given_steps) <= abs(given_steps) / Fraction(2**53)


@given(steps, st.one_of(steps, st.integers(-(2**80), 2**80)))
@example(LARGEST, LARGEST)
@example(-LARGEST, -LARGEST)
@example(-LARGEST, -1)
@example(LARGEST, 1)
@example(1, LARGEST)
def test_addition_saturates(value, noise):
    fits = -(2**63) <= noise < 2**63
    added = add_saturating(np.array([value], np.int64), np.array([noise], np.int64 if fits else object))
    assert int(added[0]) == max(-LARGEST, min(LARGEST, value + noise)) == saturate(value + noise)


def test_cells_saturate():
    """The integers of an engine, as a list of any size or as an array."""
    beyond = [2**63, -(2**63), -(2**70), LARGEST, -LARGEST, 0, 5]
    within = [LARGEST, -LARGEST, -LARGEST, LARGEST, -LARGEST, 0, 5]
    assert saturate_cells(beyond).tolist() == within
    assert saturate_cells(np.array([-(2**63), LARGEST, 5], np.int64)).tolist() == [-LARGEST, LARGEST, 5]
    assert saturate_cells(np.array([7, 8], np.int32)).dtype == np.int64


@given(st.fractions(min_value=Fraction(1, 10**200), max_value=10**200).filter(bool))
def test_step_is_the_greatest_power_of_two(coarsest):
    exponent = choose_step(coarsest)
    assert Fraction(2) ** exponent <= coarsest < Fraction(2) ** (exponent + 1)


@pytest.mark.parametrize("coarsest", [Fraction(1, 2 ** (MOST_EXPONENT + 1)), Fraction(2) ** (MOST_EXPONENT + 1)])
def test_steps_that_floats_cannot_carry(coarsest):
    with pytest.raises(InvalidParameter, match="64-bit floats"):
        choose_step(coarsest)


class Hostile:
    """Its own conversion to a number fails, and the error would quote the value."""

    def __array__(self, *_, **__):
        raise RuntimeError("the secret is 42")


def test_an_objects_own_error_is_not_passed_on():
    with pytest.raises(InvalidParameter) as caught:
        read_numbers(Hostile())
    assert "42" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", [[1, np.ma.masked], [[1.5], [np.ma.masked]], (np.ma.masked, 2)])
def test_masked_entries_of_lists_are_refused(value):
    with pytest.raises(InvalidParameter, match="must not be masked"):
        read_numbers(value)


@pytest.mark.parametrize("value", ["text", ["a", "b"], np.array(["2024-01-01"], "M8[D]"), 3j], ids=str)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidParameter, match="must be numbers"):
        read_numbers(value)
