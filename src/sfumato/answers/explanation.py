"""The text of explain(): the measurements, sentences about the whole answer, and what intervals do not cover."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from sfumato.answers.interval_terms import find_interval_terms
from sfumato.answers.intervals import has_interval
from sfumato.answers.key_threshold import describe_key_threshold
from sfumato.answers.measurement_summary import MeasurementSummary
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
    list_proofs,
)
from sfumato.answers.quantile_intervals import NO_ENDS, is_interval
from sfumato.kernel.certify import Certificate
from sfumato.kernel.plan import (
    Different,
    Keys,
    People,
    Pivot,
    Quantity,
    Split,
    Strategy,
    WeightedKeys,
    take_part,
)
from sfumato.kernel.row_sources import TIMES_MET
from sfumato.planning.groups import drops_groups
from sfumato.planning.linear_repeats import fold_repeats
from sfumato.planning.planner import Planned
from sfumato.planning.unit_and_version import find_row_limits
from sfumato.query.query import Query

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
    elif any(aggregate.function == "QUANTILE" and aggregate.since is None for aggregate in query.aggregates):
        said.append(NO_ENDS)
    return said


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
