"""A source of statistics that records a fit, and a check of the recorded statistics on neighbours."""

from fractions import Fraction

import numpy as np

from sfumato.kernel.neighbours import Neighbours
from sfumato.learning.array_statistics import VALUE, add_up, bound_change
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.noisy_statistics import find_shape, list_quantities


class RecordedSource:
    """A source that records what was asked and how much of the budget was spent."""

    def __init__(self, source):
        self.source, self.calls = source, []
        self.features, self.target, self.rows, self.loss = source.features, source.target, source.rows, source.loss

    def foresee(self, foreseen):
        """Record nothing."""

    def release(self, statistics, share):
        self.calls.append((list(statistics), share))
        return self.source.release(statistics, share)


def find_largest_move(source, neighbours, X, y, read_rows):
    """Compare every recorded statistic on random neighbours with its bound: the largest part of a bound that is used.

    The first two columns are numbers, the third has the codes 0 to 2, and the labels are 0 and 1.
    """
    draw, most = np.random.default_rng(9), Fraction(0)
    for statistic in [statistic for statistics, _ in source.calls for statistic in statistics]:
        shape = find_shape(statistic, source.features, source.target)
        (quantity,) = list_quantities(statistic.value, lambda _: VALUE, gaussian=False)
        bound = bound_change(quantity, neighbours, several=int(np.prod(shape)) != 1)
        for _ in range(5):
            place = int(draw.integers(0, len(y)))
            other_X, other_y = X.copy(), y.copy()
            if neighbours is Neighbours.ADD_REMOVE:
                other_X, other_y = np.delete(X, place, axis=0), np.delete(y, place)
            else:
                other_X[place] = [draw.uniform(-20, 20), np.nan, draw.integers(-1, 4)]
                other_y[place] = draw.integers(0, 3)
            (before,) = add_up(statistic, BlockSums(read_rows(X, y)), shape, gaussian=False)
            (after,) = add_up(statistic, BlockSums(read_rows(other_X, other_y)), shape, gaussian=False)
            moved = int(np.abs(before - after).sum())
            assert moved <= bound.l1
            most = max(most, Fraction(moved) / bound.l1)
    return most
