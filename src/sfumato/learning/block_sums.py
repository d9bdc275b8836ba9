"""Exact sums of scaled columns and of their products, over the rows of each cell: one block of rows after the other.

A block is read, clamped, scaled and multiplied while it is in the processor's cache. A column has at most 2**14 steps
in size, so a product has at most 2**28, and a sum over a block at most 2**28 * BLOCK_ENTRIES < 2**53: float64 holds
every partial sum exactly, in whatever order matrix products add. Blocks are added in 64-bit integers.
"""

import numpy as np
import numpy.typing as npt

from sfumato.learning.feature_columns import SCALE, Feature, Numeric, Target
from sfumato.learning.row_arrays import RowArrays, round_steps
from sfumato.learning.row_cells import NO_CELL, Floats, Integers, RowCells, number_cells
from sfumato.learning.row_functions import TARGET

BLOCK_ENTRIES, LEAST_BLOCK = 1 << 17, 1 << 10
FEW_COLUMNS = 64  # of so many, all products take about as long as reading the columns
FEW_CELLS = 32  # so many are added by a matrix product
BINNED_BLOCK = 1 << 24  # rows that are added cell by cell in float64: at most 2**24 times 2**28


class BlockSums:
    """Sums over the rows of arrays. They are exact and private; each is computed once."""

    def __init__(self, rows: RowArrays) -> None:
        self.rows = rows
        self._numeric = _list_numeric(rows.features, rows.target)
        self._features = [rows.read_numbers(column, 0, 0)[0] for column in self._numeric]
        self._clamped_once = [_reaches_both_ends(feature) for feature in self._features]
        self._steps_per_unit = np.array([[feature.steps_per_unit] for feature in self._features])
        self._products: Integers | None = None
        self._sums: dict[tuple[RowCells, ...], Integers] = {}

    def count(self, cells: tuple[RowCells, ...], shape: tuple[int, ...]) -> Integers:
        """The number of rows in each cell of a product of partitions."""
        numbers = number_products(cells, self.rows, shape)
        if numbers is None:
            return np.array([len(self.rows)], np.int64)
        return np.bincount(numbers + 1, minlength=int(np.prod(shape)) + 1)[1:].astype(np.int64)

    def sum_column(self, column: int, power: int, cells: tuple[RowCells, ...], shape: tuple[int, ...]) -> Integers:
        """The sum of a scaled column (power 1) or of its square (power 2) in each cell."""
        place = self._numeric.index(column)
        if not cells and (self._products is not None or len(self._numeric) <= FEW_COLUMNS):
            return self._multiply()[place, [len(self._numeric) if power == 1 else place]]
        if int(np.prod(shape)) > FEW_CELLS:
            steps = self.rows.scaled(column)
            return self.sum_steps(steps if power == 1 else steps * steps, cells, shape)
        if cells not in self._sums:
            self._sums[cells] = self._sum_all(number_products(cells, self.rows, shape), int(np.prod(shape)))
        return self._sums[cells][power - 1, :, place]

    def sum_product(self, one: int, two: int) -> Integers:
        """The sum of the product of two scaled columns over all rows."""
        return self._multiply()[self._numeric.index(one), [self._numeric.index(two)]]

    def sum_steps(self, steps: Floats, cells: tuple[RowCells, ...], shape: tuple[int, ...]) -> Integers:
        """The sum of whole numbers of at most 2**28, one for each row, in each cell."""
        numbers, total = number_products(cells, self.rows, shape), np.zeros(int(np.prod(shape)), np.int64)
        for start in range(0, len(steps), BINNED_BLOCK):
            block = steps[start : start + BINNED_BLOCK]
            if numbers is None:
                total += np.int64(block.sum())
            else:
                held = numbers[start : start + BINNED_BLOCK] + 1
                total += np.bincount(held, block, minlength=len(total) + 1)[1:].astype(np.int64)
        return total

    def _multiply(self) -> Integers:
        """The products of each two columns, and of each with a last column of ones."""
        if self._products is None:
            columns = len(self._numeric)
            products, room = np.zeros((columns + 1, columns + 1), np.int64), np.ones((columns + 1, self._block))
            for start, stop in self._list_blocks():
                scaled = room[:, : stop - start]
                self._scale(start, scaled[:-1])
                found = scaled @ scaled.T
                if np.isnan(found).any():
                    _fill_missing(scaled)
                    found = scaled @ scaled.T
                products += found.astype(np.int64)
            self._products = products
        return self._products

    def _sum_all(self, numbers: Integers | None, cells: int) -> Integers:
        """The sums of all columns (first) and of their squares, in each of a few cells."""
        total = np.zeros((2, cells, len(self._numeric)), np.int64)
        every, room = np.arange(cells)[:, None], np.empty((len(self._numeric), self._block))
        for start, stop in self._list_blocks():
            scaled = room[:, : stop - start]
            self._scale(start, scaled)
            chosen = np.ones((1, stop - start)) if numbers is None else (numbers[start:stop] == every).astype(float)
            first = chosen @ scaled.T
            if np.isnan(first).any():  # 0 times NaN is NaN: no missing number is overlooked
                _fill_missing(scaled)
                first = chosen @ scaled.T
            total[0] += first.astype(np.int64)
            total[1] += (chosen @ np.square(scaled, out=scaled).T).astype(np.int64)
        return total

    @property
    def _block(self) -> int:
        """The number of rows of a block."""
        return min(max(BLOCK_ENTRIES // (len(self._numeric) + 1), LEAST_BLOCK), len(self.rows))

    def _list_blocks(self) -> list[tuple[int, int]]:
        size = max(self._block, 1)
        return [(start, min(start + size, len(self.rows))) for start in range(0, len(self.rows), size)]

    def _scale(self, start: int, scaled: Floats) -> None:
        """Write the steps of some rows, those of `RowArrays.scaled`; NaN for a missing number."""
        stop = start + scaled.shape[1]
        for held, column, feature, once in zip(scaled, self._numeric, self._features, self._clamped_once, strict=True):
            _, numbers = self.rows.read_numbers(column, start, stop)
            # where the bounds have -SCALE and SCALE steps, clamping the steps does it: every operation is monotone
            np.subtract(numbers if once else np.clip(numbers, feature.lower, feature.upper), feature.middle, out=held)
        with np.errstate(over="ignore"):  # an infinite number of steps is clamped, without a warning about the data
            round_steps(scaled, self._steps_per_unit)


def _fill_missing(scaled: Floats) -> None:
    """A missing number is the middle of the bounds."""
    scaled[np.isnan(scaled)] = 0.0


def _reaches_both_ends(feature: Numeric) -> bool:
    """Are the bounds at -SCALE and SCALE steps, as computed? The middle and the factor are rounded."""
    ends = np.array([feature.lower, feature.upper]) - feature.middle
    return bool(np.array_equal(round_steps(ends, feature.steps_per_unit), [-SCALE, SCALE]))


def _list_numeric(features: tuple[Feature, ...], target: Target | None) -> list[int]:
    numeric = [place for place, feature in enumerate(features) if isinstance(feature, Numeric)]
    return [*numeric, TARGET] if isinstance(target, Numeric) else numeric


def number_products(cells: tuple[RowCells, ...], rows: RowArrays, shape: tuple[int, ...]) -> Integers | None:
    """The number of each row's cell in the product of all partitions; None if there is one cell for all rows."""
    number: Integers | None = None
    outside: npt.NDArray[np.bool_] | None = None
    for cell, size in zip(cells, shape, strict=True):
        part = number_cells(cell, rows)
        beyond = part == NO_CELL
        outside = beyond if outside is None else outside | beyond
        number = part if number is None else number * size + part
    if number is None or outside is None:
        return None
    return np.where(outside, NO_CELL, number)
