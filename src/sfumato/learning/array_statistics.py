"""Noisy statistics of numpy arrays: exact integer sums with exact stand-alone noise.

Every row of the arrays is one person. With add-remove the number of rows is private; with replace-one it is public.

Sensitivity: the kernel's rules (`derive_sensitivity`, claim K-25) for a row unit, from the bounds of the row function
and the number of cells alone. Sums are sums of integers, which float64 holds exactly (at most 2**52 in a block of
rows), added in 64-bit integers. Noise is drawn by the kernel's samplers. The losses of a fit add up to at most its
price (`SpentShares`; claim K-17).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.answering.prepayments import Prepayment
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import Noise, choose_noise
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Key, Measurement, Quantity, find_exponent
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.saturating_sums import add_saturating
from sfumato.kernel.sensitivity import Sensitivity, derive_sensitivity
from sfumato.learning.feature_columns import SCALE, Feature, Target
from sfumato.learning.noisy_statistics import (
    Drawn,
    Noisy,
    SpentShares,
    Statistic,
    combine_parts,
    find_shape,
    list_quantities,
    share_evenly,
)
from sfumato.learning.row_arrays import RowArrays
from sfumato.learning.row_cells import NO_CELL, Floats, Integers, number_cells
from sfumato.learning.row_functions import Moment, Powers, Residual, compute_steps

BLOCK = 1 << 24  # rows that are added in float64: at most 2**24 times 2**28, which is exact
VALUE = Column("value", ColumnType.REAL)
ComputedSteps = dict[Residual, Floats]


class ArrayStatistics:
    """Noisy statistics of arrays."""

    def __init__(
        self,
        rows: RowArrays,
        price: Prepayment,
        neighbours: Neighbours,
        spent: Fraction = Fraction(0),
        entropy: Entropy = SYSTEM,
    ) -> None:
        """`spent` is the share of the price that another source of the same fit has spent."""
        self.features: tuple[Feature, ...] = rows.features
        self.target: Target | None = rows.target
        self.rows = len(rows) if neighbours is Neighbours.REPLACE_ONE else None
        self._rows, self._price, self._neighbours, self._entropy = rows, price, neighbours, entropy
        self._shares = SpentShares(price.limit, Fraction(spent))

    @property
    def loss(self) -> PrivacyLoss:
        """What the fit costs."""
        return self._price.loss

    def release(self, statistics: Sequence[Statistic], share: Fraction) -> list[Noisy]:
        """Noisy sums of all statistics. The call spends `share` of the price."""
        losses = self._shares.take(share, [statistic.weight for statistic in statistics])
        computed: ComputedSteps = {}
        return [self._release_one(*pair, computed) for pair in zip(statistics, losses, strict=True)]

    def _release_one(self, statistic: Statistic, loss: PureDP | ZCDP, computed: ComputedSteps) -> Noisy:
        shape = find_shape(statistic, self.features, self.target)
        several, gaussian = int(np.prod(shape)) != 1, isinstance(loss, ZCDP)
        quantities = list_quantities(statistic.value, lambda _: VALUE, gaussian=gaussian)
        exact = add_up(statistic, self._rows, shape, gaussian=gaussian, computed=computed)
        drawn: list[Drawn] = []
        for quantity, integers, part in zip(quantities, exact, share_evenly(loss, len(quantities)), strict=True):
            noise = choose_noise_for(quantity, part, self._neighbours, several=several)
            noisy = add_saturating(integers, noise.draw(len(integers), self._entropy))
            drawn.append(Drawn(noisy.astype(np.float64), 2.0 ** find_exponent(quantity, per_row=True), noise))
        return combine_parts(statistic, drawn, shape)


@lru_cache(maxsize=4096)
def choose_noise_for(quantity: Quantity, loss: PureDP | ZCDP, neighbours: Neighbours, *, several: bool) -> Noise:
    """The noise that pays for a quantity of rows, each of which is one person.

    A replaced row may leave one cell and enter another; the kernel's rule for several cells covers that.
    """
    moved = bound_change(quantity, neighbours, several=several)
    return choose_noise(moved.l1, moved.l2_squared, loss)


def bound_change(quantity: Quantity, neighbours: Neighbours, *, several: bool) -> Sensitivity:
    """How far one row moves the vector of a quantity, over all cells: the kernel's rule for a table of rows."""
    keys = (Key(Column("cell", ColumnType.INTEGER), (0, 1)),) if several else ()
    unit = PrivacyUnit("rows", ROW, neighbours)
    measured = (Measurement("sums", quantity, PureDP(1)),)
    plan = BoundedPlan("rows", Scan("rows", ""), unit, 1, (), keys, measured)
    return derive_sensitivity(plan, quantity)


def add_up(
    statistic: Statistic,
    rows: RowArrays,
    shape: tuple[int, ...],
    *,
    gaussian: bool,
    computed: ComputedSteps | None = None,
) -> list[Integers]:
    """The exact integers of each quantity of a statistic, in the order of its cells. They are private.

    `computed` keeps the residuals of a call: statistics of one score by several features compute it once.
    """
    cells, size = _number_products(statistic, rows, shape), int(np.prod(shape))
    match statistic.value:
        case None:
            return [_count(cells, len(rows), size)]
        case Powers(column):
            steps = rows.scaled(column)
            count, first = _count(cells, len(rows), size), _sum(steps, cells, size)
            second = _sum(steps * steps, cells, size)
            if gaussian:
                return [count, first, second]
            square = count * SCALE**2 + second
            parts = [square - 2 * SCALE * first, 2 * (count * SCALE**2 - second), square + 2 * SCALE * first]
            return [np.stack(parts, axis=-1).ravel()]
        case Moment() as function:
            return [_sum(compute_steps(function, rows), cells, size)]
        case Residual(times=times) as function:
            known = {} if computed is None else computed
            alone = replace(function, times=None)
            if alone not in known:
                known[alone] = compute_steps(alone, rows)
            steps = known[alone] if times is None else known[alone] * rows.scaled(times)
            return [_sum(steps, cells, size)]


def _number_products(statistic: Statistic, rows: RowArrays, shape: tuple[int, ...]) -> Integers | None:
    """The number of each row's cell in the product of all partitions; None if there is one cell for all rows."""
    number: Integers | None = None
    outside: npt.NDArray[np.bool_] | None = None
    for cells, size in zip(statistic.cells, shape, strict=True):
        part = number_cells(cells, rows)
        beyond = part == NO_CELL
        outside = beyond if outside is None else outside | beyond
        number = part if number is None else number * size + part
    if number is None or outside is None:
        return None
    return np.where(outside, NO_CELL, number)


def _count(cells: Integers | None, rows: int, size: int) -> Integers:
    if cells is None:
        return np.array([rows], np.int64)
    return np.bincount(cells + 1, minlength=size + 1)[1:].astype(np.int64)


def _sum(steps: Floats, cells: Integers | None, size: int) -> Integers:
    total = np.zeros(size, np.int64)
    for start in range(0, len(steps), BLOCK):
        block = steps[start : start + BLOCK]
        if cells is None:
            total += np.int64(block.sum())
        else:
            held = cells[start : start + BLOCK] + 1
            total += np.bincount(held, block, minlength=size + 1)[1:].astype(np.int64)
    return total
