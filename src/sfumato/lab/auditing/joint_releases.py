"""Sums with one noise, as estimators measure them: the box in which one unit moves, the charge and the noise."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sfumato.answering.certified_plans import certify_plan
from sfumato.answering.desk import Desk
from sfumato.answering.psi_expressions import plan_sums
from sfumato.catalog.columns import Integer, Real
from sfumato.catalog.dataset import Table
from sfumato.errors import SfumatoError
from sfumato.kernel.expressions import Column, ColumnType
from sfumato.kernel.losses import PureDP
from sfumato.kernel.mechanisms import BoxNoise
from sfumato.kernel.plan import BoundedPlan, Factor, Grid, Measurement, Products
from sfumato.lab.auditing.audit_stage import Setting, Stage
from sfumato.lab.auditing.binomial_limits import compute_tail
from sfumato.lab.auditing.contribution_pairs import make_pair_with_many_rows
from sfumato.lab.auditing.independent_prices import covers
from sfumato.lab.auditing.independent_sensitivities import find_sides
from sfumato.lab.auditing.pinned_tables import read_pinned
from sfumato.lab.auditing.real_releases import RealRelease, release_given
from sfumato.lab.auditing.recorded_release import ExactIntegers
from sfumato.lab.auditing.second_measurement import compare_measurements, make_second_engine
from sfumato.lab.auditing.throwaway_desk import PinnedRows

EPSILON = 1
RELEASES = 160
ALARM = 1e-9
_ROUNDING = 1e-3  # far above the error of the law of a box as that of a gamma variable
_EXPONENT = -6  # of the grids: box noise needs steps that are fine enough
_MOST = 2**20  # the largest bound of a column that is used


def check_joint_sums(stage: Stage, setting: Setting) -> Iterator[str]:
    """The faults of joint sums of the first private table of a question, on a person with many rows.

    A table without numbers has none.
    """
    pair = make_pair_with_many_rows(stage)
    table = next(candidate for candidate in stage.tables if not candidate.public)
    products = make_products(table)
    if products is None:
        return
    measured: list[ExactIntegers] = []
    sides: list[Fraction] = []
    with PinnedRows() as rows:
        opened = replace(setting, pinned=rows)
        for data in (pair.first, pair.second):
            pinned, tables = rows.remember(data, "rows", read_pinned), {name: one for name, (one, _) in data.items()}
            with opened.open(stage.dataset, data) as desk:
                try:
                    plan = plan_sums(desk, table.name, (Measurement("sums", products, PureDP(EPSILON)),))
                    desk.engine.check(plan)
                except SfumatoError:
                    return
                measured.append(ExactIntegers.read(desk.engine.aggregate(plan)))
                second = make_second_engine(setting.engine, pinned, rows.load(data))
                yield from (
                    f"joint sums: {fault}" for fault in compare_measurements(plan, measured[-1], second, pinned)
                )
                sides = find_sides(plan, products, tables, pinned)
                if len(measured) == 2:
                    yield from _check_noise(desk, plan, sides, measured[-1])
    moved = [abs(one - two) for one, two in zip(*(exact.integers["sums"] for exact in measured), strict=True)]
    if any(step > side for step, side in zip(moved, sides, strict=True)):
        yield "joint sums: one unit moves a term by more than its side of the box."


def make_products(table: Table) -> Products | None:
    """The number of rows, the sums, squares and products of at most two columns."""
    factors = []
    for name, declared in table.columns.items():
        match declared:
            case Integer(lower=low, upper=high) | Real(lower=low, upper=high) if max(abs(low), abs(high)) <= _MOST:
                grid = Grid(math.floor(low) << -_EXPONENT, math.ceil(high) << -_EXPONENT, _EXPONENT)
                kind = ColumnType.INTEGER if isinstance(declared, Integer) else ColumnType.REAL
                factors.append(Factor(Column(name, kind, nullable=declared.nullable), grid))
            case _:
                continue
    used = factors[:2]
    terms: tuple[tuple[int, ...], ...] = ((), (0,), (0, 0)) if len(used) == 1 else ((), (0,), (1,), (0, 0), (0, 1))
    return Products(tuple(used), terms) if used else None


def _check_noise(desk: Desk, plan: BoundedPlan, sides: list[Fraction], exact: ExactIntegers) -> Iterator[str]:
    """The box pays for the sides, and the sizes of released boxes are those of a gamma variable."""
    (certified,) = certify_plan(plan).certificate.measurements
    box = certified.noise
    if not isinstance(box, BoxNoise) or len(box.units) != len(sides):
        yield "joint sums: their noise is not that of a box."
        return
    shells = max(math.ceil(side / unit) for side, unit in zip(sides, box.units, strict=True))
    if shells > box.scale * EPSILON:
        yield "joint sums: the noise does not pay for what one unit moves."
    releases = release_given(desk, plan, exact, RELEASES)
    if not covers(desk.ledger.totals().spent, *(release.released.certificate for release in releases)):
        yield "joint sums: they are charged less than their losses."
    sizes = [_find_shell(release, box) / float(box.scale) for release in releases]
    terms = len(box.units)
    for most in (terms * share for share in (0.1, 0.25, 0.5, 0.75, 1.0)):
        hits = sum(size <= most for size in sizes)
        rate = 1 - math.exp(-most) * sum(most**place / math.factorial(place) for place in range(terms))
        if compute_tail(hits, len(sizes), min(1.0, rate + _ROUNDING)) < ALARM:
            yield "joint sums: their noise is smaller than certified."
            return


def _find_shell(one: RealRelease, box: BoxNoise) -> int:
    """The size of the box in which the noise of a release lies."""
    released, exact = one.released.integers["sums"], one.exact.integers["sums"]
    drawn = [noisy - before for noisy, before in zip(released, exact, strict=True)]
    return max(-(-abs(step) // unit) for step, unit in zip(drawn, box.units, strict=True))
