"""The noise of arrays' statistics, scripted and enumerated: exactly the kernel's noise is added, once for each cell."""

from fractions import Fraction

import numpy as np
from scripted import Scripted

from sfumato.kernel.losses import PureDP
from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import VALUE, ArrayStatistics, add_up, choose_noise_for
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.feature_columns import SCALE, Classes, Numeric
from sfumato.learning.noisy_statistics import Statistic, list_quantities, read_price
from sfumato.learning.row_arrays import RowArrays, read_table
from sfumato.learning.row_cells import Labels
from sfumato.learning.row_functions import Moment, Powers

BYTES = np.random.default_rng(7).integers(0, 256, 4096, np.uint8).tobytes()
ROWS = RowArrays(
    read_table(np.array([[0.5], [-0.25], [1.0]])), np.array([0, 1, 1]), (Numeric("a", -1.0, 1.0),), Classes("t", (0, 1))
)


def test_released_integers_are_exact_sums_and_the_scripted_noise():
    for value, step in ((None, 1.0), (Moment((0,)), 1 / SCALE), (Moment((0, 0)), 1 / SCALE**2)):
        source = ArrayStatistics(ROWS, read_price(1, 0), Neighbours.ADD_REMOVE, entropy=Scripted(BYTES))
        (noisy,) = source.release([Statistic(value, (Labels(),))], Fraction(1))
        (quantity,) = list_quantities(value, lambda _: VALUE, gaussian=False)
        drawn = choose_noise_for(quantity, PureDP(1), Neighbours.ADD_REMOVE, several=True).draw(2, Scripted(BYTES))
        (exact,) = add_up(Statistic(value, (Labels(),)), BlockSums(ROWS), (2,), gaussian=False)
        assert (noisy.sums / step).tolist() == (exact + drawn).tolist()


def test_the_scale_of_the_noise_is_the_sensitivity_over_epsilon():
    """One row adds at most 1, SCALE or SCALE² steps; a replaced row moves twice that, over two cells."""
    for value, most in ((None, 1), (Moment((0,)), SCALE), (Moment((0, 0)), SCALE**2), (Powers(0), 4 * SCALE**2)):
        (quantity,) = list_quantities(value, lambda _: VALUE, gaussian=False)
        for neighbours, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE_ONE, 2)):
            noise = choose_noise_for(quantity, PureDP("0.5"), neighbours, several=True)
            assert noise.scale == 2 * times * most


def test_what_one_row_adds_to_the_three_powers_is_one_in_all():
    """Enumerated over every tenth step of the scaled column."""
    steps = np.arange(-SCALE, SCALE + 1, 10)
    parts = [(SCALE - steps) ** 2, 2 * (SCALE - steps) * (SCALE + steps), (SCALE + steps) ** 2]
    assert all(np.all(part >= 0) for part in parts)
    assert set(np.sum(parts, axis=0).tolist()) == {4 * SCALE**2}
