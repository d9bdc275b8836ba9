"""Noisy statistics of a protected dataset: no row leaves the engine.

A fit is one charge (`prepay`, claim K-54). It is made when the first statistics are asked for, before data is read. A
fit of which a later call would be refused is refused before the charge (`foresee`). The calls of the fit are releases
on the prepaid ledger: `charge_and_release` with plans that the kernel certifies. Statistics with the same cells are one
plan and one scan. The privacy unit and its contribution bound are those of the catalog, and the kernel derives the
sensitivity of every sum from them (claim K-25).
"""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.answering.certified_plans import CertifiedPlans, certify_together
from sfumato.answering.charged_draws import charge_and_release
from sfumato.answering.desk import Desk
from sfumato.answering.prepayments import Prepayment
from sfumato.answering.psi_expressions import plan_sums
from sfumato.answering.question_record import write_prepaid_record
from sfumato.answering.reported_prepayment import prepay_and_report
from sfumato.catalog.dataset import Table
from sfumato.curator import Curator
from sfumato.errors import KernelFault, QueryError
from sfumato.kernel.certify import Certified, certify
from sfumato.kernel.losses import ZCDP, PrivacyLoss
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.kernel.neighbours import Neighbours
from sfumato.kernel.plan import BoundedPlan, Measurement, Quantity
from sfumato.kernel.release import Released
from sfumato.learning.engine_rows import EngineRows
from sfumato.learning.feature_columns import Feature, Target
from sfumato.learning.fit_progress import FitProgress, draw_bar
from sfumato.learning.joint_sums import DrawnTogether, Group, group_statistics, make_products, split_products
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
from sfumato.learning.row_cells import RowCells, write_key
from sfumato.learning.row_functions import write_value
from sfumato.ledger.ledger import Ledger


class CuratorStatistics:
    """Noisy statistics of columns of a protected table, for one fit."""

    def __init__(  # noqa: PLR0917 - one caller
        self,
        curator: Curator,
        table: Table,
        features: tuple[Feature, ...],
        target: Target | None,
        price: Prepayment,
        analyst: str,
    ) -> None:
        self.features, self.target = features, target
        self.rows = table.rows if curator.dataset.neighbours is Neighbours.REPLACE_ONE else None
        self._curator, self._table, self._price, self._analyst = curator, table, price, analyst
        self._shares = SpentShares(price.limit)
        self._progress = FitProgress()
        self.count_noise = estimate_count_noise(price.limit, curator.dataset.neighbours)
        self._prepaid: tuple[Ledger, dict[str, str]] | None = None
        self._calls = 0

    @property
    def loss(self) -> PrivacyLoss:
        """What the fit costs: the loss of its one charge."""
        return self._price.loss

    def foresee(self, foreseen: Sequence[Foreseen]) -> None:
        """Refuse statistics that `release` would refuse, or that the engine cannot run. No row is read."""
        with self._curator.at_desk() as desk:
            for statistic, share in foreseen:
                (loss,) = self._shares.divide(share, [1])
                plan = self._plan(desk, statistic.cells, [Group((0,), (statistic,), loss)])
                certify(plan)  # the noise that its certificate needs can be drawn
                desk.engine.check(plan)

    def release(self, statistics: Sequence[Statistic], share: Fraction) -> list[Noisy]:
        """Noisy sums of all statistics. The call spends `share` of the price."""
        losses = self._shares.take(share, [statistic.weight for statistic in statistics])
        by_cells: dict[tuple[RowCells, ...], list[Group]] = {}
        for group in group_statistics(statistics, losses, public_rows=self.rows is not None):
            by_cells.setdefault(group.cells, []).append(group)
        self._calls += 1
        with self._curator.at_desk() as desk:
            plans = [self._plan(desk, cells, groups) for cells, groups in by_cells.items()]
            certified = certify_together(plans)
            ledger = self._begin(desk, certified)
            with draw_bar("Fitting", self._progress):
                answered = charge_and_release(desk.engine, ledger, certified, self._analyst, "")
        self._progress.done += float(share)
        found: dict[int, Noisy] = {}
        for groups, released in zip(by_cells.values(), answered.released, strict=True):
            for group in groups:
                found |= dict(zip(group.numbers, self._read(group, released), strict=True))
        return [found[number] for number in range(len(statistics))]

    def _plan(self, desk: Desk, cells: tuple[RowCells, ...], groups: Sequence[Group]) -> BoundedPlan:
        """One plan, and so one scan, for statistics with the same cells."""
        rows = EngineRows(self._table, self.features, self.target)
        measurements = []
        for group in groups:
            require_few_cells(group.statistics[0], self.features, self.target)
            quantities: list[Quantity]
            if group.terms:
                quantities = [make_products(group.terms, lambda function: write_value(function, rows))]
            else:
                gaussian = isinstance(group.loss, ZCDP)
                value = group.statistics[0].value
                quantities = list_quantities(value, lambda function: write_value(function, rows), gaussian=gaussian)
            shares = share_evenly(group.loss, len(quantities))
            for place, (quantity, part) in enumerate(zip(quantities, shares, strict=True)):
                measurements.append(Measurement(_name(group.numbers[0], place), quantity, part))
        keys = tuple(write_key(part, rows) for part in cells)
        plan = plan_sums(desk, self._table.name, tuple(measurements))
        return replace(plan, source=rows.derive(plan.source), keys=keys, repeat=self._calls)

    def _begin(self, desk: Desk, certified: CertifiedPlans) -> Ledger:
        """The prepaid ledger of this fit. The first call charges the population's ledger, if the engine can run it."""
        if self._prepaid is not None:
            ledger, versions = self._prepaid
            if versions != dict(desk.versions):
                raise QueryError("fit-stale", "The data was prepared again while the model was fitted.", "Fit again.")
            return ledger
        for plan in certified.plans:
            desk.engine.check(plan)
        columns = ", ".join(feature.name for feature in self.features)
        record = write_prepaid_record(f"a model of {columns[:200]}", table=self._table.name)
        ledger, _ = prepay_and_report(
            desk.ledger, desk.admit(self._analyst), self._price.loss, self._price.limit, record
        )
        weakref.finalize(self, ledger.close)
        self._prepaid = ledger, dict(desk.versions)
        return ledger

    def _read(self, group: Group, released: Released) -> list[Noisy]:
        statistic, number = group.statistics[0], group.numbers[0]
        shape = find_shape(statistic, self.features, self.target)
        certified = {measured.name: measured for measured in released.certificate.measurements}
        box = certified[_name(number, 0)]
        if isinstance(box.noise, BoxNoise):
            integers = np.array(released.integers[box.name], np.float64)
            return split_products(group, DrawnTogether(integers, 2.0**box.exponent, box.noise), shape, self.rows)
        drawn: list[Drawn] = []
        while (name := _name(number, len(drawn))) in certified:
            drawn.append(_draw(released, certified[name]))
        return [combine_parts(statistic, drawn, shape)]


def _name(number: int, place: int) -> str:
    return f"m{number}_{place}"


def _draw(released: Released, measured: Certified) -> Drawn:
    if not isinstance(measured.noise, LaplaceNoise | GaussianNoise):
        raise KernelFault("A statistic is released with additive noise.")
    integers = np.array(released.integers[measured.name], np.float64)
    return Drawn(integers, 2.0**measured.exponent, measured.noise)
