"""The text of explain(): the measurements, sentences about the whole answer, and what intervals do not cover."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import assert_never

from sfumato.accuracy.choice_margins import compute_even_bin_margin
from sfumato.accuracy.noise_margins import compute_noise_margin
from sfumato.answers.column_margins import assume_release
from sfumato.answers.interval_terms import find_interval_terms
from sfumato.answers.intervals import has_interval
from sfumato.answers.key_threshold import describe_key_threshold
from sfumato.answers.output_sensitivity import ColumnSensitivity
from sfumato.answers.present_keys import describe_present_keys
from sfumato.answers.proofs import (
    BOUND_CLAIMS,
    GROUP_CLAIMS,
    KEY_CLAIMS,
    LOSS_CLAIMS,
    PART_CLAIMS,
    PIVOT_CLAIMS,
    SHARE_CLAIMS,
    STRATEGY_CLAIMS,
    VALUE_CLAIMS,
    cite,
    find_claims,
    list_proofs,
)
from sfumato.answers.quantile_intervals import NO_ENDS, is_interval
from sfumato.answers.released_values import (
    Reading,
    ReleasedVector,
    find_margin,
)
from sfumato.errors import KernelFault
from sfumato.kernel.bin_choice import QuantileChoice
from sfumato.kernel.certify import BinChoice, Certificate, Certified
from sfumato.kernel.exact import write_plain
from sfumato.kernel.losses import GDP, ZCDP, ApproxDP, PureDP
from sfumato.kernel.mechanisms import BoxNoise, GaussianNoise, LaplaceNoise, Noise
from sfumato.kernel.plan import (
    BoundedPlan,
    Count,
    Curve,
    Different,
    Distinct,
    DistinctSum,
    Extreme,
    Halves,
    Keys,
    Measurement,
    Mode,
    People,
    Pivot,
    Products,
    Quantiles,
    Quantity,
    Split,
    Strategy,
    Sum,
    Thirds,
    WeightedKeys,
    take_part,
)
from sfumato.kernel.released_steps import count_bins
from sfumato.kernel.row_sources import TIMES_MET
from sfumato.kernel.strategies import bound_columns
from sfumato.planning.groups import drops_groups
from sfumato.planning.linear_repeats import fold_repeats
from sfumato.planning.moment_measurements import name_vectors
from sfumato.planning.planner import Planned
from sfumato.planning.unit_and_version import find_row_limits
from sfumato.query.query import Query
from sfumato.shown_amounts import write_amounts

NOT_COVERED = (
    "Margins and intervals cover the noise only. Contribution bounds and clamping can add bias, which is not covered. "
    "`diagnose` estimates how much, one table at a time; the owner's load report states it exactly."
)
TOGETHER = (
    "Aggregates that are measured together share their noise: each row is split into parts by the position of its "
    "value between the bounds, each part gets noise, and counts, sums and averages are computed from the noisy parts."
)

REPEATED = (
    "A value that is a multiple of another value plus a constant is not measured again: its aggregates are computed "
    "from the noisy sum and count of the other value."
)

MIXED = (
    "Running totals would add up the noise of all groups before them. Weighted sums of groups are measured instead (a "
    "strategy), chosen for the least squared error of all shown groups and running totals together. Groups and running "
    "totals are computed from the noisy sums, and agree with each other. Without running totals, the margin of a group "
    "alone would be smaller."
)

NO_GROUP = "Rows whose key is NULL are in no group: COALESCE in the key gives them one."
NULL_KEYS = (
    "Rows whose key is NULL are in no group. COALESCE(key, 'none') as the key, or COALESCE(key, -1) for a number, "
    "would give them one."
)
PIVOTED = (
    "Aggregates over rows that meet different conditions (CASE, FILTER) are measured together: each row meets one of "
    "the conditions at most, so the number of conditions does not change the cost."
)


@dataclass(frozen=True, slots=True)
class MeasurementSummary:
    """One measurement: its sensitivity, its noise, its share of the cost, and its margin."""

    measures: str
    one_person_changes: str
    mechanism: str
    scale: str
    share: str
    margin: float
    of: str = ""  # what the margin refers to, if not to the measurement's own value
    claims: tuple[str, ...] = ()  # whose proofs are in docs/claims


def summarise_measurements(
    planned: Planned, certificate: Certificate, confidence: Fraction, reading: Reading | None = None
) -> tuple[MeasurementSummary, ...]:
    released = (reading or assume_release(certificate, {})).measured
    return tuple(
        _summarise_measurement(measurement, certified, released, confidence)
        for measurement, certified in zip(planned.plan.measurements, certificate.measurements, strict=True)
    )


def write_sentences(query: Query, planned: Planned, certificate: Certificate, confidence: Fraction) -> tuple[str, ...]:
    """Sentences about the whole answer: shares of the cost, contribution bounds, undeclared keys, intervals."""
    said = [*query.unit_notes]
    said += _describe_shares(query, planned)
    if any(repeat.factor != 1 or repeat.shift for repeat in fold_repeats(query.aggregates).values()):
        said.append(REPEATED)
    if planned.plan.keys:
        covered = "Each measurement covers all groups: the number of groups does not change the cost."
        said.append(cite(covered, GROUP_CLAIMS))
    if query.null_keys:
        said.append(NULL_KEYS)
    said += _describe_shared_noise([measurement.quantity for measurement in planned.plan.measurements])
    if not planned.plan.unit.per_row or planned.plan.reach > 1:
        rows = planned.plan.reach
        bound = f"Contribution bound: {rows} {'row' if rows == 1 else 'rows'} per person, applied before WHERE."
        said.append(cite(bound, BOUND_CLAIMS))
    limits = find_row_limits(planned.plan.source)
    if limits:
        read = " and ".join(f"{most:,} rows per person from {table}" for table, most in sorted(limits.items()))
        said.append(
            f"The engine reads at most {read} ({TIMES_MET} times max_rows_per_unit). A hash selects the rows of a "
            "person who has more. Without this limit, the answering time could reveal that a person has very many rows."
        )
    counts_people = any(
        isinstance(measurement.quantity, People | Keys | WeightedKeys) for measurement in planned.plan.measurements
    )
    if counts_people and drops_groups(planned.plan):
        most = planned.plan.max_groups_per_unit
        groups = "1 group" if most == 1 else f"{most} groups"
        bound = (
            f"Contribution bound: {groups} per person. A hash selects the groups that count for a person who is in "
            "more. max_groups_per_unit in the catalog, or max_groups_contributed in OPTIONS, sets this bound."
        )
        said.append(cite(bound, BOUND_CLAIMS))
    counts_values = any(isinstance(measurement.quantity, Different) for measurement in planned.plan.measurements)
    if counts_values and not planned.plan.unit.per_row:
        most = planned.plan.reach
        values = "1 different value" if most == 1 else f"{most} different values"
        bound = (
            f"Contribution bound: {values} per person{' over all groups' if planned.plan.keys else ''}, applied after "
            "WHERE. A hash selects the values that count for a person who has more. max_rows_per_unit in the catalog "
            "sets this bound."
        )
        said.append(cite(bound, VALUE_CLAIMS))
    present = describe_present_keys(query, planned, certificate, confidence)
    if present is not None:
        said.append(present)
    threshold = describe_key_threshold(planned, certificate)
    if threshold is not None:
        said.append(cite(threshold, KEY_CLAIMS))
    if any(has_interval(post, planned.formulas) for _, post in query.columns):
        said += find_interval_terms(query, planned, certificate).write_sentences(float(confidence))
    return tuple(said)


def _describe_shared_noise(quantities: Sequence[Quantity]) -> Iterator[str]:
    """Sentences about measurements that several groups, conditions or aggregates share."""
    if any(isinstance(quantity, Pivot) for quantity in quantities):
        yield cite(PIVOTED, PIVOT_CLAIMS)
    if any(isinstance(quantity, Strategy) for quantity in quantities):
        yield cite(MIXED, STRATEGY_CLAIMS)
    if any(isinstance(take_part(quantity), Split) for quantity in quantities):
        yield cite(TOGETHER, PART_CLAIMS)


def _describe_shares(query: Query, planned: Planned) -> list[str]:
    """How the measurements share the cost."""
    said: list[str] = []
    intervals = sum(is_interval(measurement.quantity) for measurement in planned.plan.measurements)
    measurements = len(planned.plan.measurements) - intervals
    if measurements > 1:
        said.append(cite(f"The cost is divided equally among the {measurements} measurements.", SHARE_CLAIMS))
    if intervals and query.quantile_intervals is not None:
        part = f"{100 * float(query.quantile_intervals.share):.4g} % of the cost of quantiles pays for their intervals."
        said.append(cite(f"{part} interval_share sets this share.", SHARE_CLAIMS))
    elif any(one.function == "QUANTILE" and one.since is None for one in query.aggregates):
        said.append(NO_ENDS)
    return said


def _summarise_measurement(
    measurement: Measurement, certified: Certified, released: Sequence[ReleasedVector], confidence: Fraction
) -> MeasurementSummary:
    share = _write_share(certified)
    as_released = next(one for one in released if one.name in name_vectors(measurement))
    margin = find_margin(as_released, confidence)
    if isinstance(certified.noise, BinChoice):
        grid = Fraction(2) ** certified.weight_exponent
        moved, spread = certified.sensitivity.l1 * grid, float(certified.noise.spread * grid)
        name, how = f"{certified.name} ({_describe(measurement.quantity)})", "permute-and-flip"
        return MeasurementSummary(
            name,
            f"{float(moved):g}",
            how,
            f"{spread:g}",
            share,
            margin,
            _describe_rank_margin(certified.noise, grid, confidence),
            find_claims(measurement.quantity, certified),
        )
    if isinstance(certified.noise, BoxNoise):
        raise KernelFault("Products are read by estimators, not by answers.")
    step = Fraction(2) ** certified.exponent
    if isinstance(measurement.quantity, Strategy):  # in units of its longest column
        _, longest, _ = bound_columns(measurement.quantity.matrices)
        step /= isqrt(longest)
    laplace = isinstance(certified.noise, LaplaceNoise)
    size = (
        certified.noise.scale * step
        if isinstance(certified.noise, LaplaceNoise)
        else certified.noise.variance * step**2
    )
    return MeasurementSummary(
        f"{certified.name} ({_describe(measurement.quantity)})",
        f"{float(certified.sensitivity.l1 * step):g}",
        _name_noise(certified.noise),
        f"{float(size) if laplace else float(size) ** 0.5:g}",
        share,
        margin,
        _name_margin(measurement.quantity),
        find_claims(measurement.quantity, certified),
    )


def describe_block(plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction) -> MeasurementSummary:
    """One of the measurements of marginals. `step` is what a step of its integers is worth."""
    quantity, cells = plan.measurements[0].quantity, plan.cells or 1
    keys = f"by {len(plan.keys)} {'key' if len(plan.keys) == 1 else 'keys'}" if plan.keys else "in all"
    what = "differences from the mean along each key" if isinstance(quantity, Strategy) else "cells"
    whole = f"{_describe(take_part(quantity))} {keys}" + (f": {cells:,} {what}" if plan.keys else "")
    return _describe_queries(plan, certified, step, confidence, whole)


def describe_pieces(plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction) -> MeasurementSummary:
    """The measurement of ranges, in units of its longest column."""
    quantity = plan.measurements[0].quantity
    longest = bound_columns(quantity.matrices)[1] if isinstance(quantity, Strategy) else 1
    whole = f"{_describe(take_part(quantity))}, as {plan.cells:,} weighted sums of pieces of the ranges"
    return _describe_queries(plan, certified, step / isqrt(longest), confidence, whole)


def _describe_queries(
    plan: BoundedPlan, certified: Certified, step: float, confidence: Fraction, whole: str
) -> MeasurementSummary:
    noise = certified.noise
    if not isinstance(noise, LaplaceNoise | GaussianNoise):
        raise AssertionError("a block has additive noise")
    size = float(noise.scale) if isinstance(noise, LaplaceNoise) else float(noise.variance) ** 0.5
    return MeasurementSummary(
        f"{certified.name} ({whole})",
        f"{float(certified.sensitivity.l1) * step:g}",
        _name_noise(noise),
        f"{size * step:g}",
        _write_share(certified),
        compute_noise_margin(noise, 1 - confidence) * step,
        " in each" if plan.keys else "",
        find_claims(plan.measurements[0].quantity, certified),
    )


def _write_share(certified: Certified) -> str:
    match certified.loss:
        case ZCDP(rho):
            return write_amounts({"rho": write_plain(rho)})
        case GDP(mu_squared):
            return write_amounts({"mu_squared": write_plain(mu_squared)})
        case PureDP(epsilon) | ApproxDP(epsilon):
            return write_amounts({"epsilon": write_plain(epsilon)})


def _name_margin(quantity: Quantity) -> str:
    """What the margin of a measurement refers to."""
    if isinstance(quantity, Strategy):
        return " in a group"
    return " in each part" if isinstance(quantity, Split | Pivot) else ""


def _name_noise(noise: Noise) -> str:
    if isinstance(noise, LaplaceNoise):
        return "discrete Laplace"
    return "rounded Gaussian" if noise.rounded else "discrete Gaussian"


def _describe_rank_margin(choice: BinChoice, grid: Fraction, confidence: Fraction) -> str:
    if not isinstance(choice, QuantileChoice):
        return " rows of rank"
    if choice.miss is not None:
        return f" rows of rank for each end, which is on the wrong side with probability {float(choice.miss):g} at most"
    even = compute_even_bin_margin(choice, confidence) * float(grid)
    return f" rows of rank for any data, ±{even:,.4g} if values are spread evenly between the bounds"


def _describe(quantity: Quantity) -> str:  # noqa: PLR0911, PLR0912 - one return a quantity
    match quantity:
        case Count():
            return "number of rows"
        case Sum():
            return "sum"
        case People():
            return "number of people"
        case Keys():
            return "number of people per undeclared key"
        case WeightedKeys():
            return "weight of each undeclared key"
        case Pivot(part, conditions):
            return f"{_describe(part)}, for {len(conditions)} disjoint conditions"
        case Strategy(part, matrices):
            queries = prod(map(len, matrices))
            return f"{_describe(part)}, as {queries:,} weighted sums of groups"
        case Distinct(keys):
            return "number of different values" if len(keys) == 1 else "number of different combinations of values"
        case DistinctSum():
            return "sum of different values"
        case Halves():
            return "count and sum together"
        case Thirds():
            return "count, sum and squares together"
        case Curve():
            return "sum and squares together"
        case Products():
            return "sums of products together"
        case Quantiles(fractions=fractions):
            names = ", ".join(f"{float(fraction):g}" for fraction in fractions)
            if quantity.miss is not None:
                return f"intervals of the {'quantile' if len(fractions) == 1 else 'quantiles'} {names}"
            return f"{'quantile' if len(fractions) == 1 else 'quantiles'} {names}, {_describe_bins(quantity)}"
        case Extreme(largest=largest):
            return f"{'maximum' if largest else 'minimum'}, {_describe_bins(quantity)}"
        case Mode():
            return f"most frequent, chosen from {count_bins(quantity):,} declared values"
        case _:
            assert_never(quantity)


def _describe_bins(choice: Quantiles | Extreme) -> str:
    return f"chosen from {count_bins(choice):,} public bins of width {2.0**choice.grid.exponent:g}"


def join_explanation(
    asked: Sequence[ColumnSensitivity],
    explained: Sequence[MeasurementSummary],
    sentences: Sequence[str],
    confidence: float,
    loss: str,
) -> str:
    """Join the parts of an explanation. Lines that a proof supports end with the numbers of its claims."""
    measured = [
        cite(
            f"{summary.measures}: sensitivity {summary.one_person_changes}; {summary.mechanism} mechanism, "
            f"scale {summary.scale}; {summary.share}; "
            f"margin ±{summary.margin:,.4g}{summary.of} ({100 * confidence:.4g} % confidence).",
            summary.claims,
        )
        for summary in explained
    ]
    stated = cite(loss, LOSS_CLAIMS)
    text = "\n".join(["Columns:", *map(str, asked), "Measurements:", *measured, *sentences, stated, NOT_COVERED])
    return f"{text}\n{list_proofs(text)}"


def prepend_warnings(warnings: Sequence[str], text: str) -> str:
    """Put the warnings before a text."""
    return "\n".join([*(f"Warning: {warning}" for warning in warnings), text])
