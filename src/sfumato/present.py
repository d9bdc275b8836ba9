"""From released integers to an Answer, and from a certificate to what it promises. Nothing here sees data."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from sfumato.answers import Answer, Cost, Explained
from sfumato.kernel.certify import Certificate, Certified
from sfumato.kernel.exact import plain
from sfumato.kernel.losses import ZCDP, PrivacyLoss, PureDP
from sfumato.kernel.mechanisms import LaplaceNoise
from sfumato.kernel.plan import Kind
from sfumato.kernel.release import Released
from sfumato.kernel.tails import per_coordinate
from sfumato.planning.accuracy import (
    Floats,
    Objects,
    aggregate_values,
    evaluate,
    in_units,
    margin_of,
    plain_measurement,
    simulated,
)
from sfumato.planning.planner import Formula, Planned
from sfumato.query.query import AggregateRef, KeyRef, Query

PRIVATE_COUNT = "its margin depends on a private count; pass assume={'n': ...} to see it for a count you expect"
SENTENCES = (
    "Each measurement has an equal share of the cost; one release covers all groups.",
    "Bounding each person's rows comes before WHERE.",
)


@dataclass(frozen=True, slots=True)
class Paid:
    """What the ledger says of an answer (stored before? the chain's head, what is left), and the small print."""

    cached: bool
    head: str
    remaining: PrivacyLoss
    disclosure: dict[str, Any]


def present(query: Query, planned: Planned, released: Released, confidence: Fraction, paid: Paid) -> Answer:
    """Rows, intervals and words from released integers: post-processing."""
    certificate = released.certificate
    measured = in_units(certificate, released.integers)
    aggregates = [aggregate_values(formula, measured) for formula in planned.formulas]
    cells = list(product(*(key.values for key in query.keys)))
    keys = [np.array([cell[index] for cell in cells] + [None], object)[:-1] for index in range(len(query.keys))]
    columns = {name: evaluate(post, aggregates, keys) for name, post in query.columns}
    selects = query.having is not None or query.limit is not None  # what is picked for being high is high by chance
    level = 1 - per_coordinate(1 - confidence, len(cells)) if selects else confidence
    ends = _ends(query, planned, released, level, keys)
    kept = _order_of(query, aggregates, keys, len(cells))
    whole = {name for name, post in query.columns if _is_whole(post, planned)}
    rows = [
        {name: _plain(np.broadcast_to(values, len(cells))[cell], name in whole) for name, values in columns.items()}
        for cell in kept
    ]
    intervals = [
        {name: (float(low[cell]), float(high[cell])) for name, (low, high) in ends.items() if low[cell] <= high[cell]}
        for cell in kept
    ]
    spent = certificate.loss if not paid.cached else ZCDP(0) if isinstance(certificate.loss, ZCDP) else PureDP(0)
    return Answer(
        tuple(columns), rows, intervals, float(confidence), Cost.of(spent), Cost.of(paid.remaining),
        released.entry_number, paid.cached, paid.head, explained(planned, certificate, confidence),
        tuple(name for name, post in query.columns if isinstance(post, KeyRef)), SENTENCES, paid.disclosure,
    )  # fmt: skip


def _ends(
    query: Query, planned: Planned, released: Released, confidence: Fraction, keys: list[Objects]
) -> dict[str, tuple[Floats, Floats]]:
    """An interval for each number: exact for counts and sums, by simulation for what is computed from several."""
    certificate = released.certificate
    measured = in_units(certificate, released.integers)
    by_name = {each.name: each for each in certificate.measurements}
    ends: dict[str, tuple[Floats, Floats]] = {}
    derived = []
    for name, post in query.columns:
        measurement = plain_measurement(post, planned.formulas)
        if measurement is not None:
            margin = margin_of(by_name[measurement], confidence)
            ends[name] = (measured[measurement] - margin, measured[measurement] + margin)
        elif not isinstance(post, KeyRef):
            derived.append((name, post))
    if derived:
        found = simulated(certificate, measured, planned.formulas, [post for _, post in derived], keys, confidence)
        ends |= dict(zip((name for name, _ in derived), found, strict=True))
    return {name: ends[name] for name, _ in query.columns if name in ends}


def margins_of(
    query: Query, planned: Planned, certificate: Certificate, confidence: Fraction, people: float | None
) -> tuple[dict[str, float | None], dict[str, str]]:
    by_name = {each.name: each for each in certificate.measurements}
    margins: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, post in query.columns:
        if isinstance(post, KeyRef):
            continue
        measurement = plain_measurement(post, planned.formulas)
        if measurement is not None:
            margins[name] = margin_of(by_name[measurement], confidence)
        elif people is not None and isinstance(post, AggregateRef):
            margins[name] = _assumed(planned.formulas[post.index], certificate, planned, post, confidence, people)
        else:
            margins[name] = None
            reasons[name] = PRIVATE_COUNT
    return margins, reasons


def _assumed(  # noqa: PLR0917
    formula: Formula,
    certificate: Certificate,
    planned: Planned,
    post: AggregateRef,
    confidence: Fraction,
    people: float,
) -> float:
    """Half the interval that an answer would have if each cell had so many people, spread evenly."""
    middle = {each.name: np.zeros(certificate.cells) for each in certificate.measurements}
    if formula.count:
        middle[formula.count] += people
    if formula.squares:
        middle[formula.squares] += people * (formula.upper or 0) / 3
    keys = [np.array([None] * certificate.cells, object)] * len(planned.plan.keys)
    ((low, high),) = simulated(certificate, middle, planned.formulas, [post], keys, confidence)
    return float(np.max(high - low) / 2)


def _order_of(query: Query, aggregates: list[Floats], keys: list[Objects], cells: int) -> list[int]:
    """HAVING, ORDER BY and LIMIT, over released values."""
    kept = list(range(cells))
    if query.having is not None:
        passed = np.broadcast_to(evaluate(query.having, aggregates, keys), cells)
        kept = [cell for cell in kept if bool(passed[cell])]
    for term in reversed(query.order):
        by = np.broadcast_to(evaluate(term.by, aggregates, keys), cells)
        kept.sort(key=lambda cell, by=by: by[cell], reverse=term.descending)  # type: ignore[misc]
    return kept if query.limit is None else kept[: query.limit]


def _is_whole(post: object, planned: Planned) -> bool:
    if not isinstance(post, AggregateRef):
        return False
    formula = planned.formulas[post.index]
    measurement = plain_measurement(post, planned.formulas)
    if formula.function == "COUNT":
        return True
    return any(each.name == measurement and each.exponent == 0 for each in planned.plan.measurements)


def _plain(value: object, whole: bool) -> object:
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return None
        return round(float(value)) if whole else float(value)
    return value.item() if isinstance(value, np.generic) else value


def explained(planned: Planned, certificate: Certificate, confidence: Fraction) -> tuple[Explained, ...]:
    return tuple(
        _in_words(measurement.kind, each, confidence)
        for measurement, each in zip(planned.plan.measurements, certificate.measurements, strict=True)
    )


def _in_words(kind: Kind, each: Certified, confidence: Fraction) -> Explained:
    step = Fraction(2) ** each.exponent
    laplace = isinstance(each.noise, LaplaceNoise)
    size = each.noise.scale * step if isinstance(each.noise, LaplaceNoise) else each.noise.variance * step**2
    share = f"ε = {plain(each.loss.epsilon)}" if isinstance(each.loss, PureDP) else f"rho = {plain(each.loss.rho)}"
    words = {Kind.COUNT: "count of rows", Kind.SUM: "sum", Kind.PEOPLE: "count of people"}
    return Explained(
        f"{each.name} ({words[kind]})",
        f"{float(each.sensitivity.l1 * step):g}",
        "discrete Laplace" if laplace else "discrete Gaussian",
        f"{float(size) if laplace else float(size) ** 0.5:g}",
        share,
        margin_of(each, confidence),
    )
