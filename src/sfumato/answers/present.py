"""What an answer promises before and after its release: margins, and the explanation. Nothing here sees data."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

import numpy as np

from sfumato.accuracy.choice_margins import even_bin_margin
from sfumato.accuracy.key_margins import people_needed
from sfumato.accuracy.noise_margins import per_coordinate
from sfumato.answers.answer import MeasurementSummary
from sfumato.answers.interval_words import find_interval_terms
from sfumato.answers.intervals import bound_column, express_as_linear, find_column_ends, has_interval
from sfumato.answers.output_sensitivity import ColumnSensitivity, find_sensitivities
from sfumato.answers.output_values import Floats, Objects
from sfumato.answers.released_values import (
    Reading,
    ReleasedVector,
    depends_on_choice,
    find_linear_margin,
    find_margin,
    read_linear,
    split_parts,
)
from sfumato.answers.shown_rows import ShownRows, find_vector_names
from sfumato.kernel.bin_choice import QuantileChoice
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.exact import plain
from sfumato.kernel.keys import KeyRule
from sfumato.kernel.losses import ZCDP, ApproxDP, PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.plan import (
    Count,
    Curve,
    Extreme,
    Halves,
    Keys,
    Measurement,
    Mode,
    People,
    Quantiles,
    Quantity,
    Split,
    Sum,
    Thirds,
    count_bins,
)
from sfumato.kernel.row_sources import TIMES_MET
from sfumato.kernel.split_sums import halfway
from sfumato.planning.formulas import VarianceFormula, count_of
from sfumato.planning.groups import drops_groups
from sfumato.planning.moment_measurements import name_vectors
from sfumato.planning.planner import Planned
from sfumato.planning.unit_and_version import find_row_limits
from sfumato.query.query import KeyRef, Post, Query

PRIVATE_COUNT = "The margin depends on a private count. preview(..., assume={'n': ...}) shows it for an assumed count."
NO_NUMBER = "The column is not a number."
IN_RANK = "The error of this choice is in rank, not in value. explain() states it in rows."
EVENLY = "Margins of averages and variances assume values that are spread evenly between the declared bounds."
TOGETHER = (
    "Aggregates that are measured together share their noise: each row is split into parts by the position of its "
    "value between the bounds, each part gets noise, and counts, sums and averages are computed from the noisy parts."
)
WEIGHTS = Count | People | Keys | Halves | Thirds  # never negative


def find_released_sensitivities(query: Query, planned: Planned, reading: Reading) -> tuple[ColumnSensitivity, ...]:
    """What one person can change of each column, for the released number of rows where there is one group."""
    counts = {}
    for place, formula in enumerate(planned.formulas):
        count = count_of(formula)
        if count is not None and count.terms and planned.plan.cells == 1:
            (found,) = read_linear(count, reading.values)
            counts[place] = max(1, round(float(found)))
    return find_sensitivities(query, planned, counts)


def compute_miss_chance(query: Query, planned: Planned, post: Post, confidence: Fraction, compared: int) -> Fraction:
    """How often one interval may miss. Sorted by its own noise, all intervals of a column hold together.

    The first row is first partly for its noise: only if all hold does the one that is read first.
    """
    sorts = [find_vector_names(term.by, planned.formulas) for term in query.order]
    together = any(each & find_vector_names(post, planned.formulas) for each in sorts)
    return per_coordinate(1 - confidence, compared) if together else 1 - confidence


def find_margins(
    query: Query, planned: Planned, certificate: Certificate, confidence: Fraction, people: float | None
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Half the width of each column's intervals, before release; None, with the reason, where it is not known."""
    by_name = {each.name: each for each in _assume_release(certificate, {}).measured}
    margins: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, post in query.columns:
        if isinstance(post, KeyRef):
            continue
        margins[name] = None
        miss = compute_miss_chance(query, planned, post, confidence, certificate.cells or 1)
        linear = express_as_linear(post, planned.formulas)
        if depends_on_choice(post, planned.formulas):
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
    """Half the interval that an answer would have if each cell had so many people, spread evenly: one cell tells."""
    squares = {
        name: formula.reach**2 / 3  # the average square of values that are spread evenly around the centre
        for formula in planned.formulas
        if isinstance(formula, VarianceFormula)
        for name, _ in formula.squares.terms
    }
    middle = {}
    for each in planned.plan.measurements:
        parts = _spread_evenly(each.quantity, per_row=planned.plan.unit.per_row)
        if each.name in squares:
            parts = (squares[each.name],)
        middle[each.name] = np.array(parts) * people
    keys: list[Objects] = [np.array([None], object) for _ in planned.plan.keys]
    shown = ShownRows(_assume_release(certificate, middle), planned.formulas, keys, 1)
    low, high = (float(each[0]) for each in find_column_ends(post, shown, miss))
    return (high - low) / 2 if math.isfinite(low) and math.isfinite(high) else math.inf


def _spread_evenly(quantity: Quantity, *, per_row: bool) -> tuple[float, ...]:
    """What a row adds on average, in units, if values are spread evenly between their bounds."""
    match quantity:
        case Count() | People() | Keys():
            return (1.0,)
        case Sum() | Quantiles() | Extreme() | Mode():
            return (0.0,) * quantity.width
        case Halves(grid=grid):
            _, down, up = halfway(grid, per_row=per_row)
            return (up * 2.0**grid.exponent, down * 2.0**grid.exponent)
        case Thirds(grid=grid):
            return ((grid.span * 2.0**grid.exponent) ** 2 / 3,) * 3
        case Curve(grid=grid):
            _, _, up = halfway(grid, per_row=per_row)
            return (0.0, (up * 2.0**grid.exponent) ** 2 / 3)
        case _:
            assert_never(quantity)


def _assume_release(certificate: Certificate, values: Mapping[str, Floats]) -> Reading:
    """The noise that a release would have, around assumed values."""
    made: list[ReleasedVector] = []
    for each in certificate.measurements:
        made += split_parts(each, values.get(each.name, np.zeros(each.width)))
    return Reading(tuple(made))


def summarise_measurements(
    planned: Planned, certificate: Certificate, confidence: Fraction, reading: Reading | None = None
) -> tuple[MeasurementSummary, ...]:
    released = (reading or _assume_release(certificate, {})).measured
    return tuple(
        _summarise_measurement(measurement, each, released, confidence)
        for measurement, each in zip(planned.plan.measurements, certificate.measurements, strict=True)
    )


def write_sentences(query: Query, planned: Planned, certificate: Certificate, confidence: Fraction) -> tuple[str, ...]:
    """Sentences about the whole answer: shares of the cost, contribution bounds, undeclared keys, intervals."""
    said = []
    measurements = len(planned.plan.measurements)
    if measurements > 1:
        said.append(f"The cost is divided equally among the {measurements} measurements.")
    if planned.plan.keys:
        said.append("Each measurement covers all groups: the number of groups does not change the cost.")
    if any(isinstance(each.quantity, Split) for each in planned.plan.measurements):
        said.append(TOGETHER)
    if not planned.plan.unit.per_row or planned.plan.reach > 1:
        rows = planned.plan.reach
        said.append(f"Contribution bound: {rows} {'row' if rows == 1 else 'rows'} per person, applied before WHERE.")
    limits = find_row_limits(planned.plan.source)
    if limits:
        read = " and ".join(f"{most:,} rows per person from {table}" for table, most in sorted(limits.items()))
        said.append(
            f"The engine reads at most {read} ({TIMES_MET} times max_rows_per_unit). A hash selects the rows of a "
            "person who has more. Without this limit, the answering time could reveal that a person has very many rows."
        )
    counts_people = any(isinstance(each.quantity, People | Keys) for each in planned.plan.measurements)
    if counts_people and drops_groups(planned.plan):
        most = planned.plan.max_groups_per_unit
        groups = "1 group" if most == 1 else f"{most} groups"
        said.append(
            f"Contribution bound: {groups} per person. A hash selects the groups that count for a person who is in "
            "more. max_groups_per_unit in the catalog, or max_groups_contributed in OPTIONS, sets this bound."
        )
    for each in certificate.measurements:
        if each.threshold is not None and isinstance(each.loss, ApproxDP):
            plan = planned.plan
            rule = KeyRule(each.loss.epsilon, each.loss.delta, plan.max_groups_per_unit, plan.unit.neighbours)
            half, most = people_needed(rule, "0.5"), people_needed(rule, "0.95")
            said.append(
                f"The keys are undeclared: a key is shown if its noisy number of people is at least {each.threshold} "
                f"(δ = {plain(each.loss.delta)}). A key with {half} people is shown with a probability of 50 %, a key "
                f"with {most} people with 95 %."
            )
    if any(has_interval(post, planned.formulas) for _, post in query.columns):
        said += find_interval_terms(query, planned, certificate).write_sentences(float(confidence))
    return tuple(said)


def _summarise_measurement(
    measurement: Measurement, each: Certified, released: Sequence[ReleasedVector], confidence: Fraction
) -> MeasurementSummary:
    match each.loss:
        case ZCDP(rho):
            share = f"rho = {plain(rho)}"
        case PureDP(epsilon) | ApproxDP(epsilon):
            share = f"ε = {plain(epsilon)}"
    as_released = next(one for one in released if one.name in name_vectors(measurement))
    margin = find_margin(as_released, confidence)
    if isinstance(each.noise, BinChoice):
        grid = Fraction(2) ** each.weight_exponent
        moved, spread = each.sensitivity.l1 * grid, float(each.noise.spread * grid)
        name, how = f"{each.name} ({_describe(measurement.quantity)})", "permute-and-flip"
        return MeasurementSummary(
            name,
            f"{float(moved):g}",
            how,
            f"{spread:g}",
            share,
            margin,
            _describe_rank_margin(each.noise, grid, confidence),
        )
    step = Fraction(2) ** each.exponent
    laplace = isinstance(each.noise, LaplaceNoise)
    size = each.noise.scale * step if isinstance(each.noise, LaplaceNoise) else each.noise.variance * step**2
    return MeasurementSummary(
        f"{each.name} ({_describe(measurement.quantity)})",
        f"{float(each.sensitivity.l1 * step):g}",
        "discrete Laplace" if laplace else "discrete Gaussian",
        f"{float(size) if laplace else float(size) ** 0.5:g}",
        share,
        margin,
        " in each part" if isinstance(measurement.quantity, Split) else "",
    )


def _describe_rank_margin(choice: BinChoice, grid: Fraction, confidence: Fraction) -> str:
    if not isinstance(choice, QuantileChoice):
        return " rows of rank"
    even = even_bin_margin(choice, confidence) * float(grid)
    return f" rows of rank for any data, ±{even:,.4g} if values are spread evenly between the bounds"


def _describe(quantity: Quantity) -> str:  # noqa: PLR0911 - one return a quantity
    match quantity:
        case Count():
            return "number of rows"
        case Sum():
            return "sum"
        case People():
            return "number of people"
        case Keys():
            return "number of people per undeclared key"
        case Halves():
            return "count and sum together"
        case Thirds():
            return "count, sum and squares together"
        case Curve():
            return "sum and squares together"
        case Quantiles(fractions=fractions):
            names = ", ".join(f"{float(fraction):g}" for fraction in fractions)
            return f"{'quantile' if len(fractions) == 1 else 'quantiles'} {names}, {_describe_bins(quantity)}"
        case Extreme(largest=largest):
            return f"{'maximum' if largest else 'minimum'}, {_describe_bins(quantity)}"
        case Mode():
            return f"most frequent, chosen from {count_bins(quantity):,} declared values"
        case _:
            assert_never(quantity)


def _describe_bins(choice: Quantiles | Extreme) -> str:
    return f"chosen from {count_bins(choice):,} public bins of width {2.0**choice.grid.exponent:g}"
