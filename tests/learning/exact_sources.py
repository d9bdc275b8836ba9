"""Sources without noise, for tests of what estimators ask for: every statistic is recorded, with its exact integers."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.learning.array_statistics import add_up
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.feature_columns import declare_features
from sfumato.learning.noisy_statistics import Drawn, Statistic, combine_parts, find_shape
from sfumato.learning.row_arrays import RowArrays, read_table
from sfumato.learning.row_functions import Moment, Powers, Residual, grid_of


def read_rows(X, y, bounds, target, categories=None):
    table = read_table(X)
    features = declare_features([f"x{place}" for place in range(len(table.columns))], bounds, categories)
    return RowArrays(table, None if y is None else np.asarray(y), features, target)


def count_exactly(statistic: Statistic, rows: RowArrays) -> np.ndarray:
    """The integers of a statistic, in units of what one row may add at most."""
    (integers,) = add_up(statistic, BlockSums(rows), find_shape(statistic, rows.features, rows.target), gaussian=False)
    return integers / find_unit(statistic)


def find_unit(statistic: Statistic) -> float:
    match statistic.value:
        case None:
            return 1.0
        case Powers():
            return 4.0 * 2**28
        case Moment() | Residual() as function:
            return float(grid_of(function).upper)
    raise AssertionError


@dataclass
class ExactSource:
    """Answers exactly, and says that the noise has a small deviation: `noise` for the whole price."""

    arrays: RowArrays
    noise: float = 1e-3
    rows: int | None = None
    loss: None = None
    count_noise: float = 0.0
    asked: list[Statistic] = field(default_factory=list)
    shares: list[Fraction] = field(default_factory=list)

    def __post_init__(self):
        self.count_noise = self.count_noise or 2**0.5 * self.noise

    @property
    def features(self):
        return self.arrays.features

    @property
    def target(self):
        return self.arrays.target

    def foresee(self, foreseen):
        """Record nothing."""

    def release(self, statistics, share):
        assert share > 0
        self.shares.append(share)
        self.asked += statistics
        whole = sum(statistic.weight for statistic in statistics)
        released = []
        for statistic in statistics:
            shape = find_shape(statistic, self.features, self.target)
            (integers,) = add_up(statistic, BlockSums(self.arrays), shape, gaussian=False)
            part = share * Fraction(statistic.weight, whole)
            step = 1 / find_unit(statistic) * (4 if isinstance(statistic.value, Powers) else 1)
            scale = Fraction(self.noise) / part / Fraction(step) * (4 if isinstance(statistic.value, Powers) else 1)
            released.append(combine_parts(statistic, [Drawn(integers.astype(float), step, LaplaceNoise(scale))], shape))
        return released


def find_largest_move(source: ExactSource, neighbour: RowArrays) -> float:
    """How far the neighbour moves the statistics that were asked, at most: the L1 distance, in what one row may add."""
    return max(
        float(np.abs(count_exactly(statistic, source.arrays) - count_exactly(statistic, neighbour)).sum())
        for statistic in source.asked
    )
