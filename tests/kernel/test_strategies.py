"""Strategies: integer queries over all cells. Their columns bound what one unit moves (docs/claims/K-80.md)."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from bounded_plans import AGE, PLAN
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import Count, Grid, Key, Measurement, People, Strategy, Sum
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.sensitivity import derive_sensitivity
from sfumato.kernel.strategies import MOST_ENTRY, MOST_VALUES, bound_columns, check_matrices, mix_cells

HALF = ZCDP("0.5")
entries = st.integers(-9, 9)
squares = st.integers(1, 3).flatmap(
    lambda size: st.lists(st.lists(entries, min_size=size, max_size=size), min_size=size, max_size=size)
)
factors = st.lists(squares, min_size=0, max_size=3).map(lambda all_: tuple(tuple(map(tuple, one)) for one in all_))


def multiply_out(matrices):
    whole = np.ones((1, 1), object)
    for matrix in matrices:
        whole = np.kron(whole, np.array(matrix, object))
    return whole


def keyed(matrices, part, *, neighbours=Neighbours.ADD_REMOVE, loss=HALF, per_row=True, rows=1):
    keys = tuple(
        Key(Column(f"k{place}", ColumnType.TEXT), tuple(map(str, range(len(one)))))
        for place, one in enumerate(matrices)
    )
    unit = PrivacyUnit("people", ROW if per_row else "id", neighbours)
    source = Scan("people", "v1") if per_row else Scan("people", "v1", rows)
    return replace(
        PLAN, source=source, unit=unit, keys=keys, measurements=(Measurement("s", Strategy(part, matrices), loss),)
    )


def planned(measurement, key):
    return replace(PLAN, keys=(key,), measurements=(measurement,))


@given(factors)
def test_columns_are_those_of_the_whole_matrix(matrices):
    whole = multiply_out(matrices)
    products = whole.T @ whole
    l1, l2_squared, least = bound_columns(matrices)
    assert l1 == max(sum(map(abs, column)) for column in whole.T)
    assert l2_squared == max(products.diagonal())
    assert least <= min(0, products.min())
    assert least == min(0, products.min()) or len(matrices) > 1  # a diagonal's end may belong to different columns


@given(factors, st.data())
def test_queries_are_the_product_with_the_cells(matrices, data):
    cells = data.draw(
        st.lists(st.integers(-(10**25), 10**25), min_size=(size := len(multiply_out(matrices))), max_size=size)
    )
    assert mix_cells(cells, matrices) == list(multiply_out(matrices) @ np.array(cells, object))
    small = [one % 1_000 for one in cells]
    assert mix_cells(small, matrices) == list(multiply_out(matrices) @ np.array(small, object))


def test_large_cells_are_multiplied_exactly():
    matrix = ((MOST_ENTRY, 1), (-MOST_ENTRY, 3))
    for cell in (2**41, 2**42, 2**62, 2**200):
        assert mix_cells([cell, -cell + 1], (matrix,)) == [
            MOST_ENTRY * cell - cell + 1,
            -MOST_ENTRY * cell - 3 * cell + 3,
        ]


@settings(max_examples=60)
@given(factors.filter(bool), st.sampled_from(Neighbours), st.sampled_from([(0, 5), (-5, 5), (-3, 0), (2, 7), (-2, 7)]))
def test_no_pair_of_units_moves_the_queries_further(matrices, neighbours, bounds):
    """One unit of weight 2, in every pair of cells, with values at both bounds: norms are largest at corners."""
    grid = Grid(*bounds, 0)
    whole, reach = multiply_out(matrices), 2
    made = keyed(matrices, Sum(AGE, grid), neighbours=neighbours, per_row=False, rows=reach)
    allowed = derive_sensitivity(made, made.measurements[0].quantity)
    moves = [reach * value * column for column in whole.T for value in (*bounds, 0)]
    others = moves if neighbours is Neighbours.REPLACE_ONE else [0 * moves[0]]
    for one, two in product(moves, others):
        assert sum(map(abs, one - two)) <= allowed.l1
        assert sum(entry**2 for entry in one - two) <= allowed.l2_squared


def test_the_sensitivity_is_reached():
    """Centred queries of 3 values: columns (2, -1, -1), and so on; two of them are (3, -3, 0) apart."""
    centred = ((2, -1, -1), (-1, 2, -1), (-1, -1, 2))
    found = {
        neighbours: derive_sensitivity(
            made := keyed((centred,), Count(None), neighbours=neighbours), made.measurements[0].quantity
        )
        for neighbours in Neighbours
    }
    assert (found[Neighbours.ADD_REMOVE].l1, found[Neighbours.ADD_REMOVE].l2_squared) == (4, 6)
    assert (found[Neighbours.REPLACE_ONE].l1, found[Neighbours.REPLACE_ONE].l2_squared) == (8, 18)
    person = keyed((centred,), Count(None), per_row=False, rows=3)
    assert derive_sensitivity(person, person.measurements[0].quantity).l2_squared == 6 * (3 * 2**16) ** 2


def test_the_noise_pays_for_the_longest_column():
    matrix = ((3, 0), (4, 2))
    for loss, variance in ((ZCDP("0.5"), 25), (GDP("0.25"), 100)):
        (measured,) = certify(keyed((matrix,), Count(None), loss=loss)).measurements
        assert measured.noise.variance == variance
    (measured,) = certify(keyed((matrix,), Count(None), loss=PureDP("0.5"))).measurements
    assert measured.noise.scale == Fraction(14)


def test_strategies_that_cannot_be():
    square, key = ((1, 2), (3, 4)), Key(AGE, (1, 2))
    assert planned(Measurement("s", Strategy(Count(None), (square,)), ZCDP(1)), key).cells == 2
    oblong, tall, large = ((1, 2),), ((1,), (2,)), ((1, 2), (3, MOST_ENTRY + 1))
    for matrices in ((), (square, square), (oblong,), (tall,), (large,), (((1, 2), (3, 4.0)),), (((1, 2), (3, True)),)):
        with pytest.raises(KernelFault):
            planned(Measurement("s", Strategy(Count(None), matrices), ZCDP(1)), key)
    with pytest.raises(KernelFault):
        planned(Measurement("s", Strategy(Count(None), (square,)), ZCDP(1)), Key(AGE, None))
    with pytest.raises(KernelFault):
        Strategy(People(), (square,))
    for loss in (ApproxDP(1, "1e-6"), ZCDP(1, "1e-6")):
        with pytest.raises(KernelFault):
            Measurement("s", Strategy(Count(None), (square,)), loss)
    many = ((0,) * (MOST_VALUES + 1),) * (MOST_VALUES + 1)
    with pytest.raises(KernelFault):
        check_matrices([many], [MOST_VALUES + 1])
