"""Noisy statistics of numpy arrays: exact integer sums with exact stand-alone noise.

Every row of the arrays is one person. With add-remove the number of rows is private; with replace-one it is public.

Sensitivity: the kernel's rules (`derive_sensitivity`, claim K-25) for a row unit, from the bounds of the row function
and the number of cells alone. Sums are exact sums of integers (block_sums.py). Noise is drawn by the kernel's samplers.
The losses of a fit add up to at most its price (`SpentShares`; claim K-17).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np

from sfumato.answering.prepayments import Prepayment
from sfumato.errors import KernelFault
from sfumato.kernel.certify import certify
from sfumato.kernel.entropy import SYSTEM, Entropy
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, Noise, choose_noise
from sfumato.kernel.neighbours import ROW, Neighbours, PrivacyUnit
from sfumato.kernel.plan import BoundedPlan, Key, Measurement, Products, Quantity
from sfumato.kernel.released_steps import find_exponent
from sfumato.kernel.row_sources import Scan
from sfumato.kernel.saturating_sums import add_saturating
from sfumato.kernel.sensitivity import Sensitivity, derive_sensitivity
from sfumato.learning.block_sums import BlockSums
from sfumato.learning.feature_columns import SCALE, Feature, Target
from sfumato.learning.fit_progress import FitProgress, draw_bar
from sfumato.learning.joint_sums import (
    DrawnTogether,
    Group,
    Term,
    group_statistics,
    list_terms,
    make_products,
    split_products,
)
from sfumato.learning.noisy_statistics import (
    Drawn,
    Foreseen,
    Noisy,
    SpentShares,
    Statistic,
    combine_parts,
    estimate_count_noise,
    find_shape,
    list_quantities,
    require_few_cells,
    share_evenly,
)
from sfumato.learning.row_arrays import RowArrays
from sfumato.learning.row_cells import Floats, Integers
from sfumato.learning.row_functions import Moment, Powers, Residual, compute_steps

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
        self._sums, self._price, self._neighbours, self._entropy = BlockSums(rows), price, neighbours, entropy
        self._shares = SpentShares(price.limit, Fraction(spent))
        self._progress = FitProgress(float(spent))
        self.count_noise = estimate_count_noise(price.limit, neighbours)

    @property
    def loss(self) -> PrivacyLoss:
        """What the fit costs."""
        return self._price.loss

    def foresee(self, foreseen: Sequence[Foreseen]) -> None:
        """Refuse statistics that `release` would refuse. No row is read."""
        for statistic, share in foreseen:
            self._choose_noise(statistic, *self._shares.divide(share, [1]))

    def release(self, statistics: Sequence[Statistic], share: Fraction) -> list[Noisy]:
        """Noisy sums of all statistics. The call spends `share` of the price."""
        losses = self._shares.take(share, [statistic.weight for statistic in statistics])
        groups = group_statistics(statistics, losses, public_rows=self.rows is not None)
        boxes = [self._choose_box(group) if group.terms else None for group in groups]  # before rows are read
        noises = [[] if group.terms else self._choose_noise(group.statistics[0], group.loss) for group in groups]
        computed: ComputedSteps = {}
        released: dict[int, Noisy] = {}
        with draw_bar("Fitting", self._progress), np.errstate(all="ignore"):  # no warning depends on a row's value
            for group, box, noise in zip(groups, boxes, noises, strict=True):
                if box is None:
                    found = [self._release_one(group.statistics[0], noise, computed)]
                else:
                    found = self._release_together(group, *box, computed)
                released |= dict(zip(group.numbers, found, strict=True))
                self._progress.done += float(share) * len(group.numbers) / len(statistics)
        return [released[number] for number in range(len(statistics))]

    def _choose_box(self, group: Group) -> tuple[Products, BoxNoise]:
        """The terms of a group, and their noise."""
        require_few_cells(group.statistics[0], self.features, self.target)
        cells = prod(find_shape(group.statistics[0], self.features, self.target))
        products = make_products(group.terms, lambda _: VALUE)
        return products, choose_box_for(products, group.loss, self._neighbours, cells)

    def _release_together(
        self, group: Group, products: Products, noise: BoxNoise, computed: ComputedSteps
    ) -> list[Noisy]:
        shape = find_shape(group.statistics[0], self.features, self.target)
        exact: dict[Term, Integers] = {}
        for statistic in group.statistics:
            found = add_up(statistic, self._sums, shape, gaussian=True, computed=computed)
            exact |= dict(zip(list_terms(statistic), found, strict=True))
        scaled = [
            exact[term] * products.find_multiplier(places)
            for term, places in zip(group.terms, products.terms, strict=True)
        ]
        integers = np.stack(scaled, axis=-1).ravel()
        noisy = add_saturating(integers, noise.draw(len(integers), self._entropy)).astype(np.float64)
        return split_products(group, DrawnTogether(noisy, 2.0**products.exponent, noise), shape, self.rows)

    def _choose_noise(self, statistic: Statistic, loss: PureDP | ZCDP) -> list[tuple[Quantity, Noise]]:
        """The quantities of a statistic, and the noise of each."""
        require_few_cells(statistic, self.features, self.target)
        several = prod(find_shape(statistic, self.features, self.target)) != 1
        quantities = list_quantities(statistic.value, lambda _: VALUE, gaussian=isinstance(loss, ZCDP))
        return [
            (quantity, choose_noise_for(quantity, part, self._neighbours, several=several))
            for quantity, part in zip(quantities, share_evenly(loss, len(quantities)), strict=True)
        ]

    def _release_one(
        self, statistic: Statistic, noises: list[tuple[Quantity, Noise]], computed: ComputedSteps
    ) -> Noisy:
        shape = find_shape(statistic, self.features, self.target)
        gaussian = isinstance(noises[0][1], GaussianNoise)
        exact = add_up(statistic, self._sums, shape, gaussian=gaussian, computed=computed)
        drawn: list[Drawn] = []
        for (quantity, noise), integers in zip(noises, exact, strict=True):
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


@lru_cache(maxsize=4096)
def choose_box_for(products: Products, loss: PureDP | ZCDP, neighbours: Neighbours, cells: int) -> BoxNoise:
    """The noise that pays for all terms together, of rows that are each one person."""
    measured = certify(_plan_rows(products, loss, neighbours, cells)).measurements[0]
    if not isinstance(measured.noise, BoxNoise):
        raise KernelFault("Terms that are measured together have box noise.")
    return measured.noise


def _plan_rows(quantity: Quantity, loss: PureDP | ZCDP, neighbours: Neighbours, cells: int) -> BoundedPlan:
    """A plan of one quantity over the cells of a table of rows."""
    keys = (Key(Column("cell", ColumnType.INTEGER), tuple(range(cells))),) if cells > 1 else ()
    unit = PrivacyUnit("rows", ROW, neighbours)
    return BoundedPlan("rows", Scan("rows", ""), unit, 1, (), keys, (Measurement("sums", quantity, loss),))


def bound_change(quantity: Quantity, neighbours: Neighbours, *, several: bool) -> Sensitivity:
    """How far one row moves the vector of a quantity, over all cells: the kernel's rule for a table of rows."""
    return derive_sensitivity(_plan_rows(quantity, PureDP(1), neighbours, 2 if several else 1), quantity)


def add_up(  # noqa: PLR0911 - one return a form
    statistic: Statistic,
    sums: BlockSums,
    shape: tuple[int, ...],
    *,
    gaussian: bool,
    computed: ComputedSteps | None = None,
) -> list[Integers]:
    """The exact integers of each quantity of a statistic, in the order of its cells. They are private.

    `computed` keeps the residuals of a call: statistics of one score by several features compute it once.
    """
    cells = statistic.cells
    match statistic.value:
        case None:
            return [sums.count(cells, shape)]
        case Powers(column):
            count, first, second = sums.count(cells, shape), *(sums.sum_column(column, n, cells, shape) for n in (1, 2))
            if gaussian:
                return [count, first, second]
            square = count * SCALE**2 + second
            parts = [square - 2 * SCALE * first, 2 * (count * SCALE**2 - second), square + 2 * SCALE * first]
            return [np.stack(parts, axis=-1).ravel()]
        case Moment((column,)):
            return [sums.sum_column(column, 1, cells, shape)]
        case Moment((one, two)) if one == two:
            return [sums.sum_column(one, 2, cells, shape)]
        case Moment((one, two)) if not cells:
            return [sums.sum_product(one, two)]
        case Moment() as function:
            return [sums.sum_steps(compute_steps(function, sums.rows), cells, shape)]
        case Residual(times=times) as function:
            known = {} if computed is None else computed
            alone = replace(function, times=None)
            if alone not in known:
                known[alone] = compute_steps(alone, sums.rows)
            steps = known[alone] if times is None else known[alone] * sums.rows.scaled(times)
            return [sums.sum_steps(steps, cells, shape)]
