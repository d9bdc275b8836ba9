"""Sums of arrays that share one box noise: exactly the kernel's noise is added, and it pays for every neighbour."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted
from test_array_statistics import CELLS, FEATURES, ROW, SCORE, rows_of

from sfumato.errors import KernelFault
from sfumato.kernel.losses import ZCDP, PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import VALUE, ArrayStatistics, choose_box_for
from sfumato.learning.joint_sums import DrawnTogether, group_statistics, list_terms, make_products, split_products
from sfumato.learning.noisy_statistics import Statistic, find_shape, read_price
from sfumato.learning.row_functions import Moment, Powers, Residual

BYTES = np.random.default_rng(3).integers(0, 256, 1 << 16, np.uint8).tobytes()
TOGETHER = [
    [Moment((0,)), Moment((0, 1)), Moment((1, 1))],
    [None, Moment((0,)), Powers(1)],
    [Powers(0), Powers(1)],
    [Residual(SCORE, "logistic", 1), Residual(SCORE, "logistic", 1, 0), Residual(SCORE, "logistic", 1, 1)],
]


def release(rows, functions, cells, neighbours, epsilon=1):
    """The integers of all terms, cell by cell, with noise from BYTES; their noise, and their step."""
    statistics = [Statistic(function, cells) for function in functions]
    source = ArrayStatistics(rows_of(rows), read_price(epsilon, 0), neighbours, entropy=Scripted(BYTES))
    noisy = source.release(statistics, Fraction(1))
    (group,) = group_statistics(statistics, [PureDP(1)] * len(statistics), public_rows=source.rows is not None)
    step = 2.0 ** make_products(group.terms, lambda _: VALUE).exponent
    found = {}
    for statistic, sums in zip(statistics, noisy, strict=True):
        terms = list_terms(statistic)
        parts = np.moveaxis(sums.sums, -1, 0) if isinstance(statistic.value, Powers) else [sums.sums]
        found |= dict(zip(terms, parts, strict=True))
    steps = [np.ravel(found[term]) / step for term in group.terms]
    return np.stack(steps, axis=-1), noisy[0].box, group


def count_shells(change, units):
    """How many shells a change passes, over all cells."""
    return sum(max(-(-abs(int(one)) // unit) for one, unit in zip(cell, units, strict=True)) for cell in change)


@pytest.mark.parametrize("functions", TOGETHER, ids=str)
@settings(max_examples=15, deadline=None)
@given(st.lists(ROW, max_size=4), ROW, ROW, st.sampled_from(CELLS), st.sampled_from(list(Neighbours)))
def test_the_noise_pays_for_every_neighbour(functions, rows, one, two, cells, neighbours):
    """The same noise on both tables: the difference of the answers is that of the exact integers."""
    others = rows if neighbours is Neighbours.ADD_REMOVE else [*rows, two]
    before, noise, _ = release([*rows, one], functions, cells, neighbours)
    after, same, _ = release(others, functions, cells, neighbours)
    assert noise == same
    assert count_shells(before - after, noise.units) <= noise.scale  # times epsilon, which is 1


@pytest.mark.parametrize(("neighbours", "other"), [(Neighbours.ADD_REMOVE, []), (Neighbours.REPLACE_ONE, [(-1.0, 0)])])
@pytest.mark.parametrize("cells", [(), CELLS[1]], ids=["one cell", "cells"])
def test_a_neighbour_uses_the_price(neighbours, other, cells):
    """Negative control: with half of the noise, the check above fails. A replaced row may change its cell."""
    others = [(*row, "x", "no") for row in other]
    before, noise, _ = release([(3.0, 10, "x", "yes")], TOGETHER[0], cells, neighbours)
    after, _, _ = release(others, TOGETHER[0], cells, neighbours)
    passed = count_shells(before - after, noise.units)
    assert noise.scale / 2 < passed <= noise.scale


def test_released_integers_are_exact_sums_and_the_scripted_noise():
    rows = [(0.5, 2.0, "x", "yes"), (2.0, 7.5, "y", "no"), (-1.0, 10.0, "x", "yes")]
    for functions in TOGETHER[:2]:
        for cells in CELLS[:4]:
            found, noise, group = release(rows, functions, cells, Neighbours.ADD_REMOVE, "0.5")
            products, held = make_products(group.terms, lambda _: VALUE), rows_of(rows)
            count = int(np.prod(find_shape(group.statistics[0], FEATURES, held.target)))
            least = choose_box_for(products, PureDP("0.5"), Neighbours.ADD_REMOVE, count)
            assert noise.units == least.units
            assert least.scale <= noise.scale < least.scale * (1 + Fraction(1, 10**9))  # shares are rounded down
            drawn = noise.draw(count * len(group.terms), Scripted(BYTES)).astype(float).reshape(found.shape)
            every = (found - drawn).sum(axis=0)  # each row is in one cell of these partitions
            for places, term, total in zip(products.terms, group.terms, every, strict=True):
                steps = [held.scaled(function.columns[0]) for function in term]
                assert total == np.sum(np.prod([np.ones(3), *steps], axis=0)) * products.find_multiplier(places)


def test_groups_cost_what_their_statistics_cost():
    """Statistics of the same cells and weight are one group; the prices of all groups add up to those given."""
    statistics = [
        Statistic(function, cells, weight) for function in TOGETHER[1] for cells in CELLS[:3] for weight in (1, 2)
    ]
    losses = [PureDP(place + 1) for place in range(len(statistics))]
    groups = group_statistics(statistics, losses, public_rows=False)
    assert sorted(number for group in groups for number in group.numbers) == list(range(len(statistics)))
    for group in groups:
        assert {(one.cells, one.weight) for one in group.statistics} == {(group.cells, group.statistics[0].weight)}
        assert group.loss == PureDP(sum(losses[number].epsilon for number in group.numbers))
        assert set(group.terms) == {term for one in group.statistics for term in list_terms(one)}
    assert all(len(group.statistics) == 3 for group in groups)


def test_gaussian_prices_and_coarse_grids_stay_alone():
    statistics = [Statistic(Moment((0,))), Statistic(Moment((1,)))]
    for losses in ([ZCDP(1), ZCDP(1)], [PureDP(1), ZCDP(1)], [PureDP(1 << 30)] * 2):
        groups = group_statistics(statistics, losses, public_rows=False)
        assert [(group.numbers, group.loss, group.terms) for group in groups] == [
            ((0,), losses[0], ()),
            ((1,), losses[1], ()),
        ]


def test_a_public_number_of_rows_is_not_measured_with_powers():
    powers = [Statistic(Powers(0)), Statistic(Powers(1))]
    (private,) = group_statistics(powers, [PureDP(1)] * 2, public_rows=False)
    (public,) = group_statistics(powers, [PureDP(1)] * 2, public_rows=True)
    assert set(private.terms) - set(public.terms) == {()}
    noise = choose_box_for(make_products(public.terms, lambda _: VALUE), PureDP(2), Neighbours.REPLACE_ONE, 1)
    drawn = DrawnTogether(np.arange(4.0), 1.0, noise)
    first, second = split_products(public, drawn, (), 17)
    assert first.sums.tolist() == [17, 0, 1]
    assert second.sums.tolist() == [17, 2, 3]
    assert first.deviation[0] == 0
    with pytest.raises(KernelFault):
        split_products(public, drawn, (), None)
    cells = [Statistic(Powers(place), CELLS[1]) for place in (0, 1)]
    (counted,) = group_statistics(cells, [PureDP(1)] * 2, public_rows=True)
    assert () in counted.terms  # of each cell, the number of rows is private
