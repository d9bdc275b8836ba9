"""The margins of output columns before release: half the width that their intervals would have. No data is read."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

import numpy as np

from sfumato.accuracy.noise_margins import find_miss_per_coordinate
from sfumato.answers.intervals import bound_column, express_as_linear, find_column_ends, has_interval
from sfumato.answers.output_values import Floats, Objects
from sfumato.answers.quantile_intervals import find_even_margin
from sfumato.answers.released_values import (
    Reading,
    ReleasedVector,
    depends_on_choice,
    find_linear_margin,
    find_strategies,
    split_parts,
    unmix,
)
from sfumato.answers.shown_rows import ShownRows, find_vector_names
from sfumato.kernel.certify import Certificate
from sfumato.kernel.plan import (
    Count,
    Curve,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Keys,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Quantity,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
)
from sfumato.kernel.split_sums import find_middle
from sfumato.planning.formulas import BinFormula, PairFormula, VarianceFormula
from sfumato.planning.planner import Planned
from sfumato.query.query import AggregateRef, KeyRef, Post, Query

PRIVATE_COUNT = "The margin depends on a private count. Assume one: assume={'n': 500}, or --assume n=500."
NO_NUMBER = "The column is not a number."
IN_RANK = (
    "The error of this choice is in rank, not in value. explain() states it in rows. A quantile of a number has an "
    "interval in value with interval_share=0.5, for example."
)
EVENLY = (
    "Margins of averages and variances assume values that are spread evenly between the declared bounds; those of "
    "CORR, COVAR and REGR also that the two columns do not depend on each other."
)


def compute_miss_chance(query: Query, planned: Planned, post: Post, confidence: Fraction, compared: int) -> Fraction:
    """The probability with which one interval may miss. If ORDER BY reads the column, all its intervals hold together.

    A row may come first because of its noise. Its interval holds if the intervals of all rows hold.
    """
    sorts = [find_vector_names(term.by, planned.formulas) for term in query.order]
    together = query.together or any(names & find_vector_names(post, planned.formulas) for names in sorts)
    return find_miss_per_coordinate(1 - confidence, compared) if together else 1 - confidence


def find_margins(
    query: Query, planned: Planned, certificate: Certificate, confidence: Fraction, people: float | None
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Find the margin of each column before release; None, with the reason, if it is not known."""
    by_name = {vector.name: vector for vector in assume_release(certificate, {}).measured}
    margins: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, post in query.columns:
        if isinstance(post, KeyRef):
            continue
        margins[name] = None
        miss = compute_miss_chance(query, planned, post, confidence, certificate.cells or 1)
        linear = express_as_linear(post, planned.formulas)
        formula = planned.formulas[post.index] if isinstance(post, AggregateRef) else None
        if isinstance(formula, BinFormula) and formula.ends:
            if people is None:
                reasons[name] = PRIVATE_COUNT
            else:
                margins[name] = find_even_margin(formula, certificate, people)
        elif depends_on_choice(post, planned.formulas):
            reasons[name] = IN_RANK
        elif not has_interval(post, planned.formulas):
            reasons[name] = NO_NUMBER
        elif linear is not None:
            low, high = (float(end) for end in bound_column(post, planned.formulas))
            margins[name] = min(find_linear_margin(linear, by_name, 1 - miss), high - low)
        elif people is None:
            reasons[name] = PRIVATE_COUNT
        else:
            margins[name] = _find_assumed_margin(post, planned, certificate, miss, people)
    return margins, reasons


def _find_assumed_margin(
    post: Post, planned: Planned, certificate: Certificate, miss: Fraction, people: float
) -> float:
    """The margin for `people` rows in each cell, with values that are spread evenly between their bounds."""
    squares = {
        name: formula.reach**2 / 3  # the average square of values that are spread evenly around the centre
        for formula in planned.formulas
        if isinstance(formula, VarianceFormula)
        for name, _ in formula.squares.terms
    }
    pairs = [formula for formula in planned.formulas if isinstance(formula, PairFormula)]
    of_pairs = {name for pair in pairs for sums in (pair.xx, pair.yy) if sums is not None for name, _ in sums.terms}
    middle = {}
    for measurement in planned.plan.measurements:
        parts = _spread_evenly(measurement.quantity, per_row=planned.plan.unit.per_row)
        if measurement.name in squares:
            parts = (squares[measurement.name],)
        elif measurement.name in of_pairs and isinstance(measurement.quantity, Sum):
            grid = measurement.quantity.grid
            parts = ((grid.upper / 3 - measurement.quantity.offset) * 2.0**grid.exponent,)
        middle[measurement.name] = np.array(parts) * people
    keys: list[Objects] = [np.array([None], object) for _ in planned.plan.keys]
    shown = ShownRows(assume_release(certificate, middle), planned.formulas, keys, 1)
    low, high = (float(ends[0]) for ends in find_column_ends(post, shown, miss))
    return (high - low) / 2 if math.isfinite(low) and math.isfinite(high) else math.inf


def _spread_evenly(quantity: Quantity, *, per_row: bool) -> tuple[float, ...]:  # noqa: PLR0911 - one a quantity
    """The average contribution of a row, in units, if values are spread evenly between their bounds."""
    match quantity:
        case Count() | People() | Keys() | WeightedKeys() | Distinct():
            return (1.0,)
        case Sum() | DistinctSum() | Products() | Quantiles() | Extreme() | Mode():
            return (0.0,) * quantity.width
        case Halves(grid=grid):
            _, down, up = find_middle(grid, per_row=per_row)
            return (up * 2.0**grid.exponent, down * 2.0**grid.exponent)
        case Thirds(grid=grid):
            return ((grid.span * 2.0**grid.exponent) ** 2 / 3,) * 3
        case Strategy(part):
            return _spread_evenly(part, per_row=per_row)
        case Pivot(part, conditions):  # as if each condition had so many rows
            return _spread_evenly(part, per_row=per_row) * len(conditions)
        case Curve(grid=grid):
            _, _, up = find_middle(grid, per_row=per_row)
            return (0.0, (up * 2.0**grid.exponent) ** 2 / 3)
        case _:
            assert_never(quantity)


def assume_release(certificate: Certificate, values: Mapping[str, Floats]) -> Reading:
    """A release with assumed values and the noise that it would have."""
    made: list[ReleasedVector] = []
    strategies = find_strategies(certificate)
    for certified in certificate.measurements:
        vectors = split_parts(certified, values.get(certified.name, np.zeros(certified.width)))
        made += [unmix(vector, strategies.get(certified.name)) for vector in vectors]
    return Reading(tuple(made))
