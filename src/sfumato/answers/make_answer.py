"""Make an Answer from released values. This is post-processing: no data is read.

The rows are computed at once. Everything else (intervals, warnings, explanation, disclosure) is computed when it is
first read, from values that cannot change: many callers read the rows only.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from sfumato.answers.answer import Answer, Cost
from sfumato.answers.answer_cautions import find_cautions
from sfumato.answers.column_margins import compute_miss_chance
from sfumato.answers.explanation import NO_GROUP, write_sentences
from sfumato.answers.interval_terms import find_interval_terms
from sfumato.answers.intervals import find_column_ends, has_interval
from sfumato.answers.measurement_summary import MeasurementSummary, summarise_measurements
from sfumato.answers.output_sensitivity import ColumnSensitivity, find_released_sensitivities
from sfumato.answers.output_values import Floats, Objects, Values, compute_column, passes, select_cells
from sfumato.answers.present_keys import find_least_number
from sfumato.answers.released_values import MOST_SIMULATED, OFTEN, Reading, compute_aggregate
from sfumato.answers.shown_rows import ShownRows
from sfumato.answers.simulated_columns import simulate_columns
from sfumato.answers.unmixed_values import round_running
from sfumato.kernel.certify import Certificate
from sfumato.kernel.expressions import Scalar
from sfumato.kernel.losses import PrivacyLoss
from sfumato.kernel.plan import Count, Distinct, Halves, Keys, People, Strategy, Thirds, take_part
from sfumato.kernel.released_steps import find_exponent
from sfumato.planning.formulas import BinFormula, CountFormula, SumFormula, sums_of
from sfumato.planning.moment_measurements import name_vectors
from sfumato.planning.planner import Planned
from sfumato.query.query import AggregateRef, KeyRef, PostCall, Query

WEIGHTS = Count | People | Keys | Distinct | Halves | Thirds  # sums of weights, which are never negative


@dataclass(frozen=True, slots=True)
class Payment:
    """The ledger's part of an answer: entry, cost, what remains, and the head of the hash chain."""

    entry_number: int
    cost: Cost
    cached: bool
    head: str
    remaining: Cost
    population_cost: Cost
    own_remaining: Cost | None
    loss: PrivacyLoss  # of all releases that the answer uses


@dataclass(frozen=True, slots=True)
class SharedBlocks:
    """What was released for several questions of a workload together, in words."""

    measurements: tuple[MeasurementSummary, ...]
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class ComputedDetails:
    """The parts of an Answer that are computed when they are first read: a method for each name in `DETAILS`."""

    query: Query
    planned: Planned
    certificate: Certificate
    reading: Reading
    confidence: Fraction
    aggregates: list[Floats]
    keys: list[Objects]
    cells: list[tuple[Scalar, ...]]
    kept: list[int]  # the cells that are shown, in their order
    columns: dict[str, list[object]]  # the values of the shown cells; None is NULL
    sign: Callable[[Sequence[ColumnSensitivity]], dict[str, Any]]
    shared: SharedBlocks | None = None  # of a workload: what was released instead of the plan's own measurements

    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """The interval of every number in every row."""
        compared = _count_compared(self.query, self.aggregates, self.keys, len(self.cells))
        shown = self._make_shown_rows() if self.kept else None
        ends = {
            name: find_column_ends(
                post, shown, compute_miss_chance(self.query, self.planned, post, self.confidence, compared)
            )
            for name, post in self.query.columns
            if shown is not None and has_interval(post, self.planned.formulas)
        }
        return [
            {
                name: (float(low[place]), float(high[place]))
                for name, (low, high) in ends.items()
                if self.columns[name][place] is not None
            }
            for place in range(len(self.kept))
        ]

    def measurements(self) -> tuple[MeasurementSummary, ...]:
        """The measurements, for explain()."""
        if self.shared is not None:
            return self.shared.measurements
        return summarise_measurements(self.planned, self.certificate, self.confidence, self.reading)

    def sentences(self) -> tuple[str, ...]:
        """Sentences about the whole answer, for explain()."""
        said = write_sentences(self.query, self.planned, self.certificate, self.confidence)
        return said if self.shared is None else (self.shared.sentence, *said)

    def sensitivities(self) -> tuple[ColumnSensitivity, ...]:
        """How much one person can change each column."""
        return find_released_sensitivities(self.query, self.planned, self.reading)

    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust some of the rows."""
        labels = [", ".join(map(str, self.cells[cell])) for cell in self.kept]
        shown = self.reading.select_cells(self.kept, len(self.cells))
        return find_cautions(
            self.query, self.planned, self.certificate, shown, labels, cells=len(self.cells),
            confidence=self.confidence,
        )  # fmt: skip

    def interval_note(self) -> str:
        """The confidence of the intervals and what they do not cover, and whether rows are in no group."""
        visible = any(
            has_interval(post, self.planned.formulas) and any(value is not None for value in self.columns[name])
            for name, post in self.query.columns
        )
        terms = find_interval_terms(self.query, self.planned, self.certificate)
        note = terms.write_note(float(self.confidence)) if visible else ""
        return f"{note} {NO_GROUP}".lstrip() if self.query.null_keys else note

    def simulated_columns(self) -> dict[str, Any]:
        """The shown columns with other noise, for windows over them; empty where a condition selects the rows."""
        selected = self.query.having is not None or self.query.limit is not None or self.query.offset
        if selected or self.reading.keys is not None or not 0 < len(self.kept) == len(self.cells):
            return {}
        compared = len(self.kept) if self.query.together else 1
        times = min(max(4_000, int(OFTEN * compared / float(1 - self.confidence))), MOST_SIMULATED)
        shown = self._make_shown_rows()
        columns = [(name, post) for name, post in self.query.columns if not isinstance(post, KeyRef)]
        return simulate_columns(shown.reading, self.planned.formulas, columns, shown.keys, len(self.kept), times)

    def disclosure(self) -> dict[str, Any]:
        """The signed statement. It is signed when it is first read, from values that cannot change."""
        return self.sign(self.sensitivities())

    def _make_shown_rows(self) -> ShownRows:
        thresholds = tuple(
            (certified.name, certified.threshold)
            for certified in self.certificate.measurements
            if certified.threshold is not None
        )
        return ShownRows(
            self.reading.select_cells(self.kept, len(self.cells)), self.planned.formulas,
            [key[self.kept] for key in self.keys], len(self.kept), self.query.having, thresholds,
            _find_weight_vectors(self.planned),
        )  # fmt: skip


def make_answer(  # noqa: PLR0917 - its caller names what it passes
    query: Query,
    planned: Planned,
    certificate: Certificate,
    reading: Reading,
    confidence: Fraction,
    paid: Payment,
    sign: Callable[[Sequence[ColumnSensitivity]], dict[str, Any]],
    shared: SharedBlocks | None = None,
) -> Answer:
    """Compute the rows of an answer; the rest is computed when it is first read."""
    values = reading.values
    aggregates = [compute_aggregate(formula, values) for formula in planned.formulas]
    cells = list(reading.keys if reading.keys is not None else product(*(key.values or () for key in query.keys)))
    keys = [np.array([cell[index] for cell in cells] + [None], object)[:-1] for index in range(len(query.keys))]
    columns = {name: compute_column(post, aggregates, keys) for name, post in query.columns}
    least = find_least_number(query, planned, reading, confidence)
    kept = select_cells(query, aggregates, keys, len(cells), least)
    whole = {name for name, post in query.columns if _is_whole(post, planned)}
    for name, strategy in _find_running(query, planned):
        if name in whole:
            columns[name] = round_running(columns[name], [key.values or () for key in query.keys], strategy)
    shown = {name: _list_values(values, len(cells), kept, whole=name in whole) for name, values in columns.items()}
    names = tuple(columns)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*shown.values(), strict=True)]
    details = ComputedDetails(
        query, planned, certificate, reading, confidence, aggregates, keys, cells, kept, shown, sign, shared
    )

    def compute_detail(name: str) -> Any:  # noqa: ANN401 - each detail has a type of its own
        return getattr(details, name)()

    return Answer(
        names, rows, float(confidence), paid.cost, paid.remaining, paid.entry_number, paid.cached, paid.head,
        paid.population_cost, paid.own_remaining,
        tuple(name for name, post in query.columns if isinstance(post, KeyRef)),
        planned.plan.unit.neighbours, paid.loss,
        compute_detail,
    )  # fmt: skip


def _find_weight_vectors(planned: Planned) -> frozenset[str]:
    """The names of the released vectors that are sums of weights or of parts of them (kernel/split_sums.py)."""
    measurements = planned.plan.measurements
    return frozenset(
        name
        for measurement in measurements
        if isinstance(take_part(measurement.quantity), WEIGHTS)
        for name in name_vectors(measurement)
    )


def _count_compared(query: Query, aggregates: list[Floats], keys: list[Objects], cells: int) -> int:
    """Count the cells that ORDER BY compares: those that pass HAVING."""
    if query.having is None:
        return max(cells, 1)
    return max(int(np.broadcast_to(passes(query.having, aggregates, keys), cells).sum()), 1)


def _is_whole(post: object, planned: Planned) -> bool:
    if isinstance(post, PostCall) and post.function == "integer":
        return True
    if not isinstance(post, AggregateRef):
        return False
    formula = planned.formulas[post.index]
    if isinstance(formula, CountFormula):
        return True
    if isinstance(formula, BinFormula):
        return formula.step == 1
    if not isinstance(formula, SumFormula):
        return False
    plan = planned.plan
    grids = {
        name: find_exponent(measurement.quantity, per_row=plan.unit.per_row)
        for measurement in plan.measurements
        for name in name_vectors(measurement)
    }
    return all(grids[name] == 0 and factor.denominator == 1 for name, factor in formula.total.terms)


def _find_running(query: Query, planned: Planned) -> list[tuple[str, Strategy]]:
    """The columns that show the cells of a strategy."""
    strategies = {
        measurement.name: measurement.quantity
        for measurement in planned.plan.measurements
        if isinstance(measurement.quantity, Strategy)
    }
    found = []
    for name, post in query.columns if strategies else ():
        formula = planned.formulas[post.index] if isinstance(post, AggregateRef) else None
        if isinstance(formula, CountFormula | SumFormula):
            vectors = [vector for linear in sums_of(formula) for vector, _ in linear.terms]
            if len(vectors) == 1 and vectors[0] in strategies:
                found.append((name, strategies[vectors[0]]))
    return found


def _list_values(values: Values, cells: int, kept: list[int], *, whole: bool) -> list[object]:
    """The values of the shown cells as Python values. NULL is None; `whole` numbers become integers."""
    shown = (values if values.shape == (cells,) else np.broadcast_to(values, cells))[kept]
    listed: list[object] = shown.tolist()
    if shown.dtype.kind not in "fO":
        return listed
    numbers = [None if isinstance(value, float) and math.isnan(value) else value for value in listed]
    return [round(value) if isinstance(value, float) else value for value in numbers] if whole else numbers
